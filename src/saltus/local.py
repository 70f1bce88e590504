r"""Local models: the table D_i(v), the predicted change of f when site i takes value v (PAPER_NOTES 1.11).

Every sampler is exact with any of them: D must only be a deterministic function of the state, 0 at the current value.

    gradient        D_i(v) = g_i (v - s_i)                              one backward pass
    hessian_diag    D_i(v) = g_i (v - s_i) + ½ H_ii (v - s_i)^2         and d Hessian-vector products
    exact           D_i(v) = f(s with s_i = v) - f(s)                   d (k - 1) evaluations, in chunks
    Differences     whatever a target knows in closed form
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ._record import default_float, record, static
from .errors import TargetError
from .moves import Moves

if TYPE_CHECKING:
    from .spaces import Space
    from .target import Target

_CHUNK = 2**18  # most numbers held at once, per chain, by states that are evaluated together


@record
class LocalModel:
    """How a target fills D. `local` is what a Point keeps for it."""

    exact = False

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
        return brute_force(target, codes, f, sites)

    def evaluations(self, space: Space) -> int:
        """Evaluations of f, with or without its gradient, for one state's local model."""
        return 1

    def by_definition(self) -> LocalModel:
        """The same without what is known of log_prob besides: f is asked for."""
        return self


@record
class Gradient(LocalModel):
    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        return jax.value_and_grad(target.log_prob_of)(target.space.embed(codes))

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.linear(codes, local)

    def changes(self, target: Target, codes: jax.Array, local: Any, new: jax.Array) -> jax.Array:
        delta = target.space.displacement(codes, new)
        each = jnp.where(delta == 0, 0, target.space.ravel(local) * delta)  # a site that stays may have any slope
        return target.space.per_site(each)


@record
class HessianDiag(LocalModel):
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


@record
class ExactDifferences(LocalModel):
    exact = True

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        f = target.value(codes)
        table = brute_force(target, codes, f, jnp.arange(target.space.num_sites, dtype=jnp.int32))[0] - f
        return f, target.space.packed(table)

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.unpacked(codes, local)

    def evaluations(self, space: Space) -> int:
        return 1 + space.num_sites * (space.num_values - 1)


@record
class Differences(LocalModel):
    """A closed form: `fn(params, s, codes)` returns the (d, k) table of changes of f, up to a constant per site.

    saltus subtracts the current column. Where there are two values, (d,) will do: f at code 1 less f at code 0.
    `exact=True` says that the table is exact, so that Gibbs may use it.
    """

    fn: Callable = static()
    exact: bool = static(default=False)

    halves = None  # of `ClosedForm`

    @property
    def closed_form(self) -> bool:
        return self.exact

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        return target.value(codes), self.packed(target, codes)

    def rows(self, target: Target, codes: jax.Array, f: jax.Array, sites: jax.Array) -> tuple[jax.Array, jax.Array]:
        if not self.exact:
            return brute_force(target, codes, f, sites)
        packed = jnp.take(self.packed(target, codes), sites, axis=-1, mode="clip")
        return target.space.rows(jnp.take(codes, sites, mode="clip"), packed), jnp.zeros((), jnp.int32)

    def packed(self, target: Target, codes: jax.Array) -> jax.Array:
        """The table of all sites at once, as `Space.packed` has it."""
        s, shapes = target.space.embed(codes), target.space.table_shapes
        table = self.fn(target.params, s, codes.astype(jnp.int32))  # one may calculate with these, and with smaller ones not
        if jnp.shape(table) not in shapes:
            expected = "(d, k) = " + " or ".join(map(str, shapes))
            raise TargetError("`differences` returned another shape.", expected=expected, found=str(jnp.shape(table)))
        return target.space.packed(table)

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.unpacked(codes, local)


@record
class ClosedForm(Differences):
    """Exact differences of a model of ours, which knows f with them, and what small thing a Point keeps for them."""

    both: Callable = static(default=None)  # (params, codes) -> (f, local)
    table: Callable = static(default=None)  # (params, local) -> packed table
    halves: Any = static(default=None)  # `targets.checkerboard.Halves`: the same for one of two colours at a time

    def evaluate(self, target: Target, codes: jax.Array) -> tuple[jax.Array, Any]:
        f, local = self.both(target.params, codes)
        return f.astype(default_float()), local

    def by_definition(self) -> LocalModel:
        return Differences(self.fn, self.exact)

    def packed(self, target: Target, codes: jax.Array) -> jax.Array:
        return self.table(target.params, self.both(target.params, codes)[1])

    def moves(self, target: Target, codes: jax.Array, local: Any) -> Moves:
        return target.space.unpacked(codes, self.table(target.params, local))


LOCAL_MODELS = {"gradient": Gradient, "exact": ExactDifferences, "hessian_diag": HessianDiag}


def brute_force(target: Target, codes: jax.Array, f: jax.Array, sites: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(b, k) f with each of `sites` in turn at each value, and how many of those states are undefined (f NaN or +inf).

    Undefined states are impossible ones here: -inf. A site index of d (padding) changes nothing.
    """
    k = target.space.num_values

    def change(index: jax.Array) -> jax.Array:
        site, hop = sites[index // (k - 1)], 1 + index % (k - 1)
        value = (codes[site].astype(jnp.int32) + hop) % k
        return target.value(codes.at[site].set(value.astype(codes.dtype), mode="drop"))

    num = sites.shape[0] * (k - 1)
    others = jax.lax.map(change, jnp.arange(num, dtype=jnp.int32), batch_size=_batch(num, target.space.size))
    by_hop = jnp.concatenate([jnp.broadcast_to(f, (sites.shape[0], 1)), others.reshape(-1, k - 1)], axis=1)
    undefined = jnp.isnan(by_hop) | (by_hop == jnp.inf)
    hops = (jnp.arange(k, dtype=jnp.int32) - jnp.take(codes, sites, mode="clip").astype(jnp.int32)[:, None]) % k
    values = jnp.take_along_axis(jnp.where(undefined, -jnp.inf, by_hop), hops, axis=1)
    return values, jnp.sum(undefined, dtype=jnp.int32)


def _batch(num: int, size: int) -> int:
    """How many of `num` states of `size` numbers are evaluated together."""
    return max(min(num, _CHUNK // max(size, 1)), 1)
