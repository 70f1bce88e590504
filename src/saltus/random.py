"""The counter-based generator of `jax.random`, bit for bit, several times faster on a CPU.

XLA:CPU runs the rounds of `jax.random`'s threefry-2x32 as a loop over memory; here they are written out. `bits`,
`uniform`, `normal`, `split` and `fold_in` return what the `jax.random` function of that name returns, and hand over to
it where this generator does not apply (`_unrolls` decides). `unit` and `categorical` are ours.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_config: Any = jax.config  # mypy does not know its flags
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = np.dtype("uint32")
_UINT = {np.dtype(f): np.dtype(u) for f, u in (("float32", "uint32"), ("float64", "uint64"))}
_LEAF = 64  # the longest axis that `categorical` resolves with one uniform


def _unrolls(key: jax.Array, shape: tuple, word: np.dtype | None = _WORD) -> bool:
    """Whether the code below gives what `jax.random` gives; if not, `jax.random` is called, and may warn or raise."""
    kind = getattr(key, "dtype", None)
    if kind is not None and jnp.issubdtype(kind, jax.dtypes.prng_key):
        threefry = key.shape == () and jax.random.key_impl(key) == "threefry2x32"
    else:
        threefry = kind == np.uint32 and key.shape == (2,) and _config.jax_default_prng_impl == "threefry2x32"
    known = word == np.uint32 or (word == np.uint64 and _config.jax_enable_x64)
    return threefry and known and _config.jax_threefry_partitionable and math.prod(shape) < 2**32


def _words(key: jax.Array) -> jax.Array:
    """The two uint32 words of a key, typed or raw."""
    return jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jnp.asarray(key)


def _like(words: jax.Array, key: jax.Array) -> jax.Array:
    """Words as keys of the same form, typed or raw, as `key`."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(words, impl="threefry2x32") if typed else words


def _shape(shape: int | Sequence[int]) -> tuple:
    """A number is the shape of a vector, as in `jax.random`."""
    return tuple(shape) if isinstance(shape, Sequence) else (shape,)


def _float(dtype) -> np.dtype:
    """`float` is jnp's default float; an explicit float64 stays one, and without x64 `jax.random` warns about it."""
    return np.dtype(jnp.result_type(float) if dtype is float else dtype)


