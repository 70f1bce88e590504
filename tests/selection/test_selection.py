"""What a person asks and sees: one line, tables by name, errors that say which column."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from selection_cases import inclusion, posterior, regression

import saltus


@pytest.fixture(scope="module")
def data():
    return regression(30, 5, seed=1)


@pytest.fixture(scope="module")
def exact(data):
    return saltus.variable_selection(*data)


def test_sampling_agrees_with_enumeration_on_copies_constants_and_forced_columns():
    """Within four Monte-Carlo errors, those at most 0.01; the copy and its original share what one had."""
    X, y = regression(30, 4, seed=1, collinear=0.95)
    X["copy"], X["constant"] = 3 * X["a"] + 1, 7.0
    asked = dict(model_prior="uniform", forced=["d"])
    exact = saltus.variable_selection(X, y, **asked)
    found = saltus.variable_selection(X, y, method="sample", error=0.01, **asked)
    assert found.told["ended"] == "goal"
    assert (found.inclusion_error <= 0.01).all()
    assert ((found.inclusion - exact.inclusion).abs() <= 4 * found.inclusion_error + 1e-9).all()
    assert found.inclusion["constant"] == 0
    assert found.inclusion["d"] == 1
    assert abs(exact.inclusion["copy"] - exact.inclusion["a"]) < 1e-9
    assert "copies" in found.summary()
    assert "constant" in found.summary()
    np.testing.assert_allclose(
        found.log_marginal_likelihood, exact.log_marginal_likelihood, atol=5 * found.log_marginal_likelihood_error
    )
    again = found.reweight("beta-binomial")
    by_hand = exact.reweight("beta-binomial")
    assert ((again.inclusion - by_hand.inclusion).abs() <= 4 * again.inclusion_error + 1e-9).all()
    tree = found.run
    averaged = tree["posterior"]["included"].mean(("chain", "draw")).to_numpy()
    assert np.abs(averaged - exact.inclusion.to_numpy()).max() < 0.06
    weights = np.exp(tree["weighted_posterior"]["log_weight"])
    assert (weights > 0).all()


@pytest.mark.full
@pytest.mark.parametrize("k", [2, 3])
def test_chains_cross_between_two_explanations(k):
    """k columns and k others add up to nearly the same; what lies between the two explains half of it at most."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2 * k + 2))
    sums = X[:, :k].sum(axis=1)
    X[:, 2 * k - 1] = sums - X[:, k : 2 * k - 1].sum(axis=1) + 0.02 * rng.normal(size=300)
    y = sums + rng.normal(size=300)
    exact = saltus.variable_selection(X, y, model_prior="uniform").inclusion
    found = saltus.variable_selection(X, y, model_prior="uniform", method="sample", progress=False, max_steps=60_000)
    assert ((found.inclusion - exact).abs() <= 4 * found.inclusion_error).all()
    assert found.inclusion_error.max() < 0.03


def test_copies_are_impossible_together(data):
    X, y = data
    X = X[["a", "b"]].assign(c=2 * X["a"])
    models, w = posterior("g", X, y, "uniform", keep=lambda c: not {0, 2} <= set(c))
    np.testing.assert_allclose(saltus.variable_selection(X, y, model_prior="uniform").inclusion, inclusion(models, w, 3), atol=1e-9)


def test_tables_have_the_names_and_order_of_the_columns(data, exact):
    X, _ = data
    for table in (exact.inclusion, exact.inclusion_error, exact.coefficients, exact.to_frame(), exact.rhat):
        assert list(table.index) == list(X.columns)
    assert exact.models["probability"].is_monotonic_decreasing
    assert abs(exact.size["posterior"].sum() - 1) < 1e-9
    assert abs(exact.size["prior"].sum() - 1) < 1e-9
    text = exact.summary()
    assert repr(exact) == text
    assert all(name in text for name in X.columns)


def test_predictions(data, exact):
    X, y = data
    for estimator in ("bma", "median", "best"):
        mean = exact.predict(X, estimator)
        assert np.corrcoef(mean, y)[0, 1] > 0.6
        bounds = exact.predict(X, estimator, interval=0.9)
        assert 0.75 <= ((y >= bounds["lower"]) & (y <= bounds["upper"])).mean() <= 1
    pd.testing.assert_series_equal(exact.predict(X[X.columns[::-1]]), exact.predict(X))  # by name


