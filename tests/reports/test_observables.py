"""Means of functions of the state: their errors hold under autocorrelation, and grow where chains disagree."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.signal import lfilter

import saltus


def run_of(**variables):
    """A run with these variables (chains, draws, ...) in its posterior."""
    data = {n: (("chain", "draw", *(f"{n}_{i}" for i in range(np.ndim(v) - 2))), v) for n, v in variables.items()}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(data)})


def autoregressive(rng, phi, shape):
    """Stationary x_t = φ x_{t-1} + noise, of variance 1 and mean 0; τ = (1 + φ) / (1 - φ)."""
    noise = rng.normal(size=shape) * np.sqrt(1 - phi**2)
    noise[..., 0] = rng.normal(size=shape[:-1])
    return lfilter([1], [1, -phi], noise)


@pytest.mark.parametrize("phi", [0.0, 0.6, 0.9])
def test_errors_hold_under_planted_autocorrelation(phi):
    rng, repeats, draws = np.random.default_rng(0), 400, 1000
    x = np.moveaxis(autoregressive(rng, phi, (4, repeats, draws)), 1, -1)
    rows = list(saltus.observables(run_of(m=x), {"m": "m"}).values())
    assert len(rows) == repeats
    z = np.array([row.mean / row.error for row in rows])
    assert 0.85 < z.std() < 1.15  # 400 repeats: ± 0.035
    assert abs(z.mean()) < 0.25
    naive = np.array([row.mean * np.sqrt(4 * draws) for row in rows])  # errors that take draws for independent
    assert phi == 0 or naive.std() > 1.8
    np.testing.assert_allclose(np.median([row.tau for row in rows]), (1 + phi) / (1 - phi), rtol=0.15)
    np.testing.assert_allclose([row.ess * row.tau for row in rows], 4 * draws)


def test_chains_that_disagree_have_a_large_error():
    x = np.random.default_rng(1).normal(size=(4, 500)) + np.array([[-3.0], [3.0], [-3.0], [3.0]])
    row = saltus.observables(run_of(m=x), {"m": "m"})["m"]
    assert row.error > 0.9  # ± 3 / √4 is 1.5; 0.07 from each chain by itself
    assert row.rhat > 2


def test_functions_numbers_and_arrays():
    s = np.random.default_rng(2).integers(0, 2, size=(3, 40, 5)).astype(np.int8)
    run = run_of(s=s)
    found = saltus.observables(
        run,
        {
            "mean": lambda s: s.mean(),
            "edges": lambda s: jnp.stack([s[0], s[-1]]),
            "by hand": lambda s: float(s.sum()) if s[0] else 0.0,  # cannot be traced
            "constant": lambda s: 2.5,
        },
    )
    assert list(found) == ["mean", "edges[0]", "edges[1]", "by hand", "constant"]
    np.testing.assert_allclose(found["mean"].mean, s.mean(), rtol=1e-6)
    np.testing.assert_allclose(found["edges[1]"].mean, s[..., -1].mean(), rtol=1e-6)
    np.testing.assert_allclose(found["by hand"].mean, np.where(s[..., 0], s.sum(-1), 0).mean())
    assert found["constant"].error == 0
    assert len(str(found).splitlines()) == 6
    assert list(found.to_dataframe().columns) == ["mean", "error", "tau", "ess", "rhat"]


RUN = run_of(s=np.zeros((2, 10, 3), np.int8), m=np.zeros((2, 10)))
BAD = {
    "no run": (lambda: saltus.observables({"s": 1}, {"m": "m"}), "not a run"),
    "nothing asked": (lambda: saltus.observables(RUN, {}), "names no observable"),
    "no mapping": (lambda: saltus.observables(RUN, np.mean), "names no observable"),
    "no function": (lambda: saltus.observables(RUN, {"m": 3}), "not a function"),
    "not kept": (lambda: saltus.observables(RUN, {"m": "energy"}), "does not hold 'energy'"),
    "no states": (lambda: saltus.observables(run_of(m=np.zeros((2, 10))), {"m": np.mean}), "no states"),
    "no draws": (lambda: saltus.observables(run_of(s=np.zeros((2, 0, 3))), {"m": np.mean}), "no draws"),
    "fails": (lambda: saltus.observables(RUN, {"m": lambda s: s[7, 7]}), "failed at draw 0"),
    "words": (lambda: saltus.observables(RUN, {"m": lambda s: "up"}), "not a real number"),
    "not finite": (lambda: saltus.observables(RUN, {"m": lambda s: 1.0 / s.sum()}), "not finite"),
    "unknown": (lambda: saltus.observables(RUN, {"m": "m"})["n"], "no such observable"),
}


@pytest.mark.parametrize(("ask", "text"), BAD.values(), ids=BAD)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_input(ask, text):
    with pytest.raises(saltus.RunError, match=text):
        ask()


def test_a_shape_that_changes_is_refused():
    run = run_of(s=np.array([[[0, 1], [1, 1], [0, 0], [1, 0]]], np.int8))
    with pytest.raises(saltus.RunError, match="changes its shape"):
        saltus.observables(run, {"ones": lambda s: s[np.asarray(s) == 1]})


@pytest.mark.full
def test_of_real_runs():
    target = saltus.Target(lambda s: jnp.sum(0.7 * s), saltus.Binary(3))
    exact = 1 / (1 + np.exp(-0.7))
    for kernel in (saltus.NCG(1.0), saltus.JumpProcess()):  # the second weighs its draws
        run = saltus.sample(target, kernel, num_draws=2000, num_chains=4, progress=False)
        row = saltus.observables(run, {"mean": lambda s: s.mean()})["mean"]
        assert abs(row.mean - exact) < 4 * row.error < 0.05
    kept = saltus.sample(target, saltus.NCG(1.0), num_draws=500, keep={"m": jnp.mean}, progress=False)
    assert abs(saltus.observables(kept, {"m": "m", "f": "lp"})["m"].mean - exact) < 0.05