def _threefry(words: jax.Array, counter: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32, 20 rounds (Salmon et al., 2011), of the 64-bit counters (0, counter)."""
    k0, k1 = words[0], words[1]
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x0, x1 = jnp.broadcast_to(k0, counter.shape), counter + k1
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << r) | (x1 >> (32 - r)))
        x0 = x0 + schedule[(i + 1) % 3]
        x1 = x1 + schedule[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


def _counter(shape: tuple) -> jax.Array:
    """0, 1, 2, ... in row-major order."""
    return lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)


def _bits(shape, dtype, words):
    """One counter per number: its two words together for 64 bits, their sum modulo 2 for 32."""
    x0, x1 = _threefry(words, _counter(shape))
    if dtype == np.uint32:
        return x0 ^ x1
    return (x0.astype(dtype) << 32) | x1.astype(dtype)


def _uniform(shape, dtype, words, minval, maxval):
    """A random mantissa gives x in [1, 2); then the operations of `jax.random` in its order, to round alike."""
    one, mantissa = np.ones((), dtype), np.finfo(dtype).nmant
    raw = _bits(shape, _UINT[dtype], words)
    x = lax.bitcast_convert_type((raw >> (8 * dtype.itemsize - mantissa)) | one.view(_UINT[dtype]), dtype)
    low, high = (jnp.broadcast_to(jnp.asarray(v).astype(dtype), shape) for v in (minval, maxval))
    return jnp.maximum(low, (x - one) * (high - low) + low)


def _normal(shape, dtype, words):
    """sqrt(2) erfinv(u), with u uniform on (-1, 1)."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    return np.array(np.sqrt(2), dtype) * lax.erf_inv(_uniform(shape, dtype, words, low, np.ones((), dtype)))


def _split(shape, words):
    """The words of new keys: the cipher's two outputs at the counters 0, 1, 2, ..."""
    return jnp.stack(_threefry(words, _counter(shape)), axis=-1)


def _fold_in(words, data):
    """The words of one new key: the cipher's two outputs at the counter `data`."""
    return jnp.stack(_threefry(words, data))


@partial(jax.jit, static_argnums=(0, 1))
def _once(draw, static, *arrays):
    """Computes `draw(*static, *arrays)` and stores it.

    Left to itself, XLA:CPU fuses the 20 rounds into every place that uses the numbers and computes them as often: with
    three such places, slower than `jax.random`. It drops `optimization_barrier` before it fuses, but fuses nothing into
    or out of a branch, and drops the barrier too late to see which branch is taken.
    """
    compute = partial(draw, *static)
    if jax.default_backend() != "cpu":
        return compute(*arrays)
    # zeros_like(compute(...)) is plain zeros, of the type that shard_map expects of both branches
    return lax.cond(lax.optimization_barrier(True), compute, lambda *a: jnp.zeros_like(compute(*a)), *arrays)


def bits(key: jax.Array, shape: int | Sequence[int] = (), dtype=jnp.uint32) -> jax.Array:
    """Uniform bits as `jax.random.bits` gives them; unrolled for uint32 and, under x64, uint64."""
    shape = _shape(shape)
    if not _unrolls(key, shape, np.dtype(dtype)):
        return jax.random.bits(key, shape, dtype)
    return _once(_bits, (shape, np.dtype(dtype)), _words(key))


def uniform(key: jax.Array, shape: int | Sequence[int] = (), dtype=float, minval=0.0, maxval=1.0) -> jax.Array:
    """Uniform on [minval, maxval), as `jax.random.uniform`: in steps of 2^-23 or (float64) 2^-52 of the range."""
    shape = _shape(shape)
    if not _unrolls(key, shape, _UINT.get(_float(dtype))):
        return jax.random.uniform(key, shape, dtype, minval, maxval)
    return _once(_uniform, (shape, _float(dtype)), _words(key), minval, maxval)


def normal(key: jax.Array, shape: int | Sequence[int] = (), dtype=float) -> jax.Array:
    """Standard normals as `jax.random.normal` gives them."""
    shape = _shape(shape)
    if not _unrolls(key, shape, _UINT.get(_float(dtype))):
        return jax.random.normal(key, shape, dtype)
    return _once(_normal, (shape, _float(dtype)), _words(key))


def split(key: jax.Array, num: int | tuple[int, ...] = 2) -> jax.Array:
    """`num` new keys (a number or a shape), of the form of `key`, as `jax.random.split` gives them."""
    if not _unrolls(key, _shape(num)):
        return jax.random.split(key, num)
    return _like(_once(_split, (_shape(num),), _words(key)), key)


def fold_in(key: jax.Array, data: int | jax.Array) -> jax.Array:
    """The key that belongs to the integer `data`, of the form of `key`, as `jax.random.fold_in` gives it."""
    if np.ndim(data) or not _unrolls(key, ()):
        return jax.random.fold_in(key, data)
    return _like(_once(_fold_in, (), _words(key), jnp.asarray(data, dtype=jnp.uint32)), key)


def unit(key: jax.Array, shape: int | Sequence[int] = (), dtype=float) -> jax.Array:
    r"""Uniform on the open interval (0, 1), finely resolved near zero; float32 or float64.

    $$ u = \min\big((n + \tfrac12)\, 2^{-m},\ 1 - \text{one ulp}\big), \qquad n \text{ uniform on } 0, \dots, 2^m - 1 $$

    with m = 31 (float32) or 63. A site whose flip probability is p = 1e-9 must neither flip a hundred times too often,
    as it would with `uniform(...) < p` (`uniform` is 0 with probability 2^-23), nor never, as it would with the same
    steps shifted off zero. Here P(u < p) is within 2^-(m+1) of p for small p.
    """
    dtype = np.dtype(jnp.result_type(dtype))
    if dtype not in _UINT:
        raise TypeError(f"`unit` draws float32 or float64, not {dtype}.")
    m = 8 * dtype.itemsize - 1
    # signed: XLA converts int32 to float32 in one instruction, and uint32 not
    n = (bits(key, shape, _UINT[dtype]) >> 1).astype(f"int{m + 1}").astype(dtype)
    return jnp.minimum((n + 0.5) * 2.0**-m, np.nextafter(np.ones((), dtype), np.zeros((), dtype)))


def categorical(key: jax.Array, weights: jax.Array) -> jax.Array:
    """An index along the last axis of the non-negative floats `weights`, with probability proportional to them; int32.

    Up to 64 entries: inverse CDF with one `unit` per row, so that a rare entry is not drawn whenever a uniform is 0.
    More: a block of at most 64 entries by the blocks' sums (recursively), then an entry inside it with a fresh `unit`.
    This costs O(k), and the 2^-24 steps of a float near 1 never have to serve more than 64 entries: for 10^6 equal weights
    they would be 16 or 17 for each. An entry of weight zero is never returned if its row has a positive one.
    """
    weights = jnp.asarray(weights)
    k = weights.shape[-1]
    if k <= _LEAF:
        return _inverse_cdf(unit(key, weights.shape[:-1], weights.dtype), weights)
    key_block, key_entry = split(key)
    num_blocks = -(-k // _LEAF)
    size = -(-k // num_blocks)
    padding = [(0, 0)] * (weights.ndim - 1) + [(0, num_blocks * size - k)]
    blocks = jnp.pad(weights, padding).reshape(*weights.shape[:-1], num_blocks, size)
    block = categorical(key_block, blocks.sum(-1))
    inside = jnp.take_along_axis(blocks, block[..., None, None], axis=-2)[..., 0, :]
    return block * size + categorical(key_entry, inside)


def _inverse_cdf(u: jax.Array, weights: jax.Array) -> jax.Array:
    """The first positive entry whose cumulative weight exceeds u * total; if rounding leaves none, the last positive.

    Counting the cumulative weights up to u * total would do if all columns of a matmul were summed in one order. They
    need not be, and the cumulative weight could then rise by a rounding error at an entry of weight zero.
    """
    k = weights.shape[-1]
    cumulative = jnp.matmul(weights, jnp.triu(jnp.ones((k, k), weights.dtype)), precision=lax.Precision.HIGHEST)
    entry, last = jnp.arange(k, dtype=jnp.int32), 2 * k - 1
    preference = jnp.where(cumulative > u[..., None] * cumulative[..., -1:], entry, last - entry)
    best = jnp.where(weights > 0, preference, last).min(-1)
    return jnp.minimum(best, last - best)
