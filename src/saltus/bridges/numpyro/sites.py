"""The latent sites of a NumPyro model: which are discrete, what values they take, and the space these make."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions.transforms import biject_to
from numpyro.infer.initialization import init_to_sample

from ...errors import SaltusError, TargetError
from ...spaces import Binary, Product, Space
from ..discrete_sites import Site, Sites, depends, make_site, unbounded

_TRACES = 3  # of a model, with other random values each: what differs depends on other sites


def traced(model: Callable, args: tuple, kwargs: dict[str, Any], key: Any) -> dict[str, Any]:
    """A trace of the model with values from its priors; TargetError where the model fails."""
    try:
        seeded = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_sample)
        return handlers.trace(seeded).get_trace(*args, **kwargs)
    except SaltusError:
        raise
    except Exception as cause:
        raise TargetError(
            "The model cannot be run.",
            expected="a NumPyro model, model(*args, **kwargs)",
            found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
        ) from cause


def read_sites(model: Callable, args: tuple, kwargs: dict[str, Any], need_discrete: bool = True) -> Sites:
    """The latent sites of a model, or TargetError that names the site which cannot be sampled and says why."""
    if not callable(model):
        raise TargetError("`model` is not a function.", expected="a NumPyro model, model(*args, **kwargs)", found=repr(model))
    traces = [traced(model, args, kwargs, jax.random.key(seed)) for seed in range(_TRACES)]
    return sites_of(traces, need_discrete)


def sites_of(traces: list[dict[str, Any]], need_discrete: bool = True) -> Sites:
    """From traces of one model with different values."""
    latent = {n: s for n, s in traces[0].items() if s["type"] == "sample" and not s["is_observed"]}
    for other in traces[1:]:
        found = {n for n, s in other.items() if s["type"] == "sample" and not s["is_observed"]}
        if found != set(latent):
            changing = sorted(found ^ set(latent))
            raise TargetError(
                "The model has other sites each time it is run.",
                expected="the same sample sites whatever their values",
                found=", ".join(changing),
                hint="choose with jnp.where or an indicator, not with `if` on a sampled value",
            )
    discrete = [name for name, site in latent.items() if site["fn"].support.is_discrete]
    marked = [name for name in discrete if latent[name]["infer"].get("enumerate")]
    if marked:
        warnings.warn(
            f"infer={{'enumerate': ...}} is ignored: saltus samples {', '.join(marked)}. To sum them out, use NUTS with "
            "numpyro's config_enumerate; that is the better choice where it works.",
            UserWarning,
            stacklevel=4,
        )
    if need_discrete and not discrete:
        raise TargetError(
            "The model has no discrete latent site.",
            expected="at least one unobserved Bernoulli, Categorical, DiscreteUniform or Binomial site",
            found=", ".join(f"{n} ~ {type(s['fn']).__name__}" for n, s in latent.items()) or "no latent site at all",
            hint="for continuous sites numpyro.infer.NUTS is all that is needed",
        )
    parts: dict[str, Space] = {}
    found_sites = tuple(_read_discrete(name, [t[name] for t in traces], parts) for name in discrete)
    continuous = {name: site for name, site in latent.items() if name not in discrete}
    shapes = tuple((name, _unbounded_shape(name, site)) for name, site in continuous.items())
    dims = tuple((name, dims_of(site)) for name, site in continuous.items())
    return Sites(found_sites, Product(parts) if parts else Product(none=Binary(1)), shapes, dims)


def _read_discrete(name: str, seen: list[dict[str, Any]], parts: dict[str, Space]) -> Site:
    """The site; its spaces are added to `parts`."""
    fn = seen[0]["fn"]
    bounds = [_bounds(name, site) for site in seen]
    for low, high in bounds[1:]:
        if not (np.array_equal(low, bounds[0][0]) and np.array_equal(high, bounds[0][1])):
            raise depends(name, f"up to {int(bounds[0][1].max())} in one run of the model, up to {int(high.max())} in another")
    dtype = str(np.asarray(jax.eval_shape(lambda: jnp.asarray(seen[0]["value"])).dtype))
    one_hot = "Categorical" in type(_base(fn)).__name__
    return make_site(name, dtype, *bounds[0], one_hot, dims_of(seen[0]), parts)


def _base(fn: Any) -> Any:
    while hasattr(fn, "base_dist"):
        fn = fn.base_dist
    return fn


def _bounds(name: str, site: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """(lowest, highest) value of every element."""
    fn, shape = site["fn"], jnp.shape(site["value"])
    kind = type(_base(fn)).__name__
    if fn.event_shape:
        raise TargetError(
            f"{name!r} ~ {kind} draws several numbers that depend on each other.",
            expected="Bernoulli, Categorical, DiscreteUniform or Binomial, in plates",
            found=f"an event of shape {tuple(fn.event_shape)}",
            hint=f"write {name!r} as a plate of Categorical sites, or sum it out",
        )
    support = _base(fn).support
    low, high = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    if type(support).__name__.strip("_").lower() == "boolean":
        low, high = 0, 1
    if (low is None or high is None) and getattr(fn, "has_enumerate_support", False):
        values = np.asarray(fn.enumerate_support(expand=False)).ravel()
        if (np.diff(values) == 1).all():
            low, high = values[0], values[-1]
    if low is None or high is None:
        raise unbounded(
            name, kind, f"numpyro.sample({name!r}, dist.Categorical(logits=dist.{kind}(...).log_prob(jnp.arange(100))))"
        )
    try:
        both = [np.broadcast_to(np.asarray(x), shape).astype(np.int64) for x in (low, high)]
    except Exception as cause:
        raise TargetError(
            f"The support of {name!r} depends on a value that is not known when the model is read.",
            expected="bounds that are plain numbers",
            found=f"{type(cause).__name__}",
        ) from cause
    return both[0], both[1]


def _unbounded_shape(name: str, site: dict[str, Any]) -> tuple[int, ...]:
    try:
        return tuple(jnp.shape(biject_to(site["fn"].support).inv(site["value"])))
    except Exception as cause:
        raise TargetError(
            f"The continuous site {name!r} cannot be mapped to unbounded numbers.",
            expected="a support that numpyro's biject_to knows",
            found=f"{type(cause).__name__}: {cause}",
        ) from cause


def dims_of(site: dict[str, Any]) -> tuple[str, ...]:
    """Names of the dimensions of a site's value: its plates, and numbers for what is in no plate."""
    ndim, batch = jnp.ndim(site["value"]), len(site["fn"].batch_shape) if site["type"] == "sample" else 0
    names = [f"{site['name']}_dim_{i}" for i in range(ndim)]
    for frame in site.get("cond_indep_stack", []):
        at = batch + frame.dim
        if 0 <= at < ndim and jnp.shape(site["value"])[at] == frame.size:
            names[at] = frame.name
    return tuple(names)
