"""The other samplers of the speed table: thrml, numpyro's DiscreteHMCGibbs and PyMC's BinaryGibbsMetropolis.

Each runs by its own public API with the options that suit it best: compiled before the clock starts, started from where
a first, untimed run ended, and with nothing of ours in its loop but the log-probability. They are imported when used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Peer:
    """What a peer drew, one draw per sweep over all sites, and how long the kept draws took."""

    name: str
    states: np.ndarray  # (num_chains, num_draws, d) int8 codes: 0 or 1, where a spin is 2 * code - 1
    seconds: float  # of the sampling phase: neither compilation nor warm-up


def edge_correlation(states: np.ndarray, shape: tuple[int, ...]) -> float:
    """Mean of x_i x_j over the edges of the periodic lattice and over all states (..., d), given as 0/1 or as ±1."""
    x = np.where(np.asarray(states) > 0, np.int8(1), np.int8(-1)).reshape(-1, *shape)
    return float(np.mean([np.mean(x * np.roll(x, 1, axis)) for axis in range(1, x.ndim)]))


def thrml_sweeps(shape: tuple[int, int], coupling: float, num_chains: int, num_sweeps: int, seed: int = 0) -> ThrmlIsing:
    """`run()`, already compiled: `num_sweeps` more sweeps of all chains, then ready; `run.codes()[:, 0]` are their states.

    A schedule of `num_sweeps` sweeps of warm-up and one sample stores nothing on the way. Its authors time it so.
    """
    return ThrmlIsing(shape, coupling, num_chains, (num_sweeps, 1), seed)


def thrml_ising(shape: tuple[int, int], coupling: float, num_chains: int = 100, num_draws: int = 2000, seed: int = 0) -> Peer:
    """Two-colour sweeps, each kept."""
    run = ThrmlIsing(shape, coupling, num_chains, (1, num_draws), seed)
    _, seconds = _timed(run)
    return Peer("thrml", run.codes(), seconds)


class ThrmlIsing:
    """Chains of thrml on the periodic lattice f(x) = coupling * sum over edges x_i x_j, whose two colours are its blocks.

    schedule: sweeps before the first draw, and draws, one per sweep from then on. A call runs it once, from where the last
    one ended; construction does it for the first time, to compile and to warm up.
    """

    def __init__(self, shape: tuple[int, int], coupling: float, num_chains: int, schedule: tuple[int, int], seed: int) -> None:
        from thrml import Block, SamplingSchedule, SpinNode
        from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

        self.colours, edges = _two_colours(shape)
        nodes = [SpinNode() for _ in range(sum(map(len, self.colours)))]
        pairs = [(nodes[i], nodes[j]) for i, j in edges]
        model = IsingEBM(nodes, pairs, jnp.zeros(len(nodes)), jnp.full(len(pairs), coupling), jnp.array(1.0))
        self.blocks = [Block([nodes[i] for i in sites]) for sites in self.colours]
        self.program = IsingSamplingProgram(model, self.blocks, [])
        self.schedule = SamplingSchedule(*schedule, 1)
        self.key, start = jax.random.split(jax.random.key(seed))
        self.last = hinton_init(start, model, self.blocks, (num_chains,))
        self.compiled = jax.jit(self._run)
        self()

    def _run(self, key: jax.Array, start: list[jax.Array]) -> tuple:
        from thrml import sample_states

        def chain(key: jax.Array, start: list[jax.Array]) -> list[jax.Array]:
            return sample_states(key, self.program, self.schedule, start, [], self.blocks)

        key, now = jax.random.split(key)
        draws = jax.vmap(chain)(jax.random.split(now, len(start[0])), start)
        return key, [block[:, -1] for block in draws], draws

    def __call__(self) -> None:
        self.key, self.last, self.draws = jax.block_until_ready(self.compiled(self.key, self.last))

    def codes(self) -> np.ndarray:
        """What the last call drew, the two colours put in their places: (num_chains, num_draws, d)."""
        codes = np.empty((*self.draws[0].shape[:2], sum(map(len, self.colours))), np.int8)
        for sites, block in zip(self.colours, self.draws, strict=True):
            codes[..., sites] = block
        return codes


def _two_colours(shape: tuple[int, int]) -> tuple[list[np.ndarray], np.ndarray]:
    """Sites of either colour; and all edges, from the first to the second."""
    if min(shape) < 4 or any(side % 2 for side in shape):
        raise ValueError(f"two colours need even sides of at least 4, not {shape}")
    sites, first = np.arange(np.prod(shape)).reshape(shape), np.indices(shape).sum(axis=0) % 2 == 0
    ends = [np.roll(sites, shift, axis)[first] for axis in (0, 1) for shift in (1, -1)]
    return [sites[first], sites[~first]], np.stack([np.tile(sites[first], 4), np.concatenate(ends)], axis=1)


def numpyro_gibbs(log_prob: Callable, d: int, num_chains: int = 100, num_draws: int = 300, seed: int = 0) -> Peer:
    """DiscreteHMCGibbs on d sites of 0 and 1, where log_prob is f of one state's codes (d,), such as `target.value`.

    Of its four proposals, which all cost one log_prob a site, the one that always offers the other value: more
    effective draws by the distance than plain Gibbs on both workloads. HMC, which wants
    a site of its own, takes a single leapfrog step.
    The kernel is scanned under `vmap` here, since `MCMC` refuses chain_method="vectorized" for it, and compiles anew in
    every run with chain_method=jax.vmap, so that compilation could not be told from sampling.
    """
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import HMC, DiscreteHMCGibbs

    def model() -> None:
        codes = numpyro.sample("codes", dist.Bernoulli(jnp.full(d, 0.5)))
        numpyro.sample("idle", dist.Normal(0.0, 1.0))
        numpyro.factor("f", log_prob(codes))

    inner = HMC(model, step_size=1.0, num_steps=1, adapt_step_size=False, adapt_mass_matrix=False)
    kernel = DiscreteHMCGibbs(inner, random_walk=True, modified=True)

    def chain(key: jax.Array, codes: jax.Array) -> jax.Array:
        def sweep(state: Any, _: None) -> tuple:
            state = kernel.sample(state, (), {})
            return state, state.z["codes"].astype(jnp.int8)

        state = kernel.init(key, 0, {"codes": codes, "idle": jnp.array(0.0)}, (), {})
        return jax.lax.scan(sweep, state, length=num_draws)[1]

    run = jax.jit(jax.vmap(chain))
    begin, warm, keys = jax.random.split(jax.random.key(seed), (3, num_chains))
    codes = jax.vmap(lambda key: jax.random.randint(key, (d,), 0, 2))(begin)
    last = run(warm, codes)[:, -1].astype(codes.dtype)
    draws, seconds = _timed(run, keys, jax.block_until_ready(last))
    return Peer("numpyro", np.asarray(draws), seconds)


def pymc_gibbs_ising(
    shape: tuple[int, ...] = (10, 10), coupling: float = 0.2, num_chains: int = 4, num_draws: int = 500, seed: int = 0
) -> Peer:
    """BinaryGibbsMetropolis on the periodic Ising model."""
    return _pymc_gibbs(*pymc_ising(shape, coupling), num_chains, num_draws, seed)


def pymc_gibbs_regression(num_chains: int = 4, num_draws: int = 500, seed: int = 0) -> Peer:
    """BinaryGibbsMetropolis on the posterior of `targets.sparse_regression()`."""
    return _pymc_gibbs(*pymc_regression(), num_chains, num_draws, seed)


def pymc_ising(shape: tuple[int, ...], coupling: float) -> tuple[Any, int]:
    """The model and its number of sites: coupling * sum over edges x_i x_j with x = 2 codes - 1."""
    import pymc as pm

    sites = np.arange(np.prod(shape)).reshape(shape)
    one = np.tile(sites.ravel(), sites.ndim)
    other = np.concatenate([np.roll(sites, -1, axis).ravel() for axis in range(sites.ndim)])
    with pm.Model() as model:
        x = 2.0 * pm.Bernoulli("codes", 0.5, shape=sites.size) - 1.0
        pm.Potential("f", coupling * pm.math.sum(x[one] * x[other]))
    return model, sites.size


def pymc_regression(num_copies: int = 4, num_appended: int = 80, seed: int = 0) -> tuple[Any, int]:
    r"""The model and its number of sites: the regression of docs/equations.md in float64, up to a constant.

    The likelihood knows s by the number c_j of copies in use of each distinct column x_j. With M_ij = sqrt(c_i c_j) x_i.x_j,
    its eigenvalues w_k, and p_k the part of (sqrt(c_j) x_j.y)_j along its eigenvectors, it is
    $$ \tfrac12 \sum_k \log \frac{w_k + λ}{(1+g) w_k + λ}
       - (α_σ + N/2) \log\Big(2β_σ + y^T y - g \sum_k \frac{p_k^2}{(1+g) w_k + λ}\Big). $$
    """
    import pymc as pm
    import pytensor.tensor as pt

    base = np.random.default_rng(seed).integers(0, 3, (20, 5)).astype(float)
    y, (N, p), g, penalty = base.sum(axis=1), base.shape, 20.0, 0.001
    D = p * num_copies
    prior = np.repeat([0.5, 0.001], [D, num_appended])
    with pm.Model() as model:
        used = pm.Bernoulli("codes", prior, shape=len(prior))[:D]
        n, root = pt.sum(used), pt.sqrt(pt.sum(pt.reshape(used, (num_copies, p)), axis=0).astype("float64"))
        w, vectors = pt.linalg.eigh(root[:, None] * (base.T @ base) * root)
        along, scale = vectors.T @ (root * (base.T @ y)), (1 + g) * w + penalty
        misfit = 0.2 + y @ y - g * pt.sum(along**2 / scale)
        log_prior = pt.gammaln(n + 0.001) + pt.gammaln(D - n + 10.0)
        pm.Potential("f", log_prior + 0.5 * pt.sum(pt.log((w + penalty) / scale)) - (0.1 + N / 2) * pt.log(misfit))
    return model, len(prior)


def _pymc_gibbs(model: Any, d: int, num_chains: int, num_draws: int, seed: int) -> Peer:
    """One chain after the other, in one process: a fifth of `num_draws` sweeps to warm up, then `num_draws` by the clock.

    `pm.sample` runs as many chains at once as there are cores, and is at best that many times as fast. Numba is the
    fastest back end of PyTensor here: log-probabilities take it 0.3 (regression) to 0.6 (Ising) of the time of C.
    transit_p = 1 always offers the other value.
    """
    import pymc as pm

    rng = np.random.default_rng(seed)
    with model:
        step = pm.BinaryGibbsMetropolis([model["codes"]], transit_p=1.0, rng=rng, compile_kwargs={"mode": "NUMBA"})

    def sweeps(codes: np.ndarray, number: int) -> np.ndarray:
        drawn, point = np.empty((number, d), np.int8), {"codes": codes}
        for t in range(number):
            point, _ = step.step(point)
            drawn[t] = point["codes"]
        return drawn

    states, seconds = np.empty((num_chains, num_draws, d), np.int8), np.empty(num_chains)
    for chain, codes in enumerate(rng.integers(0, 2, (num_chains, d))):
        last = sweeps(codes, num_draws // 5 + 1)[-1]
        states[chain], seconds[chain] = _timed(sweeps, last.astype(codes.dtype), num_draws)
    return Peer("PyMC", states, float(seconds.sum()))


def _timed(run: Callable, *args: Any) -> tuple[Any, float]:
    began = perf_counter()
    result = jax.block_until_ready(run(*args))
    return result, perf_counter() - began
