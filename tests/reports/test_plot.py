"""Pictures of a run: axes in and out, and what is drawn is what was drawn."""

import numpy as np
import pytest

import saltus

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(scope="module")
def run():
    target = saltus.Target(lambda s: 2.0 * s[0] - s[1:].sum(), saltus.Binary(6), names=list("abcdef"))
    return saltus.sample(target, saltus.Gibbs("systematic"), num_draws=400, num_warmup=20, thin=1, progress=False, seed=0)


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_axes_in_and_out(run, ax):
    for draw in (saltus.plot.energy, saltus.plot.autocorrelation, saltus.plot.marginals):
        assert draw(run, ax) is ax
    assert saltus.plot.images(run, (2, 3), axes=ax) is ax


def test_energy_is_the_log_prob_of_each_chain(run, ax):
    lines = saltus.plot.energy(run, ax).get_lines()
    assert len(lines) == 4
    np.testing.assert_array_equal(lines[2].get_ydata(), run.sample_stats.lp.values[2])


def test_bars_are_the_means(run, ax):
    saltus.plot.marginals(run, ax)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, run.posterior.s.mean(("chain", "draw")), rtol=1e-6)
    assert [text.get_text() for text in ax.get_xticklabels()] == list("abcdef")


def test_autocorrelation_begins_at_one_and_is_that_of_the_definition(run, ax):
    line = saltus.plot.autocorrelation(run, ax, max_lag=5).get_lines()[1]
    x = run.sample_stats.lp.values[0].astype(np.float64)
    x = x - x.mean()
    expected = [np.mean(x[: len(x) - k] * x[k:]) / np.mean(x * x) for k in range(6)]
    np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-10)


def test_many_sites_are_a_line_and_many_values_a_shading(ax):
    many = saltus.Target(lambda s: -s.sum(), saltus.Binary(100))
    few_values = saltus.Target(lambda s: -(s**2).sum(), saltus.Ordinal(3, [-1.0, 0.0, 2.0, 3.0]))
    settings = dict(num_draws=50, num_warmup=5, thin=1, progress=False)
    saltus.plot.marginals(saltus.sample(many, saltus.Gibbs("systematic"), **settings), ax)
    assert len(ax.get_lines()[-1].get_ydata()) == 100
    plt.cla()
    saltus.plot.marginals(saltus.sample(few_values, saltus.Gibbs("systematic"), **settings), ax)
    assert ax.images[0].get_array().sum() == pytest.approx(3)  # shares of each site add up to one


@pytest.mark.parametrize(
    "call",
    [
        lambda run: saltus.plot.energy("run.nc"),
        lambda run: saltus.plot.energy(run, ax=3),
        lambda run: saltus.plot.images(run, (2, 2)),
        lambda run: saltus.plot.images(run, 7),
        lambda run: saltus.plot.images(run, (2, 3), num=0),
        lambda run: saltus.plot.race(run),
        lambda run: saltus.plot.tuning(run),
        lambda run: saltus.plot.autocorrelation(run, max_lag=-1),
    ],
)
def test_nonsense_is_refused(run, call):
    with pytest.raises(saltus.SaltusError):
        call(run)


def test_bars_of_a_ladder_are_the_swaps_that_were_accepted(run, ax):
    target = saltus.targets.ising((4, 4), 0.6)
    kernel = saltus.Tempered(saltus.Gibbs("coloured"), [0.0, 0.3, 0.6, 1.0])
    tempered = saltus.sample(target, kernel, num_draws=200, num_warmup=50, thin=1, progress=False)
    saltus.plot.ladder(tempered, ax)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], 1 - np.ravel(tempered.attrs["swap_rejection"]))
    assert "4 rungs" in ax.get_title(loc="left")
    with pytest.raises(saltus.SaltusError, match="no ladder"):
        saltus.plot.ladder(run)


def test_a_comparison_is_drawn_by_the_same_name():
    found = saltus.compare(
        {"ten": saltus.targets.ising((3, 3), 0.2)}, [saltus.Gibbs("coloured")], seconds=0.05, repeats=2, progress=False
    )
    axes = saltus.plot.comparison(found)
    assert axes.shape == (1, 2)
    assert axes[0, 0].get_title(loc="left") == "ten"
    plt.close(axes[0, 0].figure)
    with pytest.raises(saltus.SaltusError, match=r"saltus\.compare"):
        saltus.plot.comparison("ncg")
