"""The samplers: one file each. A kernel is frozen data and `step(key, target, x) -> (x, info)`."""

from .avg import AVG
from .base import Kernel, begin
from .block_gibbs import BlockGibbs
from .cycle import Cycle
from .exchange import Exchange
from .gibbs import Gibbs
from .gwg import GWG
from .informed import Informed
from .jump_process import JumpProcess
from .metropolis import Info
from .mixture import Mixture
from .ncg import NCG
from .pas import PAS
from .pavg import PAVG
from .swendsen_wang import SwendsenWang
from .tempered import Tempered
from .tgs import TGS
from .uniform_mh import UniformMH

__all__ = [
    "AVG",
    "GWG",
    "NCG",
    "PAS",
    "PAVG",
    "TGS",
    "BlockGibbs",
    "Cycle",
    "Exchange",
    "Gibbs",
    "Info",
    "Informed",
    "JumpProcess",
    "Kernel",
    "Mixture",
    "SwendsenWang",
    "Tempered",
    "UniformMH",
    "begin",
    "samplers",
]


def samplers() -> dict[str, type[Kernel]]:
    """Those of this room, by name, the simplest first: what is exported here and has a name."""
    ours = [cls for cls in globals().values() if isinstance(cls, type) and issubclass(cls, Kernel) and cls.name]
    return {cls.name: cls for cls in sorted(ours, key=lambda cls: cls.simplicity)}
