"""Models with hidden units: a log-probability of observed and hidden parts, and the same with the hidden ones summed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from ..._record import record, static
from ...target import Target


@record
class Hidden:
    """f(params, {observed part, hidden part}), with the same summed over the hidden part.

    Chains sample both parts; data are of the observed part alone, and the loss is made of the marginal: its gradient has less
    noise than that of f at drawn hidden units, and the same mean.

    joint: f(params, s) of the whole state. marginal: log Σ_h exp f(params, (v, h)), a function of (params, v).
    observed: the name of the part that data have; it comes first.
    """

    joint: Callable = static()
    marginal: Callable = static()
    observed: str = static()

    def __call__(self, params: Any, s: Any) -> jax.Array:
        return self.joint(params, s)

    @property
    def __name__(self) -> str:
        return self.joint.__name__


def hidden_of(target: Target) -> Hidden | None:
    """What a target knows of its hidden part; None where all of it is observed."""
    return target.log_prob if isinstance(target.log_prob, Hidden) else None


def observed_space(target: Target) -> Any:
    """The space of the data."""
    hidden = hidden_of(target)
    return target.space.parts[hidden.observed] if hidden else target.space  # type: ignore[attr-defined]


def observed_log_prob(target: Target) -> Callable:
    """f(params, s) of an observed state."""
    hidden = hidden_of(target)
    return hidden.marginal if hidden else target.evaluated
