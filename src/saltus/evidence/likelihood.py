"""The log-likelihood of data under a target, with the error of its normaliser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._compiling import program
from .._record import as_real
from ..engine.arguments import read_target
from ..engine.starts import read_states
from ..errors import RunError
from ..target import Target
from .ais import LogZ
from .normaliser import Normaliser, log_z

_AT_ONCE = 2**12  # states that are evaluated together


@dataclass(frozen=True)
class LogLikelihood:
    """mean: of log p(x) = f(x) - log Z over the data, in nats. error: standard error of log Z, which all rows share.

    each: (rows,) log p of each. spread: standard error of the mean over rows, as if the data were drawn anew.
    normaliser: what gave log Z: a `Normaliser`, a `LogZ`, or the number that was passed.
    """

    mean: float
    error: float
    spread: float
    each: np.ndarray
    normaliser: Any

    def __repr__(self) -> str:
        told = f"log-likelihood {self.mean:.6g} nats a row, ± {self.error:.2g} from log Z, ± {self.spread:.2g} from the choice of "
        told += f"{len(self.each)} rows. {self.normaliser!r}"
        return told


def log_likelihood(target: Target, data: Any, *, log_z: Any = None, seed: int = 0) -> LogLikelihood:
    r"""Mean log-likelihood of data, (1/n) Σ f(x) - log Z, with the error of log Z.

    target: a `saltus.Target`, such as `result.target` after training.
    data: (n, ...) states, with the values of the space.
    log_z: what is known of the normaliser: a number, or what `saltus.log_z` or `saltus.training.ais` returned; default:
        `saltus.log_z(target, seed)` is called.
    seed: of that call.
    Returns a `LogLikelihood` with .mean, .error, .spread and .each. An estimate of log Z that is too small makes the likelihood too
    good: look at `.normaliser`. Raises SpaceError where data are not states, RunError where f is not finite at a row.

        print(saltus.log_likelihood(saltus.targets.ising((3, 3), 0.2), [[1] * 9, [-1] * 9]))
    """
    target = read_target(target)
    codes = read_states(target.space, data, "data")
    known = _read(log_z) if log_z is not None else _found(target, seed)
    number, error = _number_and_error(known)
    f = np.asarray(_values(target, jnp.asarray(codes, target.space.code_dtype)), np.float64)
    if not np.isfinite(f).all():
        row = int(np.argmin(np.isfinite(f)))
        raise RunError("f is not finite at a row of the data.", expected="finite numbers", found=f"{f[row]} at row {row}")
    each = f - number
    spread = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("nan")
    return LogLikelihood(float(each.mean()), float(error), spread, each, known)


def _found(target: Target, seed: Any) -> Normaliser:
    return log_z(target, seed)


def _read(given: Any) -> Any:
    if isinstance(given, (Normaliser, LogZ)):
        return given
    return as_real(given, "log_z", RunError, "a number, or what saltus.log_z or saltus.training.ais returned")


def _number_and_error(known: Any) -> tuple[float, float]:
    if isinstance(known, Normaliser):
        return known.log_z, known.error
    return (known.log_z, known.standard_error) if isinstance(known, LogZ) else (known, 0.0)


@program()
def _values(target: Target, codes: jax.Array) -> jax.Array:
    return jax.lax.map(target.value, codes, batch_size=min(_AT_ONCE, len(codes)))
