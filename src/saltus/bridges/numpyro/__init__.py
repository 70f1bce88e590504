"""NumPyro models with discrete sites, as they are: `sample(model, ...)`, `target(model, ...)`, `DiscreteKernel(model)`."""

from ..needed import needed

needed("numpyro", "saltus.bridges.numpyro")

from .kernel import DiscreteKernel  # noqa: E402
from .sampling import sample, target  # noqa: E402

__all__ = ["DiscreteKernel", "sample", "target"]
