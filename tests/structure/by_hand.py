"""Functions of six sites, with what should be found in them.

"hides": sites interact without a second derivative, or through something that is easily overlooked.
("quadratic" | "other", tight): whether it should be seen to be quadratic, and whether exactly the true pairs should be found.
"""

import jax
import jax.numpy as jnp
import numpy as np

W = jnp.asarray([[0.3, 1.0], [-0.5, 2.0]])
T = jnp.asarray([0.5, -1.0, 2.0, 0.0, 1.5, 0.25, 3.0, 1.0])
J = np.zeros((6, 6), np.float32)
for i, j in ((0, 1), (1, 2), (3, 4)):
    J[i, j] = J[j, i] = 0.5 + i
A = np.arange(36, dtype=np.float32).reshape(6, 6) % 5 - 2
MASK = np.array([1, 0, 1, 0, 1, 0], np.float32)


def code(x):
    return (x > 0.5).astype(jnp.int32)


def markov(s):
    """A chain as numpyro.contrib.control_flow.scan leaves it: rows of a table chosen step by step, entries all at once."""
    rows = jax.lax.scan(lambda before, now: (now, W[code(before)]), jnp.zeros(()), s)[1]
    return jnp.take_along_axis(rows, code(s)[:, None], axis=1).sum()


@jax.custom_jvp
def straight_through(x):
    return jnp.round(x)


straight_through.defjvp(lambda p, t: (straight_through(*p), t[0]))


@jax.custom_vjp
def flat(x):
    return x[0] * x[1]


flat.defvjp(lambda x: (flat(x), None), lambda _, g: (jnp.zeros(6),))

