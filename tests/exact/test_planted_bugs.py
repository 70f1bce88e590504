"""Planted bugs: each must fail, and by the instrument that should catch it. They prove that the suite can fail."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grid import mostly

import saltus
from saltus._record import changed, record
from saltus.kernels.metropolis import describe, metropolis
from saltus.moves import Tables
from saltus.proposals import Factorised
from saltus.testing import check_kernel, quadratic

BINARY = saltus.Binary(4)
GRID = saltus.Ordinal(2, range(5))


def failures(kernel, target) -> set[str]:
    """The instruments that fail."""
    with pytest.raises(saltus.CheckError) as caught:
        check_kernel(kernel, target)
    return set(re.search(r"FAILED \((.*?)\)", str(caught.value)).group(1).split(", "))


@record
class MissingReverse(saltus.NCG):
    """Leaves out q(s | s') and q(s' | s)."""

    def log_ratio(self, target, x, y, noise=None):
        return y.log_prob - x.log_prob


def test_leaving_out_the_proposal_ratio_fails_invariance():
    failed = failures(MissingReverse(0.8), BINARY)
    assert "invariance" in failed
    assert "definition" not in failed


@record
class FullGradient(saltus.NCG):
    """∇f where the paper says ½∇f, consistently: invariant, but not NCG."""

    def propose(self, target, x, noise=None):
        return self._doubled().propose(target, x)

    def log_ratio(self, target, x, y, noise=None):
        return self._doubled().log_ratio(target, x, y)

    def _doubled(self):
        return saltus.NCG(self.step_size, 2 * self.gradient_weight, self.penalty)


def test_the_wrong_weight_is_seen_by_definition_alone():
    assert failures(FullGradient(0.5), BINARY) == {"definition"}


@record
class PerSite(saltus.NCG):
    """Accepts each site on its own."""

    def step(self, key, target, x):
        move_key, accept_key = jax.random.split(key)
        y = self.init(target, self.propose(target, x).sample(move_key))
        ratio = jnp.exp(jnp.minimum(self.log_ratio(target, x, y), 0))
        take = jax.random.uniform(accept_key, x.codes.shape, ratio.dtype) < ratio
        kept = self.init(target, jnp.where(take, y.codes, x.codes))
        return kept, metropolis(accept_key, target.space, x, kept, self.log_ratio(target, x, kept))[1]


@pytest.mark.full
def test_accepting_per_site_is_seen_by_the_stationary_start():
    failed = failures(PerSite(2.0), BINARY)
    assert "stationary start" in failed
    assert "invariance" not in failed  # blind to `step`


@record
class StaleGradient(saltus.NCG):
    """Keeps the local model of the previous state."""

    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return changed(y, local=x.local), info


def test_a_stale_gradient_is_seen_by_coherence_and_after_three_steps():
    with pytest.raises(saltus.CheckError) as caught:
        check_kernel(StaleGradient(0.8), BINARY)
    lines = str(caught.value).splitlines()
    assert any("coherence" in line and "FAILED" in line for line in lines)
    assert any("1 step on" in line and "passed" in line for line in lines)
    assert any("3 steps on" in line and "FAILED" in line for line in lines)


@record
class CentredElsewhere(saltus.PAVG):
    """The reverse move centred at s' instead of s."""

    def log_ratio(self, target, x, y, noise):
        space = target.space
        delta = space.ravel(space.embed(y.codes) - space.embed(x.codes))
        bend = self.scale * self.preconditioner.matvec(delta)
        reverse = Factorised(target.moves(y) + self.pull(target, y, noise - bend))
        error = y.log_prob - x.log_prob - target.moves(x).at(y.codes) - 0.5 * jnp.sum(delta * bend)
        return error + self.propose(target, x, noise).log_normaliser_minus(reverse)


def test_a_reverse_move_centred_elsewhere_fails_at_fixed_z():
    sigma = np.array([[0.5, 0.3, 0, 0], [0.3, -0.4, 0.2, 0], [0, 0.2, 0.1, 0], [0, 0, 0, 0.3]])
    assert "invariance" in failures(CentredElsewhere(0.7, sigma), BINARY)