def test_forced_columns_are_projected_out(data):
    """Selection given d is selection among residuals on d."""
    X, y = data
    found = saltus.variable_selection(X, y, forced="d", model_prior="uniform")
    base = np.column_stack([np.ones(len(y)), X["d"]])
    off = lambda v: v - base @ np.linalg.lstsq(base, v, rcond=None)[0]  # noqa: E731
    Z, r, n = off(X.drop(columns="d").to_numpy()), off(y.to_numpy()), len(y)
    f = []
    models = [tuple(j for j in range(4) if code >> j & 1) for code in range(16)]
    for c in models:
        left = r - Z[:, list(c)] @ np.linalg.lstsq(Z[:, list(c)], r, rcond=None)[0] if c else r
        f.append(0.5 * (n - 2 - len(c)) * np.log(1 + n) - 0.5 * (n - 2) * np.log(1 + n * (left @ left) / (r @ r)))
    w = np.exp(np.array(f) - np.logaddexp.reduce(f))
    np.testing.assert_allclose(found.inclusion.drop("d"), inclusion(models, w, 4), atol=1e-9)


def refused(match, *args, **options):
    with pytest.raises(saltus.SaltusError, match=match):
        saltus.variable_selection(*args, **options)


def test_bad_data_is_refused_by_name(data):
    X, y = data
    refused("in 1 column: c", X.assign(c=np.where(np.arange(30) == 3, np.nan, X["c"])), y)
    refused("in 2 columns: a, c", X.assign(c=np.inf, a=-np.inf), y)
    refused("constant", X, np.ones(30))
    refused("too few rows", X.iloc[:2], y.iloc[:2])
    refused("More columns are always in", X.iloc[:5], y.iloc[:5], forced=list("abcd"))
    refused("not unique.*\n.*a", X.to_numpy(), y, names=list("aacde"))
    refused("does not fit", X, y.iloc[:7])
    refused("in 1 column: c", X.assign(c=pd.array([1, None] * 15, dtype="Int64")), y)
    refused("different orders", X, y.sort_values())
    refused("words, dates or categories: c", X.assign(c="x"), y)
    refused("missing or infinite", X, y.where(y > y.min()))
    refused("not there", X, y, forced=["z"])
    refused("too many models", pd.concat([X.add_prefix(str(i)) for i in range(5)], axis=1), y, method="enumerate")
    refused("no number to set", X, y, prior="bic", prior_value=3)
    refused("between 0 and 1", X, y, model_prior=1.0)
    refused("hint", X, y, model_prior="bernoulli")


def test_what_is_odd_but_fine(data):
    X, y = data
    nothing = saltus.variable_selection(X * 0 + 1, y)
    assert (nothing.inclusion == 0).all()
    assert "constant" in nothing.summary()
    nothing.plot()
    small = saltus.variable_selection(X * 1e6, y * 1e-19)  # units of any size
    np.testing.assert_allclose(small.inclusion, saltus.variable_selection(X, y).inclusion, rtol=1e-9)


def test_more_columns_than_rows(data):
    X, y = data
    found = saltus.variable_selection(X.iloc[:5], y.iloc[:5])
    assert found.size["posterior"].iloc[4:].sum() == 0  # at most n - 2 columns


@pytest.mark.parametrize("kind", ["all", "inclusion", "models", "size", "coefficients", "convergence"])
def test_pictures_can_be_drawn(exact, kind, tmp_path):
    exact.plot(kind).savefig(tmp_path / "x.png")


def test_the_command_writes_a_folder(data, tmp_path, capsys):
    from saltus.cli import main

    X, y = data
    X.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    words = ["select", str(tmp_path / "d.csv"), "--response", "y", "--out", str(tmp_path / "out"), "--no-progress"]
    assert main(words) == 0
    assert "inclusion" in capsys.readouterr().out
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<img" in page
    assert "http" not in page.replace("http-equiv", "")
    assert pd.read_csv(tmp_path / "out" / "columns.csv")["column"].tolist() == list(X.columns)
    assert main(words) == 2  # nothing is replaced
    assert main([*words, "--overwrite"]) == 0
    assert main([*words[:3], "z", *words[4:], "--overwrite"]) == 2


@pytest.mark.full
def test_the_regressor_follows_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(saltus.SelectionRegressor(method="enumerate", max_steps=200))


def test_the_regressor_selects(data):
    X, y = data
    fitted = saltus.SelectionRegressor().fit(X, y)
    assert fitted.get_feature_names_out().tolist() == [n for n in X.columns if fitted.selection_.inclusion[n] >= 0.5]
    np.testing.assert_allclose(fitted.predict(X), X.to_numpy() @ fitted.coef_ + fitted.intercept_)


def test_importing_saltus_imports_no_pandas():
    code = "import sys, saltus; assert 'pandas' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
