"""The grid every kernel and space inherits: a new kernel is one line in KERNELS, a new space one in SPACES."""

import jax
import numpy as np
import pytest

import saltus
from saltus.testing.enumeration import Enumeration

SPACES = {
    "binary": saltus.Binary(4),
    "spin": saltus.Spin(4),
    "ordinal": saltus.Ordinal(3, [-1.0, -0.5, 0.3, 0.4, 1.1, 2.0]),
    "one-hot": saltus.Categorical(2, 3),
    "clock": saltus.Clock(2, 5),
}

PRODUCTS = {
    "bits-and-categories": saltus.Product(a=saltus.Binary(2), b=saltus.Categorical(1, 3)),
    "spins-and-numbers": saltus.Product(a=saltus.Spin(2), b=saltus.Ordinal(1, [-1.0, -0.5, 0.3, 2.0])),
    "nested": saltus.Product(
        a=saltus.Product(x=saltus.Binary(1), y=saltus.Categorical(1, 3)), b=saltus.Ordinal(1, [0.0, 1.0, 3.0])
    ),
}


def _rng(space):
    return np.random.default_rng(space.size)


def indefinite(space):
    """A symmetric matrix with eigenvalues of both signs."""
    A = _rng(space).normal(size=(space.size, space.size))
    return (A + A.T) / 2


def low_rank(space):
    rng = _rng(space)
    return saltus.LowRank(rng.normal(size=space.size), rng.normal(size=(space.size, 2)), [1.0, -0.7])


def sparse(space):
    rng = _rng(space)
    edges = [(i, (i + 1) % space.size) for i in range(space.size - 1)] + ([(0, space.size - 1)] if space.size > 3 else [])
    return saltus.Sparse(edges, rng.normal(size=len(edges)), rng.normal(size=space.size))


KERNELS = {
    "NCG": lambda space: saltus.NCG(0.5),
    "NCG-weighted": lambda space: saltus.NCG(0.8, gradient_weight=0.7, penalty=_rng(space).uniform(0.5, 2, space.num_sites)),
    "AVG": lambda space: saltus.AVG(0.7),
    "PAVG-Dense": lambda space: saltus.PAVG(0.7, indefinite(space), scale=-0.6),
    "PAVG-Diagonal": lambda space: saltus.PAVG(0.7, saltus.Diagonal(_rng(space).normal(size=space.size))),
    "PAVG-LowRank": lambda space: saltus.PAVG(0.7, low_rank(space), scale=0.8),
    "PAVG-Sparse": lambda space: saltus.PAVG(0.7, sparse(space), scale=-0.8),
    "AVG-momentum": lambda space: saltus.AVG(0.7, momentum=0.6),
    "AVG-over-relaxed": lambda space: saltus.AVG(0.7, over_relaxed=True),
    "PAVG-both": lambda space: saltus.PAVG(0.7, indefinite(space), scale=-0.6, momentum=0.8, over_relaxed=True),
    "GWG": lambda space: saltus.GWG(),
    "GWG-2": lambda space: saltus.GWG(radius=2),
    "Gibbs-random": lambda space: saltus.Gibbs(),
    "Gibbs-systematic": lambda space: saltus.Gibbs("systematic"),
    "TGS": lambda space: saltus.TGS(),
    "JumpProcess-sqrt": lambda space: saltus.JumpProcess(),
    "JumpProcess-max": lambda space: saltus.JumpProcess("max"),
    "UniformMH-1": lambda space: saltus.UniformMH(1),
    "UniformMH-2": lambda space: saltus.UniformMH(2),
}


def mostly(choices, *names):
    """Parameters of which `make test` runs those named, and `make test-full` all."""
    choices = choices if isinstance(choices, dict) else {name: name for name in choices}
    return [pytest.param(value, id=name, marks=() if name in names else pytest.mark.full) for name, value in choices.items()]


THREE_SPACES = mostly(SPACES, "binary", "ordinal", "one-hot")


def assert_exact(kernel, target):
    """Definition and invariance to 1e-12, at fixed auxiliaries where there are any."""
    with jax.enable_x64(True):
        every = Enumeration(kernel, target)
        zs = every.auxiliaries(jax.random.key(3), 2) if every.continuous else [None]
        for z in zs:
            for tables in map(every.tables, every.noises([z])):
                np.testing.assert_allclose(np.exp(tables["log_q"]), np.exp(tables["log_definition"]), atol=1e-12)
            K, p = every.matrix(z), every.conditional(z) if every.continuous else every.stationary()
            np.testing.assert_allclose(p @ K, p, atol=1e-12)
            if getattr(kernel, "reversible", True):
                np.testing.assert_allclose(p[:, None] * K, (p[:, None] * K).T, atol=1e-12)
