"""The log-density of a NumPyro model, as a function of discrete states, unbounded numbers and data."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions.distribution import validation_enabled
from numpyro.distributions.transforms import biject_to
from numpyro.infer.gibbs import GIBBS_SITES_KWARG
from numpyro.infer.util import potential_energy

from ..discrete_sites import Sites


@dataclass(frozen=True, eq=False)
class Arguments:
    """The arguments of a model: arrays of floats are data, all else is fixed. Equal where the fixed ones are."""

    treedef: Any
    fixed: tuple[Any, ...]  # by position among the leaves; None where it is data
    dynamic: tuple[bool, ...]

    @classmethod
    def split(
        cls, args: tuple, kwargs: dict[str, Any], all_fixed: bool = False, converted: bool = False
    ) -> tuple[Arguments, tuple]:
        """(what is fixed, the data). converted: fixed arrays of numpy as arrays of JAX, which a sampled value may index."""
        found, treedef = jax.tree_util.tree_flatten_with_path((args, kwargs))
        leaves = [leaf for _, leaf in found]
        dynamic = tuple(not all_fixed and (_is_data(leaf) or _of_other_blocks(path)) for path, leaf in found)
        convert = (lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x) if converted else (lambda x: x)
        fixed = tuple(None if d else convert(leaf) for leaf, d in zip(leaves, dynamic, strict=True))
        return cls(treedef, fixed, dynamic), tuple(jnp.asarray(x) for x, d in zip(leaves, dynamic, strict=True) if d)

    def joined(self, data: Any) -> tuple[tuple, dict[str, Any]]:
        """(args, kwargs)."""
        rest = iter(data)
        leaves = [next(rest) if d else leaf for leaf, d in zip(self.fixed, self.dynamic, strict=True)]
        return jax.tree.unflatten(self.treedef, leaves)

    def _content(self) -> tuple:
        return str(self.treedef), self.dynamic, tuple(map(_mark, self.fixed))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Arguments) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())


def _is_data(leaf: Any) -> bool:
    array = isinstance(leaf, jax.Array) or (isinstance(leaf, np.ndarray) and leaf.ndim > 0)
    return array and jnp.issubdtype(leaf.dtype, jnp.floating)


def _of_other_blocks(path: tuple) -> bool:
    """Values of sites that other blocks of numpyro.infer.Gibbs own."""
    return any(getattr(key, "key", None) == GIBBS_SITES_KWARG for key in path)


def _mark(leaf: Any) -> Any:
    """What tells one fixed argument from another."""
    if isinstance(leaf, (np.ndarray, jax.Array, np.generic)) and not isinstance(leaf, jax.core.Tracer):
        array = np.asarray(leaf)
        return array.shape, str(array.dtype), hashlib.sha256(array.tobytes()).hexdigest()
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return type(leaf), leaf


@dataclass(frozen=True)
class Density:
    """log p(discrete, u, data) with the Jacobian of u -> continuous sites. as_float: discrete sites are given as floats."""

    model: Callable
    sites: Sites
    arguments: Arguments
    as_float: bool

    def __call__(self, s: Any, u: dict[str, jax.Array], *data: Any) -> jax.Array:
        args, kwargs = self.arguments.joined(data)
        model = handlers.substitute(self.model, data=self.sites.values(s, self.as_float))
        with validation_enabled(False):  # values are tracers, or stand in for them
            return -potential_energy(model, args, kwargs, u)

    def seen(self, s: Any, u: dict[str, jax.Array], *data: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """({continuous site: value}, {deterministic site: value}, {observed site: log-likelihood}) at one draw."""
        args, kwargs = self.arguments.joined(data)

        def constrained(site: dict[str, Any]) -> Any:
            if site["type"] == "sample" and site["name"] in u:
                return biject_to(site["fn"].support)(u[site["name"]])
            return None

        model = handlers.substitute(self.model, data=self.sites.values(s, as_float=False))
        trace = handlers.trace(handlers.substitute(model, substitute_fn=constrained)).get_trace(*args, **kwargs)
        continuous = {name: trace[name]["value"] for name in u}
        told = {n: site["value"] for n, site in trace.items() if site["type"] == "deterministic"}
        observed = {
            n: site["fn"].log_prob(site["value"])
            for n, site in trace.items()
            if site["type"] == "sample" and site["is_observed"] and site["fn"].batch_shape is not None and not _is_factor(site)
        }
        return continuous, told, observed


def _is_factor(site: dict[str, Any]) -> bool:
    return type(site["fn"]).__name__ == "Unit"


def make_density(model: Callable, sites: Sites, args: tuple, kwargs: dict[str, Any]) -> tuple[Density, tuple, str]:
    """(the density, its data, what was found on the way).

    Discrete sites are given as floats, so that there is a gradient, unless some site refuses floats. Arrays of floats among the
    arguments are data, unless the model looks at their values.
    """
    u = {name: jax.ShapeDtypeStruct(shape, jnp.result_type(float)) for name, shape in sites.continuous}
    told: list[str] = []
    first: Exception | None = None
    for all_fixed, converted, as_float in itertools.product((False, True), (False, True), (True, False)):
        arguments, data = Arguments.split(args, kwargs, all_fixed, converted)
        density = Density(model, sites, arguments, as_float)
        try:
            jax.eval_shape(jax.grad(density, allow_int=True), sites.space.abstract(), u, *data)
        except Exception as cause:
            first = first or cause
            continue
        if all_fixed:
            told.append("the model looks at the values of its arguments: another data set compiles again")
        if not as_float:
            told.append("some discrete site does not take floats: exact differences are used, not the gradient")
        return density, data, "; ".join(told)
    assert first is not None
    raise first
