"""All changes of a model at once are those of fitting every changed model from nothing, in both precisions, on collinear
data too.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from selection_cases import quick_jit, regression, share_explained

from saltus._record import changed
from saltus.selection.active import Columns, add, fit, flips, remove

fitted = quick_jit(fit)


@quick_jit
def moved(columns, x, slot, j, deletes, adds):
    return add(columns, remove(x, slot, jnp.asarray(deletes)), jnp.asarray(j), jnp.asarray(adds))


@quick_jit
def replaced(columns, x, slot):
    """Every column in place of that in `slot`."""
    return flips(columns, remove(x, slot))


CASES = {"ordinary": 0.0, "collinear": 0.999}


def columns_of(X, y, ridge=0.0, scale=1.0, gram=True, dtype=jnp.float64):
    X, y = np.asarray(X), np.asarray(y)
    X, y = X - X.mean(axis=0), y - y.mean()
    X, y = scale * X / np.linalg.norm(X, axis=0), y / np.linalg.norm(y)
    as_ = lambda x: jnp.asarray(x, dtype)  # noqa: E731
    own = dict(gram=as_(X.T @ X)) if gram else dict(rows=as_(X.T))
    return Columns(as_(X.T @ y), as_((X**2).sum(0) + ridge), ridge=ridge, **own), X, y


def slots_of(columns, m, p):
    return jnp.asarray([*columns, *[p] * (m - len(columns))], jnp.int32)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("gram", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-8), ("float32", 1e-4)])
def test_all_flips_and_swaps_are_direct_fits(case, gram, dtype, tolerance):
    X, y = regression(30, 7, collinear=CASES[case])
    with jax.enable_x64(dtype == "float64"):
        columns, *_ = columns_of(X, y, gram=gram, dtype=dtype)
        for model in [(), (3,), (0, 1), (0, 2, 4, 6)]:
            x = fitted(columns, slots_of(model, 6, 7))
            f = quick_jit(flips)(columns, x)
            for j in range(7):
                rest = tuple(i for i in model if i != j)
                assert abs(float(f.Q_in[j]) - (1 - share_explained(X, y, (*rest, j)))) < tolerance
                assert abs(float(f.Q_out[j]) - (1 - share_explained(X, y, rest))) < tolerance
            for place, i in enumerate(model):
                swapped = replaced(columns, x, place)
                rest = tuple(k for k in model if k != i)
                np.testing.assert_array_equal(swapped.inside, [j in rest for j in range(7)])
                for j in set(range(7)) - set(rest):
                    assert abs(float(swapped.Q_in[j]) - (1 - share_explained(X, y, (*rest, j)))) < tolerance


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_moves_lead_to_the_fit_from_nothing(ridge):
    X, y = regression(25, 8, seed=1, collinear=0.99)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        columns, *_ = columns_of(X, y, ridge=ridge, scale=3.0 if ridge else 1.0)
        x = fit(columns, slots_of((), 8, 8))
        for _ in range(60):
            inside = np.flatnonzero(np.asarray(x.slots) < 8)
            outside = [j for j in range(8) if j not in np.asarray(x.slots)]
            deletes = len(inside) > 0 and rng.random() < 0.5
            adds = (len(outside) > 0 and rng.random() < 0.6) or not deletes
            slot = rng.choice(inside) if deletes else 0
            j = rng.choice(outside) if outside else 0
            adds = adds and bool(outside)
            x = moved(columns, x, slot, j, deletes, adds)
            fresh = fitted(columns, x.slots)
            for name in ("size", "inside", "gram", "left", "along", "beta", "Q", "logdet", "inverse"):
                own, right = ((x_.slots < 8)[:, None] * x_.gram if name == "gram" else getattr(x_, name) for x_ in (x, fresh))
                scale = 1 + np.abs(right).max()
                np.testing.assert_allclose(own / scale, right / scale, atol=1e-9, err_msg=name)


def test_changes_from_columns_in_single_precision_stay_within_a_thousandth():
    """As runs of large tables keep them, the active set in float64: the log evidence over 100 moves on collinear data."""
    from saltus.selection.coefficient_priors import make_evidence, read_prior

    X, y = regression(60, 10, seed=2, collinear=0.99)
    found = []
    with jax.enable_x64(True):
        evidence = make_evidence(read_prior("g"), 60, 59, 10, 10)
        for dtype in (jnp.float64, jnp.float32):
            columns, *_ = columns_of(X, y, gram=False)
            columns = changed(columns, rows=columns.rows.astype(dtype))
            x, rng, changes = fit(columns, slots_of((0,), 10, 10)), np.random.default_rng(0), []
            for _ in range(100):
                outside = [j for j in range(10) if j not in np.asarray(x.slots)]
                inside = np.flatnonzero(np.asarray(x.slots) < 10)
                out = bool(rng.random() < len(inside) / 10)
                slot, j = rng.choice(inside) if len(inside) else 0, rng.choice(outside) if outside else 0
                x = moved(columns, x, slot, j, out and len(inside) > 0, not out and bool(outside))
                f = quick_jit(flips)(columns, x)
                change = evidence.log_evidence(f.size_out + 1, f.Q_in) - evidence.log_evidence(f.size_out, f.Q_out)
                changes.append(np.asarray(change))
            found.append(np.array(changes))
    off = np.abs(found[1] - found[0])
    assert 0 < off.max() < 1e-3


def test_combinations_of_what_is_in_are_impossible():
    X, y = regression(20, 4)
    X["e"] = X["a"] - 2 * X["b"]
    with jax.enable_x64(True):
        columns, *_ = columns_of(X, y)
        f = flips(columns, fit(columns, slots_of((0, 1), 5, 5)))
        np.testing.assert_array_equal(f.possible, [True, True, True, True, False])
        f = flips(columns, fit(columns, slots_of((0,), 5, 5)))
        assert f.possible.all()
