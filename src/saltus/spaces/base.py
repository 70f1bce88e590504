r"""Discrete spaces: d sites, each taking one of k values.

A chain holds integer `codes`; a log-probability sees s = embed(codes), real numbers; a person reads show(codes).
A space is two tables, the values and the labels a person reads, and one function, the number of hops between two codes.
Nothing outside spaces and moves asks what kind of variable it has; fast paths (two values, even spacing) go by shape.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._fusion import total
from .._record import as_array, as_size, default_float, is_concrete, shown
from .._words import escaped
from ..errors import SpaceError
from ..moves import Flips, Moves, Tables
from ._moved import Moved

_MOST_STATES, _MOST_SITES = 2**22, 2**31 - 1


def read_values(values: Any) -> np.ndarray:
    """(k,) numbers or (k, m) vectors, at least two and all finite, or SpaceError."""
    table = np.asarray(as_array(values, "values", SpaceError, "at least two numbers, shape (k,), or vectors, shape (k, m)"))
    if table.ndim not in (1, 2) or len(table) < 2 or not table.size:
        expected = "at least two numbers, shape (k,), or vectors, shape (k, m)"
        raise SpaceError("`values` is not a table of values.", expected=expected, found=f"shape {table.shape}")
    if not np.isfinite(table).all():
        raise SpaceError(
            "`values` is not a table of values.", expected="finite numbers", found=f"{table[~np.isfinite(table)][0]:g}"
        )
    return table


def smallest_signed(num_values: int) -> np.dtype:
    """The smallest type that holds sums and differences of two codes."""
    return np.min_scalar_type(-2 * num_values)


class Piece(NamedTuple):
    """A run of sites with one table of values: the whole of an ordinary space, or a part of a product.

    name: of its variable among the draws; dim: that of its sites there. entries: of the ravelled s.
    """

    name: str
    dim: str
    space: Any
    sites: slice
    entries: slice


class Space(Moved):
    """`num_sites` sites over a table of values: (k,) numbers or (k, m) vectors; `labels` (k,) are what `show` shows.

    description: how the space prints itself, such as "Binary(5)".
    """

    def __init__(self, num_sites: int, values: Any, labels: Any = None, description: str = ""):
        self.num_sites = as_size(num_sites, "num_sites", SpaceError, most=_MOST_SITES)
        self.values = np.array(read_values(values), dtype=np.float64)
        self.labels = (
            self.values if labels is None else np.array(as_array(labels, "labels", SpaceError, "one number for each value"))
        )
        if self.labels.shape != self.values.shape[:1] and labels is not None:
            expected, found = f"one for each of {len(self.values)} values", shown(labels)
            raise SpaceError("`labels` does not fit the values.", expected=expected, found=found)
        if not isinstance(description, str):
            raise SpaceError("`description` is not a word.", expected="a string", found=shown(description))
        self.num_values = len(self.values)
        self.shape = (self.num_sites, *self.values.shape[1:])
        self.size = math.prod(self.shape)
        self.num_values_per_site = np.full(self.num_sites, self.num_values)
        self.code_dtype = smallest_signed(self.num_values)
        self.form: type[Moves] = Flips if self.num_values == 2 else Tables
        self._description = description or f"{type(self).__name__}({num_sites}, {self.num_values})"
        self._evenly = self.values.ndim == 1 and np.allclose(
            self.values, np.linspace(self.values[0], self.values[-1], self.num_values), rtol=0, atol=1e-12 * np.ptp(self.values)
        )
        self.one_hot = np.array_equal(self.values, np.eye(self.num_values))
        self._identity: tuple = (type(self), self._description, self.num_sites, self.values.tobytes(), self.labels.tobytes())
        self._hash = hash(self._identity)

    def __repr__(self) -> str:
        return escaped(self._description)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Space) and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    def hops(self, a: Any, b: Any) -> Any:
        """Number of hops between two codes. Here: one between any two different values."""
        return (a != b).astype(jnp.int32)

    def hops_at(self, sites: Any, a: Any, b: Any) -> Any:
        """Hops between two codes of `sites`, which broadcasts with them."""
        return self.hops(a, b)

    @functools.cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The sites, by the table of values they have; here all of them."""
        return (Piece("s", "site", self, slice(0, self.num_sites), slice(0, self.size)),)

    @property
    def tables(self) -> bytes:
        """All values and labels, as bytes: what tells one space from another of the same words."""
        return b"".join(piece.space.values.tobytes() + piece.space.labels.tobytes() for piece in self.pieces)

    @property
    def shown_bytes(self) -> int:
        """Of one state, as a person reads it."""
        return sum(piece.space.num_sites * piece.space.labels.itemsize for piece in self.pieces)

    def numbers(self, codes: np.ndarray) -> np.ndarray:
        """(..., n) the ravelled s of codes (..., d), on the host and in float64."""
        tables = [(piece.space.values.reshape(piece.space.num_values, -1), piece.sites) for piece in self.pieces]
        parts = [table[codes[..., sites]].reshape(*codes.shape[:-1], -1) for table, sites in tables]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    # ---- codes, states, and what a person reads ----------------------------------------------------------------

    def embed(self, codes: Any) -> jax.Array:
        """The real state s that log_prob sees: shape (..., d), or (..., d, m) where values are vectors."""
        codes, dtype = jnp.asarray(as_array(codes, "codes", SpaceError, f"codes of {self}")), default_float()
        if self._evenly:
            return jnp.asarray(self.values[0], dtype) + self._spacing(dtype) * codes.astype(dtype)
        if self.values.ndim == 1:
            return jnp.take(jnp.asarray(self.values, dtype), codes, axis=0)
        chosen = (codes[..., None] == jnp.arange(self.num_values, dtype=codes.dtype)).astype(dtype)
        return chosen if self.one_hot else jnp.matmul(chosen, jnp.asarray(self.values, dtype), precision="highest")

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
        try:
            x = np.asarray(as_array(x, name, SpaceError))
        except SpaceError:
            raise self._not_a_state(name, f"an array of no numbers: {shown(x)}") from None
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
        codes = as_array(codes, name, SpaceError, f"integers of shape (..., {self.num_sites})")
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
            wrong = (values < 0) | (values >= self.num_values_per_site)
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
        """All codes, (number of states, d), the last site changing fastest; k^d of them where every site has k values."""
        sizes = [int(k) for k in self.num_values_per_site]
        if math.prod(sizes) > _MOST_STATES:
            found = f"{self.num_values}^{self.num_sites}" if len(set(sizes)) == 1 else f"{float(math.prod(sizes)):.3g}"
            raise SpaceError(f"{self} is too large to enumerate.", expected=f"at most {_MOST_STATES} states", found=found)
        grid = np.indices(sizes, dtype=np.int32)
        return jnp.asarray(grid.reshape(self.num_sites, -1).T)

    def index(self, codes: Any) -> np.ndarray:
        """Where codes (..., d) stand in `enumerate()`."""
        sizes = self.num_values_per_site
        return np.asarray(codes).astype(np.int64) @ (np.cumprod(sizes[::-1])[::-1] // sizes)

    def abstract(self) -> Any:
        """What a log-probability is given, as shapes and types."""
        return jax.ShapeDtypeStruct(self.shape, default_float())

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

    def site_of_entries(self) -> np.ndarray:
        """(n,) the site that each entry of the ravelled s belongs to, in ascending order."""
        return np.repeat(np.arange(self.num_sites), self._entries_per_site())

    def _entries_per_site(self) -> np.ndarray:
        return np.full(self.num_sites, self.size // self.num_sites)

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

    # ---- some of the sites -------------------------------------------------------------------------------------

    def restricted(self, sites: np.ndarray) -> Space:
        """The space of these sites alone."""
        new = copy.copy(self)
        new.__dict__.pop("pieces", None)
        new.num_sites, new.shape = len(sites), (len(sites), *self.shape[1:])
        new.size = math.prod(new.shape)
        new.num_values_per_site = np.full(len(sites), self.num_values)
        new._description = f"{self._description}[{len(sites)} sites]" if len(sites) < self.num_sites else self._description
        new._identity = (*self._identity[:1], new._description, len(sites), *self._identity[3:])
        new._hash = hash(new._identity)
        return new

    def filled(self, whole: Any, part: Any, sites: np.ndarray) -> Any:
        """The real state `whole` with `part`, a state of `restricted(sites)`, in its place."""
        return whole.at[sites].set(part)

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
        few = self.num_values <= 2 or self.one_hot
        return float(np.abs(self.values[1] - self.values[0]).sum()) if few else 0.0

    @functools.cached_property
    def unit(self) -> float:
        """The square of the smallest distance between two values: what step sizes are measured in."""
        table = self.distance_table()
        return float(table[table > 0].min())

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

    def offsets(self, codes: jax.Array, dtype: Any) -> jax.Array:
        """(k, d) v - s_i for numbers: exactly 0 at the current value and antisymmetric, whatever the grid's offset."""
        if self._evenly:
            return self._spacing(dtype) * (jnp.arange(self.num_values, dtype=codes.dtype)[:, None] - codes).astype(dtype)
        return jnp.asarray(self.values, dtype)[:, None] - self.embed(codes).astype(dtype)

    # ---- Moves around codes (one chain): the form does the work ------------------------------------------------

    def linear(self, codes: jax.Array, h: jax.Array) -> Moves:
        """Scores h_i . (v - s_i), for h of the shape of s or ravelled."""
        return self.form.linear(self, codes, h)

    def quadratic(self, codes: jax.Array, c: jax.Array) -> Moves:
        """Scores c_i (v - s_i)^2, for c a number, one per site, or one per entry of s: sum_m c_im (v_m - s_im)^2."""
        return self.form.quadratic(self, codes, c)

    def moves(self, codes: jax.Array, table: jax.Array) -> Moves:
        """Scores from a (d, k) table over values; the current column is subtracted."""
        return self.form.unpacked(codes, self.form.packed(self, table))

    def within(self, codes: jax.Array, radius: jax.Array) -> Moves:
        """Scores 0 within `radius` hops and -inf beyond."""
        near = self.hops(codes.astype(jnp.int32), jnp.arange(self.num_values, dtype=jnp.int32)[:, None]) <= radius
        return self.moves(codes, jnp.where(near, 0.0, -jnp.inf).astype(default_float()).T)
