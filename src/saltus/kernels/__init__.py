"""The samplers: one file each. A kernel is frozen data and `step(key, target, x) -> (x, info)`."""

from .avg import AVG
from .base import Kernel
from .block_gibbs import BlockGibbs
from .gibbs import Gibbs
from .gwg import GWG
from .informed import Informed
from .metropolis import Info
from .ncg import NCG
from .pavg import PAVG
from .uniform_mh import UniformMH

__all__ = ["AVG", "GWG", "NCG", "PAVG", "BlockGibbs", "Gibbs", "Info", "Informed", "Kernel", "UniformMH"]
