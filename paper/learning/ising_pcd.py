"""The paper's lattice learned by persistent contrastive divergence: data, samplers and the error behind Table 1."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import saltus
from saltus import training
from saltus.targets import kaufman_edge_correlation

from ..settings import Training

SIDE, COUPLING = 10, 0.4
# K of each sampler in each column of the table, which is headed by those of AVG and PAVG.
COLUMNS = (1, 5, 10, 15, 20)
NUM_STEPS = {
    "ncg": (1, 6, 12, 18, 24),
    "avg": (1, 5, 10, 15, 20),
    "block-gibbs": (3, 15, 30, 45, 60),
    "pavg": (1, 5, 10, 15, 20),
    "gwg": (1, 6, 12, 18, 24),
    "gibbs": (2, 10, 20, 30, 40),
}
STEP_SIZES = {"ncg": 0.5, "avg": 0.2, "pavg": 0.2}  # in {0, 1} coordinates


@cache
def lattice_data(seed: int, rows: int, sweeps: int) -> np.ndarray:
    """(rows, 100) spins: independent chains of checkerboard heat bath, each with a random global sign."""
    lattice = saltus.targets.ising((SIDE, SIDE), coupling=COUPLING)
    length: dict[str, Any] = {"num_draws": 1, "num_warmup": sweeps, "num_chains": rows, "thin": 1}
    run = saltus.sample(lattice, saltus.Gibbs("coloured"), seed=seed, progress=False, **length)
    spins = run.posterior["s"].values[:, -1]
    return spins * np.random.default_rng(seed).choice([-1, 1], size=(rows, 1))


def edge_correlation(spins: np.ndarray) -> dict[str, float]:
    """Mean product of neighbours with its standard error over rows, beside Kaufman's exact value."""
    grid = spins.reshape(-1, SIDE, SIDE).astype(float)
    each = np.mean([(grid * np.roll(grid, 1, axis)).mean((1, 2)) for axis in (1, 2)], axis=0)
    found = {"mean": float(each.mean()), "error": float(each.std(ddof=1) / np.sqrt(len(each)))}
    return {**found, "exact": kaufman_edge_correlation((SIDE, SIDE), COUPLING)}


@cache
def true_couplings() -> np.ndarray:
    """J*: half the coupling at each of the two entries of an edge, as f = xᵀJx counts every pair twice."""
    site = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    J = np.zeros((SIDE * SIDE, SIDE * SIDE))
    for axis in (0, 1):
        J[site.ravel(), np.roll(site, 1, axis).ravel()] = COUPLING / 2
    return J + J.T


def learned_couplings(params: Any) -> np.ndarray:
    G = np.asarray(params["coupling"], np.float64)
    return (G + G.T) / 2


def error(params: Any) -> float:
    """||J - J*||_F / sqrt(d): what the paper prints as its Frobenius error."""
    return float(np.linalg.norm(learned_couplings(params) - true_couplings()) / SIDE)


def kernel(sampler: str, bits: np.ndarray, step_size: float | None = None) -> saltus.Kernel:
    """At the paper's settings, or at another step size; PAVG's matrix is the covariance of the data."""
    base = sampler.partition(" ")[0]
    if base not in STEP_SIZES:
        return {"gwg": saltus.GWG, "gibbs": saltus.Gibbs, "block-gibbs": saltus.BlockGibbs}[base]()
    size = STEP_SIZES[base] if step_size is None else step_size
    if base == "pavg":
        return saltus.PAVG(size, training.data_covariance(saltus.Binary(bits.shape[1]), bits))
    return {"ncg": saltus.NCG, "avg": saltus.AVG}[base](size)


@cache
def _optimiser() -> Any:
    """One object, so that every K and seed of a sampler is served by one compilation."""
    import optax

    return optax.adam(3e-4, eps=1e-7)


def _coupling(params: Any) -> Any:
    return params["coupling"]


def learn(sampler: str, num_steps: int, seed: int, settings: Training, step_size: float | None = None) -> training.Trained:
    """The lattice's couplings from its data. "avg retuned": step size (and scale) follow the model."""
    bits = (lattice_data(seed, settings.rows, settings.sweeps) + 1) // 2
    base, _, variant = sampler.partition(" ")
    return training.pcd(
        training.models.ising(saltus.Binary(SIDE * SIDE), seed=seed),
        bits,
        kernel(sampler, bits, step_size),
        optimiser=_optimiser(),
        num_updates=settings.updates,
        num_steps=num_steps,
        buffer_size=settings.buffer,
        penalty=training.L1(0.01, of=_coupling, symmetric=True),
        trainable={"coupling": True, "field": False},
        retune=True if variant == "retuned" else "paper" if base == "pavg" else None,
        stop_on_divergence=False,  # the paper's entries around 5.5 are runs whose chains stand still
        seed=seed,
        progress=False,
    )


def measured(found: training.Trained, num_steps: int, seed: int, settings: Training) -> dict[str, Any]:
    """What a cell keeps of a training."""
    last = {name: float(np.mean(series[-100:])) for name, series in found.history.items()}
    return {
        "error": error(found.params),
        "num_steps": num_steps,
        "train_seconds": found.seconds,
        "compile_seconds": found.compile_seconds,
        "diverged": found.diverged,
        "last": {name: value if np.isfinite(value) else None for name, value in last.items()},
        "edge_correlation": edge_correlation(lattice_data(seed, settings.rows, settings.sweeps)),
        "kernel": " ".join(repr(found.kernel).split()),
    }