HIDES = {
    "abs of a sum": lambda s: -jnp.abs(s.sum() - 3),
    "table of two casts": lambda s: W[code(s[0]), code(s[1])],
    "where on a comparison": lambda s: jnp.where(s[0] > 0.5, s[1], s[2]),
    "max of two": lambda s: jnp.maximum(s[0], s[3]),
    "min of two": lambda s: jnp.minimum(s[0], s[3]),
    "relu of a difference": lambda s: jax.nn.relu(s[0] - s[5]),
    "sort": lambda s: jnp.sort(s) @ jnp.arange(6.0),
    "argmax": lambda s: T[jnp.argmax(s)],
    "argsort": lambda s: T[jnp.argsort(s)[0]],
    "cast of a sum": lambda s: (s[:3].sum() / 2).astype(jnp.int32).astype(jnp.float32),
    "floor": lambda s: jnp.floor((s[0] + s[1]) / 2),
    "round": lambda s: jnp.round((s[0] + s[1]) / 4 + 0.1),
    "sign of a sum": lambda s: jnp.sign(s[2] + s[3] + 0.5),
    "equality": lambda s: (s[0] == s[1]).astype(jnp.float32),
    "order": lambda s: jnp.sum((s[1:] > s[:-1]).astype(jnp.float32)),
    "logic": lambda s: jnp.where((s[0] > 0.5) & (s[4] > 0.5), 1.0, 0.0),
    "exclusive or": lambda s: ((s[0] > 0.5) ^ (s[4] > 0.5)).astype(jnp.float32),
    "any": lambda s: jnp.any(s > 0.5).astype(jnp.float32),
    "all": lambda s: jnp.all(s[:2] > 0.5).astype(jnp.float32),
    "index from s": lambda s: s[code(s[0]) + 2],
    "dynamic slice": lambda s: jax.lax.dynamic_slice(s, (code(s[5]),), (2,)).sum(),
    "cond": lambda s: jax.lax.cond(s[0] > 0.5, lambda x: x[1], lambda x: x[2], s),
    "while": lambda s: jax.lax.while_loop(lambda c: c[0] < s[0] + 2, lambda c: (c[0] + 1, c[1] + s[1]), (0.0, 0.0))[1],
    "remainder": lambda s: jnp.remainder(s[0] + s[1] + s[2], 2.0),
    "clip": lambda s: jnp.clip(s[0] + s[1], -0.5, 1.0),
    "straight through": lambda s: straight_through((s[0] + s[1]) * 0.4),
    "largest less smallest": lambda s: s[:3].max() - s[3:].min(),
    "integers that wrap": lambda s: (code(s) * 100).astype(jnp.int8).sum(dtype=jnp.int8).astype(jnp.float32),
    "half precision": lambda s: ((s[0] * 1000 + s[1] * 3.3).astype(jnp.bfloat16)).astype(jnp.float32),
    "scatter by s": lambda s: jnp.zeros(6).at[code(s[0])].set(s[1])[0],
    "unique values": lambda s: jnp.sum(jnp.diff(jnp.sort(s[:3])) != 0).astype(jnp.float32),
    "median": lambda s: jnp.median(s[:3]),
    "parity by bits": lambda s: (jnp.sum(code(s)) & 1).astype(jnp.float32),
    "custom derivative of zero": flat,
    "gradient stopped": lambda s: jax.lax.stop_gradient(s[0]) * s[1] + jax.lax.stop_gradient(s[2] * s[3]),
    "product of logs": lambda s: jnp.log(jnp.exp(s[0]) + jnp.exp(s[1])),
    "norm": lambda s: jnp.linalg.norm(s[:2] + 0.5),
    "cumulative maximum": lambda s: jax.lax.cummax(s)[2],
}
FOUND = {
    "dense form": (("quadratic", False), lambda s: s @ A @ s),
    "sparse form": (("quadratic", True), lambda s: 0.5 * s @ J @ s + s @ A[0]),
    "form by outer": (("quadratic", True), lambda s: jnp.sum(J * jnp.outer(s, s))),
    "form by einsum": (("quadratic", True), lambda s: jnp.einsum("i,ij,j->", s, J, s)),
    "chain": (("quadratic", True), lambda s: jnp.sum(s[1:] * s[:-1])),
    "ring": (("quadratic", True), lambda s: jnp.sum(s * jnp.roll(s, 1))),
    "lattice": (("quadratic", True), lambda s: jnp.sum(s.reshape(2, 3) * jnp.roll(s.reshape(2, 3), 1, 1))),
    "list of edges": (("quadratic", True), lambda s: jnp.sum(s[np.array([0, 2])] * s[np.array([3, 5])])),
    "segment sum": (("quadratic", True), lambda s: jnp.sum(jax.ops.segment_sum(s, np.array([0, 0, 1, 1, 2, 2]), 3) ** 2)),
    "square of a sum": (("quadratic", False), lambda s: -((s.sum() - 3) ** 2)),
    "field": (("quadratic", True), lambda s: s @ A[1] + 3),
    "constant": (("quadratic", True), lambda s: jnp.float32(2.0)),
    "on-site terms": (("quadratic", True), lambda s: jnp.sum(jax.nn.log_sigmoid(s)) + s[0] * s[1]),
    "on-site where": (("quadratic", True), lambda s: jnp.sum(jnp.where(s > 0.5, 1.5, -0.5)) + s[2] * s[4]),
    "on-site table": (("quadratic", True), lambda s: jnp.sum(T[code(s)])),
    "on-site cast": (("quadratic", True), lambda s: s.astype(jnp.int32).astype(jnp.float32).sum()),
    "mask": (("quadratic", True), lambda s: jnp.sum(MASK * s * jnp.roll(s, 1))),
    "mask by where": (("quadratic", True), lambda s: jnp.sum(jnp.where(MASK > 0, s * jnp.roll(s, 1), 0.0))),
    "upper triangle": (("quadratic", True), lambda s: s @ jnp.triu(J) @ s),
    "scan": (("quadratic", True), lambda s: jax.lax.scan(lambda c, x: (x, c * x), s[0] * 0, s)[1].sum()),
    "Markov chain": (("other", True), markov),
    "own row": (
        ("other", True),
        lambda s: jnp.take_along_axis(jnp.stack([s[:3], 1 - 2 * s[:3]], 1), code(s[3:])[:, None], 1).sum(),
    ),
    "own column": (
        ("other", True),
        lambda s: jnp.take_along_axis(jnp.stack([s[:3], 1 - 2 * s[:3]]), code(s[:2:-1])[None], 0).sum(),
    ),
    "jit within": (("quadratic", True), lambda s: jax.jit(lambda x: x[0] * x[1])(s)),
    "checkpoint": (("quadratic", True), lambda s: jax.checkpoint(lambda x: x[0] * x[1])(s)),
    "mean": (("quadratic", False), lambda s: s.mean() * s[0]),
    "set in place": (("quadratic", True), lambda s: jnp.sum(s.at[0].set(1.0)[:2] * s[:2])),
    "three together": (("other", True), lambda s: s[0] * s[1] * s[2]),
    "tanh of pairs": (("other", True), lambda s: jnp.sum(jnp.tanh(s[1:] - 2 * s[:-1]))),
    "differences": (("other", True), lambda s: jnp.sum(jnp.abs(jnp.diff(s)))),
    "groups": (("other", True), lambda s: jnp.sum(jnp.exp(s.reshape(2, 3).sum(1)))),
    "windows": (("other", True), lambda s: jnp.sum(jnp.maximum(jnp.maximum(s[2:], s[1:-1]), s[:-2]))),
    "vmap of pairs": (("quadratic", True), lambda s: jax.vmap(lambda a, b: a * b)(s[:3], s[3:]).sum()),
    "double index": (("quadratic", True), lambda s: jnp.sum(s.reshape(2, 3)[0, :] * s.reshape(2, 3)[1, ::-1])),
}
CASES = {name: ("hides", f) for name, f in HIDES.items()} | FOUND
