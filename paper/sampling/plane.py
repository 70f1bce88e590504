"""A correlated target on a two-dimensional lattice, and the proposals of samplers around one of its states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import saltus

from ..experiment import Cell, Experiment, Measured, Results
from ..report import look
from ..samplers import LOOKS
from ..settings import Scale

SIZE = 21  # values of each of the two sites
CORRELATION = 0.9
STATE = (7, 6)  # on the ridge, off its middle
_STANDARD_DEVIATION = 4.0  # in grid steps


def covariance() -> np.ndarray:
    return _STANDARD_DEVIATION**2 * np.array([[1, CORRELATION], [CORRELATION, 1]])


def correlated() -> saltus.Target:
    """f(s) = -½ sᵀCs with C the precision of two sites of correlation 0.9, on whole numbers around 0."""
    precision = jnp.asarray(np.linalg.inv(covariance()), jnp.float32)
    return saltus.Target(_log_prob, saltus.Ordinal(2, np.arange(SIZE) - SIZE // 2), precision)


def _log_prob(precision: jax.Array, s: jax.Array) -> jax.Array:
    return -0.5 * jnp.dot(s, jnp.dot(precision, s))


def probabilities(target: saltus.Target) -> np.ndarray:
    """(k, k) the target itself."""
    f = np.asarray(jax.vmap(target.value)(target.space.enumerate()), np.float64)
    return (np.exp(f - f.max()) / np.exp(f - f.max()).sum()).reshape(2 * (target.space.num_values,))


def proposal(kernel: saltus.Kernel, target: saltus.Target, state: tuple[int, int], noises: int) -> np.ndarray:
    """(k, k) q(. | state), averaged over draws of the auxiliary variable where the sampler has one."""
    x = kernel.init(target, jnp.asarray(state, jnp.int32))
    everywhere = target.space.enumerate()

    def given(key: jax.Array) -> jax.Array:
        q = kernel.propose(target, x, kernel.noise(key, target))
        return jnp.exp(jax.vmap(q.log_prob)(everywhere))

    keys = jax.random.split(jax.random.key(0), noises if kernel.noise(jax.random.key(0), target) is not None else 1)
    total = jax.jit(lambda keys: jnp.mean(jax.lax.map(given, keys, batch_size=100), axis=0))(keys)
    return np.asarray(total, np.float64).reshape(2 * (target.space.num_values,))


class ProposalPicture(Experiment):
    """The proposals of some samplers around STATE, side by side. labels: sampler -> what stands above its panel.

    Ellipses: the target at one, two and three standard deviations. Shade: the root of the proposal. Cross: the state.
    """

    labels: dict[str, str]

    def kernels(self, target: saltus.Target) -> dict[str, saltus.Kernel]:
        raise NotImplementedError

    def cells(self, scale: Scale, seeds: int) -> list[Cell]:
        return [Cell(self.name, "proposals")]

    def measure(self, cell: Cell, scale: Scale, folder: Path) -> Measured:
        target = correlated()
        found = {name: proposal(kernel, target, STATE, scale.noises) for name, kernel in self.kernels(target).items()}
        return {"state": list(STATE), **{name: table.tolist() for name, table in found.items()}}

    def draw(self, results: Results) -> dict[str, Any]:
        measured = results["proposals", ""][0]
        with look.style():
            figure, axes = look.new_figure(1, len(self.labels), 3.4 * len(self.labels), 3.5)
            for panel, (name, label) in zip(axes[0], self.labels.items(), strict=True):
                _panel(panel, np.array(measured[name]), measured["state"], LOOKS[name].colour)
                panel.set_title(label, loc="left")
        return {self.name: figure}


def _panel(axes: Any, q: np.ndarray, state: list[int], colour: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    k, middle = len(q), len(q) // 2
    at = np.arange(k) - middle
    shades = LinearSegmentedColormap.from_list("", ["#FFFFFF", colour])
    axes.pcolormesh(at, at, np.sqrt(q / q.max()).T, cmap=shades, rasterized=True)
    for deviations in (1, 2, 3):
        axes.plot(*_ellipse(deviations), color="#555555", linewidth=0.8)
    axes.plot(state[0] - middle, state[1] - middle, "+", color="#000000", markersize=9, markeredgewidth=1.8)
    axes.set(xlabel="first site", ylabel="second site", aspect="equal", xlim=(-10.5, 10.5), ylim=(-10.5, 10.5))
    axes.set_xticks(range(-10, 11, 5))
    axes.set_yticks(range(-10, 11, 5))


def _ellipse(deviations: float) -> np.ndarray:
    """(2, points) where f is ½ deviations² below its largest value."""
    angle = np.linspace(0, 2 * np.pi, 200)
    return np.linalg.cholesky(covariance()) @ (deviations * np.stack([np.cos(angle), np.sin(angle)]))
