r"""Local models: the table D_i(v), the predicted change of f when site i takes value v.

Every sampler is exact with any of them: D must only be a deterministic function of the state, 0 at the current value.

    gradient        D_i(v) = g_i (v - s_i)                              one backward pass
    hessian_diag    D_i(v) = g_i (v - s_i) + ½ H_ii (v - s_i)^2         and d Hessian-vector products
    exact           D_i(v) = f(s with s_i = v) - f(s)                   d (k - 1) evaluations, or as few as f's structure allows
    Differences     whatever a target knows in closed form
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ._record import as_flag, default_float, record, shown, static
from .errors import TargetError
from .moves import Moves
from .structure import BoundQuadratic, LocalTerms
from .sweeps import ColourSweep, Fields, closed_sweep

if TYPE_CHECKING:
    from .spaces import Space
    from .target import Target

_CHUNK = 2**18  # most numbers held at once, per chain, by states that are evaluated together


@record
class LocalModel:
    """How a target fills D. `local` is what a Point keeps for it."""

    name = ""  # by which `differences=` finds it
    words = "local model"  # what it is called in a sentence
    exact = False  # D is the true change of every single-site move
    evaluates = False  # ... because f is evaluated there: nothing is claimed, and nothing need be compared
    differentiates = False  # D is made of derivatives of log_prob
    sees_curvature = True  # D has the curvature of f within a site; a preconditioner must not add it again

    @property
    def closed_form(self) -> bool:
        """`rows` are exact without evaluating f."""
        return False

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        """(f, local) at one state."""
        raise NotImplementedError

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        """`local` as Moves."""
        raise NotImplementedError

    def changes(self, target: Target, codes: jax.Array, local: Any, new: jax.Array) -> jax.Array:
        """(d,) D_i(s'_i): what `local` predicts for going from `codes` to `new`, site by site."""
        return self.moves(target, codes, local).each(new)

    def rows(self, target: Target, codes: jax.Array, f: jax.Array, sites: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(b, k) the true f for every value of `sites`, up to a constant per site; and how many states were undefined."""
        return evaluated_rows(target, codes, f, sites)

    def evaluations(self, space: Space) -> int:
        """Evaluations of f, with or without its gradient, for one state's local model."""
        return 1

    def scaled(self, local: Any, factor: Any) -> Any:
        """`local` of f as that of factor * f, without evaluating anything; factor > 0."""
        return jax.tree.map(lambda leaf: factor * leaf, local)

    def by_definition(self) -> LocalModel:
        """The same without what is known of log_prob besides: f is asked for."""
        return self

    def evaluations_on(self, target: Target) -> int:
        """The same on this target, which may know more than its space."""
        return self.evaluations(target.space)

    def sweep(self, target: Target, in_order: bool = False) -> Any:
        """Sweeps over all sites in closed form (`sweeps`), where there are any; else None. in_order: by sites, not by colours."""
        return closed_sweep(target, in_order)

    def by_hand(self, target: Target, codes: jax.Array, new: jax.Array) -> jax.Array:
        """D(s -> s') = sum_i D_i(s'_i; s) straight from its definition, for certification: shares nothing with the above."""
        raise NotImplementedError


@record
class Gradient(LocalModel):
    name = "gradient"
    words = "gradient"
    differentiates = True
    sees_curvature = False

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        return jax.value_and_grad(target.log_prob_of)(target.space.embed(codes))

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.linear(codes, local)

    def changes(self, target: Target, codes: jax.Array, local: Any, new: jax.Array) -> jax.Array:
        delta = target.space.displacement(codes, new)
        each = jnp.where(delta == 0, 0, target.space.ravel(local) * delta)  # a site that stays may have any slope
        return target.space.per_site(each)

    def by_hand(self, target: Target, codes: jax.Array, new: jax.Array) -> jax.Array:
        s, s_new = (target.space.embed(c) for c in (codes, new))
        slopes = jax.grad(target.log_prob_of)(s)
        return sum(jnp.sum(g * (b - a)) for g, a, b in zip(*map(jax.tree.leaves, (slopes, s, s_new)), strict=True))  # type: ignore[return-value]


@record
class HessianDiag(LocalModel):
    name = "hessian_diag"
    words = "gradient with its diagonal Hessian"
    differentiates = True

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        s = target.space.embed(codes)
        gradient = jax.grad(target.log_prob_of)

        def curvature(i: jax.Array) -> jax.Array:
            along = jnp.zeros_like(s).at[i].set(1)
            return jax.jvp(gradient, (s,), (along,))[1][i]

        f, g = jax.value_and_grad(target.log_prob_of)(s)
        return f, (g, jax.lax.map(curvature, jnp.arange(s.size, dtype=jnp.int32), batch_size=_batch(s.size, s.size)))

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        g, h = local
        return target.space.linear(codes, g) + target.space.quadratic(codes, h / 2)

    def evaluations(self, space: Space) -> int:
        return 1 + space.size

    def by_hand(self, target: Target, codes: jax.Array, new: jax.Array) -> jax.Array:
        s, s_new = (target.space.embed(c) for c in (codes, new))
        slope, bend = jax.grad(target.log_prob_of)(s), jnp.diag(jax.hessian(target.log_prob_of)(s))
        return jnp.sum(slope * (s_new - s)) + 0.5 * jnp.sum(bend * (s_new - s) ** 2)


@record
class ExactDifferences(LocalModel):
    name = "exact"
    words = "exact differences"
    exact = True
    evaluates = True

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        if target.find(BoundQuadratic) is not None:
            return target.value(codes), Fields().packed(target, codes)
        f = target.value(codes)
        # An undefined neighbour gets 0, no advice: it is proposed now and then, refused, and counted by the Metropolis step.
        table = evaluated_rows(target, codes, f, jnp.arange(target.space.num_sites, dtype=jnp.int32), undefined_as=f)[0] - f
        return f, target.space.form.packed(target.space, table)

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.form.unpacked(codes, local)

    def evaluations(self, space: Space) -> int:
        return 1 + space.num_sites * (space.num_values - 1)

    def evaluations_on(self, target: Target) -> int:
        if target.find(BoundQuadratic) is not None:
            return 1
        terms = target.find(LocalTerms)
        return self.evaluations(target.space) if terms is None else 1 + terms.evaluations(target.space)

    def by_hand(self, target: Target, codes: jax.Array, new: jax.Array) -> jax.Array:
        one_site = lambda i: target.value(codes.at[i].set(new[i])) - target.value(codes)  # noqa: E731
        return jnp.sum(jax.vmap(one_site)(jnp.arange(len(codes))))


@record
class Differences(LocalModel):
    """A closed form: `fn(params, s, codes)` returns the (d, k) table of changes of f, up to a constant per site.

    saltus subtracts the current column. Where there are two values, (d,) will do: f at code 1 less f at code 0.
    `exact=True` says that the table is exact, so that Gibbs may use it.
    """

    words = "closed form"

    fn: Callable = static()
    exact: bool = static(default=False)

    halves = None  # of `ClosedForm`

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TargetError("`fn` is not a function.", expected="fn(params, s, codes) -> (d, k) table", found=shown(self.fn))
        as_flag(self.exact, "exact", TargetError)

    @property
    def closed_form(self) -> bool:
        return self.exact

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        return target.value(codes), self.packed(target, codes)

    def rows(self, target: Target, codes: jax.Array, f: jax.Array, sites: jax.Array) -> tuple[jax.Array, jax.Array]:
        if not self.exact:
            return evaluated_rows(target, codes, f, sites)
        form, packed = target.space.form, self.packed(target, codes)
        if isinstance(packed, tuple):  # of a product: rows of all sites have one width only once they are unpacked
            return jnp.take(form.rows(codes, packed), sites, axis=0, mode="clip"), jnp.zeros((), jnp.int32)
        packed = jnp.take(packed, sites, axis=-1, mode="clip")
        return form.rows(jnp.take(codes, sites, mode="clip"), packed), jnp.zeros((), jnp.int32)

    def sweep(self, target: Target, in_order: bool = False) -> Any:
        return ColourSweep(self) if self.exact and not in_order else super().sweep(target, in_order) if not self.exact else None

    def packed(self, target: Target, codes: jax.Array) -> Any:
        """The table of all sites at once, as the space's form of Moves keeps it."""
        return target.tempering(target.space.form.packed(target.space, self._table(target, codes)))

    def _table(self, target: Target, codes: jax.Array) -> jax.Array:
        space = target.space
        table = self._told(target.params, space.embed(codes), codes.astype(jnp.int32))  # one may calculate with these
        shapes = [(space.num_sites, space.num_values), *([(space.num_sites,)] if space.num_values == 2 else [])]
        if np.shape(table) not in shapes:
            expected = "(d, k) = " + " or ".join(map(str, shapes))
            raise TargetError("`differences` returned another shape.", expected=expected, found=str(jnp.shape(table)))
        return table

    def _told(self, params: Any, s: jax.Array, codes: jax.Array) -> jax.Array:
        """What `fn` returns, or TargetError."""
        try:
            return jnp.asarray(self.fn(params, s, codes))
        except Exception as cause:
            raise TargetError(
                "`differences` failed.",
                expected="fn(params, s, codes) -> (d, k) table, a JAX function",
                found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
            ) from cause

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.form.unpacked(codes, local)

    def by_hand(self, target: Target, codes: jax.Array, new: jax.Array) -> jax.Array:
        table = self._table(target, codes)
        table = table if table.ndim == 2 else table[:, None] * jnp.arange(2, dtype=table.dtype)
        sites = jnp.arange(len(codes))
        return target.tempering(jnp.sum(table[sites, new] - table[sites, codes]))


@record
class ClosedForm(Differences):
    """Exact differences of a model of ours, which knows f with them, and what small thing a Point keeps for them."""

    both: Callable = static(default=None)  # (params, codes) -> (f, local)
    table: Callable = static(default=None)  # (params, local) -> packed table
    halves: Any = static(default=None)  # `targets.checkerboard.TwoColours`: the same for one of two colours at a time

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        f, local = self.both(target.params, codes)
        return target.tempering(f.astype(default_float())), local

    def scaled(self, local: Any, factor: Any) -> Any:
        return local  # what it keeps is not proportional to f: `moves` scales

    def by_definition(self) -> LocalModel:
        return Differences(self.fn, self.exact)

    def sweep(self, target: Target, in_order: bool = False) -> Any:
        return None if in_order else self.halves or ColourSweep(self)

    def packed(self, target: Target, codes: jax.Array) -> jax.Array:
        return self._unpacked(target, self.both(target.params, codes)[1])

    def _unpacked(self, target: Target, local: Any) -> jax.Array:
        return target.tempering(self.table(target.params, local))

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.form.unpacked(codes, self._unpacked(target, local))


LOCAL_MODELS = {model.name: model for model in (Gradient, ExactDifferences, HessianDiag)}


def local_model(given: Any, space: Space) -> LocalModel:
    """The local model of this name, or the one given."""
    if isinstance(given, LocalModel):
        return given
    if not isinstance(given, str) or given not in LOCAL_MODELS:
        expected = ", ".join(map(repr, LOCAL_MODELS)) + " or saltus.Differences(fn)"
        raise TargetError("`differences` is not known.", expected=expected, found=repr(given))
    if LOCAL_MODELS[given] is HessianDiag and not space.numeric:
        raise TargetError(
            "hessian_diag needs values that are numbers.",
            expected="Binary, Spin or Ordinal",
            found=str(space),
            hint="a one-hot move changes two entries of s, so the diagonal is not its second order: use differences='exact'",
        )
    return LOCAL_MODELS[given]()


def affordable_differences(target: Target, most: int) -> tuple[str | None, int]:
    """The name of exact differences, where the target has none of its own and they take at most so many evaluations a step;
    and how many those are."""
    evaluations = ExactDifferences().evaluations_on(target)
    return (None if target.differences.exact or evaluations > most else ExactDifferences.name), evaluations


def evaluated_rows(
    target: Target, codes: jax.Array, f: jax.Array, sites: jax.Array, undefined_as: Any = -jnp.inf
) -> tuple[jax.Array, jax.Array]:
    """`brute_force`; for all sites, or for several that share no term, from local terms where f has them."""
    terms, space = target.find(LocalTerms), target.space
    if terms is None or sites.shape[0] == 1:
        return brute_force(target, codes, f, sites, undefined_as)
    if sites.shape[0] >= space.num_sites:
        every = terms.all_changes(target, codes, _values_at(space, jnp.arange(space.num_sites, dtype=jnp.int32)))
        others = f + jnp.take(every, sites, axis=0, mode="clip")
    else:
        together = lambda: f + terms.block_changes(target, codes, sites, _values_at(space, sites))  # noqa: E731
        others = jax.lax.cond(terms.share_none(sites), together, lambda: _one_by_one(target, codes, sites))
    return _by_values(space, codes, sites, f, others, undefined_as)


def brute_force(
    target: Target, codes: jax.Array, f: jax.Array, sites: jax.Array, undefined_as: Any = -jnp.inf
) -> tuple[jax.Array, jax.Array]:
    """(b, k) f with each of `sites` in turn at each value, and how many of those states are undefined (f NaN or +inf).

    Undefined states are impossible ones unless `undefined_as` says otherwise; values that a site does not have are: -inf. A
    site index of d (padding) changes nothing.
    """
    return _by_values(target.space, codes, sites, f, _one_by_one(target, codes, sites), undefined_as)


def _one_by_one(target: Target, codes: jax.Array, sites: jax.Array) -> jax.Array:
    """(b, k - 1) f with each of `sites` in turn gone on by 1..k - 1 codes."""
    k, own = target.space.num_values, _values_at(target.space, sites)

    def change(index: jax.Array) -> jax.Array:
        site, hop = sites[index // (k - 1)], 1 + index % (k - 1)
        value = (codes[site].astype(jnp.int32) + hop) % (own if isinstance(own, int) else own[index // (k - 1)])
        return target.value(codes.at[site].set(value.astype(codes.dtype), mode="drop"))

    num = sites.shape[0] * (k - 1)
    others = jax.lax.map(change, jnp.arange(num, dtype=jnp.int32), batch_size=_batch(num, target.space.size))
    return others.reshape(-1, k - 1)


def _by_values(
    space: Space, codes: jax.Array, sites: jax.Array, f: jax.Array, others: jax.Array, undefined_as: Any
) -> tuple[jax.Array, jax.Array]:
    """(b, k) by value, from f here and (b, k - 1) others, where a site has gone on by 1..k - 1 codes."""
    k, own = space.num_values, _values_at(space, sites)
    by_hop = jnp.concatenate([jnp.broadcast_to(f, (sites.shape[0], 1)), others], axis=1)
    undefined = jnp.isnan(by_hop) | (by_hop == jnp.inf)
    current, every = jnp.take(codes, sites, mode="clip").astype(jnp.int32)[:, None], jnp.arange(k, dtype=jnp.int32)
    hops = (every - current) % (own if isinstance(own, int) else own[:, None])
    values = jnp.take_along_axis(jnp.where(undefined, undefined_as, by_hop), hops, axis=1)
    if not isinstance(own, int):
        undefined &= every < own[:, None]
        values = jnp.where(every < own[:, None], values, -jnp.inf)
    return values, jnp.sum(undefined, dtype=jnp.int32)


def _values_at(space: Space, sites: jax.Array) -> Any:
    """k, or (b, ) of them where sites differ."""
    if (space.num_values_per_site == space.num_values).all():
        return space.num_values
    return jnp.take(jnp.asarray(space.num_values_per_site, jnp.int32), sites, mode="clip")


def _batch(num: int, size: int) -> int:
    """How many of `num` states of `size` numbers are evaluated together."""
    return max(min(num, _CHUNK // max(size, 1)), 1)
