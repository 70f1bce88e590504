"""A case of the gallery, and how far a run is from its reference."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import handlers
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density
from scipy.stats import norm

# A site that leaves its usual value fewer times than this has no standard error to speak of: it is taken to be this at least.
_FEW, _RARE = 100, 0.002
Moments = dict[str, tuple[np.ndarray, np.ndarray]]  # {name: (mean, its standard error)}


@dataclass(frozen=True)
class Case:
    """tool: "numpyro" or "pymc". model: as its users write it; for PyMC a function that returns it.

    reference: () -> Moments. seen: draws {site: (chains, draws, ...)} -> the same by names of the reference; None: its sites.
    refused: words of the error that is expected, in place of a comparison.
    """

    name: str
    tool: str
    source: str
    model: Callable
    args: tuple = ()
    reference: Callable[[], Moments] | None = None
    seen: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] | None = None
    refused: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


def exact(**means: Any) -> Moments:
    """Numbers without an error."""
    return {name: (np.asarray(mean, float), np.zeros(np.shape(mean))) for name, mean in means.items()}


def moments(draws: dict[str, np.ndarray]) -> Moments:
    """Means of (chains, draws, ...) with standard errors, by NumPyro's effective sample size."""
    found = {}
    for name, given in draws.items():
        x = np.asarray(given, float)
        sd = x.std(axis=(0, 1))
        with np.errstate(all="ignore"):
            ess = np.nan_to_num(np.asarray(effective_sample_size(x)), nan=1.0)
        found[name] = x.mean(axis=(0, 1)), sd / np.sqrt(np.clip(ess, 1, x.shape[0] * x.shape[1]))
    return found


def nuts(model: Callable, *args: Any, names: tuple[str, ...] = (), draws: int = 4000) -> Moments:
    """By NumPyro's NUTS, of the named sites and deterministic sites; without names, of all that are not observed."""
    mcmc = MCMC(NUTS(model), num_warmup=1000, num_samples=draws, num_chains=2, chain_method="vectorized", progress_bar=False)
    mcmc.run(jax.random.key(7), *args)
    kept = mcmc.get_samples(group_by_chain=True)
    return moments({name: np.asarray(kept[name]) for name in names or kept})


def summed(model: Callable, args: tuple, states: dict[str, np.ndarray], draws: int = 4000) -> Moments:
    """By NUTS on the model summed over joint discrete `states`, {site: (number of states, ...)}; with exact discrete means."""

    def own(*args: Any) -> None:
        def continuous(msg: dict[str, Any]) -> bool:
            return msg["type"] == "sample" and not msg["is_observed"] and msg["name"] not in states

        first = handlers.substitute(model, data={name: jnp.asarray(x[0]) for name, x in states.items()})
        with handlers.block(hide_fn=lambda msg: not continuous(msg)), handlers.trace() as trace:
            first(*args)
        values = {name: site["value"] for name, site in trace.items() if continuous(site)}
        prior = sum(jnp.sum(site["fn"].log_prob(site["value"])) for site in trace.values() if continuous(site))
        joint = lambda z: log_density(model, args, {}, {**values, **z})[0]  # noqa: E731
        with handlers.block():
            log_p = jax.vmap(joint)({name: jnp.asarray(x) for name, x in states.items()})
        numpyro.factor("sum", jax.scipy.special.logsumexp(log_p) - prior)
        p = jax.nn.softmax(log_p)
        for name, x in states.items():
            numpyro.deterministic(f"{name}_mean", jnp.tensordot(p, jnp.asarray(x, p.dtype), 1))

    found = nuts(own, *args, draws=draws)
    return {name.removesuffix("_mean"): both for name, both in found.items()}


def enumerated(model: Callable, args: tuple, values: dict[str, tuple[tuple[int, ...], list[int]]]) -> Moments:
    """Exact, of a model without continuous sites. values: {site: (its shape, the values of an element)}."""
    sizes = {name: int(np.prod(shape, dtype=int)) for name, (shape, _) in values.items()}
    rows = np.array(list(itertools.product(*(v for name, (_, v) in values.items() for _ in range(sizes[name])))))
    states, start = {}, 0
    for name, (shape, _) in values.items():
        states[name] = rows[:, start : start + sizes[name]].reshape(-1, *shape)
        start += sizes[name]
    joint = lambda z: log_density(model, args, {}, z)[0]  # noqa: E731
    log_p = np.asarray(jax.lax.map(joint, {n: jnp.asarray(x) for n, x in states.items()}, batch_size=1024), np.float64)
    p = np.exp(log_p - log_p.max())
    return exact(**{name: np.tensordot(p / p.sum(), x, 1) for name, x in states.items()})


def gaps(draws: dict[str, np.ndarray], reference: Moments) -> tuple[float, float, int, float]:
    """(largest gap in standard errors, the largest that 1 of 1000 right runs exceeds, numbers compared, smallest share of ESS)."""
    own, each, smallest = moments({name: draws[name] for name in reference}), [], 1.0
    for name, (mean, error) in reference.items():
        (here, spread), x = own[name], np.asarray(draws[name], float)
        difference, both = np.ravel(here - mean), np.ravel(np.hypot(spread, error))
        x = x.reshape(-1, difference.size)
        visits = (x != np.median(x, axis=0)).sum(0)
        both = np.where(visits < _FEW, np.maximum(both, _RARE), both)
        rounding = 1e-4 * (1 + np.abs(np.ravel(mean)))  # of a mean of float32 draws
        each.append(np.maximum(np.abs(difference) - rounding, 0) / np.maximum(both, 1e-12))
        with np.errstate(all="ignore"):
            ess = np.ravel(np.asarray(effective_sample_size(np.asarray(draws[name], float))))
        if (visits >= _FEW).any():
            smallest = min(smallest, float(np.nanmin(ess[visits >= _FEW])) / len(x))
    all_gaps = np.concatenate(each)
    return float(all_gaps.max()), float(norm.isf(5e-4 / len(all_gaps))), len(all_gaps), smallest
