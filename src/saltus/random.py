"""The counter-based generator of `jax.random`, bit for bit, several times faster on a CPU.

XLA:CPU runs the rounds of `jax.random`'s threefry-2x32 as a loop over memory; here they are written out. `bits`,
`uniform`, `normal`, `split` and `fold_in` return what the `jax.random` function of that name returns, and hand over to
it where this generator does not apply (`_unrolls` decides). `unit`, `gauss`, `categorical`, `folded` and
`seeds` are ours.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._fusion import stored
from ._record import as_size
from .errors import RunError

_config: Any = jax.config  # mypy does not know its flags
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_STREAMS = 0x53545245  # beyond every phase of a run
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


def _float(dtype: Any) -> np.dtype:
    """`float` is jnp's default float; an explicit float64 stays one, and without x64 `jax.random` warns about it."""
    return np.dtype(jnp.result_type(float) if dtype is float else dtype)


def _threefry(words: Any, counter: Any) -> tuple[Any, Any]:
    """Threefry-2x32, 20 rounds (Salmon et al., 2011), of the 64-bit counters (0, counter); of NumPy's arrays on the host."""
    k0, k1 = words[..., 0], words[..., 1]
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x0, x1 = k0, counter + k1
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


def _bits(shape: tuple, dtype: np.dtype, words: jax.Array) -> jax.Array:
    """One counter per number: its two words together for 64 bits, their sum modulo 2 for 32."""
    x0, x1 = _threefry(words, _counter(shape))
    if dtype == np.uint32:
        return x0 ^ x1
    return (x0.astype(dtype) << 32) | x1.astype(dtype)


def _unit_pairs(num: int, words: jax.Array) -> jax.Array:
    """A uniform from either word of each of `num` counters, as one complex number: two arrays would be computed in two loops,
    each with all 20 rounds."""
    return lax.complex(*(_to_unit(x, np.dtype("float32")) for x in _threefry(words, _counter((num,)))))


def _to_unit(raw: jax.Array, dtype: np.dtype) -> jax.Array:
    """(n + ½) 2^-m, n the first m bits of a word of m + 1."""
    m = 8 * dtype.itemsize - 1
    # signed: XLA converts int32 to float32 in one instruction, and uint32 not
    n = (raw >> 1).astype(f"int{m + 1}").astype(dtype)
    return jnp.minimum((n + 0.5) * 2.0**-m, np.nextafter(np.ones((), dtype), np.zeros((), dtype)))


