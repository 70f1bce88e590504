"""PyMC models with discrete variables, as they are: `sample(model)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import SaltusError, TargetError
from ..spaces import Product
from .derivatives import finite_slopes
from .discrete_sites import Site, Sites, depends, make_site, unbounded
from .models import Model, read_asked, sample_model
from .needed import needed

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["sample"]


def sample(
    model: Any = None,
    *,
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
) -> xr.DataTree:
    """Draw from the posterior of a PyMC model with discrete variables, and continuous ones if it has any.

    model: a `pymc.Model`; None: the one whose `with` block this is in.
    Other arguments as for `saltus.bridges.numpyro.sample`.
    Returns a DataTree with the model's names, dims, coords and deterministics. Raises TargetError where a variable cannot be
    sampled; it names the variable and says what to do. Where variables can be summed out (`pymc_extras.MarginalModel`), that and
    NUTS are usually better.

    seed, num_draws, num_warmup, num_chains, thin: as for `saltus.sample`. progress: show a progress line on a terminal.
    sampler: of the discrete variables: a kernel, class or name. target_acceptance, max_tree_depth: of NUTS.
    log_likelihood: whether to keep that of the observed variables.
    """
    settings = (seed, num_draws, num_warmup, num_chains, thin, sampler, target_acceptance, max_tree_depth, log_likelihood, progress)
    asked = read_asked(*settings)
    return sample_model(read_model(model), asked)


@dataclass(frozen=True, eq=False)
class Density:
    """log p of a PyMC model by JAX, at values of its discrete variables and unbounded ones of the others."""

    sites: Sites
    order: tuple[tuple[str, str], ...]  # (variable, "discrete" or "continuous"), as the functions take them
    log_prob: Any
    shown: Any
    observed: Any
    names: tuple[tuple[str, ...], tuple[str, ...]]  # of what `shown` and `observed` return

    as_float = False

    def _values(self, s: Any, u: dict[str, jax.Array]) -> list[jax.Array]:
        z = {site.name: site.value(s, as_float=False).astype(site.dtype) for site in self.sites.discrete}
        return [z[name] if kind == "discrete" else u[name] for name, kind in self.order]

    def __call__(self, s: Any, u: dict[str, jax.Array]) -> jax.Array:
        f = finite_slopes(lambda *values: self.log_prob(*values)[0], *self._values(s, u))
        return jnp.asarray(f).astype(jnp.result_type(float))

    def seen(self, s: Any, u: dict[str, jax.Array]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        values = self._values(s, u)
        discrete = {site.name for site in self.sites.discrete}
        told = {n: jnp.asarray(x) for n, x in zip(self.names[0], self.shown(*values), strict=True) if n not in discrete}
        like = dict(zip(self.names[1], map(jnp.asarray, self.observed(*values)), strict=True)) if self.names[1] else {}
        return told, {}, like


def read_model(given: Any) -> Model:
    """Its variables and its log-probability, or TargetError."""
    pm = needed("pymc", "saltus.bridges.pymc")
    jaxified = needed("pymc.sampling.jax", "saltus.bridges.pymc")
    try:
        model = pm.modelcontext(given)
        free = list(model.free_RVs)
    except (TypeError, AttributeError) as cause:
        raise TargetError("`model` is not a PyMC model.", expected="a pymc.Model", found=repr(given)) from cause
    discrete = [rv for rv in free if np.dtype(rv.dtype).kind in "biu"]
    if not discrete:
        raise TargetError(
            "The model has no discrete free variable.",
            expected="at least one unobserved Bernoulli, Categorical, DiscreteUniform or Binomial variable",
            found=", ".join(rv.name for rv in free) or "no free variable at all",
            hint="for continuous variables pymc.sample is all that is needed",
        )
    parts: dict[str, Any] = {}
    start = model.initial_point(0)
    sites = tuple(_site(rv, model, start, parts) for rv in discrete)
    names = {rv.name for rv in discrete}
    values = [(model.rvs_to_values[rv], rv.name in names) for rv in free]
    continuous = tuple((v.name, tuple(np.shape(start[v.name]))) for v, is_discrete in values if not is_discrete)
    space = Sites(sites, Product(parts), continuous, ())
    order = tuple((v.name, "discrete" if is_discrete else "continuous") for v, is_discrete in values)
    inputs = [v for v, _ in values]
    wanted = [v for v in model.unobserved_value_vars if v not in inputs or v.name in names]
    transformed = {v.name for v, _ in values}
    plain = {v.name: v for v in wanted} | {
        v.name: v for v in model.unobserved_value_vars if v.name in transformed & _free_names(free)
    }
    try:
        log_prob = jaxified.get_jaxified_graph(inputs=inputs, outputs=[model.logp()])
        shown = jaxified.get_jaxified_graph(inputs=inputs, outputs=list(plain.values()))
        observed = list(model.observed_RVs)
        like = model.logp(vars=observed, sum=False) if observed else []
        likelihood = jaxified.get_jaxified_graph(inputs=inputs, outputs=like) if observed else None
        told = (tuple(plain), tuple(rv.name for rv in observed))
        density = Density(space, order, log_prob, shown, likelihood, told)
        u = {name: jax.ShapeDtypeStruct(shape, jnp.result_type(float)) for name, shape in continuous}
        jax.eval_shape(density, space.space.abstract(), u)
    except SaltusError:
        raise
    except Exception as cause:
        raise TargetError(
            "The log-probability of the model cannot be written in JAX.",
            expected="operations that PyTensor translates to JAX",
            found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
        ) from cause
    dims = {name: tuple(map(str, own)) for name, own in model.named_vars_to_dims.items() if all(d is not None for d in own)}
    coords = {str(d): np.asarray(v) for d, v in model.coords.items() if v is not None}
    note = "the gradient of a PyMC model in discrete variables is zero: exact differences are used"
    return Model(model.name or "model", density, space, (), dims, coords, note)


def _free_names(free: list[Any]) -> set[str]:
    return {rv.name for rv in free}


def _site(rv: Any, model: Any, start: dict[str, Any], parts: dict[str, Any]) -> Site:
    low, high, one_hot = _bounds(rv, model)
    shape = np.shape(start[model.rvs_to_values[rv].name])
    low, high = (np.broadcast_to(np.asarray(x), shape).astype(np.int64) for x in (low, high))
    dims = tuple(model.named_vars_to_dims.get(rv.name, ())) or tuple(f"{rv.name}_dim_{i}" for i in range(len(shape)))
    return make_site(rv.name, str(np.dtype(rv.dtype)), low, high, one_hot, tuple(map(str, dims)), parts)


def _bounds(rv: Any, model: Any, given: str = "") -> tuple[Any, Any, bool]:
    """(lowest, highest, whether values are categories) of a discrete variable."""
    op, name = rv.owner.op, given or rv.name
    kind = getattr(op, "name", None) or type(op).__name__
    if type(op).__name__ == "PartialObservedRV":  # what is missing of data; the mask says where
        whole, mask = rv.owner.inputs[0], np.asarray(rv.owner.inputs[1].eval(), bool)
        low, high, one_hot = _bounds(whole, model, name)
        low, high = (np.broadcast_to(np.asarray(x), mask.shape)[mask] for x in (low, high))
        return low, high, one_hot
    if type(op).__name__ == "TruncatedRV":
        numbers = [x for x in rv.owner.inputs if getattr(x, "ndim", None) is not None and x.type.__class__.__name__ == "TensorType"]
        low, high = (_fixed(x, name, model) for x in numbers[-2:])
        if not np.isfinite(high).all():
            raise unbounded(name, "Truncated", f"pm.Truncated({name!r}, ..., upper=100)")
        return np.maximum(np.where(np.isfinite(low), low, 0), 0), high, False
    if kind == "bernoulli":
        return 0, 1, False
    arguments: Any = op.dist_params(rv.owner) if hasattr(op, "dist_params") else ()
    if kind == "categorical":
        p = arguments[0]
        size = p.type.shape[-1]
        return 0, (int(size) if size is not None else int(p.shape[-1].eval())) - 1, True
    if kind == "discrete_uniform":
        return _fixed(arguments[0], name, model), _fixed(arguments[1], name, model), False
    if kind in ("binomial", "beta_binomial"):
        return 0, _fixed(arguments[0], name, model), False
    data = name.removesuffix("_unobserved")
    also = ", observed=..." if data != name else ""
    raise unbounded(name, kind, f"pm.Truncated({data!r}, pm.{kind.title().replace('_', '')}.dist(...), upper=100{also})")


def _fixed(x: Any, name: str, model: Any) -> np.ndarray:
    """A bound that depends on no other variable."""
    ancestors = needed("pytensor.graph.traversal", "saltus.bridges.pymc").ancestors
    above = {v.name for v in ancestors([x]) if v in set(model.free_RVs)}
    if above:
        raise depends(name, f"a bound made from {', '.join(sorted(map(str, above)))}")
    return np.asarray(x.eval())
