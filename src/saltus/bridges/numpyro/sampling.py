"""`sample(model, ...)` and `target(model, ...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from ...errors import SaltusError, TargetError
from ...target import Target
from ..models import Model, discrete_target, read_asked, sample_model
from .density import make_density
from .sites import dims_of, read_sites, traced

if TYPE_CHECKING:
    import xarray as xr


def sample(
    model: Callable,
    *args: Any,
    seed: int = 0,
    num_draws: int = 1000,
    num_warmup: int = 1000,
    num_chains: int = 4,
    thin: int = 1,
    sampler: Any = "auto",
    target_acceptance: float = 0.8,
    max_tree_depth: int = 10,
    log_likelihood: bool = True,
    progress: bool = True,
    **kwargs: Any,
) -> xr.DataTree:
    """Draw from the posterior of a NumPyro model with discrete sites, and continuous ones if it has any.

    model: as for `numpyro.infer.MCMC`, unchanged. args, kwargs: its arguments; every keyword not named here is the model's.
    seed, num_draws, num_warmup, num_chains, thin, progress: as for `saltus.sample`.
    sampler, target_acceptance, max_tree_depth: as for `saltus.mixed`.
    log_likelihood: keep that of every observed site, for `arviz.loo`.
    Returns a DataTree: `posterior` has the model's sites and deterministic sites by name, with plates for dimensions.
    Raises TargetError where a site cannot be sampled; it names the site and says what to do.
    """
    settings = (seed, num_draws, num_warmup, num_chains, thin, sampler, target_acceptance, max_tree_depth, log_likelihood, progress)
    return sample_model(read_model(model, args, kwargs), read_asked(*settings))


def target(model: Callable, *args: Any, **kwargs: Any) -> Target:
    """The `saltus.Target` of a NumPyro model whose latent sites are all discrete: for `saltus.sample`, `saltus.check` and so on.

    Its space is a `saltus.Product` with a part for each site. Raises TargetError where there is a continuous site.
    """
    read = read_model(model, args, kwargs)
    if read.sites.continuous:
        raise TargetError(
            "The model has continuous sites.",
            expected="discrete latent sites only",
            found=", ".join(name for name, _ in read.sites.continuous),
            hint="saltus.bridges.numpyro.sample(model, ...) samples both",
        )
    return discrete_target(read)


def read_model(model: Callable, args: tuple, kwargs: dict[str, Any]) -> Model:
    """Its sites and its density, or TargetError."""
    sites = read_sites(model, args, kwargs)
    try:
        density, data, told = make_density(model, sites, args, kwargs)
    except SaltusError:
        raise
    except Exception as cause:
        raise TargetError(
            "The model cannot be traced by JAX.",
            expected="a model whose control flow does not depend on the values of its sites",
            found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
            hint="choose with jnp.where instead of `if`; numpyro.infer.MCMC needs the same",
        ) from cause
    trace = traced(model, args, kwargs, jax.random.key(0))
    dims = {name: dims_of(site) for name, site in trace.items() if site["type"] in ("sample", "deterministic")}
    return Model(getattr(model, "__name__", type(model).__name__), density, sites, data, dims, {}, told)
