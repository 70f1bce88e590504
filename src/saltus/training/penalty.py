"""What is added to the loss: L1 of parameters, energies that grow, or a function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._record import Number, as_flag, as_float, as_real, default_float, fill, record, shown, static
from ..errors import TrainingError


@record
class L1:
    r"""weight · Σ|p| over the chosen parameters, or over their symmetric part.

    $$ \text{loss} + \lambda \sum_{ij} |J_{ij}|, \qquad J = \tfrac12 (G + G^\top) \text{ where } \texttt{symmetric} $$

    of: `lambda params: params["coupling"]`, which returns one leaf of the parameters or a list of them.
    learning_rate: None puts a subgradient (0 at 0) into the loss, as the paper's code does. A number η, or an optax
    schedule, makes it proximal instead: after each update J <- sign(J) max(|J| - ηλ, 0), which gives exact zeros.
    """

    by_chain = True  # its mean over groups of chains is its value for all of them

    weight: Number
    of: Callable = static()
    symmetric: bool = static(default=False)
    learning_rate: Any = static(default=None)

    def __post_init__(self) -> None:
        weight = as_float(self.weight, "weight", TrainingError)
        if weight.ndim:
            raise TrainingError("`weight` is not one number.", expected="a number", found=f"shape {weight.shape}")
        rate = self.learning_rate
        if not callable(rate) and rate is not None:
            rate = as_real(rate, "learning_rate", TrainingError, "a number, an optax schedule, or None")
        fill(self, weight=weight, symmetric=as_flag(self.symmetric, "symmetric", TrainingError), learning_rate=rate)

    def chosen(self, params: Any) -> list[int]:
        """The numbers, among the leaves of `params`, of those that are penalised."""
        leaves, tree = jax.tree.flatten(params)
        try:
            found = jax.tree.leaves(self.of(jax.tree.unflatten(tree, range(len(leaves)))))
        except Exception as cause:
            raise self._wrong(f"{type(cause).__name__}: {cause}") from cause
        if not found or any(not isinstance(i, int) for i in found):
            raise self._wrong("something that is not a leaf of the parameters")
        if self.symmetric and any(jnp.ndim(leaves[i]) != 2 or len({*leaves[i].shape}) != 1 for i in found):
            raise self._wrong(f"a leaf of shape {jnp.shape(leaves[found[0]])}, which has no symmetric part")
        return found

    def _wrong(self, found: str) -> TrainingError:
        hint = "penalty=saltus.training.L1(0.01, of=lambda params: params['coupling'])"
        return TrainingError("The penalty's `of` does not choose parameters.", expected="leaves", found=found, hint=hint)

    def mark(self, params: Any) -> str:
        """What tells one penalty from another; functions are told by what they choose."""
        rate = self._first_rate()
        return f"L1(weight={float(self.weight):g}, leaves={self.chosen(params)}, symmetric={self.symmetric}, learning_rate={rate})"

    def _first_rate(self) -> float | None:
        """Before the first update, or TrainingError where a schedule fails."""
        if not callable(self.learning_rate):
            return self.learning_rate
        try:
            return float(jax.eval_shape(self.learning_rate, 0) and self.learning_rate(0))
        except Exception as cause:
            expected, found = "a number for every update, as optax schedules give", f"{type(cause).__name__}: {cause}"
            raise TrainingError("`learning_rate` is not a schedule.", expected=expected, found=found[:120]) from cause

    def added(self, params: Any, of_data: jax.Array, of_samples: jax.Array) -> jax.Array:
        return self.value(params)

    def value(self, params: Any) -> jax.Array:
        """What is added to the loss; 0 where the penalty is proximal."""
        if self.learning_rate is not None:
            return jnp.zeros_like(self.weight)
        leaves = jax.tree.leaves(params)
        return self.weight * sum(jnp.sum(jnp.abs(self._seen(leaves[i]))) for i in self.chosen(params))

    def _seen(self, leaf: jax.Array) -> jax.Array:
        return (leaf + leaf.T) / 2 if self.symmetric else leaf

    def shrunk(self, params: Any, update: jax.Array) -> Any:
        """The parameters after the proximal step of this update; as they are where the penalty is a subgradient."""
        if self.learning_rate is None:
            return params
        leaves, tree = jax.tree.flatten(params)
        rate = self.learning_rate(update) if callable(self.learning_rate) else self.learning_rate
        for i in self.chosen(params):
            seen = self._seen(leaves[i])
            # what is not penalised (the antisymmetric part) stays: the two are orthogonal
            small = jnp.maximum(jnp.abs(seen) - rate * self.weight, 0).astype(seen.dtype)
            leaves[i] = leaves[i] - seen + jnp.sign(seen) * small
        return jax.tree.unflatten(tree, leaves)


@record
class Energy:
    r"""weight · (mean f(data)² + mean f(samples)²): keeps the values of f near zero, in both batches.

    $$ \text{loss} + \lambda \, (\text{mean}_b f_\theta(\text{data}_b)^2 + \text{mean}_b f_\theta(\text{sample}_b)^2) $$

    For networks, whose f may drift by any constant and grow without need; not for models whose f is meant to be large, such as
    an RBM of many units. weight: λ, a number >= 0; 0.001 to 0.1 are usual.
    """

    by_chain = True

    weight: Number

    def __post_init__(self) -> None:
        weight = as_float(self.weight, "weight", TrainingError)
        if weight.ndim or not float(weight) >= 0:
            raise TrainingError("`weight` is not usable.", expected="a number >= 0", found=shown(self.weight))
        fill(self, weight=weight)

    def mark(self, params: Any) -> str:
        return f"Energy(weight={float(self.weight):g})"

    def added(self, params: Any, of_data: jax.Array, of_samples: jax.Array) -> jax.Array:
        return self.weight * (jnp.mean(of_data**2) + jnp.mean(of_samples**2))

    def shrunk(self, params: Any, update: jax.Array) -> Any:
        return params


@record
class Own:
    """A function of the parameters and of f at both batches."""

    by_chain = False

    fn: Callable = static()

    def mark(self, params: Any) -> str:
        return getattr(self.fn, "__qualname__", type(self.fn).__name__)

    def added(self, params: Any, of_data: jax.Array, of_samples: jax.Array) -> jax.Array:
        return self.fn(params, of_data, of_samples)

    def shrunk(self, params: Any, update: jax.Array) -> Any:
        return params

    def check(self, params: Any) -> None:
        """That it gives one number."""
        expected = "a function of (params, f of the data, f of the samples) that returns one number"
        batch = jax.ShapeDtypeStruct((2,), default_float())
        try:
            found = jax.eval_shape(self.fn, params, batch, batch)
        except Exception as cause:
            told = f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}"
            raise TrainingError("The penalty failed.", expected=expected, found=told) from cause
        if getattr(found, "shape", None) != () or not jnp.issubdtype(found.dtype, jnp.floating):
            told = f"shape {found.shape}, {found.dtype}" if hasattr(found, "shape") else type(found).__name__
            raise TrainingError("The penalty is not one number.", expected=expected, found=told, hint="sum it up: jnp.sum(...)")


def read_penalties(penalty: Any, params: Any) -> tuple:
    """One or several, as a tuple; TrainingError where one is not usable."""
    if penalty is None:
        return ()
    given = list(penalty) if isinstance(penalty, (tuple, list)) else [penalty]
    found = []
    for each in given:
        if isinstance(each, L1):
            each.chosen(params)
        elif callable(each) and not isinstance(each, (type, Energy)):
            each = Own(each)
            each.check(params)
        elif not isinstance(each, Energy):
            raise TrainingError(
                "`penalty` is not known.",
                expected="saltus.training.L1(weight, of=...), saltus.training.Energy(weight), a function, or several in a list",
                found=shown(each),
                hint="weight decay is part of the optimiser (optax.add_decayed_weights)",
            )
        found.append(each)
    return tuple(found)
