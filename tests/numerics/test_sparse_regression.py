"""Sparse regression: the posterior against integration and enumeration, its gradient, and its float32."""

import functools
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import saltus
from saltus.errors import TargetError
from saltus.targets.variable_selection import log_posterior, sparse_regression

BASE = np.random.default_rng(0).integers(0, 3, (20, 5))
X, Y = np.tile(BASE, (1, 4)), BASE.sum(1)


def paper_formula(s, X=X, y=Y, g=20.0, penalty=0.001, inclusion=(0.001, 10.0), noise=(0.1, 0.1)):
    """log p(s) + log p(y | s) / p(y | 0) for states (..., D): as printed, with the roots and the inverse it lacks."""
    N, D = X.shape
    n, Xs = s.sum(-1), X * s[..., None, :]
    gram, ridge = np.swapaxes(Xs, -1, -2) @ Xs, penalty * np.eye(D)
    B, v = (1 + g) * gram + ridge, np.swapaxes(Xs, -1, -2) @ y
    explained = g * (v * np.linalg.solve(B, v[..., None])[..., 0]).sum(-1)
    log_factor = 0.5 * (np.linalg.slogdet(gram + ridge)[1] - np.linalg.slogdet(B)[1])
    log_factor = log_factor - (noise[0] + N / 2) * np.log1p(-explained / (2 * noise[1] + y @ y))
    return special.betaln(n + inclusion[0], D - n + inclusion[1]) - special.betaln(*inclusion) + log_factor


def plain_cholesky(params, s):
    """The same by the textbook: two Cholesky factors of D x D matrices. Right in float64 only, and 20 times slower."""
    N, D = X.shape
    design, y = jnp.asarray(X, s.dtype), jnp.asarray(Y, s.dtype)
    Xs, n, ridge = design * s, jnp.sum(s), 0.001 * jnp.eye(D, dtype=s.dtype)
    root, root_B = (jnp.linalg.cholesky(a * (Xs.T @ Xs) + ridge) for a in (1.0, 21.0))
    v = jax.scipy.linalg.solve_triangular(root_B, Xs.T @ y, lower=True)
    log_factor = jnp.sum(jnp.log(jnp.diag(root))) - jnp.sum(jnp.log(jnp.diag(root_B)))
    log_factor = log_factor - (0.1 + N / 2) * jnp.log(0.2 + y @ y - 20 * v @ v)
    return jax.scipy.special.betaln(n + 0.001, D - n + 10) + log_factor


@functools.cache
def compiled(f):
    return jax.jit(jax.vmap(jax.value_and_grad(f, argnums=1), in_axes=(None, 0)))


def value_and_gradient(f, params, s):
    """At the states (num, D), in the precision that is on, returned as float64."""
    return [np.asarray(x, np.float64) for x in compiled(f)(params, jnp.asarray(s, jnp.result_type(float)))]


def values(target, s):
    return value_and_gradient(log_posterior, target.params, s)[0]


def random_states(num, D=20):
    """All sizes, among them none and all."""
    rng = np.random.default_rng(1)
    s = (rng.random((num, D)) < rng.random((num, 1))).astype(np.float64)
    s[0], s[1] = 0, 1
    return s


@functools.cache
def typical_states(num=300):
    """Draws from the paper's posterior, by importance resampling."""
    rng = np.random.default_rng(2)
    s = (rng.random((20_000, 20)) < 0.28).astype(np.float64)
    log_weight = paper_formula(s) - stats.binom.logpmf(s, 1, 0.28).sum(1)
    return s[rng.choice(len(s), num, p=special.softmax(log_weight))]


def corners():
    """300 random states, then 300 typical ones."""
    return np.concatenate([random_states(300), typical_states()])


def binary_states(d):
    return np.array(list(product([0.0, 1.0], repeat=d)))


# ---- the posterior ---------------------------------------------------------------------------------------------


