"""A kernel owns its chain state: a momentum, replicas or weights go through sample, checkpoint and resume, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus import extending
from saltus.diagnostics.weights import weighted_ess, weighted_rhat
from saltus.engine import files
from saltus.kernels.metropolis import describe, metropolis
from saltus.random import split
from saltus.run.weights import resampling
from saltus.target import Point

FIELD = jnp.array([0.4, -0.2, 0.9, 0.0])
SPACE = saltus.Binary(4)
STATES = np.array(list(np.ndindex(2, 2, 2, 2)))


def log_prob(s):
    return jnp.sum(FIELD * s) + 0.5 * jnp.sum(s[1:] * s[:-1])


TARGET = saltus.Target(log_prob, SPACE)
LOGP = np.array([float(log_prob(jnp.asarray(s, float))) for s in STATES])
EXACT = (np.exp(LOGP) / np.exp(LOGP).sum()) @ STATES


@extending.record
class Moving:
    """A point and a direction."""

    codes: jax.Array
    log_prob: jax.Array
    direction: jax.Array  # a float a site, begun from a key


@extending.record
class Momentum(extending.Kernel):
    """Flips the site where a slowly changing Gaussian field is largest; the field is independent of the state."""

    uses_local_model = False

    def init(self, target, codes, key=None):
        codes = self.check(target, codes)
        return Moving(codes, target.value(codes), jax.random.normal(key, (target.space.num_sites,)))

    def refresh(self, target, state):
        return Moving(state.codes, target.value(state.codes), state.direction)

    def step(self, key, target, x):
        field_key, accept_key = split(key)
        field = 0.8 * x.direction + 0.6 * jax.random.normal(field_key, x.direction.shape)
        codes = x.codes.at[jnp.argmax(field)].set(1 - x.codes[jnp.argmax(field)])
        y = Moving(codes, target.value(codes), field)
        return metropolis(accept_key, target.space, Moving(x.codes, x.log_prob, field), y, y.log_prob - x.log_prob)


@extending.record
class Ladder:
    codes: jax.Array  # (replicas, d)
    log_prob: jax.Array  # (replicas,)


@extending.record
class Replicas(extending.Kernel):
    """Three replicas at β = 1/3, 2/3, 1, one of them moved and two neighbours perhaps exchanged in a step; the last is kept."""

    uses_local_model = False
    num: int = extending.static(default=3)

    def init(self, target, codes, key=None):
        codes = jnp.broadcast_to(self.check(target, codes), (self.num, target.space.num_sites))
        others = jax.vmap(target.space.random)(jax.random.split(key, self.num - 1)).astype(codes.dtype)
        codes = jnp.concatenate([others, codes[-1:]])
        return Ladder(codes, jax.vmap(target.value)(codes))

    def refresh(self, target, state):
        return Ladder(state.codes, jax.vmap(target.value)(state.codes))

    def draw(self, state):
        return state.codes[-1]

    def step(self, key, target, x):
        site_key, swap_key, accept_key, pair_key = split(key, 4)
        beta = (1 + jnp.arange(self.num)) / self.num
        site = jax.random.randint(site_key, (self.num,), 0, target.space.num_sites)
        each = jnp.arange(self.num)
        new = x.codes.at[each, site].set(1 - x.codes[each, site])
        f = jax.vmap(target.value)(new)
        take = jnp.log(jax.random.uniform(accept_key, (self.num,))) < beta * (f - x.log_prob)
        codes, f = jnp.where(take[:, None], new, x.codes), jnp.where(take, f, x.log_prob)
        i = jax.random.randint(pair_key, (), 0, self.num - 1)
        swap = jnp.log(jax.random.uniform(swap_key)) < (beta[i + 1] - beta[i]) * (f[i] - f[i + 1])
        order = jnp.where(swap, each.at[i].set(i + 1).at[i + 1].set(i), each)
        y = Ladder(codes[order], f[order])
        at = lambda z: Point(self.draw(z), z.log_prob[-1])  # noqa: E731
        one = jnp.ones((), f.dtype)
        return y, describe(target.space, at(x), at(y), jnp.ones((), bool), one, jnp.zeros((), jnp.int32))


@extending.record
class Tilted(extending.Kernel):
    """Steps exp(f / 2) and weights its draws with exp(f / 2)."""

    uses_local_model = False

    def step(self, key, target, x):
        site_key, accept_key = split(key)
        site = jax.random.randint(site_key, (), 0, target.space.num_sites)
        y = self.init(target, x.codes.at[site].set(1 - x.codes[site]))
        return metropolis(accept_key, target.space, x, y, 0.5 * (y.log_prob - x.log_prob))

    def log_weight(self, state):
        return 0.5 * state.log_prob


@extending.record
class Wide(extending.Kernel):
    """Computes its proposals as int32."""

    uses_local_model = False

    def step(self, key, target, x):
        site_key, accept_key = split(key)
        site = jax.random.randint(site_key, (), 0, target.space.num_sites)
        y = self.init(target, x.codes.astype(jnp.int32).at[site].add(1) % 2)
        return metropolis(accept_key, target.space, x, y, y.log_prob - x.log_prob)


@extending.record
class ByHand(extending.Kernel):
    """Makes its Points itself, as kernels of 0.1 may: they have no stamp."""

    uses_local_model = False

    def step(self, key, target, x):
        y, info = Wide().step(key, target, x)
        return Point(y.codes, y.log_prob), info


KERNELS = {"momentum": Momentum(), "replicas": Replicas(), "weights": Tilted(), "int32": Wide(), "by hand": ByHand()}


def draw(kernel, **settings):
    given = dict(num_draws=60, num_warmup=20, num_chains=3, seed=1, thin=2, progress=False)
    return saltus.sample(TARGET, kernel, **{**given, **settings})


def same(a, b):
    groups = [g for g in a.children if g not in ("kernel", "start")]
    assert set(groups) == {g for g in b.children if g not in ("kernel", "start")}
    return all(np.array_equal(a[g][v], b[g][v]) for g in groups for v in a[g].data_vars)


@pytest.mark.parametrize("name", KERNELS)
def test_any_state_goes_on_from_a_checkpoint_bit_for_bit(name, tmp_path, monkeypatch):
    monkeypatch.setattr("saltus.engine.recording._MOST_ROWS", 8)
    whole = draw(KERNELS[name])
    assert whole.posterior.s.dtype == SPACE.labels.dtype
    draw(KERNELS[name], num_draws=37, checkpoint=tmp_path / "c")
    other = saltus.Target(log_prob, SPACE)  # with a stamp of its own
    assert same(saltus.resume(tmp_path / "c", other, num_draws=60, progress=False), whole)
    draw(KERNELS[name], num_draws=37, checkpoint=tmp_path / "d", store=tmp_path / "s.zarr")
    again = saltus.resume(tmp_path / "d", other, num_draws=60, progress=False)
    assert same(again, whole)
    assert same(saltus.open(tmp_path / "s.zarr"), whole)


@pytest.mark.parametrize("name", KERNELS)
def test_means_are_right(name):
    run = draw(KERNELS[name], num_draws=20_000, num_chains=4)
    s = run.posterior.s.values
    np.testing.assert_allclose(s.mean((0, 1)), EXACT, atol=0.02)  # 80 000 draws, each a tenth of an independent one
    np.testing.assert_allclose(run.sample_stats.lp[:, :50], np.vectorize(lambda i: LOGP[i])(s[:, :50] @ [8, 4, 2, 1]), rtol=1e-5)
    assert run.attrs["weighted"] == int(name == "weights")
    assert run.attrs["rejects"] == 1


def test_a_checkpoint_has_every_leaf_and_no_stamp(tmp_path):
    draw(Momentum(), checkpoint=tmp_path / "c")
    _, arrays = files.read_npz(tmp_path / "c" / "state.npz", "state")
    shapes = [arrays[f"carry.{i}"].shape for i in range(3)]
    assert shapes == [(3, 4), (3,), (3, 4)]
    draw(saltus.NCG(0.5), checkpoint=tmp_path / "d")
    _, arrays = files.read_npz(tmp_path / "d" / "state.npz", "state")
    assert [arrays[f"carry.{i}"].shape for i in range(4)] == [(3, 4), (3,), (3, 4), (3,)]  # codes, f, D; then the rate


def test_chains_begin_with_keys_of_their_own(tmp_path):
    draw(Momentum(), num_warmup=0, num_draws=1, thin=1, checkpoint=tmp_path / "c", initial=np.zeros(4, int))
    _, arrays = files.read_npz(tmp_path / "c" / "state.npz", "state")
    assert len(np.unique(arrays["carry.2"], axis=0)) == 3


def test_a_weighted_run_keeps_the_raw_chain_beside_the_resampled_one(tmp_path):
    run = draw(Tilted(), num_draws=4000, num_chains=4)
    raw = run["weighted_posterior"]
    s, w = raw.s.values, np.exp(raw.log_weight.values)
    lp = np.vectorize(lambda i: LOGP[i])(s @ [8, 4, 2, 1])
    np.testing.assert_allclose(raw.log_weight, lp / 2, rtol=1e-5)
    index = resampling(raw.log_weight.values, seed=1)
    for c in range(4):
        times = np.bincount(index[c], minlength=4000)
        assert np.abs(times - 4000 * w[c] / w[c].sum()).max() < 1  # systematic: rounded up or down
        assert np.array_equal(run.posterior.s[c], s[c, index[c]])
    assert not np.array_equal(index, resampling(raw.log_weight.values, seed=2))
    assert abs(s.mean((0, 1)) - EXACT).max() > 0.05  # the raw chain is not the target's
    x = np.moveaxis(s, 1, -1)
    np.testing.assert_allclose(raw.ess, weighted_ess(x, raw.log_weight))
    np.testing.assert_allclose(raw.rhat, weighted_rhat(x, raw.log_weight))
    assert raw.ess.shape == (4,)
    assert raw.ess.min() > 500
    assert raw.rhat.max() < 1.05


def test_a_stored_weighted_run_is_read_lazily_by_any_key(tmp_path):
    whole, stored = draw(Tilted()), draw(Tilted(), store=tmp_path / "s.zarr")
    s = whole.posterior.s
    for key in ({"chain": 1}, {"draw": 5}, {"chain": [2, 0], "draw": slice(3, 40, 7)}, {"site": 2, "draw": [4, 1]}):
        assert np.array_equal(stored.posterior.s.isel(key), s.isel(key))


def test_running_statistics_refuse_weights():
    with pytest.raises(saltus.RunError, match="carry weights"):
        draw(Tilted(), keep="mean")


def test_the_worth_of_weighted_draws():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 2, 5000))
    equal = np.full((4, 5000), 3.7)
    np.testing.assert_allclose(weighted_ess(x, equal), saltus.diagnostics.ess(x).sum(0))
    np.testing.assert_allclose(weighted_rhat(x, equal), saltus.diagnostics.split_rhat(x))
    w = rng.exponential(size=(4, 5000))
    kish = w.sum() ** 2 / (w**2).sum()  # weights that have nothing to do with x
    np.testing.assert_allclose(weighted_ess(x, np.log(w)), kish, rtol=0.1)


@extending.record
class NoDraw(Wide):
    def draw(self, state):
        return state.codes[None]


@extending.record
class Growing(Wide):
    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return Point(y.codes, y.log_prob[None]), info


@pytest.mark.parametrize(("kernel", "text"), [(NoDraw(), "does not return codes"), (Growing(), "changes the form of its state")])
def test_states_that_cannot_be_carried_are_refused(kernel, text):
    with pytest.raises(saltus.KernelError, match=text):
        draw(kernel)


def test_a_checkpoint_of_0_1_names_the_version_that_can_finish_it(tmp_path):
    draw(saltus.NCG(0.5), checkpoint=tmp_path / "c")
    header, arrays = files.read_npz(tmp_path / "c" / "run.npz", "run")
    files.write_npz(tmp_path / "c" / "run.npz", {**header, "format": 3}, arrays)
    with pytest.raises(saltus.StorageError, match=r"saltus 0\.1 can finish"):
        saltus.resume(tmp_path / "c", TARGET, progress=False)


def test_training_and_annealing_carry_any_state():
    optax = pytest.importorskip("optax")
    model = saltus.Target(lambda p, s: jnp.sum(p["b"] * s), SPACE, {"b": jnp.zeros(4)})
    data = np.tile([[1, 1, 0, 1], [1, 0, 0, 1]], (20, 1))
    for kernel in (Momentum(), Replicas()):
        trained = saltus.training.pcd(
            model,
            data,
            kernel,
            optimiser=optax.adam(0.05),
            num_updates=60,
            num_steps=4,
            batch_size=20,
            buffer_size=40,
            progress=False,
        )
        assert trained.params["b"][0] > 0.5
        assert trained.params["b"][2] < -0.5
    found = saltus.training.ais(TARGET, Momentum(), num_temperatures=50, num_chains=400)
    assert abs(found.log_z - np.log(np.exp(LOGP).sum())) < 4 * found.standard_error + 0.02
