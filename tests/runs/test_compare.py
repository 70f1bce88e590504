"""`saltus.compare`: samplers side by side, ours and others', with a gate for chains that disagree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.comparing.disagreements import disagreements
from saltus.extending import record

QUICK = dict(num_chains=8, num_warmup=50, repeats=3, num_steps=400, progress=False)


@record
class Careless(saltus.NCG):
    """NCG without its Metropolis step: another distribution."""

    name = "careless"

    def log_ratio(self, target, x, y, noise=None, forward=None):
        return jnp.full((), 20.0)


@record
class Stuck(saltus.NCG):
    name = "stuck"

    def log_ratio(self, target, x, y, noise=None, forward=None):
        return jnp.full((), -40.0)


@pytest.fixture(scope="module")
def made():
    target = saltus.Target(lambda s: 0.25 * jnp.sum(s[1:] * s[:-1]) + 0.2 * jnp.sum(s), saltus.Spin(12))
    kernels = ["uniform-mh", saltus.Gibbs("coloured"), saltus.Gibbs("systematic"), Careless(3.0), Stuck(0.5)]
    kernels.append(saltus.PAVG(1.0, saltus.Dense(np.eye(3))))
    return saltus.compare({"a chain": target}, kernels, **QUICK)


def row(comparison, name):
    return next(row for row in comparison.rows if row.sampler.startswith(name))


def test_every_sampler_has_a_row_with_its_figures(made):
    assert [each.sampler.split("(")[0] for each in made.rows] == ["UniformMH", "Gibbs", "Gibbs", "Careless", "Stuck", "PAVG"]
    gibbs = row(made, "Gibbs(scan='coloured')")
    assert gibbs.ranked
    assert gibbs.ess_per_second.shape == (3,)
    assert (gibbs.seconds_per_step > 0).all()
    assert made.best().sampler.startswith("Gibbs")
    assert row(made, "UniformMH").evaluations == 1
    np.testing.assert_allclose(  # per second and per evaluation are of the same effective draws
        row(made, "UniformMH").ess_per_second * row(made, "UniformMH").seconds_per_step / 8,
        row(made, "UniformMH").ess_per_evaluation,
        rtol=1e-9,
    )


def test_chains_that_do_not_move_and_wrong_samplers_are_not_ranked(made):
    assert not row(made, "Stuck").ranked
    assert "disagrees" in row(made, "Careless").verdict or "R-hat" in row(made, "Careless").verdict
    assert all(row(made, f"Gibbs(scan='{scan}')").ranked for scan in ("coloured", "systematic"))


def test_what_cannot_be_used_says_why(made):
    assert "cannot be used here: The preconditioner does not fit" in row(made, "PAVG").verdict


def test_the_table_and_the_figure_show_all(made):
    text = str(made)
    assert all(each.sampler in text for each in made.rows)
    assert text.count("not ranked") >= 3
    axes = made.plot()
    assert axes.shape == (1, 2)
    axes[0, 0].figure.canvas.draw()


def test_samplers_that_disagree_are_named():
    rng = np.random.default_rng(0)
    means = {name: {"energy": rng.normal(size=16)} for name in "abc"} | {"d": {"energy": 9 + rng.normal(size=16)}}
    assert list(disagreements(means)) == ["d"]
    assert not disagreements({name: means[name] for name in "abc"})


def test_weighted_chains_are_judged_by_their_weighted_means():
    target = saltus.targets.ising((3, 4), 0.2)
    made = saltus.compare(target, [saltus.TGS(), saltus.Gibbs("coloured")], **{**QUICK, "num_steps": 2000})
    assert all(each.ranked for each in made.rows), str(made)


def test_nothing_but_the_times_depends_on_the_clock():
    target = saltus.targets.ising((3, 4), 0.2)
    first, second = (saltus.compare(target, saltus.UniformMH(1), **QUICK).rows[0] for _ in range(2))
    assert (first.ess_per_evaluation == second.ess_per_evaluation).all()
    assert first.rhat == second.rhat


@pytest.mark.parametrize(
    "given",
    [
        *(dict(targets=[]), dict(targets=5), dict(kernels=[]), dict(kernels={}), dict(kernels=["nonsense"])),
        *(dict(num_chains=1), dict(repeats=1), dict(most_rhat=1.0), dict(seconds=None), dict(num_steps=3)),
    ],
)
def test_nonsense_is_refused(given):
    asked = dict(targets=saltus.targets.ising((3, 4), 0.2), kernels=["ncg"], **QUICK) | given
    with pytest.raises(saltus.SaltusError):
        saltus.compare(**asked)


def test_nothing_that_can_be_used_is_an_error():
    target = saltus.Target(lambda s: jnp.sum(jax.nn.relu(s)), saltus.Spin(4), structure=None)
    with pytest.raises(saltus.KernelError, match="None of these samplers"):
        saltus.compare(target, saltus.Gibbs("coloured"), **QUICK)