def test_posterior_is_the_integral_over_weights_and_noise():
    rng = np.random.default_rng(0)
    X, y, g, penalty, inclusion, noise = rng.normal(size=(4, 2)), rng.normal(size=4), 3.0, 0.3, (1.5, 3.0), (0.8, 0.6)
    line = np.linspace(-8, 8, 65)
    square = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)

    def log_evidence(s):
        Xs = X * s
        precision = Xs.T @ Xs + penalty * np.eye(2)
        # Where the grid over ω lies and how wide it is; what it sums is the bare product of likelihood and prior.
        width = np.linalg.inv(np.linalg.cholesky(precision / g + Xs.T @ Xs)).T
        centre = np.linalg.solve(precision / g + Xs.T @ Xs, Xs.T @ y)

        def integrand(log_variance):
            variance = np.exp(log_variance)
            w = centre + np.sqrt(variance) * square @ width.T
            log_likelihood = stats.norm.logpdf(y, w @ Xs.T, np.sqrt(variance)).sum(1)
            log_prior = -((w @ precision) * w).sum(1) / (2 * g * variance) - np.log(2 * np.pi * g * variance)
            density = np.exp(log_likelihood + log_prior) * np.sqrt(np.linalg.det(precision))
            cell = (line[1] - line[0]) ** 2 * np.linalg.det(width) * variance
            # d σ² = σ² d log σ²
            return density.sum() * cell * stats.invgamma.pdf(variance, noise[0], scale=noise[1]) * variance

        return np.log(integrate.quad(integrand, -8, 12, epsabs=0, epsrel=1e-9)[0])

    def log_prior(n):
        return np.log(integrate.quad(lambda p: p**n * (1 - p) ** (2 - n) * stats.beta.pdf(p, *inclusion), 0, 1)[0])

    masks = binary_states(2)
    expected = [log_prior(s.sum()) + log_evidence(s) - log_evidence(masks[0]) for s in masks]
    with jax.enable_x64(True):
        target = sparse_regression(X, y, g=g, penalty=penalty, inclusion=inclusion, noise=noise)
        assert target.space.num_sites == 2
        np.testing.assert_allclose(values(target, masks), expected, atol=1e-7)


def test_posterior_is_the_formula_also_between_the_corners():
    s = corners()
    s[100:200] = np.random.default_rng(3).random((100, 20))
    with jax.enable_x64(True):
        np.testing.assert_allclose(values(sparse_regression(num_appended=0), s), paper_formula(s), atol=1e-9)


def test_duplicates_are_interchangeable():
    rng, s = np.random.default_rng(4), corners()
    swapped = rng.permuted(s.reshape(-1, 4, 5), axis=1).reshape(-1, 20)
    assert (s != swapped).any()
    target = sparse_regression(num_appended=0)
    np.testing.assert_array_equal(values(target, s), values(target, swapped))
    np.testing.assert_array_equal(np.ptp(target.truth.marginals.reshape(4, 5), axis=0), 0)


# ---- truth -----------------------------------------------------------------------------------------------------


def test_anchors():
    truth = sparse_regression().truth
    np.testing.assert_allclose(truth.marginals[:5], [0.3117, 0.2334, 0.2794, 0.2672, 0.3015], atol=5e-5)
    np.testing.assert_allclose(truth.size_probabilities[3:6], [0.142, 0.190, 0.194], atol=5e-4)
    np.testing.assert_allclose(truth.marginals[20:], 0.001)
    np.testing.assert_allclose(truth.size_probabilities @ np.arange(21), truth.marginals[:20].sum())
    assert truth.size_probabilities[0] < 1e-4


@pytest.mark.parametrize(("num_copies", "num_appended"), [(2, 0), (1, 4)])
def test_counting_is_enumerating(num_copies, num_appended):
    with jax.enable_x64(True):
        target = sparse_regression(num_copies=num_copies, num_appended=num_appended, appended_probability=0.2)
        D = 5 * num_copies
        s = binary_states(D + num_appended)
        log_p = values(target, s)
    appended = stats.binom.logpmf(s[:, D:], 1, 0.2).sum(1)
    np.testing.assert_allclose(log_p, paper_formula(s[:, :D], np.tile(BASE, (1, num_copies))) + appended, atol=1e-9)
    p, truth = special.softmax(log_p), target.truth
    np.testing.assert_allclose(truth.log_normaliser, special.logsumexp(log_p), atol=1e-9)
    np.testing.assert_allclose(truth.marginals, p @ s, atol=1e-9)
    np.testing.assert_allclose(truth.pairs, (s * p[:, None]).T @ s, atol=1e-9)
    np.testing.assert_allclose(truth.size_probabilities, np.bincount(s[:, :D].sum(1).astype(int), p), atol=1e-9)


def test_truth_needs_few_counts():
    rng = np.random.default_rng(5)
    assert sparse_regression(rng.normal(size=(30, 20)), rng.normal(size=30)).truth is None  # 2^20 > 10^6
    doubled = np.repeat(rng.normal(size=(30, 3)), [1, 6, 2], axis=1)
    assert sparse_regression(doubled, rng.normal(size=30)).truth.pairs.shape == (9, 9)


# ---- the gradient ----------------------------------------------------------------------------------------------


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0))
def curvature(params, s):
    """d²f / ds_0²."""
    slope = jax.grad(log_posterior, argnums=1)
    return jax.jvp(lambda s: slope(params, s)[0], (s,), (jnp.eye(20)[0],))[1]


