r"""Discrete spaces: d sites, each taking one of k values.

A chain holds integer `codes`; a log-probability sees s = embed(codes), real numbers; a person reads show(codes).
A space is two tables, the values and the labels a person reads, and one function, the number of hops between two codes.
Nothing outside this file asks what kind of variable it has; fast paths (two values, even spacing) go by shape.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import random
from ._fusion import total
from ._record import as_size, default_float, is_concrete
from .errors import SpaceError
from .moves import Flips, Moves, Tables

_MOST_STATES = 2**22


class Space:
    """`num_sites` sites over a table of values: (k,) numbers or (k, m) vectors; `labels` (k,) are what `show` shows."""

    def __init__(self, num_sites: int, values: Any, labels: Any = None, description: str = ""):
        self.num_sites = as_size(num_sites, "num_sites", SpaceError)
        self.values = np.array(values, dtype=np.float64)
        self.labels = np.array(values if labels is None else labels)
        self.num_values = len(self.values)
        self.shape = (self.num_sites, *self.values.shape[1:])
        self.size = math.prod(self.shape)
        self.code_dtype = np.min_scalar_type(-self.num_values - 1)  # the smallest that hold k and differences of codes
        self._description = description or f"{type(self).__name__}({num_sites}, {self.num_values})"
        self._evenly = self.values.ndim == 1 and np.allclose(
            self.values, np.linspace(self.values[0], self.values[-1], self.num_values), rtol=0, atol=1e-12 * np.ptp(self.values)
        )
        self._one_hot = np.array_equal(self.values, np.eye(self.num_values))
        self._identity = (type(self), self._description, self.num_sites, self.values.tobytes(), self.labels.tobytes())
        self._hash = hash(self._identity)

    def __repr__(self) -> str:
        return self._description

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Space) and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    def hops(self, a: Any, b: Any) -> Any:
        """Number of hops between two codes. Here: one between any two different values."""
        return (a != b).astype(jnp.int32)

    # ---- codes, states, and what a person reads ----------------------------------------------------------------

    def embed(self, codes: Any) -> jax.Array:
        """The real state s that log_prob sees: shape (..., d), or (..., d, m) where values are vectors."""
        codes = jnp.asarray(codes)
        dtype = default_float()
        if self._evenly:
            return jnp.asarray(self.values[0], dtype) + self._spacing(dtype) * codes.astype(dtype)
        if self.values.ndim == 1:
            return jnp.take(jnp.asarray(self.values, dtype), codes, axis=0)
        chosen = (codes[..., None] == jnp.arange(self.num_values, dtype=codes.dtype)).astype(dtype)
        return chosen if self._one_hot else jnp.matmul(chosen, self._table(dtype), precision="highest")

    def show(self, codes: Any) -> np.ndarray:
        """What a person reads: 0/1, -1/+1, the ordinal value, the category."""
        return self.labelled(np.asarray(self.check_codes(codes)))

    def labelled(self, codes: np.ndarray) -> np.ndarray:
        """`show` of what are codes for certain. Whole numbers at even steps are computed: much faster than looked up."""
        steps = np.diff(self.labels)
        if self.labels.dtype.kind == "i" and (steps == steps[0]).all():
            return codes.astype(self.labels.dtype) * steps[0] + self.labels[0]
        return self.labels[codes]

    def encode(self, x: Any, name: str = "x") -> np.ndarray:
        """Codes of a state given in either form, shown or embedded (to within 1e-4 of a grid step); leading axes kept.

        Raises SpaceError where `x` is no state of this space. A (d, k) array of whole numbers is read as d shown states
        when it could be either; embedded states are floats.
        """
        x = np.asarray(x)
        if x.dtype.kind not in "biuf":
            raise self._not_a_state(name, f"an array of {x.dtype}")
        trailing = x.shape[x.ndim - len(self.shape) :]
        could_be_shown = x.ndim >= 1 and x.shape[-1] == self.num_sites
        if trailing == self.shape and not (could_be_shown and len(self.shape) == 2 and x.dtype.kind in "biu"):
            return self._nearest(x, self.values, name)
        if could_be_shown:
            return self._nearest(x, self.labels.astype(np.float64), name)
        raise self._not_a_state(name, f"shape {x.shape}")

    def _nearest(self, x: np.ndarray, table: np.ndarray, name: str) -> np.ndarray:
        x = x.astype(np.float64)
        if table.ndim == 1:
            codes = np.searchsorted((table[1:] + table[:-1]) / 2, x)
            error, spacing = np.abs(x - table[codes]), np.diff(table).min()
            error = np.maximum(error - 4 * np.finfo(np.float32).eps * np.abs(table).max(), 0)  # what float32 cannot say
        else:
            codes = np.argmax(x @ table.T - (table**2).sum(1) / 2, axis=-1)
            error, spacing = np.abs(x - table[codes]).max(-1), 1.0
        wrong = ~(error <= 1e-4 * spacing)
        if wrong.any():
            raise self._not_a_state(name, self._where(x, wrong), self._hint(x, name))
        return codes.astype(np.int32)

    def _where(self, x: np.ndarray, wrong: np.ndarray) -> str:
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = f"site {first[-1]}" + (f" of state {first[:-1] if len(first) > 2 else first[0]}" if len(first) > 1 else "")
        bad = f"{x[first]:g}" if np.ndim(x[first]) == 0 else np.array2string(x[first], precision=6)
        return f"{bad} at {where}; {wrong.sum()} of {wrong.size} sites are wrong"

    def _hint(self, x: np.ndarray, name: str) -> str:
        if np.isnan(x).any():
            return f"{np.isnan(x).sum()} entries are NaN: look for missing data"
        seen = {float(v) for v in np.unique(x)[:3]}
        if seen <= {-1.0, 1.0} and -1.0 in seen and np.array_equal(self.labels, [0, 1]):
            return f"these look like spins: use saltus.Spin({self.num_sites}), or pass ({name} + 1) // 2"
        if seen <= {0.0, 1.0} and np.array_equal(self.labels, [-1, 1]):
            return f"these look like bits: use saltus.Binary({self.num_sites}), or pass 2 * {name} - 1"
        return ""

    def _not_a_state(self, name: str, found: str, hint: str = "") -> SpaceError:
        forms = dict.fromkeys([(self.num_sites,), self.shape])
        shape = " or ".join(f"(..., {', '.join(map(str, form))})" for form in forms)
        labels = self.labels.tolist()
        values = " or ".join(map(str, labels)) if len(labels) <= 3 else f"one of {labels[0]}, {labels[1]}, ..., {labels[-1]}"
        return SpaceError(
            f"`{name}` is not a state of {self}.",
            expected=f"{values} at every site, shape {shape}",
            found=found,
            hint=hint,
        )

    def check_codes(self, codes: Any, name: str = "codes") -> jax.Array:
        """Codes of shape (..., d), in 0..k-1 where that can be seen; SpaceError otherwise.

        Signed integers keep their type, others become int32.
        """
        codes = codes if isinstance(codes, jax.Array) else np.asarray(codes)
        shape_wrong = codes.ndim < 1 or codes.shape[-1] != self.num_sites
        if codes.dtype.kind not in "iu" or shape_wrong:
            raise SpaceError(
                f"`{name}` are not codes of {self}.",
                expected=f"integers of shape (..., {self.num_sites})",
                found=f"{codes.dtype} of shape {tuple(codes.shape)}",
                hint="space.encode(x) turns states, as log_prob sees or a person reads them, into codes",
            )
        if is_concrete(codes):
            values = np.asarray(codes)
            wrong = (values < 0) | (values >= self.num_values)
            if wrong.any():
                raise SpaceError(
                    f"`{name}` are not codes of {self}.",
                    expected=f"whole numbers from 0 to {self.num_values - 1}",
                    found=self._where(values, wrong),
                    hint="space.encode(x) turns states, as log_prob sees or a person reads them, into codes",
                )
        signed = codes.dtype.kind == "i" and codes.dtype.itemsize <= 4
        return jnp.asarray(codes, dtype=np.promote_types(codes.dtype, self.code_dtype) if signed else np.int32)

    def random(self, key: jax.Array) -> jax.Array:
        """Codes drawn uniformly from the space."""
        uniform = random.uniform(key, (self.num_sites,))
        codes = (uniform * jnp.asarray(self.num_values, uniform.dtype)).astype(jnp.int32)
        return jnp.minimum(codes, self.num_values - 1)

    def enumerate(self) -> jax.Array:
        """All k^d codes, (k^d, d), the last site changing fastest."""
        states = self.num_values**self.num_sites
        if states > _MOST_STATES:
            raise SpaceError(
                f"{self} is too large to enumerate.",
                expected=f"at most {_MOST_STATES} states",
                found=f"{self.num_values}^{self.num_sites}",
            )
        grid = np.indices((self.num_values,) * self.num_sites, dtype=np.int32)
        return jnp.asarray(grid.reshape(self.num_sites, -1).T)

    def ravel(self, s: jax.Array) -> jax.Array:
        """s as one vector (..., n): where gradients, noise and Σ live."""
        return jnp.reshape(s, (*s.shape[: s.ndim - len(self.shape)], self.size))

    def unravel(self, v: jax.Array) -> jax.Array:
        """(..., n) back to the shape of s; a single number stays one."""
        return jnp.reshape(v, (*v.shape[:-1], *self.shape)) if v.ndim else v

    def per_entry(self, c: jax.Array) -> jax.Array:
        """A number, one per site, or one per entry of s, in the shape of s."""
        if c.shape == (self.num_sites,) and len(self.shape) == 2:
            c = c[:, None]
        elif c.ndim:
            c = jnp.reshape(c, self.shape)
        return jnp.broadcast_to(c, self.shape)

    def per_site(self, v: jax.Array) -> jax.Array:
        """(n,) entries as (d,): summed over those of each site."""
        return v if self.values.ndim == 1 else jnp.sum(v.reshape(self.shape), axis=1)

    def shares(self, number: jax.Array) -> jax.Array:
        """(d,) a number in equal parts, to be summed with what sites have: large sums of either sign cancel site by site."""
        return jnp.broadcast_to(number / self.num_sites, (self.num_sites,))

    def displacement(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """(n,) s_b - s_a, ravelled; on even grids from the codes, so that an offset of the grid costs no digits."""
        if self._evenly:
            dtype = default_float()
            return self._spacing(dtype) * (b - a).astype(dtype)
        return (self.embed(b) - self.embed(a)).ravel()

    def travel(self, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(|s_b - s_a|_1, number of sites at which they differ); for some of the sites too."""
        changed = total((a != b).astype(default_float()))
        if self._apart:  # one pass over the sites, not two
            return changed * jnp.asarray(self._apart, changed.dtype), changed.astype(jnp.int32)
        return total(jnp.abs(self.displacement(a, b))), changed.astype(jnp.int32)

    # ---- tables ------------------------------------------------------------------------------------------------

    @functools.cached_property
    def diameter(self) -> int:
        """Most hops between two values; 1 where all values are neighbours of each other."""
        codes = np.arange(self.num_values, dtype=np.int32)
        with jax.ensure_compile_time_eval():
            return max(int(np.max(self.hops(a, codes))) for a in codes)

    @property
    def numeric(self) -> bool:
        """Whether values are numbers: distances between them mean something. Else categories or directions."""
        return self.values.ndim == 1

    @functools.cached_property
    def _apart(self) -> float:
        """The L1 distance of any two different values, where it is the same for all (two of them, or one-hot); else 0."""
        few = self.num_values <= 2 or self._one_hot
        return float(np.abs(self.values[1] - self.values[0]).sum()) if few else 0.0

    def hop_table(self) -> np.ndarray:
        """(k, k) hops between every two values."""
        codes = np.arange(self.num_values, dtype=np.int32)
        with jax.ensure_compile_time_eval():
            return np.asarray(self.hops(codes[:, None], codes[None, :]))

    def neighbour_table(self) -> np.ndarray:
        """(k, k), True where two values are one hop apart."""
        return self.hop_table() == 1

    def distance_table(self) -> np.ndarray:
        """(k, k) squared distances |v - v'|^2."""
        values = self.values.reshape(self.num_values, -1)
        return ((values[:, None] - values[None]) ** 2).sum(-1)

    def _spacing(self, dtype: Any) -> jax.Array:
        """Evenly spaced values only: one grid step."""
        return jnp.asarray((self.values[-1] - self.values[0]) / (self.num_values - 1), dtype)

    def _offsets(self, codes: jax.Array, dtype: Any) -> jax.Array:
        """(k, d) v - s_i for numbers: exactly 0 at the current value and antisymmetric, whatever the grid's offset."""
        if self._evenly:
            return self._spacing(dtype) * (jnp.arange(self.num_values, dtype=codes.dtype)[:, None] - codes).astype(dtype)
        return self._table(dtype)[:, None] - self.embed(codes).astype(dtype)

    def _table(self, dtype: Any) -> jax.Array:
        return jnp.asarray(self.values, dtype)

    def _step(self, dtype: Any) -> jax.Array:
        """Two values only: what is added to s_i when code 0 becomes 1."""
        return jnp.asarray(self.values[1] - self.values[0], dtype)

    # ---- Moves around codes (one chain) ------------------------------------------------------------------------

    def linear(self, codes: jax.Array, h: jax.Array) -> Moves:
        """Scores h_i . (v - s_i), for h of the shape of s or ravelled."""
        h = jnp.reshape(h, self.shape)
        if self.num_values == 2:
            slope = _over_vector(h * self._step(h.dtype), self.values.ndim)
            return Flips(codes, jnp.where(codes == 0, slope, -slope))
        if self.values.ndim == 1:
            return Tables(codes, h * self._offsets(codes, h.dtype))
        scores = h.T if self._one_hot else jnp.matmul(self._table(h.dtype), h.T, precision="highest")
        return Tables(codes, scores).recentre(codes)

    def quadratic(self, codes: jax.Array, c: jax.Array) -> Moves:
        """Scores c_i (v - s_i)^2, for c a number, one per site, or one per entry of s: sum_m c_im (v_m - s_im)^2."""
        c = self.per_entry(c)
        if self.num_values == 2:
            return Flips(codes, _over_vector(c * self._step(c.dtype) ** 2, self.values.ndim))
        if self.values.ndim == 1:
            return Tables(codes, c * self._offsets(codes, c.dtype) ** 2)
        if self._one_hot:  # two entries of s change, by one each
            stays = codes == jnp.arange(self.num_values, dtype=codes.dtype)[:, None]
            return Tables(codes, jnp.where(stays, 0, c.T + Tables(codes, c.T).each(codes)))
        s, v = self.embed(codes), self._table(c.dtype)
        cross = jnp.matmul(v**2, c.T, precision="highest") - 2 * jnp.matmul(v, (c * s).T, precision="highest")
        return Tables(codes, cross).recentre(codes)

    def packed(self, table: jax.Array) -> jax.Array:
        """A (d, k) table over values as Points keep it: (d,) how much more code 1 has than code 0, or (k, d)."""
        if table.ndim == 1:
            return table
        return table[:, 1] - table[:, 0] if self.num_values == 2 else table.T

    @property
    def table_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of a table that `packed` takes: (d, k), and (d,) where there are two values."""
        two = [(self.num_sites,)] if self.num_values == 2 else []
        return [(self.num_sites, self.num_values), *two]

    def rows(self, codes: jax.Array, packed: jax.Array) -> jax.Array:
        """(d, k) the table that was packed, up to a constant per site: 0 at the current one of two values; NaN is impossible."""
        if self.num_values == 2:
            zero = jnp.zeros_like(packed)
            packed = jnp.where(codes == 0, jnp.stack([zero, packed]), jnp.stack([-packed, zero]))
        return _possible(packed.T)

    def unpacked(self, codes: jax.Array, packed: jax.Array) -> Moves:
        """Scores from a packed table; what it has at the current value is subtracted."""
        if self.num_values == 2:
            return Flips(codes, jnp.where(codes == 0, packed, -packed))
        return Tables(codes, packed).recentre(codes)

    def moves(self, codes: jax.Array, table: jax.Array) -> Moves:
        """Scores from a (d, k) table over values; the current column is subtracted."""
        return self.unpacked(codes, self.packed(table))

    def conditionals(self, codes: jax.Array, packed: jax.Array) -> Moves:
        """Moves whose softmax is that of each site of a packed table; unlike `unpacked`, fine where the current value has -inf.

        Where both of two values are impossible, either is as good: so a chain leaves a bad start.
        """
        if self.num_values > 2:
            return Tables(codes, _possible(packed))
        return self.unpacked(codes, jnp.where(jnp.isnan(packed), 0, packed))

    def choose(self, codes: jax.Array, packed: jax.Array, u: jax.Array) -> jax.Array:
        """Codes of all sites, drawn from a packed table, given uniforms as for `Moves.choose`; a site it leaves undefined stays."""
        if self.num_values > 2:
            return Tables(codes, _possible(packed)).choose(u)
        drawn = Flips(jnp.zeros_like(codes), packed).choose(u)  # seen from code 0: faster
        return jnp.where(jnp.isnan(packed), codes, drawn)

    def within(self, codes: jax.Array, radius: jax.Array) -> Moves:
        """Scores 0 within `radius` hops and -inf beyond."""
        near = self.hops(codes.astype(jnp.int32), jnp.arange(self.num_values, dtype=jnp.int32)[:, None]) <= radius
        return self.moves(codes, jnp.where(near, 0.0, -jnp.inf).astype(default_float()).T)


def _possible(packed: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(packed), -jnp.inf, packed)


def _over_vector(x: jax.Array, ndim: int) -> jax.Array:
    """Sum over the entries of a vector value; numbers stay as they are."""
    return jnp.sum(x, axis=-1) if ndim == 2 else x


def _indices(k: int) -> np.ndarray:
    """0..k-1 in the smallest signed integer type, so that differences of what is shown do not wrap around."""
    return np.arange(k, dtype=np.min_scalar_type(-k))


class Binary(Space):
    """d sites in {0, 1}."""

    def __init__(self, d: int):
        super().__init__(d, [0, 1], np.array([0, 1], np.int8), f"Binary({d})")


class Spin(Space):
    """d sites in {-1, +1}; code 1 is +1."""

    def __init__(self, d: int):
        super().__init__(d, [-1, 1], np.array([-1, 1], np.int8), f"Spin({d})")


class Ordinal(Space):
    """d sites on an increasing grid of at least two values, of any spacing; one hop is one grid step."""

    def __init__(self, d: int, values: Any):
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 1 or len(values) < 2:
            raise SpaceError("`values` is not a grid.", expected="at least two numbers, shape (k,)", found=f"shape {values.shape}")
        wrong = ~np.isfinite(values)
        wrong[1:] |= ~(np.diff(values) > 0)
        if wrong.any():
            i = int(np.argmax(wrong))
            found = f"{values[i]:g} at position {i}" + (f" after {values[i - 1]:g}" if i else "")
            raise SpaceError("`values` must increase.", expected="finite numbers, each larger than the one before", found=found)
        super().__init__(d, values, values.astype(np.float32), f"Ordinal({d}, {len(values)} values {values[0]:g}..{values[-1]:g})")

    def hops(self, a: Any, b: Any) -> Any:
        return abs(a - b)


class Categorical(Space):
    """d sites, each one of k categories: s is one-hot (d, k), shown as the category index; all categories one hop apart."""

    def __init__(self, d: int, k: int):
        k = as_size(k, "k", SpaceError, least=2)
        super().__init__(d, np.eye(k), _indices(k), f"Categorical({d}, {k})")


class Clock(Space):
    """d sites on a circle of k directions: s is (d, 2), (cos, sin); one hop is one step round the circle."""

    def __init__(self, d: int, k: int):
        k = as_size(k, "k", SpaceError, least=3)
        angle = 2 * np.pi * np.arange(k) / k
        super().__init__(d, np.stack([np.cos(angle), np.sin(angle)], axis=1), _indices(k), f"Clock({d}, {k})")

    def hops(self, a: Any, b: Any) -> Any:
        around = abs(a - b)
        return jnp.minimum(around, self.num_values - around)