@record
class NarrowNoise(saltus.AVG):
    """Noise of half the variance that the ratio assumes."""

    def noise(self, key, target):
        return super().noise(key, target) * 0.5**0.5


@pytest.mark.full
def test_noise_of_another_variance_is_seen_by_the_noise_instrument():
    failed = failures(NarrowNoise(0.7), BINARY)
    assert "noise" in failed
    assert not {"definition", "invariance"} & failed


@record
class ReusedKey(saltus.NCG):
    """The key of the move decides the acceptance too."""

    def step(self, key, target, x):
        y = self.init(target, self.propose(target, x).sample(key))
        return metropolis(key, target.space, x, y, self.log_ratio(target, x, y))


def test_a_reused_key_is_seen_by_the_stationary_start():
    failed = failures(ReusedKey(0.8), BINARY)
    assert {"stationary start", "transition"} & failed
    assert "invariance" not in failed


@record
class NoBoundary(saltus.UniformMH):
    """Drops the boundary correction."""

    def log_ratio(self, target, x, y, noise=None):
        return y.log_prob - x.log_prob


def test_a_missing_boundary_correction_fails_invariance():
    assert "invariance" in failures(NoBoundary(1), GRID)


@record
class WrongScore(saltus.NCG):
    """Penalises the distance twice as much as its step size says, on ordinal grids only."""

    def propose(self, target, x, noise=None):
        moves = super().propose(target, x).moves
        extra = target.space.quadratic(x.codes, 1 / (2 * self.step_size))
        return Factorised(moves - extra if isinstance(moves, Tables) else moves)


def test_a_wrong_penalty_is_seen_by_definition():
    assert "definition" in failures(WrongScore(0.8), GRID)


@record
class GradientGibbs(saltus.Gibbs):
    """Draws from the gradient's idea of the conditional."""

    def propose(self, target, x, noise):
        block = super().propose(target, x, noise)
        rows = changed(block.moves, scores=target.moves(target.point(x.codes)).scores[noise])
        return changed(block, moves=rows)


def test_gibbs_from_an_approximate_table_fails_invariance():
    assert {"invariance", "definition"} <= failures(GradientGibbs(), BINARY)


@record
class Unshifted(saltus.BlockGibbs):
    """Forgets the penalty that belongs to the shift."""

    def propose(self, target, x, noise):
        return Factorised(super().propose(target, x, noise).moves + target.space.quadratic(x.codes, self._shift(target) / 2))


def test_block_gibbs_without_its_penalty_fails():
    assert {"invariance", "definition"} <= failures(Unshifted(), quadratic(GRID))


@record
class ChainMixing(saltus.NCG):
    """Accepts with a ratio that is not its own state's: here, of a shifted target value."""

    def log_ratio(self, target, x, y, noise=None):
        return super().log_ratio(target, x, y) + 0.01 * jnp.sum(y.codes).astype(x.log_prob.dtype)


def test_a_one_percent_error_in_the_ratio_fails_invariance():
    assert "invariance" in failures(ChainMixing(0.5), BINARY)


# ---- what the certifier of 0.1 missed --------------------------------------------------------------------------------


@record
class Draft:
    """A kernel known by its `step` alone: no base class, Points from the target. Flips or redraws a random site."""

    def step(self, key, target, x):
        site_key, value_key, accept_key = jax.random.split(key, 3)
        site = jax.random.randint(site_key, (), 0, target.space.num_sites)
        value = jax.random.randint(value_key, (), 0, target.space.num_values).astype(x.codes.dtype)
        y = target.point(x.codes.at[site].set(value))
        return metropolis(accept_key, target.space, x, y, self.log_ratio_of(target, x, y))

    def log_ratio_of(self, target, x, y):
        return y.log_prob - x.log_prob