# With the paper's λ the likelihood is flat wherever s_i² is far above 1e-6, so only a large λ tests its slope.
@pytest.mark.parametrize(
    ("prior", "atol"),
    [({}, 1e-3), ({"penalty": 5.0, "inclusion": (1.5, 3.0)}, 1e-6)],
    ids=["paper", "large penalty"],
)
def test_gradient_and_curvature_are_those_of_finite_differences(prior, atol):
    """Also where a whole group is left out: c_j = Σ s_i² and f are smooth there, and no square root is in the way."""
    between = np.random.default_rng(6).random((5, 20))
    s, h = np.concatenate([random_states(5), np.eye(20)[[1]], typical_states()[:5], between]), 1e-6
    with jax.enable_x64(True):
        params = sparse_regression(num_appended=0, **prior).params
        slope = value_and_gradient(log_posterior, params, s)[1]
        up, down = (value_and_gradient(log_posterior, params, s + h * np.eye(20)[0] * sign)[1] for sign in (1, -1))
        bend = curvature(params, jnp.asarray(s))
    numeric = [(paper_formula(s + h * e, **prior) - paper_formula(s - h * e, **prior)) / (2 * h) for e in np.eye(20)]
    np.testing.assert_allclose(slope, np.transpose(numeric), rtol=1e-5, atol=atol)
    np.testing.assert_allclose(bend, (up - down)[:, 0] / (2 * h), rtol=1e-3, atol=10 * atol)


def test_gradient_at_the_corners_is_that_of_the_prior():
    s = corners()
    n = s.sum(1)
    prior = (special.digamma(n + 0.001) - special.digamma(30 - n))[:, None]
    with jax.enable_x64(True):
        off = {
            penalty: np.abs(value_and_gradient(log_posterior, sparse_regression(penalty=penalty).params, s)[1] - prior)
            for penalty in (1e-3, 1e-4)
        }
    assert off[1e-3].max() < 2e-4
    np.testing.assert_allclose(off[1e-3].max() / off[1e-4].max(), 10, rtol=0.05)


