"""What physicists measure on a lattice of spins: energy, magnetisation, heat, susceptibility, cumulants, correlations, overlaps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._record import as_flag, as_sequence, as_size
from ..errors import RunError
from .jackknife import derived
from .observables import Observable, Observables, kept_series, mean_row

_AT_ONCE = 2**24  # numbers of the draws that are looked at together


def lattice_observables(run: Any, shape: Any = None, *, periodic: bool = True, distances: int = 0) -> Observables:
    r"""Observables of N spins x = ±1 from the draws of a run, each with a Monte-Carlo error.

    | row | |
    |---|---|
    | energy | -f / N, a site, in units of k_B T |
    | specific heat | (⟨f²⟩ - ⟨f⟩²) / N, in units of k_B |
    | \|m\|, m2 | of m = Σ x_i / N |
    | susceptibility | N (⟨m²⟩ - ⟨\|m\|⟩²) |
    | binder | 1 - ⟨m⁴⟩ / (3 ⟨m²⟩²): 0 in the disordered phase, 2/3 in the ordered one |
    | C[r] | ⟨x_i x_j⟩ of sites r apart along an axis, over all axes |
    | \|q\|, q2, binder q | of the overlap q = Σ x_i y_i / N of two chains, replicas (0, 1), (2, 3), ... |

    Means have the error √(variance / ESS); functions of means that of the jackknife over blocks of at least ten autocorrelation
    times, or over chains where these disagree.

    run: what `saltus.sample` returned, with draws of spins.
    shape: sides of the lattice, for the correlations.
    periodic: whether its sides are.
    distances: the largest r of C[r]; default none. Overlaps need at least two chains.
    Returns `Observables`, a mapping {name: row} that prints as a table. RunError where the run has no draws of spins.

        run = saltus.sample(saltus.targets.ising((8, 8), 0.4))
        print(saltus.lattice_observables(run, (8, 8), distances=4))
    """
    s = _spins(run)
    lp = kept_series(run, "energy", "lp")
    chains, _, N = s.shape
    m = s.mean(axis=2)
    rows = [
        mean_row("energy", -lp / N),
        derived("specific heat", _powers(lp - lp.mean(), 1, 2), lambda x: (x[..., 1] - x[..., 0] ** 2) / N),
    ]
    rows += [mean_row("|m|", abs(m)), mean_row("m2", m**2)]
    both = np.stack([abs(m), m**2], axis=2)
    rows += [derived("susceptibility", both, lambda x: N * (x[..., 1] - x[..., 0] ** 2)), _binder("binder", m)]
    far = as_size(distances, "distances", RunError, least=0)
    rows += _correlations(s, _sides(shape, N), as_flag(periodic, "periodic", RunError), far) if far else []
    return Observables([*rows, *(_overlaps(s) if chains > 1 else [])])


def _spins(run: Any) -> np.ndarray:
    s = kept_series(run, "s", "s")
    if s.ndim != 3 or not s.size or not np.isin(s, (-1, 1)).all():
        found = f"shape {s.shape}, values {np.unique(s)[:4].tolist()}"
        raise RunError("The draws are not spins.", expected="states of -1 and +1, as of saltus.targets.ising", found=found)
    if "weighted_posterior" in run.children:
        raise RunError(
            "The draws of this run carry weights.", expected="a sampler without", hint="saltus.observables knows weights"
        )
    return s


def _sides(shape: Any, N: int) -> tuple[int, ...]:
    sides = () if shape is None else tuple(as_size(n, "shape", RunError) for n in as_sequence(shape, "shape", RunError, "sides"))
    if math.prod(sides) != N or not sides:
        raise RunError(
            "`shape` is not that of the lattice.", expected=f"sides of {N} sites, for the correlations", found=str(shape)
        )
    return sides


def _powers(x: np.ndarray, *powers: int) -> np.ndarray:
    return np.stack([x**p for p in powers], axis=2)


def _binder(name: str, m: np.ndarray) -> Observable:
    return derived(name, _powers(m, 2, 4), lambda x: 1 - x[..., 1] / (3 * x[..., 0] ** 2))


def _correlations(s: np.ndarray, sides: tuple[int, ...], periodic: bool, far: int) -> list[Observable]:
    most = min(far, max(sides) - 1)
    batch = max(_AT_ONCE // s[:, :1].size, 1)
    pieces = [s[:, i : i + batch].reshape(s.shape[0], -1, *sides) for i in range(0, s.shape[1], batch)]
    return [
        mean_row(f"C[{r}]", np.concatenate([_apart(x, sides, periodic, r) for x in pieces], axis=1)) for r in range(1, most + 1)
    ]


def _apart(x: np.ndarray, sides: tuple[int, ...], periodic: bool, r: int) -> np.ndarray:
    """(chains, draws) the mean of x_i x_j over all pairs that are r apart along an axis."""
    total, num = np.zeros(x.shape[:2]), 0
    for axis, side in enumerate(sides, start=2):
        if r >= side:
            continue
        other = np.roll(x, -r, axis=axis) if periodic else np.take(x, range(r, side), axis=axis)
        here = x if periodic else np.take(x, range(side - r), axis=axis)
        product = (here * other).reshape(*x.shape[:2], -1)
        total, num = total + product.sum(axis=2, dtype=np.float64), num + product.shape[2]
    return total / num


def _overlaps(s: np.ndarray) -> list[Observable]:
    pairs = s.shape[0] // 2
    q = np.mean(s[0 : 2 * pairs : 2] * s[1 : 2 * pairs : 2], axis=2)
    return [mean_row("|q|", abs(q)), mean_row("q2", q**2), _binder("binder q", q)]
