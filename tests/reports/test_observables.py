"""Means of functions of the state: their errors hold under autocorrelation, and grow where chains disagree."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.signal import lfilter

import saltus
from saltus.reporting.jackknife import derived


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


@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_jackknife_errors_hold_under_planted_autocorrelation(phi):
    """Binder's cumulant of a Gaussian is 0, its kurtosis by other means."""
    rng, repeats = np.random.default_rng(3), 300
    found = []
    for _ in range(repeats):
        x = autoregressive(rng, phi, (4, 2000))
        found.append(derived("U", np.stack([x**2, x**4], axis=2), lambda m: 1 - m[..., 1] / (3 * m[..., 0] ** 2)))
    z = np.array([row.mean / row.error for row in found])
    assert 0.85 < z.std() < 1.15  # 300 repeats: ± 0.04
    assert abs(z.mean()) < 0.25
    assert np.median([row.tau for row in found]) < 6


def test_chains_that_disagree_have_a_large_jackknife_error():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 500)) * np.array([[1.0], [3.0], [1.0], [3.0]])
    row = derived("variance", (x**2)[..., None], lambda m: m[..., 0])
    assert row.error > 1.5  # variances 1 and 9 in turn: the mean of four is known to 2
    assert row.rhat > 1.05


def test_a_lattice_by_enumeration():
    """Exact draws of a 3 x 3 lattice: every row within four errors of what enumeration says."""
    rng, side, K = np.random.default_rng(0), 3, 0.3
    states = np.array(list(np.ndindex(*[2] * 9))) * 2 - 1
    x = states.reshape(-1, side, side)
    near = (x * np.roll(x, -1, 1)).sum((1, 2)) + (x * np.roll(x, -1, 2)).sum((1, 2))
    p = np.exp(K * near)
    p /= p.sum()
    drawn = rng.choice(len(p), size=(4, 4000), p=p)
    lp = xr.Dataset({"lp": (("chain", "draw"), K * near[drawn])})
    run = xr.DataTree.from_dict({"posterior": run_of(s=states[drawn])["posterior"].to_dataset(), "sample_stats": lp})
    found = saltus.lattice_observables(run, (side, side), distances=1)
    m = states.mean(1)
    q2 = np.sum((states.T @ (p[:, None] * states)) ** 2) / 81
    exact = {
        "energy": -K * (p @ near) / 9,
        "specific heat": K**2 * (p @ near**2 - (p @ near) ** 2) / 9,
        "|m|": p @ abs(m),
        "m2": p @ m**2,
        "susceptibility": 9 * (p @ m**2 - (p @ abs(m)) ** 2),
        "binder": 1 - (p @ m**4) / (3 * (p @ m**2) ** 2),
        "C[1]": p @ near / 18,
        "q2": q2,
    }
    for name, value in exact.items():
        assert abs(found[name].mean - value) < 4 * found[name].error, name
        assert found[name].error < 0.1 * abs(value) + 0.05
    assert list(found)[-3:] == ["|q|", "q2", "binder q"]
    with pytest.raises(saltus.RunError, match="not that of the lattice"):
        saltus.lattice_observables(run, (2, 3), distances=1)
    with pytest.raises(saltus.RunError, match="not spins"):
        saltus.lattice_observables(RUN)


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
