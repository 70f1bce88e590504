"""All experiments, by the names that people type, in the order of the page."""

from __future__ import annotations

from .experiment import Experiment
from .learning.buffers import Buffers
from .learning.couplings import Couplings
from .learning.stepsize_sensitivity import StepSizeSensitivity
from .learning.table1 import Table1
from .learning.table2 import Table2
from .sampling.figure1 import Figure1
from .sampling.ordinal import OrdinalMixtures
from .sampling.proposals import Proposals
from .sampling.regression import Regression
from .sampling.targets2d import Targets2d
from .sampling.third_order import ThirdOrder

_ALL: tuple[Experiment, ...] = (
    *(OrdinalMixtures(), Regression(), ThirdOrder(), Figure1(), Proposals(), Targets2d()),
    *(Table1(), StepSizeSensitivity(), Couplings(), Table2(), Buffers()),
)
EXPERIMENTS = {each.name: each for each in _ALL}
GROUPS = {
    "sampling": tuple(each.name for each in _ALL if not each.trains),
    "training": tuple(each.name for each in _ALL if each.trains),
    "all": tuple(EXPERIMENTS),
}
