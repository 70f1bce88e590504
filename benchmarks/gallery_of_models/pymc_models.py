"""Models as PyMC's users write them, against numbers by summing or integrating, or NumPyro's NUTS on the summed-out model."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pymc as pm
from scipy.special import betaln, gammaln

from .compare import Case, exact, nuts

RNG = np.random.default_rng(11)
YEARS = np.arange(60)
DISASTERS = np.concatenate([RNG.poisson(3.1, 35), RNG.poisson(0.9, 25)])


def coal(counts=DISASTERS, truncated=False):
    with pm.Model(coords={"year": YEARS + 1851}) as model:
        switchpoint = pm.DiscreteUniform("switchpoint", lower=0, upper=len(YEARS) - 1)
        early_rate = pm.Exponential("early_rate", 1.0)
        late_rate = pm.Exponential("late_rate", 1.0)
        rate = pm.math.switch(switchpoint >= YEARS, early_rate, late_rate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if truncated:
                pm.Truncated("disasters", pm.Poisson.dist(rate), upper=40, observed=counts)
            else:
                pm.Poisson("disasters", rate, observed=counts, dims=None if np.ma.is_masked(counts) else "year")
    return model


def coal_exact(known=YEARS >= 0):
    """Rates integrated out: Gamma integrals for every switchpoint."""
    stops, y = np.arange(1, len(YEARS) + 1), np.where(known, DISASTERS, 0)
    a = np.array([[1 + y[:t].sum(), 1 + known[:t].sum(), 1 + y[t:].sum(), 1 + known[t:].sum()] for t in stops], float)
    log_p = gammaln(a[:, 0]) - a[:, 0] * np.log(a[:, 1]) + gammaln(a[:, 2]) - a[:, 2] * np.log(a[:, 3])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return exact(switchpoint=p @ (stops - 1), early_rate=p @ (a[:, 0] / a[:, 1]), late_rate=p @ (a[:, 2] / a[:, 3]))


def cheating(num=40, yes=17):
    with pm.Model() as model:
        p = pm.Uniform("freq_cheating", 0, 1)
        true_answers = pm.Bernoulli("truths", p, shape=num)
        first = pm.Bernoulli("first_flips", 0.5, shape=num)
        second = pm.Bernoulli("second_flips", 0.5, shape=num)
        value = first * true_answers + (1 - first) * second
        observed_proportion = pm.Deterministic("prop_cheating", pm.math.sum(value) / num)
        pm.Binomial("obs", num, observed_proportion, observed=yes)
    return model


def cheating_exact(num=40, yes=17):
    """Each answers yes with probability p/2 + 1/4; a second binomial of the share of those, then a grid of p."""
    p, k = np.linspace(0, 1, 4001)[1:-1], np.arange(num + 1)
    share = p[:, None] / 2 + 0.25
    log_k = gammaln(num + 1) - gammaln(k + 1) - gammaln(num - k + 1) + k * np.log(share) + (num - k) * np.log1p(-share)
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.where(k * (num - k) > 0, yes * np.log(k / num) + (num - yes) * np.log1p(-k / num), -np.inf)
    joint = np.exp(log_k + seen - (log_k + seen).max())
    joint /= joint.sum()
    return exact(freq_cheating=joint.sum(1) @ p, prop_cheating=joint.sum(0) @ k / num)


SCORES = np.array([21, 17, 21, 18, 22, 31, 31, 34, 34, 35, 35, 36, 39, 36, 35])


def exams(k=SCORES, n=40):
    with pm.Model() as model:
        phi = pm.TruncatedNormal("phi", mu=0.75, sigma=0.2, lower=0.5, upper=1)
        z = pm.Bernoulli("z", p=0.5, shape=len(k))
        theta = pm.Deterministic("theta", pm.math.switch(pm.math.eq(z, 0), 0.5, phi))
        pm.Binomial("k", n=n, p=theta, observed=k)
    return model


def exams_exact(k=SCORES, n=40):
    phi = np.linspace(0.5, 1, 4001)[1:-1, None]
    prior = np.exp(-0.5 * ((phi[:, 0] - 0.75) / 0.2) ** 2)
    knows, guesses = k * np.log(phi) + (n - k) * np.log1p(-phi), n * np.log(0.5)
    log_p = np.logaddexp(knows, guesses).sum(1) + np.log(prior)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return exact(phi=p @ phi[:, 0], z=p @ (1 / (1 + np.exp(guesses - knows))))


RETURNED = np.array([16, 18, 22, 25, 27])


def surveys(k=RETURNED, most=60):
    with pm.Model() as model:
        theta = pm.Beta("theta", 4, 4)
        total = pm.DiscreteUniform("total", lower=int(k.max()), upper=most)
        pm.Binomial("k", n=total, p=theta, observed=k)
    return model


def surveys_exact(k=RETURNED, most=60):
    n = np.arange(k.max(), most + 1)
    a, b = 4 + k.sum(), 4 + (n[:, None] - k).sum(1)
    log_p = (gammaln(n[:, None] + 1) - gammaln(n[:, None] - k + 1)).sum(1) + betaln(a, b)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return exact(total=p @ n, theta=p @ (a / (a + b)))


QUIZ = (RNG.uniform(size=(8, 8)) < np.where((np.arange(8) % 2)[:, None] == np.arange(8) // 4, 0.8, 0.25)).astype(int)


def quiz(k=QUIZ):
    with pm.Model() as model:
        beta = pm.Beta("beta", 1, 1)
        alpha = pm.Uniform("alpha", beta, 1)
        x = pm.Bernoulli("x", 0.5, shape=k.shape[0])
        z = pm.Bernoulli("z", 0.5, shape=k.shape[1])
        theta = pm.math.switch(pm.math.eq(x[:, None], z[None]), alpha, beta)
        pm.Bernoulli("k", theta, observed=k)
    return model


def quiz_summed(k):
    beta = numpyro.sample("beta", dist.Beta(1, 1))
    alpha = numpyro.sample("alpha", dist.Uniform(beta, 1))
    z = (np.arange(256)[:, None] >> np.arange(8)) & 1  # for every z, each x is on its own
    log_p = jnp.stack([jnp.log(alpha), jnp.log(beta), jnp.log1p(-alpha), jnp.log1p(-beta)])
    same = jnp.where(k[:, None] == 1, log_p[0], log_p[2]), jnp.where(k[:, None] == 1, log_p[1], log_p[3])
    each = [jnp.where(z == v, *same).sum(-1) for v in (0, 1)]  # (persons, states)
    numpyro.factor("k", jax.scipy.special.logsumexp(jnp.logaddexp(*each).sum(0)))


X_DATA = np.linspace(-2, 2, 24)
Y_DATA = 1 + 2 * X_DATA + 0.3 * RNG.normal(size=24)
Y_DATA[[3, 10, 19]] += [4, -5, 6]


def outliers(x=X_DATA, y=Y_DATA):
    with pm.Model(coords={"point": np.arange(len(x))}) as model:
        beta = pm.Normal("beta", 0, 10, shape=2)
        mean_out, sigma_out = pm.Normal("mean_out", 0, 10), pm.HalfNormal("sigma_out", 10)
        fraction = pm.Uniform("fraction", 0, 0.5)
        is_outlier = pm.Bernoulli("is_outlier", fraction, dims="point")
        mu = beta[0] + beta[1] * x
        inlier = pm.logp(pm.Normal.dist(mu, 0.3), y)
        outlier = pm.logp(pm.Normal.dist(mean_out, sigma_out + 0.3), y)
        pm.Potential("y", pm.math.sum((1 - is_outlier) * inlier + is_outlier * outlier))
    return model


def outliers_summed(x, y):
    beta = numpyro.sample("beta", dist.Normal(0, 10).expand([2]))
    mean_out, sigma_out = numpyro.sample("mean_out", dist.Normal(0, 10)), numpyro.sample("sigma_out", dist.HalfNormal(10))
    fraction = numpyro.sample("fraction", dist.Uniform(0, 0.5))
    inlier = jnp.log1p(-fraction) + dist.Normal(beta[0] + beta[1] * x, 0.3).log_prob(y)
    outlier = jnp.log(fraction) + dist.Normal(mean_out, sigma_out + 0.3).log_prob(y)
    numpyro.factor("y", jnp.logaddexp(inlier, outlier).sum())
    numpyro.deterministic("is_outlier", jax.nn.sigmoid(outlier - inlier))


HEIGHTS = np.concatenate([RNG.normal(-2, 1, 25), RNG.normal(2.5, 1, 15)])


def categories(y=HEIGHTS):
    with pm.Model(coords={"cluster": ["low", "high"], "obs": np.arange(len(y))}) as model:
        p = pm.Dirichlet("p", np.ones(2), dims="cluster")
        mu = pm.Normal("mu", 0, 5, dims="cluster", transform=pm.distributions.transforms.ordered, initval=[-1, 1])
        sigma = pm.HalfNormal("sigma", 2)
        category = pm.Categorical("category", p, dims="obs")
        pm.Normal("y", mu[category], sigma, observed=y, dims="obs")
    return model


def categories_summed(y):
    p = numpyro.sample("p", dist.Dirichlet(jnp.ones(2)))
    mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior", dist.Normal(0, 5).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2))
    log_p = jnp.log(p) + dist.Normal(mu, sigma).log_prob(y[:, None])
    numpyro.factor("y", jax.scipy.special.logsumexp(log_p, 1).sum())
    numpyro.deterministic("category", jax.nn.softmax(log_p, 1)[:, 1])


def two_models(heads=22, flips=30):
    with pm.Model() as model:
        index = pm.Categorical("model_index", p=np.array([0.5, 0.5]))
        a = pm.math.switch(pm.math.eq(index, 0), 4.0, 16.0)
        b = pm.math.switch(pm.math.eq(index, 0), 16.0, 8.0)
        theta = pm.Beta("theta", a, b)
        pm.Binomial("y", flips, theta, observed=heads)
    return model


def two_models_exact(heads=22, flips=30):
    a, b = np.array([4.0, 16.0]), np.array([16.0, 8.0])
    log_p = betaln(a + heads, b + flips - heads) - betaln(a, b)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return exact(model_index=p[1], theta=p @ ((a + heads) / (a + b + flips)))


COVER = RNG.normal(size=30)
_OCCUPIED = RNG.uniform(size=30) < 1 / (1 + np.exp(-COVER))
DETECTED = (RNG.uniform(size=(30, 3)) < 0.4 * _OCCUPIED[:, None]).astype(int)


def occupancy(X=COVER, y=DETECTED):
    with pm.Model(coords={"quadrats": np.arange(len(y)), "surveys": np.arange(y.shape[1])}) as model:
        beta = pm.Normal("beta", 0, 2, shape=2)
        alpha = pm.Normal("alpha", 0, 2)
        z = pm.Bernoulli("z", pm.math.invlogit(beta[0] + beta[1] * X), dims="quadrats")
        pm.Bernoulli("y", z[:, None] * pm.math.invlogit(alpha), dims=["quadrats", "surveys"], observed=y)
    return model


def occupancy_summed(X, y):
    beta = numpyro.sample("beta", dist.Normal(0, 2).expand([2]))
    alpha = numpyro.sample("alpha", dist.Normal(0, 2))
    there = jax.nn.log_sigmoid(beta[0] + beta[1] * X) + dist.Bernoulli(logits=alpha).log_prob(y).sum(1)
    empty = jnp.where(y.sum(1) > 0, -jnp.inf, jax.nn.log_sigmoid(-beta[0] - beta[1] * X))
    numpyro.factor("y", jnp.logaddexp(there, empty).sum())
    numpyro.deterministic("z", jax.nn.sigmoid(there - empty))


_PERSON, _ITEM = (x.ravel() for x in np.meshgrid(np.arange(12), np.arange(6), indexing="ij"))
_RIGHT = (RNG.uniform(size=72) < 1 / (1 + np.exp(RNG.normal(size=6)[_ITEM] - RNG.normal(size=12)[_PERSON]))).astype(int)
_HOLES = np.arange(2, 72, 9)


def missing_answers():
    answers = np.ma.masked_array(_RIGHT, np.isin(np.arange(72), _HOLES))
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ability, difficulty = pm.Normal("ability", 0, 1, shape=12), pm.Normal("difficulty", 0, 1, shape=6)
        pm.Bernoulli("answer", logit_p=ability[_PERSON] - difficulty[_ITEM], observed=answers)
    return model


def missing_answers_summed():
    ability = numpyro.sample("ability", dist.Normal(0, 1).expand([12]))
    difficulty = numpyro.sample("difficulty", dist.Normal(0, 1).expand([6]))
    logits = ability[_PERSON] - difficulty[_ITEM]
    known = np.setdiff1d(np.arange(72), _HOLES)
    numpyro.sample("y", dist.Bernoulli(logits=logits[known]), obs=_RIGHT[known])
    numpyro.deterministic("answer_unobserved", jax.nn.sigmoid(logits[_HOLES]))


STEPS = np.array([0.1, -0.3, 0.2, 2.2, 1.9, 2.4, 0.2, -0.1, 2.0, 1.7])


def chain(y=STEPS):
    """A Markov chain of states, one variable for each time."""
    P = np.array([[0.8, 0.2], [0.3, 0.7]])
    with pm.Model() as model:
        level = pm.Normal("level", 2, 1)
        states = [pm.Categorical("s0", p=np.array([0.5, 0.5]))]
        for t in range(1, len(y)):
            states.append(pm.Categorical(f"s{t}", p=pm.math.switch(pm.math.eq(states[-1], 0), P[0], P[1])))
        pm.Normal("y", level * pm.math.stack(states), 0.5, observed=y)
    return model


def chain_summed(y):
    P = jnp.array([[0.8, 0.2], [0.3, 0.7]])
    level = numpyro.sample("level", dist.Normal(2, 1))
    states = (np.arange(2 ** len(y))[:, None] >> np.arange(len(y))) & 1
    log_p = jnp.log(0.5) + jnp.log(P)[states[:, :-1], states[:, 1:]].sum(1) + dist.Normal(level * states, 0.5).log_prob(y).sum(1)
    numpyro.factor("y", jax.scipy.special.logsumexp(log_p))
    p = jax.nn.softmax(log_p)
    for t in range(len(y)):
        numpyro.deterministic(f"s{t}", p @ states[:, t])


MISSED = np.isin(YEARS, [5, 40])


def coal_missing():
    return coal(np.ma.masked_array(DISASTERS, MISSED))


def coal_truncated():
    return coal(np.ma.masked_array(DISASTERS, MISSED), truncated=True)


_BCM = "pymc-resources, Bayesian Cognitive Modeling, "
CASES = [
    Case("coal mining", "pymc", "PyMC introductory overview, case study 2", coal, (), coal_exact),
    Case("cheating students", "pymc", "Bayesian Methods for Hackers, chapter 2", cheating, (), cheating_exact),
    Case("exam scores", "pymc", _BCM + "6.1", exams, (), exams_exact),
    Case("returned surveys", "pymc", _BCM + "3.6", surveys, (), surveys_exact),
    Case("two-country quiz", "pymc", _BCM + "6.4", quiz, (), lambda: nuts(quiz_summed, QUIZ)),
    Case(
        "outliers",
        "pymc",
        "PyMC gallery, GLM-robust-with-outlier-detection",
        outliers,
        (),
        lambda: nuts(outliers_summed, X_DATA, Y_DATA),
    ),
    Case(
        "mixture with categories",
        "pymc",
        "PyMC gallery, gaussian_mixture_model",
        categories,
        (),
        lambda: nuts(categories_summed, HEIGHTS),
    ),
    Case("index of a model", "pymc", "PyMC gallery, Bayes_factor; Kruschke, chapter 10", two_models, (), two_models_exact),
    Case("occupancy", "pymc", "PyMC gallery, occupancy", occupancy, (), lambda: nuts(occupancy_summed, COVER, DETECTED)),
    Case(
        "missing binary answers",
        "pymc",
        "PyMC gallery, Missing_Data_Imputation",
        missing_answers,
        (),
        lambda: nuts(missing_answers_summed),
    ),
    Case(
        "chain of states",
        "pymc",
        "PyMC gallery, discrete_markov_chain_marginalization",
        chain,
        (),
        lambda: nuts(chain_summed, STEPS),
    ),
    Case(
        "coal mining with missing years",
        "pymc",
        "PyMC introductory overview, case study 2",
        coal_missing,
        (),
        refused="pm.Truncated('disasters', pm.Poisson.dist(...), upper=100, observed=...)",
    ),
    Case(
        "coal mining with missing years, truncated",
        "pymc",
        "the same, with the way out that the error names",
        coal_truncated,
        (),
        lambda: coal_exact(~MISSED),
    ),
]
