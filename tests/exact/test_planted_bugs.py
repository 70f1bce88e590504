"""Planted bugs: each must fail, and by the instrument that should catch it. They prove that the suite can fail."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus._record import changed, record
from saltus.kernels.metropolis import metropolis
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
        reverse = Factorised(target.moves(y) + self._auxiliary(target, y, noise - bend))
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
