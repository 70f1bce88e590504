r"""The ladder of a tempered sampler, from the rejections of its swaps (Syed et al. 2022).

With r_i the mean rejection of swaps between β_i and β_{i+1}, the barrier is Λ(β) = Σ_{i: β_{i+1} <= β} r_i, between rungs
interpolated monotonically. Rungs at equal distances of Λ reject equally often; 2 Λ(1) + 1 of them reject about half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._compiling import program
from ..engine.arguments import read_seed, read_target
from ..engine.loop import TUNING, chain_key, seed_words, step_chains
from ..engine.samplers import check_kernel_fits
from ..engine.starts import start_codes
from ..errors import KernelError
from ..kernels import Kernel, Tempered
from ..kernels.path import Path
from ..kernels.replicas import Swaps
from ..target import Target

_CHAINS, _FEWEST, _MOST = 8, 3, 200  # ladders that are measured together; rungs of a ladder
_STEPS = (60, 120, 240, 480)  # of the rounds; the first half of each is not counted
_STREAM = 0x1ADD


@dataclass(frozen=True)
class FoundLadder:
    """kernel: a frozen `saltus.Tempered`. swaps: what its last round measured, with rejection, barrier and round_trips."""

    kernel: Tempered
    swaps: Swaps
    evaluations: int  # of f, by all rounds

    @property
    def ladder(self) -> np.ndarray:
        """(rungs,) the β, from 0 to 1."""
        return np.asarray(self.kernel.ladder)

    def __repr__(self) -> str:
        return f"{self.kernel!r}: {self.swaps!r}"


def find_ladder(target: Target, kernel: Kernel, seed: int = 0, *, initial: Any = None, reference: Any = None) -> FoundLadder:
    """Inverse temperatures for `saltus.Tempered`: rungs between which swaps are refused equally often, about half the time.

    target: a `saltus.Target`.
    kernel: the kernel of all rungs above β = 0, such as saltus.Gibbs("coloured").
    seed: an integer; the same one finds the same ladder.
    initial: states to start from, as for `saltus.sample`; default: random ones.
    reference: marginals of the sites at β = 0, as of `saltus.Tempered`; default: uniform.
    Returns a `FoundLadder`; its `kernel` is frozen. KernelError where the kernel cannot step the target.

        found = saltus.find_ladder(target, saltus.Gibbs())
        run = saltus.sample(target, found.kernel)
    """
    target, seed = read_target(target), read_seed(seed)
    if not isinstance(kernel, Kernel):
        hint = "saltus.tune(target, saltus.NCG).kernel chooses a setting"
        raise KernelError("`kernel` is not a kernel.", expected="such as saltus.NCG(0.5)", found=repr(kernel), hint=hint)
    first = Tempered(kernel, [0, 1], reference)
    check_kernel_fits(first, target)
    return search_ladder(target, kernel, start_codes(target, seed, initial, _CHAINS), seed, reference=first.reference)


def search_ladder(
    target: Target, part: Any, codes: np.ndarray, seed: int, effort: float = 1.0, measured: bool = True, reference: Any = None
) -> FoundLadder:
    """`find_ladder` from these codes (chains, d). part: as `kernel` of Tempered, but one for all rungs.

    measured: whether the last ladder makes steps too; without them nothing is compiled for it, and swaps are those before.
    """
    words, first, spent = jnp.asarray(seed_words(seed)), 0, 0
    betas = _first_ladder(Tempered(part, [0, 1], reference).path(target), words)
    at = np.repeat(codes[:, None], len(betas), axis=1)
    for turn, steps in enumerate(_STEPS):
        steps = max(round(effort * steps), 16)
        kernel = Tempered(part, betas, reference)
        half, states = _walked(kernel, target, jnp.asarray(at), words, np.int32(first), np.int32(steps))
        swaps = kernel.swaps(states, since=half)
        first, spent = first + steps, spent + len(codes) * steps * kernel.evaluations(target)
        if turn + 1 < len(_STEPS):
            new = respaced(betas, swaps.rejection, _num_rungs(swaps, last=turn + 2 == len(_STEPS), now=len(betas)))
            nearest = np.abs(new[:, None] - betas).argmin(axis=1)
            at, betas = np.asarray(states.codes)[:, nearest], new
        if turn + 2 == len(_STEPS) and not measured:
            kernel = Tempered(part, betas, reference)
            break
    return FoundLadder(kernel, swaps, spent)


def respaced(betas: Any, rejection: Any, num: int) -> np.ndarray:
    """(at most num,) β at equal distances of the barrier that these rejections (rungs - 1,) make."""
    from scipy.interpolate import PchipInterpolator  # long to import, and few need it

    betas = np.asarray(betas, np.float64)
    steps = np.maximum(np.asarray(rejection, np.float64), 1e-3)  # strictly increasing, and no rung is lost where none is refused
    barrier = np.concatenate([[0], np.cumsum(steps)])
    inside = PchipInterpolator(barrier, betas)(np.linspace(0, barrier[-1], num)[1:-1])
    return np.unique(np.concatenate([[0], np.clip(inside, 0, 1), [1]]).astype(np.float32))  # those too close for float32 are one


def _num_rungs(swaps: Swaps, last: bool, now: int) -> int:
    """2 Λ + 1; while most swaps are refused Λ is not seen in full, and rungs are doubled."""
    saturated = swaps.rejection.mean() > 0.7
    if saturated or not last:
        return int(np.clip(2 * now if saturated else now, _FEWEST, _MOST))
    return int(np.clip(np.ceil(2 * swaps.barrier) + 1, _FEWEST, _MOST))


def _first_ladder(path: Path, words: jax.Array, num: int = 12) -> np.ndarray:
    """Geometric from where V, at β = 0, varies by one."""
    keys = random.split(chain_key(words, TUNING, jnp.int32(_STREAM)), 256)
    f = np.asarray(_values_at_zero(path, keys), np.float64)
    spread = f[np.isfinite(f)].std() if np.isfinite(f).sum() > 1 else 1.0
    low = float(np.clip(0.5 / max(spread, 1e-9), 1e-6, 1 / (num - 1)))
    return np.concatenate([[0], np.geomspace(low, 1, num - 1)])


@program()
def _values_at_zero(path: Path, keys: jax.Array) -> jax.Array:
    return jax.lax.map(lambda key: path.gain(path.draw(key)), keys)


@program()
def _walked(kernel: Tempered, target: Target, codes: jax.Array, words: jax.Array, first: Any, steps: Any) -> tuple[Any, Any]:
    """(states half way, states at the end) of ladders that begin at codes (chains, rungs, d)."""
    chains = jnp.arange(codes.shape[0], dtype=jnp.int32) + _STREAM
    keys = jax.vmap(lambda c: chain_key(words, TUNING, c))(chains)
    own = codes.astype(target.space.code_dtype)
    states = jax.vmap(lambda k, c: kernel.at_rungs(target, c, random.fold_in(k, ~first)))(keys, own)

    def step(t: jax.Array, carry: Any) -> Any:
        states, half = carry
        half = jax.tree.map(lambda new, old: jnp.where(2 * t < steps, new, old), states, half)
        return step_chains(kernel, target, keys, first + t, states)[0], half

    states, half = jax.lax.fori_loop(0, steps, step, (states, states))
    return half, states
