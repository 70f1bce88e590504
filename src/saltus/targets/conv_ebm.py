"""A quadratic form plus a convolutional network on 16x16 binary images: the paper's energy-based model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_size, default_float
from ..engine.arguments import read_seed
from ..errors import TargetError
from ..spaces import Binary
from ..target import Target

SIDE = 16
# (channels in multiples of the width, side of the patch, stride, padding)
_LAYERS = ((1, 3, 1, 1), (2, 4, 2, 1), (2, 3, 1, 1), (4, 4, 2, 1), (4, 3, 1, 1), (8, 4, 2, 1), (8, 2, 1, 0))


def conv_ebm(params: Any = None, *, width: int = 16, seed: int = 0) -> Target:
    r"""f(s) = xᵀGx + b·x + net(x) with x = 2s - 1 on 16x16 binary pixels.

    net: seven convolutions, each followed by SiLU, of `width` times 1, 2, 2, 4, 4, 8, 8 channels, then a linear layer;
    284 385 parameters at the paper's width of 16. params: {"quadratic": G (256, 256), "bias": b (256,), "net": ...}, as
    `conv_ebm_params` makes them; G enters through J = ½(G + Gᵀ). Without them: drawn from `seed`.
    """
    if params is None:
        params = conv_ebm_params(width, seed)
    if not isinstance(params, dict) or set(params) != {"quadratic", "bias", "net"}:
        raise TargetError(
            "`params` are not those of a conv_ebm.",
            expected='{"quadratic": (256, 256), "bias": (256,), "net": ...}',
            found=f"{sorted(params)}" if isinstance(params, dict) else type(params).__name__,
            hint="saltus.targets.conv_ebm_params(width=16, seed=0) makes a set to begin with",
        )
    return Target(log_prob, Binary(SIDE * SIDE), params, structure=None)


def conv_ebm_params(width: int = 16, seed: int = 0) -> dict[str, Any]:
    """Uniform within ±1/sqrt(number of inputs) for the network, as PyTorch begins; 0.01 N(0, 1) for G; zero for b.

    width: channels of the network, in units of the paper's. seed: an integer; the same one gives the same numbers.
    """
    width, rng = as_size(width, "width", TargetError), np.random.default_rng(read_seed(seed))

    def layer(inputs: int, outputs: int) -> dict[str, jax.Array]:
        bound = 1 / math.sqrt(inputs)
        draw = lambda shape: jnp.asarray(rng.uniform(-bound, bound, shape), default_float())  # noqa: E731
        return {"weights": draw((inputs, outputs)), "bias": draw((outputs,))}

    channels = [1, *(width * multiple for multiple, *_ in _LAYERS)]
    sizes = [k * k * before for (_, k, *_), before in zip(_LAYERS, channels, strict=False)]
    net = [layer(inputs, outputs) for inputs, outputs in zip(sizes, channels[1:], strict=True)]
    d = SIDE * SIDE
    quadratic = jnp.asarray(0.01 * rng.normal(size=(d, d)), default_float())
    return {"quadratic": quadratic, "bias": jnp.zeros(d, default_float()), "net": [*net, layer(channels[-1], 1)]}


def log_prob(params: dict, s: jax.Array) -> jax.Array:
    x = 2 * s - 1
    return jnp.dot(x, jnp.dot(params["quadratic"], x) + params["bias"]) + network(params["net"], x)


def network(net: Sequence[dict], x: jax.Array) -> jax.Array:
    """The network's value at one image (256,)."""
    h = x.reshape(SIDE, SIDE, 1)
    for layer, (_, k, stride, pad) in zip(net[:-1], _LAYERS, strict=True):
        h = jax.nn.silu(convolution(h, layer["weights"], k, stride, pad) + layer["bias"])
    return jnp.dot(h.ravel(), net[-1]["weights"][:, 0]) + net[-1]["bias"][0]


def convolution(h: jax.Array, weights: jax.Array, k: int, stride: int, pad: int) -> jax.Array:
    """h (n, n, channels) by one matrix product of its k x k patches with weights (k k channels, outputs).

    Steps of two are undone first: pixels 2i and 2i + 1 become channels of pixel i, and a 4 x 4 patch in steps of two is
    a 2 x 2 patch in steps of one. So the gradient, too, is matrix products and shifted sums, and nothing is scattered;
    XLA's own convolutions take several times as long inside a loop (docs/performance.md).
    """
    h = jnp.pad(h, ((pad, pad), (pad, pad), (0, 0)))
    n, m = h.shape[0] // stride, k // stride
    h = h.reshape(n, stride, n, stride, -1).transpose(0, 2, 1, 3, 4).reshape(n, n, -1)
    size = n - m + 1
    patches = [h[i : i + size, j : j + size] for i in range(m) for j in range(m)]
    return jnp.matmul(jnp.concatenate(patches, axis=-1), weights)