def test_gradient_in_params_is_not_lost():
    with jax.enable_x64(True):
        params, s = sparse_regression(num_appended=0).params, jnp.asarray(typical_states()[0])
        slope = jax.jit(jax.grad(log_posterior))(params, s)["g"]
        assert abs(slope) > 1e-3
    numeric = (paper_formula(np.asarray(s), g=20 + 1e-5) - paper_formula(np.asarray(s), g=20 - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, numeric, rtol=1e-5)


# ---- float32 ---------------------------------------------------------------------------------------------------


def float32_errors(f, target, s):
    """Errors of f and of its gradient in float32, one row per state. f(s') - f(s) is off by their spread at most."""
    f32, gradient32 = value_and_gradient(f, target().params, s)
    with jax.enable_x64(True):
        f64, gradient64 = value_and_gradient(f, target().params, s)
    return f32 - f64, gradient32 - gradient64


def paper_target():
    return sparse_regression(num_appended=0)


def test_float32_differences_are_accurate():
    s = corners()
    error, gradient_error = float32_errors(log_posterior, paper_target, s)
    assert np.ptp(error) < 1e-4
    assert np.abs(gradient_error).max() < 1e-3
    planted, _ = float32_errors(plain_cholesky, paper_target, s)
    for states in (planted[:300], planted[300:]):  # the textbook form is another posterior in float32
        assert np.ptp(states) > 1e-2


@pytest.mark.parametrize(("rows", "columns"), [(8, 24), (400, 12)])
def test_float32_differences_are_accurate_for_other_designs(rows, columns):
    """More columns than rows; and dummy variables that add up to the column of ones beside them."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, columns))
    X[:, :4] = np.c_[np.ones(rows), np.eye(3)[rng.integers(0, 3, rows)]]
    y = X[:, 4] - X[:, 1] + rng.normal(size=rows)

    def target():
        return sparse_regression(X, y, inclusion=(1.0, 1.0))

    s = random_states(200, columns)
    assert np.ptp(float32_errors(log_posterior, target, s)[0]) < 1e-3
    with jax.enable_x64(True):
        expected = paper_formula(s, X, y, g=rows, inclusion=(1.0, 1.0))
        np.testing.assert_allclose(values(target(), s), expected, atol=1e-6)


def test_numbers_take_the_default_precision():
    assert {leaf.dtype for leaf in sparse_regression().params.values()} == {jnp.dtype(jnp.float32)}
    with jax.enable_x64(True):
        assert {leaf.dtype for leaf in sparse_regression().params.values()} == {jnp.dtype(jnp.float64)}


# ---- closed-form differences -----------------------------------------------------------------------------------


def tables(target, codes):
    return np.asarray(jax.jit(jax.vmap(lambda c: target.moves(target.point(c)).scores))(codes), np.float64)


def own_data(rows, columns):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, columns))
    return X, X[:, 0] - X[:, -1] + 0.1 * rng.normal(size=rows)


@pytest.mark.parametrize(
    "data", [(), own_data(15, 7), own_data(8, 13), own_data(9, 1)], ids=lambda d: str(np.shape(d[0])) if d else "paper"
)
def test_closed_form_differences_are_exact(data):
    """Against one evaluation per change in float64; and accurate in float32, at states of every size."""
    make = functools.partial(sparse_regression, *data, num_appended=3)
    d = make().space.num_sites
    codes = jnp.asarray(random_states(100, d), jnp.int32)
    single = tables(make(differences="exact"), codes)
    with jax.enable_x64(True):
        target = make(differences="exact")
        expected = tables(target.replace(differences="exact"), codes)
        np.testing.assert_allclose(tables(target, codes), expected, atol=1e-10)
    np.testing.assert_allclose(single, expected, atol=1e-3)


def test_a_downdate_would_lose_its_digits():
    """Why columns are left out and not taken out again: 1 - leverage, in float32, is wrong by more than a thousandth."""
    with jax.enable_x64(True):
        params, c = sparse_regression(num_appended=0).params, jnp.array([1.0, 1, 1, 1, 1])
        rows = jnp.sqrt(21 / 0.001) * params["columns"]
        leverage = jnp.diag(rows @ jnp.linalg.inv(jnp.eye(5) + rows.T @ (c[:, None] * rows)) @ rows.T)
        taken_out = 1 - np.asarray(leverage, np.float32).astype(np.float64)
        assert np.abs(np.log(taken_out / (1 - np.asarray(leverage)))).max() > 1e-3


# ---- use -------------------------------------------------------------------------------------------------------


def test_the_start_is_the_second_column_alone():
    paper, own, single = sparse_regression(), sparse_regression(BASE, Y), sparse_regression(BASE[:, :1], Y)
    np.testing.assert_array_equal(paper.initial, np.eye(100)[1])
    np.testing.assert_array_equal(own.initial, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(single.initial, [1])
    assert np.isfinite(values(paper, paper.initial[None])).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"X": BASE}, "X alone"),
        ({"y": Y}, "y alone"),
        ({"X": BASE[:, 0], "y": Y}, r"`X` has the wrong shape.\n  expected  a table \(rows, columns\)"),
        ({"X": BASE[:, :0], "y": Y}, "`X` has the wrong shape"),
        ({"X": BASE, "y": Y[:-1]}, r"20 finite numbers, one per row of X\n  found     shape \(19,\)"),
        ({"X": BASE, "y": Y[:, None]}, "`y` has the wrong shape"),
        ({"X": np.where(BASE == 2, np.nan, BASE), "y": Y}, r"found     nan at \(\d+, \d+\).*\n  hint .* missing"),
        ({"X": BASE, "y": np.where(Y > 5, np.inf, Y)}, "`y` is out of range"),
        ({"X": [["a", "b"]], "y": [1.0]}, "`X` is not numeric"),
        ({"g": 0.0}, "a number above 0"),
        ({"penalty": -1.0}, "`penalty` is out of range"),
        ({"inclusion": (1.0,)}, "`inclusion` has the wrong shape.\n  expected  two numbers above 0"),
        ({"noise": (0.1, np.nan)}, "`noise` is out of range"),
        ({"appended_probability": 1.0}, "a number between 0 and 1"),
        ({"num_copies": 0}, "num_copies"),
        ({"num_appended": -1}, "num_appended"),
        ({"differences": "closed"}, "`differences` is not known"),
    ],
)
def test_bad_inputs_are_refused(arguments, words):
    with pytest.raises(TargetError, match=words):
        sparse_regression(**arguments)


def test_batched_linear_algebra_does_not_hang():
    """jax 0.10 deadlocks on the textbook form (docs/deviations.md): a fresh process, with a time limit."""
    script = """
import jax, jax.numpy as jnp
from saltus.targets.variable_selection import log_posterior, sparse_regression
from test_sparse_regression import plain_cholesky
s = jax.random.bernoulli(jax.random.key(0), 0.3, (100, 20)).astype(float)
params = sparse_regression(num_appended=0).params
for f in (plain_cholesky, log_posterior):
    step = jax.jit(jax.vmap(jax.value_and_grad(f, argnums=1), in_axes=(None, 0)))
    for _ in range(5):
        jax.block_until_ready(step(params, s))
"""
    path = os.pathsep.join([str(Path(saltus.__file__).parents[1]), str(Path(__file__).parent)])
    subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": path}, timeout=120, check=True)
