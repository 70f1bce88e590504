"""One cell of the paper's Table 1: the Ising lattice learned by PCD (PAPER_NOTES 4.3), seconds and error beside the paper's.

python benchmarks/table1_cell.py [sampler [K [seed]]]        ncg 6 0
"""

import json
import sys

import numpy as np
import optax

import saltus
from saltus import training

SIDE, PAPER = 10, {"ncg": 0.117, "avg": 5.452, "block-gibbs": 0.118, "pavg": 0.124, "gwg": 0.163, "gibbs": 0.805}


def lattice_data(seed, rows=10_000, sweeps=500):
    """Exact-in-law checkerboard heat-bath draws, then a random global sign."""
    lattice = saltus.targets.ising((SIDE, SIDE), coupling=0.4)
    settings = dict(num_draws=1, num_warmup=sweeps, num_chains=rows, thin=1, seed=seed, progress=False)
    x = saltus.sample(lattice, saltus.Gibbs("coloured"), **settings).posterior.s.values[:, -1]
    return x * np.random.default_rng(seed).choice([-1, 1], size=(rows, 1))


def edge_correlation(x):
    grid = x.reshape(-1, SIDE, SIDE).astype(float)
    each = np.stack([(grid * np.roll(grid, 1, axis)).mean((1, 2)) for axis in (1, 2)]).mean(0)
    return each.mean(), each.std() / np.sqrt(len(each))


def kernel_of(name, bits):
    covariance = lambda: np.cov(bits.T, bias=True)  # noqa: E731
    made = {
        "ncg": lambda: saltus.NCG(0.5),
        "avg": lambda: saltus.AVG(0.2),
        "pavg": lambda: saltus.PAVG(0.2, covariance()),
        "gwg": saltus.GWG,
        "gibbs": saltus.Gibbs,
        "block-gibbs": saltus.BlockGibbs,
    }
    return made[name]()


def true_couplings():
    index = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    A = np.zeros((SIDE * SIDE,) * 2)
    for axis in (0, 1):
        for other in (np.roll(index, 1, axis), np.roll(index, -1, axis)):
            A[index.ravel(), other.ravel()] = 1
    return 0.2 * A


def error(params):
    """||J - J*||_F / sqrt(d), the number the paper prints."""
    G = np.asarray(params["coupling"], float)
    return np.linalg.norm((G + G.T) / 2 - true_couplings()) / SIDE


def cell(name, K, seed, bits, optimiser, retune=None):
    return training.pcd(
        training.models.ising(saltus.Binary(SIDE * SIDE), seed=seed),
        bits,
        kernel_of(name, bits),
        optimiser=optimiser,
        num_updates=2200,
        num_steps=K,
        penalty=training.L1(0.01, of=coupling, symmetric=True),
        trainable={"coupling": True, "field": False},
        retune=("paper" if name == "pavg" else None) if retune is None else retune,
        stop_on_divergence=False,
        seed=seed,
        progress=False,
    )


def coupling(params):
    return params["coupling"]


if __name__ == "__main__":
    name, K, seed = (*sys.argv[1:], *["ncg", "6", "0"][len(sys.argv) - 1 :])[:3]
    x = lattice_data(int(seed))
    found = cell(name, int(K), int(seed), (x + 1) // 2, optax.adam(3e-4, eps=1e-7), True if "retune" in sys.argv else None)
    mean, standard_error = edge_correlation(x)
    told = dict(sampler=name, K=int(K), seed=int(seed), error=round(float(error(found.params)), 4), paper=PAPER[name])
    times = dict(seconds=round(found.seconds, 2), compile_seconds=round(found.compile_seconds, 2))
    data = dict(edge_correlation=round(mean, 5), standard_error=round(standard_error, 5), exact=0.59255)
    last = {name: round(float(np.mean(series[-100:])), 4) for name, series in found.history.items()}
    print(json.dumps({**told, **times, **data, "last": last, "diverged": found.diverged}))
