"""What `sample` promises of its draws: they depend on (seed, chain, t) only, nothing recompiles, and ArviZ reads them."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import saltus
from saltus.engine import drive, loop, recording

EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3)]


def integer_target():
    """f is a sum of small integers: exact in float32, whatever the size of the batch."""
    ends = jnp.array(EDGES)
    return saltus.Target(lambda s: jnp.sum(s[ends[:, 0]] * s[ends[:, 1]]), saltus.Spin(6))


TARGET = integer_target()
KERNEL = saltus.NCG(2.0)


def draw(target=TARGET, kernel=KERNEL, **settings):
    return saltus.sample(target, kernel, **{"num_draws": 50, "num_warmup": 20, "seed": 3, "progress": False, **settings})


def same(a, b):
    return all(np.array_equal(a.posterior[n], b.posterior[n]) for n in a.posterior.data_vars) and all(
        np.array_equal(a.sample_stats[n], b.sample_stats[n]) for n in a.sample_stats.data_vars
    )


@pytest.fixture(scope="module")
def reference():
    return draw()


def test_the_tree_is_what_the_design_says(reference):
    s = reference.posterior["s"]
    assert s.dims == ("chain", "draw", "site")
    assert s.shape == (4, 50, 6)
    assert s.dtype == np.int8
    assert set(np.unique(s)) == {-1, 1}
    assert {"lp", "acceptance_rate", "accepted", "jump"} <= set(reference.sample_stats.data_vars)
    assert reference.attrs["complete"] == 1
    f = jax.vmap(TARGET.log_prob)(jnp.asarray(s.values.reshape(-1, 6), jnp.float32))
    assert np.array_equal(reference.sample_stats.lp.values.ravel(), f)


def test_jump_and_acceptance_describe_the_draws(reference):
    s, stats = reference.posterior.s.values.astype(float), reference.sample_stats
    assert np.array_equal(np.abs(np.diff(s, axis=1)).sum(-1), stats.jump.values[:, 1:])
    assert np.all(stats.accepted.values[stats.jump.values > 0])
    moved = np.abs(np.diff(s, axis=1)).sum(-1) / 2
    assert np.array_equal(moved[stats.accepted.values[:, 1:]], stats.changed_sites.values[:, 1:][stats.accepted.values[:, 1:]])


def test_the_same_seed_gives_the_same_draws_and_another_others(reference):
    assert same(draw(), reference)
    assert not same(draw(seed=4), reference)
    assert not same(draw(seed=3 + 2**32), reference)


def test_chunks_do_not_matter(reference, monkeypatch):
    for seconds in (1e-9, 10.0):  # a step at a time; as long as it takes
        monkeypatch.setattr(drive, "_CHUNK_SECONDS", seconds)
        assert same(draw(), reference)


def test_blocks_do_not_matter(reference, monkeypatch):
    monkeypatch.setattr(recording, "_MOST_ROWS", 8)
    assert same(draw(), reference)


def test_how_many_chains_go_at_once_does_not_matter(monkeypatch):
    keys = jax.random.split(jax.random.key(0), 6)
    points = jax.vmap(lambda key: KERNEL.init(TARGET, TARGET.space.random(key).astype(jnp.int8)))(keys)

    def stepped(at_once):
        monkeypatch.setattr(loop, "_AT_ONCE", at_once * TARGET.space.size)
        step = lambda key, x: KERNEL.step(key, TARGET, x)  # noqa: E731
        return jax.tree.leaves(jax.jit(lambda: loop.each_chain(KERNEL, TARGET, step, keys, points))())

    for at_once in (1, 2, 5):  # six at a time, of which a divisor
        assert all(np.array_equal(a, b) for a, b in zip(stepped(at_once), stepped(6), strict=True))


def test_more_chains_leave_the_first_ones_as_they_were(reference):
    more = draw(num_chains=7)
    assert np.array_equal(more.posterior.s[:4], reference.posterior.s)


def test_more_draws_leave_the_first_ones_as_they_were(reference):
    assert np.array_equal(draw(num_draws=80).posterior.s[:, :50], reference.posterior.s)


def test_thinning_keeps_every_nth_draw(reference):
    thinned = draw(num_draws=10, thin=5)
    assert np.array_equal(thinned.posterior.s, reference.posterior.s[:, 4::5])
    means = reference.sample_stats.jump.values.reshape(4, 10, 5).mean(-1)
    np.testing.assert_allclose(thinned.sample_stats.jump, means, rtol=1e-6)


def test_warm_up_is_kept_on_request_and_runs_into_the_draws(reference):
    kept = draw(keep_warmup=True)
    assert same(kept, reference)
    assert kept["warmup_posterior"].s.shape == (4, 20, 6)
    last, first = kept["warmup_posterior"].s.values[:, -1], kept.posterior.s.values[:, 0]
    assert np.array_equal(np.abs(first - last).sum(-1), kept.sample_stats.jump.values[:, 0])


def test_no_warm_up_starts_at_the_initial_states():
    start = np.ones((4, 6), int)
    run = draw(num_warmup=0, initial=start, num_draws=1)
    assert np.array_equal(np.abs(run.posterior.s.values[:, 0] - start).sum(-1), run.sample_stats.jump.values[:, 0])


def test_initial_states_in_every_form():
    space = saltus.Categorical(3, 4)
    target = saltus.Target(lambda s: jnp.sum(s[:, 0]), space)
    shown = np.array([0, 3, 1])
    runs = [
        saltus.sample(target, saltus.NCG(1.0), initial=x, num_draws=3, num_warmup=0, progress=False)
        for x in (shown, np.asarray(space.embed(shown)), np.tile(shown, (4, 1)), np.asarray(space.embed(np.tile(shown, (4, 1)))))
    ]
    assert all(same(run, runs[0]) for run in runs)


def test_impossible_starts_are_drawn_again():
    target = saltus.Target(lambda s: jnp.where(s[0] + s[1] == 2, jnp.sum(s), -jnp.inf), saltus.Binary(6))
    run = saltus.sample(target, saltus.UniformMH(1), num_draws=20, num_warmup=0, num_chains=16, progress=False)
    assert np.all(run.posterior.s[:, :, :2] == 1)


def test_changing_numbers_never_recompiles():
    traces = []

    def log_prob(params, s):
        traces.append(1)
        return jnp.sum(params * s)

    target = saltus.Target(log_prob, saltus.Binary(5), jnp.ones(5))

    def run(step_size=1.0, params=None, **settings):
        draw(target if params is None else target.replace(params=params), saltus.NCG(step_size), **settings)
        count = len(traces)
        traces.clear()
        return count

    run(), run()
    usual = run()  # the abstract step that checks the kernel traces; the compiled ones must not
    assert usual == run(seed=9) == run(num_draws=77) == run(num_warmup=3) == run(step_size=0.3)
    assert usual == run(initial=np.zeros(5, int)) == run(thin=3)
    with_params = run(params=jnp.zeros(5))
    assert with_params == run(params=2 * jnp.ones(5))


@pytest.mark.parametrize("k", [2, 200, 300, 70_000])
def test_codes_are_stored_in_the_smallest_integer_type(k):
    dtype = recording.label_dtype(k)
    assert k - 1 <= np.iinfo(dtype).max
    assert dtype.itemsize == {2: 1, 200: 1, 300: 2, 70_000: 4}[k]


def test_shown_dtypes():
    for space, dtype in (
        (saltus.Binary(3), np.int8),
        (saltus.Ordinal(3, [0.5, 1, 7]), np.float32),
        (saltus.Categorical(3, 4), np.int8),
        (saltus.Clock(3, 200), np.int16),
    ):
        target = saltus.Target(lambda s: jnp.sum(s), space)
        run = saltus.sample(target, saltus.UniformMH(1), num_draws=5, num_warmup=0, progress=False)
        assert run.posterior.s.dtype == dtype
        assert set(np.unique(run.posterior.s)) <= set(space.labels)


def test_names_label_the_sites():
    target = saltus.Target(lambda s: jnp.sum(s), saltus.Binary(3), names=["a", "b", "c"])
    run = saltus.sample(target, saltus.NCG(1.0), num_draws=5, num_warmup=0, progress=False)
    assert run.posterior.s.sel(site="b").shape == (4, 5)


def test_float64_runs_in_float64():
    with jax.enable_x64(True):
        run = draw(integer_target(), saltus.NCG(2.0))
    assert run.sample_stats.lp.dtype == np.float64


@pytest.mark.parametrize(
    "kernel",
    [
        saltus.NCG(0.5),
        saltus.PAVG(0.7, np.eye(6), scale=-0.5),
        saltus.PAVG(0.7, saltus.LowRank(np.ones(6), np.ones((6, 2)), [1.0, -0.5])),
        saltus.PAVG(0.7, saltus.Sparse([(0, 1), (2, 3)], [1.0, 2.0], np.zeros(6))),
        saltus.Gibbs("systematic"),
        saltus.UniformMH(2),
    ],
    ids=repr,
)
def test_the_kernel_comes_back_from_the_run(kernel, tmp_path):
    run = draw(kernel=kernel, num_draws=5)
    run.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    again = saltus.kernel_of(saltus.open(tmp_path / "run.nc"))
    assert jax.tree.structure(again) == jax.tree.structure(kernel)
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(*map(jax.tree.leaves, (again, kernel)), strict=True))
    assert same(draw(kernel=again, num_draws=5), run)


def test_arviz_reads_it(reference, tmp_path):
    import arviz_stats

    table = arviz_stats.summary(reference)
    assert len(table) == 6
    reference.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    reference.to_zarr(tmp_path / "copy.zarr")
    for path in ("run.nc", "copy.zarr"):
        assert same(saltus.open(tmp_path / path), reference)
    assert isinstance(reference, xr.DataTree)


def test_arviz_plots_it(reference, tmp_path):
    import matplotlib

    matplotlib.use("agg")
    import arviz_plots

    plot = arviz_plots.plot_trace(reference, var_names=["s"])
    plot.savefig(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").stat().st_size > 10_000


def test_observables_are_kept_instead_of_draws(reference):
    run = draw(keep={"magnetisation": lambda s: jnp.mean(s), "ends": lambda s: s[jnp.array([0, 5])]}, thin=5, num_draws=10)
    s = reference.posterior.s.values[:, 4::5].astype(np.float32)
    assert set(run.posterior.data_vars) == {"magnetisation", "ends"}
    np.testing.assert_allclose(run.posterior.magnetisation, s.mean(-1), rtol=1e-6)
    assert np.array_equal(run.posterior.ends, s[..., [0, 5]])


def test_observables_may_have_any_name_of_python(tmp_path):
    names = ("mean", "best", "header", "file", "draws", "x")
    keep = {name: lambda s: s[0] for name in names}
    run = draw(keep=keep, checkpoint=tmp_path / "c", num_draws=30)
    assert set(run.posterior.data_vars) == set(names)
    again = saltus.resume(tmp_path / "c", TARGET, num_draws=40, keep=keep, progress=False)
    assert same(again, draw(keep=keep, num_draws=40))


def test_covariances_keep_their_digits_far_from_the_middle():
    space = saltus.Ordinal(2, np.arange(10_001))
    target = saltus.Target(lambda s: -0.25 * jnp.sum((s - 10) ** 2), space)
    settings = dict(num_draws=4000, num_warmup=200, num_chains=2, initial=[10, 10], thin=3, progress=False)
    draws = saltus.sample(target, saltus.UniformMH(2), **settings).posterior.s.values.astype(float)
    lean = saltus.sample(target, saltus.UniformMH(2), keep="covariance", **settings)
    np.testing.assert_allclose(lean["statistics"]["covariance"], [np.cov(c.T, bias=True) for c in draws], rtol=1e-4, atol=1e-4)


def test_the_ess_so_far_is_that_of_all_draws():
    from saltus.diagnostics import ess
    from saltus.engine.progress import EnergyTrace

    rng = np.random.default_rng(0)
    for rho in (0.0, 0.9, 0.999):
        x = rng.normal(size=(200_000, 4))
        for t in range(1, len(x)):
            x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * x[t]
        trace = EnergyTrace()
        for rows in np.array_split(x, 37):
            trace.extend(rows)
        exact = np.sum(ess(x.T))
        assert 0.5 < trace.ess(4, now=True) / exact < 2
    constant = EnergyTrace()
    constant.extend(np.ones((50, 2)))
    assert constant.ess(2, now=True) == 0


def test_a_terminal_shows_every_phase():
    import io

    from rich.console import Console

    from saltus.engine.progress import Live, Status

    screen = io.StringIO()
    with Live(Console(file=screen, force_terminal=True, width=80)) as live:
        live.say("compiling")
        live.show(Status("warm-up", 10, 10, [("ESS", "30")], 0.0))
        live.show(Status("sampling", 5, 10, [("ESS", "constant")], 65.0))
        live.tell("incomplete (time limit)")
    told = screen.getvalue()
    for text in ("warm-up", "sampling", "1:05 left", "ESS", "constant", "incomplete (time limit)"):
        assert text in told


@pytest.mark.parametrize(
    "space", [saltus.Binary(4), saltus.Spin(4), saltus.Ordinal(3, [-1.0, 0.5, 7.0]), saltus.Categorical(2, 3)], ids=str
)
def test_statistics_are_those_of_the_draws(space, monkeypatch):
    monkeypatch.setattr(recording, "_MOST_ROWS", 16)
    target = saltus.Target(lambda s: jnp.sum(s) * 0.3, space)
    settings = dict(num_draws=50, num_warmup=5, num_chains=3, progress=False)
    draws = saltus.sample(target, saltus.UniformMH(1), **settings)
    run = saltus.sample(target, saltus.UniformMH(1), keep=("mean", "covariance", "pairs", "best"), **settings)
    assert "posterior" not in run.children
    codes = space.encode(draws.posterior.s.values)
    s = np.asarray(space.embed(codes), np.float64).reshape(3, 50, -1)
    np.testing.assert_allclose(run["statistics"]["mean"], s.mean(1), atol=1e-12)
    cov = np.stack([np.cov(c.T, bias=True) for c in s])
    np.testing.assert_allclose(run["statistics"]["covariance"], cov, atol=1e-5)
    onehot = (codes[..., None] == np.arange(space.num_values)).reshape(3, 50, -1).astype(float)
    pairs = np.einsum("cti,ctj->cij", onehot, onehot) / 50
    np.testing.assert_allclose(run["statistics"]["pairs"].values.reshape(pairs.shape), pairs, atol=1e-12)
    lp = draws.sample_stats.lp.values
    assert np.array_equal(run["statistics"]["best_lp"], lp.max(1))
    best = draws.posterior.s.values[np.arange(3), lp.argmax(1)]
    assert np.array_equal(run["statistics"]["best"], best)


def test_it_runs_in_a_thread(reference):
    found = []
    thread = threading.Thread(target=lambda: found.append(draw()))
    thread.start()
    thread.join()
    assert same(found[0], reference)


def test_kernels_that_hold_functions_run_and_are_named():
    from saltus.extending import record, static

    @record
    class Mine(saltus.NCG):
        note: object = static(default=len)

    run = draw(kernel=Mine(2.0), num_draws=3)
    with pytest.raises(saltus.StorageError, match="no kernel"):
        saltus.kernel_of(run)
