"""Random functions of a few sites, written twice: in jnp, to be read, and in numpy, to be evaluated at every state."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

D = 6  # sites
NUMBERS = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.0])
VECTORS = st.lists(NUMBERS, min_size=D, max_size=D)
PLACES = st.lists(st.integers(0, D - 1), min_size=D, max_size=D)
MATRICES = st.lists(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, -0.5]), min_size=D, max_size=D), min_size=D, max_size=D)


def _array(x):
    return np.asarray(x, np.float32)


def _index(x):
    return np.clip(np.asarray(np.trunc(x), int), 0, D - 1)


def _jindex(x):
    return jnp.clip(x.astype(jnp.int32), 0, D - 1)


def _scan(x):
    return jax.lax.scan(lambda c, a: (0.5 * c + a, c * 1.0), 0.0, x)[1]


def _np_scan(x):
    out, c = [], 0.0
    for a in x:
        out.append(c)
        c = 0.5 * c + a
    return np.array(out)


@jax.custom_jvp
def _through(x):
    return jnp.sign(x)


_through.defjvp(lambda primals, tangents: (_through(*primals), tangents[0]))

# name -> (jnp, numpy) of one vector
ONE = {
    "abs": (jnp.abs, np.abs),
    "square": (jnp.square, np.square),
    "cube": (lambda x: x**3, lambda x: x**3),
    "tanh": (jnp.tanh, np.tanh),
    "exp": (lambda x: jnp.exp(0.25 * x), lambda x: np.exp(0.25 * x)),
    "sign": (jnp.sign, np.sign),
    "floor": (lambda x: jnp.floor(x * 0.5), lambda x: np.floor(x * 0.5)),
    "cast": (lambda x: x.astype(jnp.int32).astype(jnp.float32), lambda x: np.trunc(x)),
    "half": (lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), None),
    "above": (lambda x: (x > 0.5).astype(jnp.float32), lambda x: (x > 0.5) * 1.0),
    "relu": (jax.nn.relu, lambda x: np.maximum(x, 0)),
    "log_sigmoid": (jax.nn.log_sigmoid, lambda x: -np.logaddexp(0, -x)),
    "roll": (lambda x: jnp.roll(x, 1), lambda x: np.roll(x, 1)),
    "flip": (jnp.flip, np.flip),
    "reshape": (lambda x: x.reshape(2, D // 2).T.ravel(), lambda x: x.reshape(2, D // 2).T.ravel()),
    "sort": (jnp.sort, np.sort),
    "argsort": (lambda x: jnp.argsort(x, stable=True).astype(jnp.float32), lambda x: np.argsort(x, kind="stable") * 1.0),
    "cumsum": (jnp.cumsum, np.cumsum),
    "cummax": (jax.lax.cummax, np.maximum.accumulate),
    "total": (lambda x: jnp.full(D, 0.5) * x.sum(), lambda x: np.full(D, 0.5) * x.sum()),
    "largest": (lambda x: x - x.max(), lambda x: x - x.max()),
    "first": (lambda x: jnp.where(jnp.arange(D) == jnp.argmax(x), x, 0), lambda x: np.where(np.arange(D) == np.argmax(x), x, 0)),
    "logsumexp": (lambda x: x - jax.nn.logsumexp(x), lambda x: x - np.log(np.exp(x - x.max()).sum()) - x.max()),
    "pad": (lambda x: jnp.pad(x[2:], (1, 1)), lambda x: np.pad(x[2:], (1, 1))),
    "small": (lambda x: jnp.full(D, x.astype(jnp.int8).sum(dtype=jnp.int8) * 1.0), None),
    "held": (jax.lax.stop_gradient, lambda x: x),
    "through": (_through, np.sign),
    "jit": (jax.jit(lambda x: x * jnp.roll(x, 2)), lambda x: x * np.roll(x, 2)),
    "remat": (jax.checkpoint(lambda x: x * x[0]), lambda x: x * x[0]),
    "scan": (_scan, _np_scan),
    "while": (lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 0.5 + x, x), lambda x: x * 0.125 + x * 1.75),
    "cond": (lambda x: jax.lax.cond(x[0] > 0.5, lambda y: y, lambda y: -y, x), lambda x: x if x[0] > 0.5 else -x),
    "set": (lambda x: x.at[1].set(x[3]), lambda x: np.concatenate([x[:1], x[3:4], x[2:]])),
    "norm": (lambda x: x / (1 + jnp.abs(x).sum()), lambda x: x / (1 + np.abs(x).sum())),
}
# of two vectors
TWO = {
    "add": (lambda x, y: x + y, lambda x, y: x + y),
    "sub": (lambda x, y: x - y, lambda x, y: x - y),
    "mul": (lambda x, y: x * y, lambda x, y: x * y),
    "max": (jnp.maximum, np.maximum),
    "where": (lambda x, y: jnp.where(x > 0.5, y, -1.0), lambda x, y: np.where(x > 0.5, y, -1.0)),
    "divide": (lambda x, y: x / (2 + jnp.abs(y)), lambda x, y: x / (2 + np.abs(y))),
    "lookup": (lambda x, y: x[_jindex(y)], lambda x, y: x[_index(y)]),
    "slice": (
        lambda x, y: jnp.full(D, jax.lax.dynamic_slice(x, (_jindex(y)[0],), (1,))[0]),
        lambda x, y: np.full(D, x[_index(y)[0]]),
    ),
    "compare": (lambda x, y: (x == y).astype(jnp.float32), lambda x, y: (x == y) * 1.0),
    "logic": (
        lambda x, y: ((x > 0) ^ (y > 0)).astype(jnp.float32),
        lambda x, y: ((x > 0) ^ (y > 0)) * 1.0,
    ),
    "dot": (lambda x, y: x * (x @ y), lambda x, y: x * (x @ y)),
}
# of a vector and constants: (strategy, jnp, numpy)
GIVEN = {
    "times": (VECTORS, lambda x, c: x * _array(c), lambda x, c: x * _array(c)),
    "plus": (VECTORS, lambda x, c: x + _array(c), lambda x, c: x + _array(c)),
    "take": (PLACES, lambda x, c: x[np.array(c)], lambda x, c: x[np.array(c)]),
    "put": (PLACES, lambda x, c: jnp.zeros(D).at[np.array(c)].add(x), lambda x, c: np.bincount(c, x, D)),
    "matrix": (MATRICES, lambda x, c: _array(c) @ x, lambda x, c: _array(c) @ x),
    "form": (MATRICES, lambda x, c: (_array(c) * jnp.outer(x, x)).sum(1), lambda x, c: (_array(c) * np.outer(x, x)).sum(1)),
    "einsum": (MATRICES, lambda x, c: jnp.einsum("i,ij,j->i", x, _array(c), x), lambda x, c: x * (_array(c) @ x)),
    "table": (VECTORS, lambda x, c: jnp.asarray(_array(c))[_jindex(x)], lambda x, c: _array(c)[_index(x)]),
    "masked": (VECTORS, lambda x, c: jnp.where(_array(c) > 0, x, 1.0), lambda x, c: np.where(_array(c) > 0, x, 1.0)),
    "clip": (NUMBERS, lambda x, c: jnp.clip(x, c, 2.0), lambda x, c: np.minimum(np.maximum(x, c), 2.0)),
}
LINEAR = ["times", "plus", "take", "put", "matrix", "roll", "flip", "reshape", "add", "sub", "masked", "pad", "scan"]


@st.composite
def programs(draw):
    """A list of instructions; each works on vectors made before it, s being the first."""
    half = st.sampled_from(LINEAR)
    names = st.one_of(half, st.sampled_from([*ONE, *TWO, *GIVEN]))
    steps = []
    for number in range(draw(st.integers(1, 7))):
        name = draw(names)
        made = st.integers(0, number)
        steps.append((name, draw(made), draw(made), draw(GIVEN[name][0]) if name in GIVEN else None))
    kept = draw(st.lists(st.integers(0, len(steps)), min_size=1, max_size=2))
    return steps, [len(steps), *kept]


def run(program, s, which):
    """which: 0 for jnp, 1 for numpy."""
    steps, kept = program
    made = [s]
    for name, a, b, given in steps:
        if name in ONE:
            made.append(_half(name)(made[a]) if which and ONE[name][1] is None else ONE[name][which](made[a]))
        elif name in TWO:
            made.append(TWO[name][which](made[a], made[b]))
        else:
            made.append(GIVEN[name][1 + which](made[a], given))
    return sum(made[i].sum() for i in kept)


def _half(name):
    """Types that numpy lacks."""
    if name == "half":
        return lambda x: np.asarray(jnp.asarray(x, jnp.float32).astype(jnp.bfloat16), np.float64)
    return lambda x: np.full(D, np.asarray(np.trunc(x), np.int8).sum(dtype=np.int8) * 1.0)
