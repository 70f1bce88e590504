"""The same log-probabilities as one would first write them: what the library's own are held against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln

from saltus import Binary, Spin, Target
from saltus.targets import conv_ebm_params

from ..internals import LAYERS, SIDE


def cholesky_regression() -> Target:
    """The paper's sparse regression by two Cholesky factors of D x D matrices, in the default float."""
    base = np.random.default_rng(0).integers(0, 3, (20, 5))
    X, y = jnp.asarray(np.tile(base, (1, 4)), float), jnp.asarray(base.sum(axis=1), float)
    g, penalty, (a, b), (alpha, beta), log_odds = 20.0, 0.001, (0.001, 10.0), (0.1, 0.1), float(np.log(0.001 / 0.999))

    def log_prob(s: jax.Array) -> jax.Array:
        used, appended = s[:20], s[20:]
        Xs, n = X * used, jnp.sum(used)
        gram, ridge = Xs.T @ Xs, penalty * jnp.eye(20)
        plain, full = jnp.linalg.cholesky(gram + ridge), jnp.linalg.cholesky((1 + g) * gram + ridge)
        z = jax.scipy.linalg.solve_triangular(full, Xs.T @ y, lower=True)
        log_det = jnp.sum(jnp.log(jnp.diag(plain))) - jnp.sum(jnp.log(jnp.diag(full)))
        misfit = 2 * beta + y @ y - g * z @ z
        return betaln(n + a, 20 - n + b) + log_det - (alpha + 10) * jnp.log(misfit) + log_odds * jnp.sum(appended)

    return Target(log_prob, Binary(100))


def rolled_ising(side: int, coupling: float = 0.4) -> Target:
    """The square lattice by `jnp.roll`."""

    def log_prob(x: jax.Array) -> jax.Array:
        grid = x.reshape(side, side)
        return coupling * jnp.sum(grid * (jnp.roll(grid, 1, 0) + jnp.roll(grid, 1, 1)))

    return Target(log_prob, Spin(side * side))


def plain_network(width: int = 16) -> Target:
    """conv_ebm by `lax.conv_general_dilated`, with the same parameters."""
    params = conv_ebm_params(width)
    net = [*map(_as_kernel, params["net"][:-1], LAYERS), params["net"][-1]]
    return Target(_plain_log_prob, Binary(SIDE * SIDE), {**params, "net": net})


def _as_kernel(layer: dict, shape: tuple) -> dict:
    """Weights as (k, k, channels, outputs), from the order of `convolution`: patch, pixel within it, channel."""
    _, k, stride, _ = shape
    m, outputs = k // stride, layer["weights"].shape[1]
    kernel = layer["weights"].reshape(m, m, stride, stride, -1, outputs).transpose(0, 2, 1, 3, 4, 5)
    return {"weights": kernel.reshape(k, k, -1, outputs), "bias": layer["bias"]}


def _plain_log_prob(params: dict, s: jax.Array) -> jax.Array:
    x = 2 * s - 1
    return jnp.dot(x, jnp.dot(params["quadratic"], x) + params["bias"]) + _plain_net(params["net"], x)


def _plain_net(net: Sequence[dict], x: jax.Array) -> Any:
    h = x.reshape(1, SIDE, SIDE, 1)
    for layer, (_, _, stride, pad) in zip(net[:-1], LAYERS, strict=True):
        paths = ("NHWC", "HWIO", "NHWC")
        h = jax.lax.conv_general_dilated(h, layer["weights"], (stride, stride), [(pad, pad)] * 2, dimension_numbers=paths)
        h = jax.nn.silu(h + layer["bias"])
    return jnp.dot(h.ravel(), net[-1]["weights"][:, 0]) + net[-1]["bias"][0]