@record
class Squares(Draft):
    """Draws every site from q(v) ∝ exp(-v² / 500) and corrects for it with squares of small codes, which wrap."""

    def step(self, key, target, x):
        move_key, accept_key = jax.random.split(key)
        rates = -(jnp.arange(target.space.num_values, dtype=jnp.float32) ** 2) / 500
        codes = jax.random.categorical(move_key, rates, shape=x.codes.shape).astype(x.codes.dtype)
        y = target.point(codes)
        back = (jnp.sum(y.codes * y.codes - x.codes * x.codes, dtype=jnp.int32) / 500).astype(x.log_prob.dtype)
        return metropolis(accept_key, target.space, x, y, y.log_prob - x.log_prob + back)


@pytest.mark.full
def test_codes_that_wrap_around_are_seen_on_many_values():
    with pytest.raises(saltus.CheckError, match=r"stationary start\s+FAILED\s+on Ordinal\(1, 64 values.*\n.*wrap around"):
        check_kernel(Squares(), GRID)


@record
class HardCoded(Draft):
    """Means of two codes in int8, whatever went in: right up to 64 values."""

    def step(self, key, target, x):
        small = x.codes.astype(jnp.int8)
        whole = ((small + small) // 2).astype(x.codes.dtype)  # the same codes, where nothing wraps
        y, info = super().step(key, target, target.point(jnp.abs(whole)))
        return y, info


@pytest.mark.full
def test_a_kernel_that_makes_its_codes_int8_is_seen_on_a_hundred_values():
    with pytest.raises(saltus.CheckError, match=r"stationary start\s+FAILED\s+on Ordinal\(1, 100 values"):
        check_kernel(HardCoded(), GRID)


@record
class Widens(Draft):
    """Steps in int32, whatever went in."""

    def step(self, key, target, x):
        return super().step(key, target, target.point(x.codes.astype(jnp.int32)))


def test_codes_of_another_type_are_refused():
    with pytest.raises(saltus.CheckError, match=r"codes of int32.*int8.*went in(.|\n)*codes\.astype\(x\.codes\.dtype\)"):
        check_kernel(Widens(), BINARY)


@record
class NotANumber(saltus.NCG):
    """One cached gradient in a thousand is NaN."""

    def step(self, key, target, x):
        y, info = super().step(key, target, self.init(target, x.codes))
        lost = jax.random.uniform(jax.random.fold_in(key, 5), ()) < 1e-3
        return changed(y, local=jax.tree.map(lambda g: jnp.where(lost, jnp.nan, g), y.local)), info


def test_a_cache_of_nan_is_called_nan():
    with pytest.raises(saltus.CheckError, match=r"coherence\s+FAILED\s+NaN in local"):
        check_kernel(NotANumber(0.8), BINARY)


@record
class Drifting(saltus.NCG):
    """The cached log_prob grows by a millionth a step."""

    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return changed(y, log_prob=y.log_prob * (1 + 1e-6)), info


def test_a_drift_of_a_millionth_a_step_is_seen_by_coherence():
    assert "coherence" in failures(Drifting(0.8), BINARY)


@record
class Lossy(Draft):
    """NCG that loses part of its reverse term."""

    part: float = 0.05

    def step(self, key, target, x):
        move_key, accept_key = jax.random.split(key)
        ncg = saltus.NCG(0.8)
        y = target.point(ncg.propose(target, x).sample(move_key))
        change = y.log_prob - x.log_prob
        ratio = change + (1 - self.part) * (ncg.log_ratio(target, x, y) - change)
        return metropolis(accept_key, target.space, x, y, ratio)


@pytest.mark.parametrize("part", [0.1, pytest.param(0.05, marks=pytest.mark.full)])
def test_part_of_the_reverse_term_is_missed_by_the_stationary_start(part):
    assert failures(Lossy(part), BINARY) == {"stationary start"}


@record
class ByTheState(Draft):
    """Two exact kernels, and the state says which."""

    def step(self, key, target, x):
        even = jnp.sum(x.codes, dtype=jnp.int32) % 2 == 0
        return changed(saltus.NCG(1.0), step_size=jnp.where(even, 1.0, 1.6).astype(x.log_prob.dtype)).step(key, target, x)


@pytest.mark.full
def test_exact_kernels_chosen_by_the_state_are_seen():
    assert failures(ByTheState(), BINARY) == {"stationary start"}


@record
class Restart(Draft):
    """Starts again at zeros, once in a thousand steps."""

    def step(self, key, target, x):
        y, _ = saltus.NCG(0.8).step(key, target, x)
        again = jax.random.uniform(jax.random.fold_in(key, 5), ()) < 1e-3
        zero = target.point(jnp.zeros_like(x.codes))
        return jax.tree.map(lambda a, b: jnp.where(again, a, b), zero, y), None


@pytest.mark.full
def test_a_rare_restart_is_seen_by_the_stationary_start():
    assert failures(Restart(), BINARY) == {"stationary start"}


@record
class LoudNoise(saltus.PAVG):
    """Noise that is 1 % too large."""

    def noise(self, key, target):
        return super().noise(key, target) * 1.01


def test_noise_one_percent_off_is_seen():
    failed = failures(LoudNoise(0.7, saltus.Diagonal([0.3, -0.2, 0.1, 0.4])), BINARY)
    assert failed == {"noise"}


@record
class FlatNoise(saltus.AVG):
    """Uniform noise of the right variance."""

    def noise(self, key, target):
        return jnp.sqrt(6 / self.step_size) * jax.random.uniform(key, (target.space.size,), minval=-1, maxval=1)


@pytest.mark.full
def test_noise_of_another_shape_is_seen():
    assert "noise" in failures(FlatNoise(0.7), BINARY)


@record
class Elsewhere(Factorised):
    """Draws from scores that are a tenth smaller than those it tells."""

    def sample(self, key):
        return (self.moves * 0.9).sample(key)


@record
class SaysOneDoesAnother(saltus.AVG):
    def propose(self, target, x, noise):
        return Elsewhere(super().propose(target, x, noise).moves)


def test_a_sample_that_is_not_what_log_prob_says_is_seen():
    failed = failures(SaysOneDoesAnother(0.7), BINARY)
    assert "proposal" in failed
    assert "invariance" not in failed


@record
class PairsOnly(Draft):
    """Flips two sites at a time: the number of ones stays even or odd."""

    def step(self, key, target, x):
        site_key, accept_key = jax.random.split(key)
        sites = jax.random.permutation(site_key, target.space.num_sites)[:2]
        y = target.point(x.codes.at[sites].set(1 - x.codes[sites]))
        return metropolis(accept_key, target.space, x, y, y.log_prob - x.log_prob)


@pytest.mark.full
def test_states_that_are_never_connected_are_seen():
    assert failures(PairsOnly(), BINARY) == {"connected"}


@record
class Invents(saltus.NCG):
    """An Info made up: a jump that grows as the step size shrinks."""

    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return y, changed(info, jump=jnp.ones_like(info.jump) / self.step_size)


@record
class Flatters(saltus.NCG):
    """An acceptance rate made up."""

    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return y, changed(info, acceptance_rate=jnp.full_like(info.acceptance_rate, 0.574))


@record
class Overrates(saltus.NCG):
    """An acceptance rate above 1."""

    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return y, changed(info, acceptance_rate=info.acceptance_rate * 1.5)


@record
class SaysItMoved(saltus.NCG):
    def step(self, key, target, x):
        y, info = super().step(key, target, x)
        return y, changed(info, moved=info.accepted)


@pytest.mark.parametrize(
    "kernel", mostly({k.__name__: k for k in (Invents, Flatters, Overrates, SaysItMoved)}, "Invents", "Flatters")
)
def test_an_invented_info_is_seen(kernel):
    assert failures(kernel(0.8), BINARY) == {"info"}


@record
class FewValues(saltus.NCG):
    """Right for two values only."""

    def log_ratio(self, target, x, y, noise=None):
        right = super().log_ratio(target, x, y)
        return right if target.space.num_values == 2 else y.log_prob - x.log_prob


@record
class FewSites(saltus.NCG):
    """Right for four sites at most."""

    def log_ratio(self, target, x, y, noise=None):
        right = super().log_ratio(target, x, y)
        return right if target.space.num_sites <= 4 else y.log_prob - x.log_prob


@pytest.mark.parametrize(
    ("kernel", "where"), [pytest.param(FewValues(0.8), "Ordinal", marks=pytest.mark.full), (FewSites(0.8), "Spin(5)")], ids=repr
)
def test_errors_beyond_the_target_given_are_seen_by_the_battery(kernel, where):
    with pytest.raises(saltus.CheckError) as caught:
        check_kernel(kernel, BINARY)
    assert re.search(rf"invariance +FAILED +on {re.escape(where)}", str(caught.value))
    assert "invariance        passed" in str(caught.value)


@record
class Guarded(Draft):
    """Keeps f within ±100, against overflow."""

    def log_ratio_of(self, target, x, y):
        return jnp.clip(y.log_prob, -100, 100) - jnp.clip(x.log_prob, -100, 100)


@record
class TakesNaN(saltus.NCG):
    """Accepts unless the ratio says no: NaN does not."""

    def step(self, key, target, x):
        move_key, accept_key = jax.random.split(key)
        y = self.init(target, self.propose(target, x).sample(move_key))
        ratio = self.log_ratio(target, x, y)
        refused = jnp.log(jax.random.uniform(accept_key, (), x.log_prob.dtype)) >= ratio
        rate = jnp.where(jnp.isnan(ratio), 1, jnp.exp(jnp.minimum(ratio, 0)))
        kept = jax.tree.map(lambda a, b: jnp.where(refused, b, a), y, x)
        return kept, describe(target.space, x, y, ~refused, rate, jnp.zeros((), jnp.int32))


@pytest.mark.full
@pytest.mark.parametrize(("kernel", "where"), [(Guarded(), "f + 500"), (TakesNaN(0.8), "NaN gradients")], ids=["f+500", "NaN"])
def test_large_f_and_nan_gradients_are_seen_by_the_battery(kernel, where):
    with pytest.raises(saltus.CheckError) as caught:
        check_kernel(kernel, BINARY)
    assert re.search(rf"stationary start +FAILED +on Spin\(5\), .*{re.escape(where)}", str(caught.value))


@record
class Cancels(Draft):
    """Adds ten million to f and takes it away again: exact, and not in float32."""

    def log_ratio_of(self, target, x, y):
        return (y.log_prob + 1e7) - (x.log_prob + 1e7)


@pytest.mark.full
def test_rounding_is_called_rounding():
    with pytest.raises(saltus.CheckError, match=r"stationary start\s+FAILED \(rounding\).*% off in total variation"):
        check_kernel(Cancels(), BINARY)


@record
class Overruns(Draft):
    """One value too many."""

    def step(self, key, target, x):
        codes = jnp.minimum(x.codes + 1, target.space.num_values).astype(x.codes.dtype)
        return target.point(codes), None


def test_leaving_the_space_is_seen():
    assert failures(Overruns(), BINARY) == {"codes"}


@record
class SkipsTheLast(saltus.Gibbs):
    """Never updates the last site."""

    def noise(self, key, target):
        return jax.random.randint(key, (1, 1), 0, target.space.num_sites - 1, jnp.int32)


def test_steps_that_are_not_those_of_the_matrix_are_seen():
    assert "transition" in failures(SkipsTheLast(), BINARY)


@record
class WrongWeight(saltus.Kernel):
    """Samples exp(f / 2), and weighs its draws the wrong way round."""

    sign: float = -1.0

    def step(self, key, target, x):
        move_key, accept_key = jax.random.split(key)
        y = self.init(target, target.space.random(move_key).astype(x.codes.dtype))
        return metropolis(accept_key, target.space, x, y, 0.5 * (y.log_prob - x.log_prob))

    def log_weight(self, state):
        return self.sign * 0.5 * state.log_prob


@pytest.mark.full
def test_a_wrong_weight_is_seen_by_the_stationary_start():
    assert failures(WrongWeight(), BINARY) == {"stationary start"}
    assert check_kernel(WrongWeight(1.0), BINARY, battery=False).passed
