"""Observables: the mean of any function of the state, with its Monte-Carlo error, from the draws of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._words import escaped
from ..diagnostics import ess_of_chains, split_rhat
from ..diagnostics.weights import weighted_ess, weighted_rhat
from ..errors import RunError

if TYPE_CHECKING:
    import pandas

_AT_ONCE = 2**18  # numbers of the draws that are looked at together
_COLUMNS = ("mean", "error", "tau", "ess", "rhat")


@dataclass(frozen=True)
class Observable:
    """mean: over all draws. error: its standard error, √(variance / ESS). tau: draws per independent draw. rhat: split R-hat."""

    name: str
    mean: float
    error: float
    tau: float
    ess: float
    rhat: float

    def __repr__(self) -> str:
        mean = f"{escaped(self.name)} = {self.mean:.6g} ± {self.error:.2g}"
        return f"{mean} (tau {self.tau:.3g}, ESS {self.ess:.0f}, R-hat {self.rhat:.3f})"


class Observables(Mapping[str, Observable]):
    """{name: Observable}, in order; prints as a table. Entry i of an observable that is an array is called name[i]."""

    def __init__(self, rows: list[Observable]):
        self._rows = {row.name: row for row in rows}

    def __getitem__(self, name: str) -> Observable:
        if name not in self._rows:
            raise RunError("There is no such observable.", expected=", ".join(self._rows), found=repr(name))
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas.DataFrame: one row for each observable."""
        import pandas as pd

        rows = {row.name: [getattr(row, column) for column in _COLUMNS] for row in self.values()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=list(_COLUMNS))

    def __repr__(self) -> str:
        told = [("", "mean", "error", "tau", "ESS", "R-hat")]
        told += [
            (escaped(r.name), f"{r.mean:.6g}", f"{r.error:.2g}", f"{r.tau:.3g}", f"{r.ess:.0f}", f"{r.rhat:.3f}")
            for r in self.values()
        ]
        widths = [max(len(row[i]) for row in told) for i in range(len(told[0]))]
        return "\n".join(
            "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
            for row in told
        )


def observables(run: Any, functions: Mapping[str, Callable | str]) -> Observables:
    r"""Mean, Monte-Carlo error, autocorrelation time, effective sample size and R-hat of functions of the state.

    $$ \mathrm{error} = \sqrt{\mathrm{var}(h) / \mathrm{ESS}} $$

    with the variance over all draws and the ESS of all chains together, which falls where chains disagree.

    run: what `saltus.sample` or `saltus.open` returned, with draws (keep="draws").
    functions: {name: fn}. fn(s) gets one draw, an array (d,) of the values in run.posterior.s, and returns a number or an array;
        JAX functions are vectorised, others are called draw by draw. A string instead of fn names a variable that the run
        holds: one that was kept with keep={name: function}, or "lp".
    Returns `Observables`, a mapping {name: row} that prints as a table; `.to_dataframe()` makes a data frame.
    Raises RunError where the run has no draws, or a function fails or returns something else than real numbers of one shape.

        saltus.observables(run, {"magnetisation": lambda s: abs(s.mean()), "energy": lambda s: -(s[1:] * s[:-1]).sum()})
    """
    if not isinstance(functions, Mapping) or not functions:
        raise RunError("`functions` names no observable.", expected="{name: function of s}", found=repr(functions))
    rows: list[Observable] = []
    for name, fn in functions.items():
        rows += _rows(str(name), _series(run, str(name), fn), _raw(run, str(name), fn))
    return Observables(rows)


def kept_series(run: Any, name: str, variable: str) -> np.ndarray:
    """(chains, draws, ...) of a variable that the run holds, for an observable of this name."""
    return _kept(run, name, variable, "")


def mean_row(name: str, x: np.ndarray) -> Observable:
    """The mean of x (chains, draws), with its error."""
    return _row(name, x, float(ess_of_chains(x[:, None, :])[0]), float(split_rhat(x[:, None, :])[0]))


def _series(run: Any, name: str, fn: Any, group: str = "") -> np.ndarray:
    """(chains, draws, ...) of one observable."""
    if isinstance(fn, str):
        return _kept(run, name, fn, group)
    if not callable(fn):
        raise RunError(f"Observable {name!r} is not a function.", expected="fn(s), or the name of a kept one", found=repr(fn))
    s = _group(run, f"{group}posterior").get("s")
    if s is None:
        raise RunError(
            "This run has no states.",
            expected='saltus.sample(..., keep="draws")',
            found=", ".join(_group(run, f"{group}posterior")) or "no draws at all",
            hint="an observable that was kept is named: saltus.observables(run, {'m': 'm'})",
        )
    if s.ndim != 3 or not s.size:
        raise RunError("This run has no draws.", expected="at least one chain and one draw", found=f"shape {s.shape}")
    values = _applied(name, fn, s.reshape(-1, s.shape[-1]))
    return values.reshape(*s.shape[:2], *values.shape[1:])


