"""Does `sampler="auto"` pick well? On ten targets: the race's pick against long runs of every sampler that could have entered.

    python -m benchmarks.race            all targets; finished ones are skipped
    python -m benchmarks.race poly2      one target
    python -m benchmarks.race --table    what was measured so far

Effective draws per second of all chains, the worst of energy and four distances, as in the race, but from a trial of SECONDS
of every sampler, and then ROUNDS of twice that, in turn, of those that had half of the best's or more. "pick" races for so
many draws that all samplers enter; "default" is the race of `saltus.sample(target)`, which leaves samplers out where 400
effective draws take less than five seconds anyway.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import saltus

from .internals import Chains, Silent, Trials, find_entrants, race, read_settings, simplest, start_codes, tune_from

RESULTS = Path(__file__).parent / "results"
SECONDS, ENOUGH, ROUNDS = 2.0, 1500, 3
LONG = 2_000_000  # draws: neither the five-second rule nor the third of all evaluations keeps anyone out
WITHIN = 0.8


def plain_ising():
    """The same model as "ising", told nothing about itself: a log-probability and a space."""
    model = saltus.targets.ising((10, 10), 0.4)
    return saltus.Target(model.log_prob, model.space, model.params)


def useless_gradient():
    """A chain of 30 sites with a table of interactions, read by integer index: its gradient is zero everywhere."""
    table = jnp.asarray(np.random.default_rng(0).normal(size=(2, 2)) * 3)

    def log_prob(s):
        codes = s.astype(jnp.int32)
        return jnp.sum(table[codes[:-1], codes[1:]])

    return saltus.Target(log_prob, saltus.Binary(30))


def correlated_ordinal():
    """A Gaussian of correlation 0.95 on ten sites of 31 values."""
    precision = np.linalg.inv(0.05 * np.eye(10) + 0.95)
    return saltus.Target(lambda s: -0.5 * s @ jnp.asarray(precision, s.dtype) @ s, saltus.Ordinal(10, np.linspace(-3, 3, 31)))


def spin_glass():
    """Sherrington-Kirkpatrick: 50 spins, all pairs coupled, at inverse temperature 0.8."""
    J = np.triu(np.random.default_rng(1).normal(size=(50, 50)), 1) * 0.8 / np.sqrt(50)
    return saltus.Target(lambda s: s @ jnp.asarray(J, s.dtype) @ s, saltus.Spin(50))


def independent_sites():
    """200 sites, each with its own field."""
    field = jnp.asarray(np.random.default_rng(2).normal(size=200) * 2)
    return saltus.Target(lambda s: jnp.sum(field.astype(s.dtype) * s), saltus.Binary(200))


def categorical_chain():
    """40 sites of six categories; neighbours prefer some pairs."""
    w = np.random.default_rng(3).normal(size=(6, 6))
    return saltus.Target(lambda s: jnp.sum((s[:-1] @ jnp.asarray(w, s.dtype)) * s[1:]), saltus.Categorical(40, 6))


TARGETS = {
    "ising": lambda: saltus.targets.ising((10, 10), 0.4),
    "plain ising": plain_ising,
    "poly2": lambda: saltus.targets.polynomial_mixture(2, 20),
    "regression": lambda: saltus.targets.sparse_regression(),
    "potts": lambda: saltus.targets.potts((8, 8), 5, 0.8),
    "useless gradient": useless_gradient,
    "correlated ordinal": correlated_ordinal,
    "spin glass": spin_glass,
    "independent sites": independent_sites,
    "categorical chain": categorical_chain,
}


def settings_for(target, num_draws):
    asked = dict(num_draws=num_draws, num_warmup=1000, num_chains=4, seed=0, thin="auto", keep="draws", keep_warmup=False)
    return read_settings(target.space, **asked)[0]


def raced(target, num_draws):
    found = race(target, settings_for(target, num_draws), initial=None, deadline=float("inf"), progress=Silent())
    name = next(row.sampler for row in found.rows if row.chosen)
    return name, found


def everyone(target):
    """{name: frozen kernel} of every entrant, tuned from burnt-in states with twice the effort of the race."""
    field, kernels = find_entrants(target, ""), {}
    for entrant in [*field.first, *field.others]:
        chains = Chains(start_codes(target, 2, None, 8), seed=2, effort=0.4)
        kernels[entrant.name] = entrant.frozen(tune_from(entrant.seen(target), entrant.kind, chains)[0])
    return kernels


def pooled(kernels, trials):
    """Trials of one and the same kernel under several names, as one."""
    whole = {}
    for each, trial in trials.items():
        whole[repr(kernels[each])] = whole[repr(kernels[each])].and_then(trial) if repr(kernels[each]) in whole else trial
    return {each: whole[repr(kernels[each])] for each in trials}


def measure(name):
    """One target: the two races, then long trials of all samplers and of the kernels that were picked."""
    target, began = TARGETS[name](), time.perf_counter()
    picks = {"pick": raced(target, LONG), "default": raced(target, 1000)}
    kernels = everyone(target) | {mode: found.kernel for mode, (_, found) in picks.items()}
    running = Trials(target, replace(settings_for(target, 1000), seed=1), start_codes(target, 1, None, 4))
    running.burn_in(simplest(target).start, 3.0)
    trials = {each: running.run(kernel, SECONDS, ENOUGH) for each, kernel in kernels.items()}
    for _ in range(ROUNDS):
        leading = max(trial.ess_per_second for trial in trials.values() if trial.agrees)
        for each in [each for each, trial in trials.items() if trial.too_short or trial.ess_per_second > leading / 2]:
            trial = running.run(kernels[each], 2 * SECONDS, 4 * ENOUGH)
            trials[each] = trials[each].and_then(trial) if trials[each].agrees else trial
    trials = pooled(kernels, trials)
    rates = {each: trial.ess_per_second for each, trial in trials.items() if trial.agrees}
    best = max(rates, key=rates.get)
    told = {
        "target": name,
        "versions": f"saltus {saltus.__version__}, jax {__import__('jax').__version__}",
        "best": best,
        **{mode: {"sampler": n, "of the best": rates.get(mode, 0.0) / rates[best]} for mode, (n, _) in picks.items()},
        "table": {mode: [vars(row) for row in found.rows] for mode, (_, found) in picks.items()},
        "ess_per_second": rates,
        "disagree": {each: trial.worth.rhat for each, trial in trials.items() if not trial.agrees},
        "seconds": time.perf_counter() - began,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"race-{name.replace(' ', '-')}.json").write_text(json.dumps(told, indent=1, default=str))


def shares(told, mode):
    """Of the best's effective draws per second: those of the sampler that was picked, and those of it as the race tuned it."""
    rates, name = told["ess_per_second"], told[mode]["sampler"]
    best = max(rates.values())
    return max(rates.get(name, 0.0), rates.get(mode, 0.0)) / best, rates.get(mode, 0.0) / best


def table():
    print(f"{'':<20}{'all may enter':<44}{'default':<44}")
    print(f"{'target':<20}{'picked':<26}{'of best':>8}{'tuned':>7}   {'picked':<26}{'of best':>8}{'tuned':>7}   best")
    good = {"pick": 0, "default": 0}
    for path in sorted(RESULTS.glob("race-*.json")):
        told, cells = json.loads(path.read_text()), ""
        for mode in good:
            sampler, tuned = shares(told, mode)
            good[mode] += sampler >= WITHIN
            cells += f"{told[mode]['sampler']:<26}{sampler:>8.2f}{tuned:>7.2f}   "
        names = {"pick": told["pick"]["sampler"], "default": told["default"]["sampler"]}
        print(f"{told['target']:<20}{cells}{names.get(told['best'], told['best'])}")
    print(f"within 20 % of the best: {good['pick']} where all samplers may enter, {good['default']} of the default race")


if __name__ == "__main__":
    names = [n for n in sys.argv[1:] if n in TARGETS] or list(TARGETS)
    for each in names if "--table" not in sys.argv else ():
        if len(names) == 1 or not (RESULTS / f"race-{each.replace(' ', '-')}.json").exists():
            print(f"{each} ...", flush=True)
            measure(each)
    table()
