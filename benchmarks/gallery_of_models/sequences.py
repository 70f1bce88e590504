"""Models with discrete chains in time, after NumPyro's examples: hidden Markov models, capture and recapture, a changepoint."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from scipy.special import gammaln

from .compare import Case, exact, nuts

RNG = np.random.default_rng(3)


def captures(num: int, times: int, survive: float, seen: float) -> np.ndarray:
    alive, found = np.ones(num, bool), [RNG.uniform(size=num) < 0.6]
    for _ in range(times - 1):
        alive &= RNG.uniform(size=num) < survive
        found.append(alive & (RNG.uniform(size=num) < seen))
    histories = np.stack(found, 1).astype(np.int32)
    return histories[histories[:, :-1].any(1)]


CAUGHT = captures(40, 6, 0.7, 0.6)


def cjs(capture_history, by_time):
    N, _ = capture_history.shape
    rho = numpyro.sample("rho", dist.Uniform(0.0, 1.0))
    phi = None if by_time else numpyro.sample("phi", dist.Uniform(0.0, 1.0))

    def transition_fn(carry, y):
        first_capture_mask, z = carry
        phi_t = numpyro.sample("phi", dist.Uniform(0.0, 1.0)) if by_time else phi
        with numpyro.plate("animals", N, dim=-1), handlers.mask(mask=first_capture_mask):
            mu_z_t = first_capture_mask * phi_t * z + (1 - first_capture_mask)
            z = numpyro.sample("z", dist.Bernoulli(dist.util.clamp_probs(mu_z_t)), infer={"enumerate": "parallel"})
            numpyro.sample("y", dist.Bernoulli(dist.util.clamp_probs(rho * z)), obs=y)
        return (first_capture_mask | y.astype(bool), z), None

    first = capture_history[:, 0].astype(bool), jnp.ones(N, dtype=jnp.int32)
    scan(transition_fn, first, jnp.swapaxes(capture_history[:, 1:], 0, 1))


def cjs_1(capture_history, sex=None):
    cjs(capture_history, False)


def cjs_2(capture_history, sex=None):
    cjs(capture_history, True)


def cjs_summed(capture_history, by_time):
    """The forward algorithm: (animals, dead or alive).

    As the model is written, the mask takes away the prior of z until the first capture: unless that is the first year, z may be 0.
    """
    N, T = capture_history.shape
    rho = numpyro.sample("rho", dist.Uniform(0.0, 1.0))
    phi = numpyro.sample("phi", dist.Uniform(0.0, 1.0).expand([T - 1] if by_time else []))
    begun = np.maximum.accumulate(capture_history, 1).astype(bool)
    log_p = jnp.stack([jnp.where(capture_history[:, 0] == 1, -jnp.inf, 0.0), jnp.zeros(N)], 1)
    for t in range(1, T):
        live = phi[t - 1] if by_time else phi
        alive = log_p[:, 1] + jnp.log(live)
        dead = jnp.logaddexp(log_p[:, 0], log_p[:, 1] + jnp.log1p(-live))
        y = capture_history[:, t]
        alive = alive + jnp.where(y == 1, jnp.log(rho), jnp.log1p(-rho))
        dead = jnp.where(y == 1, -jnp.inf, dead)
        log_p = jnp.where(begun[:, t - 1, None], jnp.stack([dead, alive], 1), log_p)
    numpyro.factor("histories", jax.scipy.special.logsumexp(log_p, 1).sum())


def music(sequences, lengths, hidden_dim):
    num_sequences, _, data_dim = sequences.shape
    probs_x = numpyro.sample("probs_x", dist.Dirichlet(0.9 * jnp.eye(hidden_dim) + 1.1).to_event(1))
    probs_y = numpyro.sample("probs_y", dist.Beta(1, 1).expand([hidden_dim, data_dim]).to_event(2))

    def transition_fn(carry, y):
        x_prev, t = carry
        with (
            numpyro.plate("sequences", num_sequences, dim=-2),
            handlers.mask(mask=(t < lengths)[..., None]),
        ):
            x = numpyro.sample("x", dist.Categorical(probs_x[x_prev]), infer={"enumerate": "parallel"})
            with numpyro.plate("tones", data_dim, dim=-1):
                numpyro.sample("y", dist.Bernoulli(probs_y[x.squeeze(-1)]), obs=y)
        return (x, t + 1), None

    scan(transition_fn, (jnp.zeros((num_sequences, 1), dtype=jnp.int32), 0), jnp.swapaxes(sequences, 0, 1))


def music_summed(sequences, lengths, hidden_dim):
    num_sequences, times, data_dim = sequences.shape
    probs_x = numpyro.sample("probs_x", dist.Dirichlet(0.9 * jnp.eye(hidden_dim) + 1.1).to_event(1))
    probs_y = numpyro.sample("probs_y", dist.Beta(1, 1).expand([hidden_dim, data_dim]).to_event(2))
    log_y = dist.Bernoulli(probs_y).log_prob(sequences[:, :, None]).sum(-1)  # (sequences, times, hidden)
    start = jnp.where(jnp.arange(hidden_dim) == 0, 0.0, -jnp.inf)
    log_p = jnp.broadcast_to(start, (num_sequences, hidden_dim))
    for t in range(times):
        ahead = jax.scipy.special.logsumexp(log_p[:, :, None] + jnp.log(probs_x), 1) + log_y[:, t]
        log_p = jnp.where((t < lengths)[:, None], ahead, log_p)
    numpyro.factor("sequences", jax.scipy.special.logsumexp(log_p, 1).sum())
    music_told(probs_x, probs_y)


def music_told(probs_x, probs_y):
    numpyro.deterministic("stay", jnp.trace(probs_x))
    numpyro.deterministic("loudness", jnp.sort(probs_y.mean(-1)))


def music_seen(draws):
    return {"stay": np.trace(draws["probs_x"], axis1=-2, axis2=-1), "loudness": np.sort(draws["probs_y"].mean(-1), -1)}


def tunes() -> tuple[np.ndarray, np.ndarray]:
    x, sequences = np.zeros(4, int), []
    tone = np.array([[0.9, 0.8, 0.8, 0.9], [0.2, 0.1, 0.3, 0.2]])
    for _ in range(12):
        x = np.where(RNG.uniform(size=4) < 0.75, x, 1 - x)
        sequences.append(RNG.uniform(size=(4, 4)) < tone[x])
    return np.stack(sequences, 1).astype(np.int32), np.array([12, 12, 9, 7])


SEQUENCES, LENGTHS = tunes()


def changepoint(counts):
    early = numpyro.sample("early", dist.Exponential(0.5))
    late = numpyro.sample("late", dist.Exponential(0.5))
    tau = numpyro.sample("tau", dist.DiscreteUniform(0, len(counts) - 1))
    with numpyro.plate("years", len(counts)):
        numpyro.sample("y", dist.Poisson(jnp.where(jnp.arange(len(counts)) < tau, early, late)), obs=counts)


COUNTS = np.concatenate([RNG.poisson(3.0, 40), RNG.poisson(1.6, 40)])


def changepoint_exact(y):
    """Rates integrated out: Gamma integrals for every tau."""
    tau = np.arange(len(y))
    before = np.concatenate([[0], np.cumsum(y)])[:-1]
    a = np.stack([1 + before, 0.5 + tau, 1 + y.sum() - before, 0.5 + len(y) - tau])
    log_p = gammaln(a[0]) - a[0] * np.log(a[1]) + gammaln(a[2]) - a[2] * np.log(a[3])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return exact(tau=p @ tau, early=p @ (a[0] / a[1]), late=p @ (a[2] / a[3]))


CASES = [
    Case(
        "capture and recapture, one survival",
        "numpyro",
        "numpyro/examples/capture_recapture.py, model_1",
        cjs_1,
        (CAUGHT,),
        lambda: nuts(cjs_summed, CAUGHT, False),
    ),
    Case(
        "capture and recapture, survival by time",
        "numpyro",
        "numpyro/examples/capture_recapture.py, model_2",
        cjs_2,
        (CAUGHT,),
        lambda: nuts(cjs_summed, CAUGHT, True),
    ),
    Case(
        "hidden Markov music",
        "numpyro",
        "numpyro/examples/hmm_enum.py, model_1",
        music,
        (SEQUENCES, LENGTHS, 2),
        lambda: nuts(music_summed, SEQUENCES, LENGTHS, 2, names=("stay", "loudness")),
        music_seen,
    ),
    Case(
        "changepoint of counts",
        "numpyro",
        "NumPyro forum, changepoint with DiscreteUniform",
        changepoint,
        (COUNTS,),
        lambda: changepoint_exact(COUNTS),
    ),
]