def _kept(run: Any, name: str, variable: str, group: str) -> np.ndarray:
    found = {**_group(run, f"{group}sample_stats"), **_group(run, f"{group}posterior")}
    if variable not in found:
        raise RunError(
            f"The run does not hold {variable!r}.", expected=", ".join(found) or "a run with draws", found=repr(variable)
        )
    return _numbers(name, found[variable])


def _group(run: Any, home: str) -> dict[str, np.ndarray]:
    """{variable: values} of a group; nothing where there is none."""
    try:
        children = run.children
    except AttributeError as cause:
        raise RunError("`run` is not a run.", expected="what saltus.sample returned", found=type(run).__name__) from cause
    return {str(n): np.asarray(v.values) for n, v in children[home].data_vars.items()} if home in children else {}


def _raw(run: Any, name: str, fn: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """(series, log-weights) of the raw chain, where the run is weighted."""
    weights = _group(run, "weighted_posterior").get("log_weight")
    return None if weights is None else (_series(run, name, fn, "weighted_"), weights)


def _applied(name: str, fn: Callable, states: np.ndarray) -> np.ndarray:
    """fn of each state: together where JAX can trace it, else one by one."""
    batch = max(_AT_ONCE // states.shape[1], 1)
    try:
        traced = jax.jit(lambda s: jax.lax.map(lambda one: jnp.asarray(fn(one)), s, batch_size=min(batch, len(s))))
        values = np.asarray(traced(states))
    except Exception:
        values = _one_by_one(name, fn, states)
    return _numbers(name, values)


def _one_by_one(name: str, fn: Callable, states: np.ndarray) -> np.ndarray:
    found: list[np.ndarray] = []
    for i, s in enumerate(states):
        try:
            found.append(np.asarray(fn(s)))
        except Exception as cause:
            said = f"{type(cause).__name__}: {next(iter(str(cause).splitlines()), '')}"
            raise RunError(f"Observable {name!r} failed at draw {i}.", expected="a function of one state", found=said) from cause
        if found[-1].shape != found[0].shape:
            shapes = f"{found[0].shape} at draw 0, {found[-1].shape} at draw {i}"
            raise RunError(f"Observable {name!r} changes its shape.", expected="the same shape for every state", found=shapes)
    return np.stack(found)


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "fiub":
        raise RunError(f"Observable {name!r} is not a real number.", expected="numbers, or arrays of them", found=str(values.dtype))
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        found = f"{values[~np.isfinite(values)][0]} in {np.mean(~np.isfinite(values)):.2%} of the draws"
        raise RunError(f"Observable {name!r} is not finite.", expected="finite numbers", found=found)
    return values


def _rows(name: str, values: np.ndarray, raw: Any) -> list[Observable]:
    chains, draws = values.shape[:2]
    flat = values.reshape(chains, draws, -1)
    labels = [name] if values.ndim == 2 else [f"{name}[{','.join(map(str, i))}]" for i in np.ndindex(values.shape[2:])]
    x = np.moveaxis(flat, 1, -1)
    if raw is None:
        ess, rhat = ess_of_chains(x), split_rhat(x)
    else:
        x_raw = np.moveaxis(raw[0].reshape(*raw[0].shape[:2], -1), 1, -1)
        ess, rhat = weighted_ess(x_raw, raw[1]), weighted_rhat(x_raw, raw[1])
    return [_row(label, x[:, i], float(ess[i]), float(rhat[i])) for i, label in enumerate(labels)]


def _row(name: str, x: np.ndarray, ess: float, rhat: float) -> Observable:
    """x: (chains, draws). A constant is known exactly; where nothing is known about a mean, its error is infinite."""
    if np.ptp(x) == 0:
        return Observable(name, float(x.flat[0]), 0.0, float("nan"), 0.0, float(rhat))
    error = float(np.sqrt(x.var() / ess)) if ess > 0 else float("inf")
    return Observable(name, float(x.mean()), error, x.size / ess if ess > 0 else float("inf"), ess, rhat)