def _normal_pairs(num: int, words: jax.Array) -> jax.Array:
    """Box and Muller: r (cos φ, sin φ) with r = sqrt(-2 log u), φ uniform on the circle; both as one complex number, as above.

    φ is within ±π/4, where short series are right to the last bit but one; a sign and an exchange make it a whole circle.
    """
    x0, x1 = _threefry(words, _counter((num,)))
    r = jnp.sqrt(-2 * jnp.log(_to_unit(x0, np.dtype("float32"))))
    phi = ((x1 >> 2).astype(jnp.int32).astype(jnp.float32) + 0.5) * np.float32(2.0**-31 * np.pi) - np.float32(np.pi / 4)
    square = phi * phi
    sine = phi * _series(square, [1 / math.factorial(n) * (-1) ** (n // 2) for n in (1, 3, 5, 7, 9)])
    cosine = _series(square, [1 / math.factorial(n) * (-1) ** (n // 2) for n in (0, 2, 4, 6, 8, 10)])
    long, short = jnp.where(x1 & 1 == 0, r, -r) * cosine, r * sine
    return lax.complex(jnp.where(x1 & 2 == 0, long, short), jnp.where(x1 & 2 == 0, short, long))


def _series(x: jax.Array, coefficients: list[float]) -> Any:
    """c_0 + c_1 x + c_2 x^2 + ..."""
    total: Any = np.float32(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + np.float32(c)
    return total


def _uniform(shape: tuple, dtype: np.dtype, words: jax.Array, minval: Any, maxval: Any) -> jax.Array:
    """A random mantissa gives x in [1, 2); then the operations of `jax.random` in its order, to round alike."""
    one, mantissa = np.ones((), dtype), np.finfo(dtype).nmant
    raw = _bits(shape, _UINT[dtype], words)
    x = lax.bitcast_convert_type((raw >> (8 * dtype.itemsize - mantissa)) | one.view(_UINT[dtype]), dtype)
    low, high = (jnp.broadcast_to(jnp.asarray(v).astype(dtype), shape) for v in (minval, maxval))
    return jnp.maximum(low, (x - one) * (high - low) + low)


def _normal(shape: tuple, dtype: np.dtype, words: jax.Array) -> Any:
    """sqrt(2) erfinv(u), with u uniform on (-1, 1)."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    return lax.erf_inv(_uniform(shape, dtype, words, low, np.ones((), dtype))) * np.array(np.sqrt(2), dtype)


def _split(shape: tuple, words: jax.Array) -> jax.Array:
    """The words of new keys: the cipher's two outputs at the counters 0, 1, 2, ..."""
    return jnp.stack(_threefry(words, _counter(shape)), axis=-1)


def _fold_in(words: jax.Array, data: jax.Array) -> jax.Array:
    """The words of one new key: the cipher's two outputs at the counter `data`."""
    return jnp.stack(_threefry(words, data))


@partial(jax.jit, static_argnums=(0, 1))
def _once(draw: Callable[..., jax.Array], static: tuple, *arrays: Any) -> jax.Array:
    """Computes `draw(*static, *arrays)` and stores it: fused into every place that uses the numbers, as XLA would have it,
    the 20 rounds would be computed as often, and be slower than `jax.random`."""
    return stored(partial(draw, *static), *arrays)


def bits(key: jax.Array, shape: int | Sequence[int] = (), dtype: Any = jnp.uint32) -> jax.Array:
    """Uniform bits as `jax.random.bits` gives them; unrolled for uint32 and, under x64, uint64.

    key: a JAX key. shape: of the result; a number is the length of a vector. dtype: an unsigned integer type.
    """
    shape = _shape(shape)
    if not _unrolls(key, shape, np.dtype(dtype)):
        return jax.random.bits(key, shape, dtype)
    return _once(_bits, (shape, np.dtype(dtype)), _words(key))


def uniform(key: jax.Array, shape: int | Sequence[int] = (), dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0) -> jax.Array:
    """Uniform on [minval, maxval), as `jax.random.uniform`: in steps of 2^-23 or (float64) 2^-52 of the range.

    key: a JAX key. shape: of the result; a number is the length of a vector. dtype: a float type.
    """
    shape = _shape(shape)
    if not _unrolls(key, shape, _UINT.get(_float(dtype))):
        return jax.random.uniform(key, shape, dtype, minval, maxval)
    return _once(_uniform, (shape, _float(dtype)), _words(key), minval, maxval)


def normal(key: jax.Array, shape: int | Sequence[int] = (), dtype: Any = float) -> jax.Array:
    """Standard normals as `jax.random.normal` gives them.

    key: a JAX key. shape: of the result; a number is the length of a vector. dtype: a float type.
    """
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


def folded(words: np.ndarray, data: Any) -> np.ndarray:
    """(n, 2) the words of keys as `fold_in` gives them, of one key (2,) or n (n, 2) and one integer [i] or n of them (n,).

    Made on the host: nothing has to be compiled.

    words: the two uint32 of each key. data: the integers.
    """
    return np.stack(_threefry(words, np.asarray(data, np.uint32)), axis=-1)


def seeds(seed: int, num: int) -> list[int]:
    """Seeds of independent streams: for runs that are to share no random numbers, such as one from a hot and one from a cold start.

    seed: an integer from 0 to 2**64 - 1; the same one gives the same seeds. num: how many, at least 1. Returns integers for
    `saltus.sample(..., seed=)`; RunError where either cannot be used. `hot, cold = saltus.random.seeds(0, 2)`.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise RunError("`seed` is not usable.", expected="an integer from 0 to 2**64 - 1", found=repr(seed))
    words = np.array([int(seed) >> 32, int(seed) & 0xFFFFFFFF], np.uint32)
    own = folded(folded(words, [_STREAMS])[0], np.arange(as_size(num, "num", RunError)))
    return [int(high) << 32 | int(low) for high, low in own.tolist()]


def unit(key: jax.Array, shape: int | Sequence[int] = (), dtype: Any = float) -> jax.Array:
    r"""Uniform on the open interval (0, 1), finely resolved near zero; float32 or float64.

    $$ u = \min\big((n + \tfrac12)\, 2^{-m},\ 1 - \text{one ulp}\big), \qquad n \text{ uniform on } 0, \dots, 2^m - 1 $$

    with m = 31 (float32) or 63. A site whose flip probability is p = 1e-9 must neither flip a hundred times too often,
    as it would with `uniform(...) < p` (`uniform` is 0 with probability 2^-23), nor never, as it would with the same
    steps shifted off zero. Here P(u < p) is within 2^-(m+1) of p for small p.

    key: a JAX key. shape: of the result; a number is the length of a vector. dtype: a float type.
    """
    shape, dtype = _shape(shape), np.dtype(jnp.result_type(dtype))
    if dtype not in _UINT:
        raise TypeError(f"`unit` draws float32 or float64, not {dtype}.")
    if dtype != np.float32 or not _unrolls(key, shape):
        return _to_unit(bits(key, shape, _UINT[dtype]), dtype)
    return _halves(_once(_unit_pairs, (-(-math.prod(shape) // 2),), _words(key)), shape)


def _halves(pairs: jax.Array, shape: tuple) -> jax.Array:
    """Real parts, then imaginary parts, as many as `shape` holds."""
    return jnp.concatenate([lax.real(pairs), lax.imag(pairs)])[: math.prod(shape)].reshape(shape)


def gauss(key: jax.Array, shape: int | Sequence[int] = (), dtype: Any = float) -> jax.Array:
    """Standard normals, others than `normal` gives, in less than half the time (float32); up to 6.7 in size, `normal`'s to 5.4.

    key: a JAX key. shape: of the result; a number is the length of a vector. dtype: a float type.
    """
    shape, dtype = _shape(shape), _float(dtype)
    if dtype != np.float32 or not _unrolls(key, shape):
        return normal(key, shape, dtype)
    return _halves(_once(_normal_pairs, (-(-math.prod(shape) // 2),), _words(key)), shape)


def categorical(key: jax.Array, weights: jax.Array) -> jax.Array:
    """An index along the first axis of the non-negative floats `weights`, with probability proportional to them; int32.

    key: a JAX key.
    """
    weights = jnp.asarray(weights)
    return inverse_cdf(unit(key, (num_units(weights.shape[0]), *weights.shape[1:]), weights.dtype), weights)


def num_units(k: int) -> int:
    """How many uniforms `inverse_cdf` wants for k entries."""
    return 1 if k <= _LEAF else 1 + num_units(-(-k // _LEAF))


def inverse_cdf(u: jax.Array, weights: jax.Array) -> jax.Array:
    """The entry along the first axis at which uniforms u (`num_units`, ...) fall, as numbers from `unit` do; int32.

    Up to 64 entries: the first whose cumulative weight exceeds u times the sum. More: a block of at most 64 entries by the
    blocks' sums (recursively), then an entry inside it with another u. This costs O(k), and the 2^-24 steps of a float near
    1 never have to serve more than 64 entries: for 10^6 equal weights they would be 16 or 17 for each. An entry of weight
    zero is never returned if there is a positive one.
    """
    k, rest = weights.shape[0], weights.shape[1:]
    if k <= _LEAF:
        return _first_beyond(u[0], weights)
    num_blocks = -(-k // _LEAF)
    size = -(-k // num_blocks)
    padding = [(0, num_blocks * size - k), *[(0, 0)] * len(rest)]
    blocks = jnp.pad(weights, padding).reshape(num_blocks, size, *rest)
    block = inverse_cdf(u[1:], blocks.sum(1))
    inside = stored(lambda b, i: jnp.take_along_axis(b, i[None, None], axis=0)[0], blocks, block)  # or it is gathered 64 times
    return block * size + _first_beyond(u[0], inside)


def _first_beyond(u: jax.Array, weights: jax.Array) -> jax.Array:
    """Weights are added up one by one, so that the cumulative weight never rises at an entry of weight zero; and u times
    the sum is below the sum in floating point too, since u is below 1."""
    cumulative = [weights[0]]
    for v in range(1, weights.shape[0]):
        cumulative.append(cumulative[-1] + weights[v])
    threshold = u * cumulative[-1]
    return sum(((c <= threshold).astype(jnp.int32) for c in cumulative[:-1]), jnp.zeros(threshold.shape, jnp.int32))
