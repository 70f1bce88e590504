"""The arguments of `pcd` and `cd`, seen to be usable before anything is computed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._compiling import program
from .._record import as_choice, as_size, default_float
from ..engine.arguments import read_seed, read_target
from ..errors import TrainingError
from ..target import Target
from .buffer import VISITS
from .models.hidden import observed_log_prob, observed_space


@dataclass(frozen=True)
class TrainingSettings:
    """What training was asked to do; training that goes on from a checkpoint must have been asked the same."""

    method: str  # "pcd" or "cd"
    num_steps: int
    batch_size: int
    buffer_size: int
    visits: str
    reinitialise: float
    average: float | None
    seed: int

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def read_settings(method: str, **asked: Any) -> TrainingSettings:
    sizes = {name: as_size(asked[name], name, TrainingError) for name in ("num_steps", "batch_size", "buffer_size")}
    visits = as_choice(asked["visits"], "visits", VISITS, TrainingError)
    check_rows("buffer", sizes["buffer_size"], sizes["batch_size"])
    reinitialise = _fraction(asked["reinitialise"], "reinitialise", closed=True)
    average = None if asked["average"] is None else _fraction(asked["average"], "average", closed=False)
    return TrainingSettings(
        method, **sizes, visits=visits, reinitialise=reinitialise, average=average, seed=read_seed(asked["seed"])
    )


def check_rows(name: str, rows: int | None, batch: int) -> None:
    """That there are enough for a batch; None: nobody knows how many there are."""
    if rows is not None and rows < batch:
        raise TrainingError(
            f"The {name} has fewer rows than a batch.",
            expected=f"at least batch_size = {batch} rows",
            found=f"{rows}",
            hint=f"batch_size={rows} uses all of them in every update" + ("" if name == "data" else f"; or buffer_size={batch}"),
        )


def _fraction(value: Any, name: str, closed: bool) -> float:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not (0 <= value < 1 or (closed and value == 1)):
        raise TrainingError(
            f"`{name}` is not usable.", expected=f"a number from 0 to 1{'' if closed else ', 1 excluded'}", found=repr(value)
        )
    return float(value)


def read_model(target: Any) -> Target:
    """A target with parameters."""
    target = read_target(target)
    if not jax.tree.leaves(target.params):
        raise TrainingError(
            "The target has no parameters to train.",
            expected="saltus.Target(log_prob, space, params) with log_prob(params, s)",
            found=f"{target!r} without params",
        )
    if target.declared is not None:
        raise TrainingError(
            "The structure of this target is fixed and cannot follow the parameters.",
            expected="structure as a function of params",
            found=repr(target),
            hint="Target(..., structure=lambda params: saltus.Quadratic(b(params), H(params)))",
        )
    return target


def check_defined(target: Target, data: np.ndarray) -> None:
    """That f is finite at the data: otherwise the first gradient is not. data: codes of the observed part."""
    f = np.asarray(_values(target, jnp.asarray(data[:256].astype(np.int32))), np.dtype(default_float()))
    if not np.isfinite(f).all():
        i = int(np.argmin(np.isfinite(f)))
        raise TrainingError(
            "f is not finite at the data.",
            expected="a finite log_prob(params, s) at every state of the data",
            found=f"{f[i]} at row {i}",
            hint="look at the parameters training begins with",
        )


@program(once=True)
def _values(target: Target, codes: jax.Array) -> jax.Array:
    log_prob = observed_log_prob(target)
    return jax.vmap(lambda s: log_prob(target.params, s))(observed_space(target).embed(codes))
