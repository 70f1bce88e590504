r"""Fixed sites: the target of the free sites given the others.

f_free(s_free) = f(s with the fixed sites at their values): a smaller target, so that fixed sites cost nothing in proposals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ._record import as_array, changed, shown
from .errors import SpaceError, TargetError
from .local import Differences
from .spaces import Space

if TYPE_CHECKING:
    from .target import Target


@dataclass(frozen=True)
class Clamped:
    """The log_prob of a clamped target: (params, s_free) -> f. Equal for equal functions and sites, whatever the values."""

    log_prob: Callable
    space: Space
    free: tuple[int, ...]
    with_params: bool

    def __call__(self, params: dict[str, Any], s: Any) -> jax.Array:
        whole = self.space.filled(self.space.embed(params["codes"]), s, np.asarray(self.free))
        return self.log_prob(params["params"], whole) if self.with_params else self.log_prob(whole)

    def codes(self, params: dict[str, Any], free: jax.Array) -> jax.Array:
        """Of all sites, from those of the free ones."""
        return params["codes"].astype(free.dtype).at[..., np.asarray(self.free)].set(free)


@dataclass(frozen=True)
class FreeRows:
    """A closed form of differences, seen from the free sites."""

    clamped: Clamped
    fn: Callable
    num_values: int

    def __call__(self, params: dict[str, Any], s: Any, codes: jax.Array) -> jax.Array:
        whole = self.clamped.codes(params, codes)
        table = jnp.asarray(self.fn(params["params"], self.clamped.space.embed(whole), whole))
        rows = table[np.asarray(self.clamped.free)]
        return rows if rows.ndim == 1 else rows[:, : self.num_values]


def clamp(target: Target, where: Any, values: Any) -> Target:
    """`Target.clamp`."""
    if isinstance(target.log_prob, Clamped):
        raise TargetError("This target is clamped already.", expected="all fixed sites at once", hint="clamp the whole target anew")
    if target.beta is not None:
        raise TargetError("A tempered target cannot be clamped.", hint="clamp first, then temper")
    fixed, codes = _read(target, where, values)
    free = np.setdiff1d(np.arange(target.space.num_sites), fixed)
    if not len(free):
        raise TargetError("All sites are clamped: nothing is left to sample.", expected="at least one free site", found="none")
    whole = np.zeros(target.space.num_sites, np.int32)
    whole[fixed] = codes
    log_prob = Clamped(target.log_prob, target.space, tuple(map(int, free)), target.params is not None)
    space = target.space.restricted(free)
    names = target.names or tuple(map(str, np.concatenate([np.arange(p.space.num_sites) for p in target.space.pieces])))
    fn, exact = getattr(target.differences, "fn", None), target.differences.exact
    model: Any = target.differences if fn is None else Differences(FreeRows(log_prob, fn, space.num_values), exact)
    params = {"params": target.params, "codes": jnp.asarray(whole)}
    made = type(target)(log_prob, space, params, differences=model)
    return _named(made, tuple(names[i] for i in free))


def _named(target: Target, names: tuple[str, ...]) -> Target:
    """Names of free sites are those they had, which within a part differ."""
    return changed(target, names=names)


def _read(target: Target, where: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """(flat sites, their codes), or an error."""
    space = target.space
    if isinstance(where, Mapping):
        if values is not None:
            raise TargetError("`values` are in the dict already.", expected="clamp({part: values})", found="two arguments")
        return _by_parts(space, where)
    sites = _sites(target, where)
    per_site = {i: piece for piece in space.pieces for i in range(piece.sites.start, piece.sites.stop)}
    given = np.asarray(as_array(values, "values", TargetError, f"{len(sites)} values, one for each site"))
    if given.shape not in ((), sites.shape):
        several = "a target has one set; for several: [sample(target.clamp(sites, v), kernel, num_chains=1) for v in values]"
        hint = several + ", which compiles once" if given.ndim == 2 and given.shape[1] == len(sites) else ""
        found = f"shape {given.shape}"
        raise TargetError("`values` does not fit `sites`.", expected=f"one value, or {len(sites)}", found=found, hint=hint)
    codes = [_code(per_site[int(i)].space, v, int(i)) for i, v in zip(sites, np.broadcast_to(given, sites.shape), strict=True)]
    return sites, np.array(codes, np.int32)


def _by_parts(space: Space, where: Mapping) -> tuple[np.ndarray, np.ndarray]:
    known = {piece.name: piece for piece in space.pieces}
    unknown = [repr(name) for name in where if name not in known]
    if unknown or not where:
        found = ", ".join(unknown) or "an empty dict"
        raise TargetError("`clamp` names parts that are not there.", expected=f"some of {list(known)}", found=found)
    pieces = [known[name] for name in where]
    codes = [np.ravel(p.space.encode(where[p.name], p.name)) for p in pieces]
    for piece, own in zip(pieces, codes, strict=True):
        if len(own) != piece.space.num_sites:
            raise SpaceError(f"`{piece.name}` is not one state.", expected=f"{piece.space.num_sites} values", found=f"{len(own)}")
    return np.concatenate([np.arange(p.sites.start, p.sites.stop) for p in pieces]), np.concatenate(codes)


def _sites(target: Target, where: Any) -> np.ndarray:
    """Flat numbers of sites that were given by number or name."""
    expected = f"different whole numbers from 0 to {target.space.num_sites - 1}, or names of sites"
    if target.names is not None and isinstance(where, (list, tuple)) and where and all(isinstance(n, str) for n in where):
        missing = [n for n in where if n not in target.names]
        if missing:
            raise TargetError("`sites` has names that are not there.", expected="names of the target", found=", ".join(missing))
        return np.array([target.names.index(n) for n in where])
    sites = np.asarray(as_array(where, "sites", TargetError, expected))
    sites = np.flatnonzero(sites) if sites.dtype.kind == "b" and sites.shape == (target.space.num_sites,) else np.atleast_1d(sites)
    whole = sites.ndim == 1 and sites.dtype.kind in "iu" and sites.size and len(np.unique(sites)) == len(sites)
    if not whole or sites.min() < 0 or sites.max() >= target.space.num_sites:
        raise TargetError("`sites` is not usable.", expected=expected, found=shown(where))
    return sites.astype(np.int64)


def _code(space: Space, value: Any, site: int) -> int:
    found = np.flatnonzero(np.isclose(space.labels.astype(float), float(value), rtol=0, atol=1e-6))
    if not len(found):
        labels = space.labels.tolist()
        told = " or ".join(map(str, labels)) if len(labels) <= 3 else f"one of {labels[0]}, {labels[1]}, ..., {labels[-1]}"
        raise SpaceError(f"Site {site} cannot be clamped to {value:g}.", expected=told, found=f"{value:g}")
    return int(found[0])


def constants(target: Target) -> dict[str, tuple[str, np.ndarray, np.ndarray]]:
    """{variable: (dimension, names of sites, values)} of the fixed sites; nothing where none is."""
    f = target.log_prob
    if not isinstance(f, Clamped):
        return {}
    codes, free, found = np.asarray(target.params["codes"]), set(f.free), {}
    for piece in f.space.pieces:
        own = np.array([i for i in range(piece.sites.start, piece.sites.stop) if i not in free], int)
        if len(own):
            found[piece.name] = (f"{piece.name}_clamped", own - piece.sites.start, piece.space.labels[codes[own]])
    return found


def whole_states(target: Target, states: Any) -> Any:
    """Shown states of all sites, from those of the free ones: (..., d), or a dict of them for a product."""
    f = target.log_prob
    if not isinstance(f, Clamped):
        return states
    free = target.space.encode(states, "states")
    codes = np.broadcast_to(np.asarray(target.params["codes"]), (*free.shape[:-1], f.space.num_sites)).copy()
    codes[..., list(f.free)] = free
    return f.space.show(codes)
