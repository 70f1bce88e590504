"""A model of discrete and continuous variables as a target of the discrete ones, with the continuous ones as parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from .._record import changed, default_float
from ..errors import TargetError
from ..local import Differences
from ..spaces import Space
from ..structure import Graph
from ..structure.terms import find_terms
from ..target import Target
from .continuous import Continuous, zeros


@dataclass(frozen=True)
class Joint:
    """log p(s, θ) of the discrete state and the unbounded vector θ; equal for equal functions, so that nothing recompiles."""

    log_prob: Callable
    continuous: Continuous

    def __call__(self, params: dict[str, Any], s: Any) -> jax.Array:
        theta = params["theta"]
        f = self.log_prob(s, self.continuous.constrained(theta), *params["data"])
        return jnp.asarray(f, default_float()) + self.continuous.log_det(theta)


def joint_target(log_prob: Any, space: Space, continuous: Continuous, data: tuple, local_model: str | None) -> Target:
    """The target. local_model: a name as for `Target(differences=...)`; None: by terms where that saves evaluations."""
    if not callable(log_prob):
        raise TargetError("`log_prob` is not a function.", expected="log_prob(s, x, *data)", found=repr(log_prob))
    joint, params = Joint(log_prob, continuous), {"theta": zeros(continuous), "data": data}
    plain = Target(joint, space, params, differences=local_model or "gradient", structure="auto", verify=False)
    graph = plain.find(Graph)
    terms = find_terms(joint, space, plain.params) if local_model is None and graph is not None else None
    chosen = Differences(terms, exact=True) if terms is not None else plain.differences
    return Target(joint, space, params, differences=chosen, structure=graph)


def at(target: Target, theta: jax.Array) -> Target:
    """The target of the discrete variables, given θ. Of the same stamp: whoever moves θ refreshes the states."""
    return changed(target, params={**target.params, "theta": theta})
