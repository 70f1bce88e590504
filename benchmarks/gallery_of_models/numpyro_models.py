"""Models as NumPyro's users write them: mixtures, missing values, networks, counts, and those that must be refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from . import annotators, sequences
from .compare import Case, enumerated, exact, nuts, summed

RNG = np.random.default_rng(5)


def mixed_docstring(probs, locs):
    c = numpyro.sample("c", dist.Categorical(probs))
    numpyro.sample("x", dist.Normal(locs[c], 0.5))


PROBS, LOCS = np.array([0.15, 0.3, 0.3, 0.25]), np.array([-2, 0, 2, 4])


def components(y):
    weights = numpyro.sample("weights", dist.Dirichlet(2 * jnp.ones(3)))
    locs = numpyro.sample("locs", dist.TransformedDistribution(dist.Normal(0, 5).expand([3]), dist.transforms.OrderedTransform()))
    with numpyro.plate("components", 3):
        scales = numpyro.sample("scales", dist.Gamma(4.0, 4.0))
    with numpyro.plate("data", len(y)):
        z = numpyro.sample("z", dist.Categorical(weights))
        numpyro.sample("y", dist.Normal(locs[z], scales[z]), obs=y)


def components_summed(y):
    weights = numpyro.sample("weights", dist.Dirichlet(2 * jnp.ones(3)))
    locs = numpyro.sample("locs", dist.TransformedDistribution(dist.Normal(0, 5).expand([3]), dist.transforms.OrderedTransform()))
    with numpyro.plate("components", 3):
        scales = numpyro.sample("scales", dist.Gamma(4.0, 4.0))
    log_p = jnp.log(weights) + dist.Normal(locs, scales).log_prob(y[:, None])
    numpyro.factor("y", jax.scipy.special.logsumexp(log_p, 1).sum())
    numpyro.deterministic("z", jax.nn.softmax(log_p, 1) @ jnp.arange(3))


THREE = np.concatenate([RNG.normal(-4, 0.8, 20), RNG.normal(0, 1, 25), RNG.normal(5, 1.2, 15)]).astype(np.float32)


def imputed(A, B, missing, Y):
    """B has holes; whether it is one depends on A, and Y on both."""
    b = numpyro.sample("b", dist.Normal(0, 2.5).expand([3]))
    a = numpyro.sample("a", dist.Normal(0, 1.5).expand([2]))
    sd = numpyro.sample("sd", dist.HalfCauchy(2.5))
    probs = jax.nn.sigmoid(a[0] + a[1] * A)
    filled = numpyro.sample("B_impute", dist.Bernoulli(probs[missing]).mask(False), infer={"enumerate": "parallel"})
    whole = jnp.asarray(B).at[missing].set(filled)
    numpyro.sample("obs_B", dist.Bernoulli(probs), obs=whole)
    numpyro.sample("obs", dist.Normal(b[0] + b[1] * A + b[2] * whole, sd), obs=Y)


def imputed_summed(A, B, missing, Y):
    b = numpyro.sample("b", dist.Normal(0, 2.5).expand([3]))
    a = numpyro.sample("a", dist.Normal(0, 1.5).expand([2]))
    sd = numpyro.sample("sd", dist.HalfCauchy(2.5))
    each = jnp.arange(2)[:, None]
    log_p = dist.Bernoulli(jax.nn.sigmoid(a[0] + a[1] * A)).log_prob(each)
    log_p += dist.Normal(b[0] + b[1] * A + b[2] * each, sd).log_prob(Y)
    known = np.setdiff1d(np.arange(len(A)), missing)
    numpyro.factor("known", log_p[np.asarray(B)[known], known].sum())
    numpyro.factor("missing", jax.scipy.special.logsumexp(log_p[:, missing], 0).sum())
    numpyro.deterministic("B_impute", jax.nn.softmax(log_p[:, missing], 0)[1])


_A = RNG.normal(size=40).astype(np.float32)
_B = (RNG.uniform(size=40) < 1 / (1 + np.exp(-1.5 * _A))).astype(np.int32)
_Y = (0.5 - 0.3 * _A + 1.2 * _B + 0.6 * RNG.normal(size=40)).astype(np.float32)
MISSING = np.arange(0, 40, 4)
IMPUTED = (_A, np.where(np.isin(np.arange(40), MISSING), 0, _B), MISSING, _Y)


def inflated(X, y):
    """Gates that say which zeros are structural."""
    b = numpyro.sample("b", dist.Normal(0, 1).expand([2]))
    gate = numpyro.sample("gate", dist.Beta(1, 1))
    with numpyro.plate("visits", len(y)):
        closed = numpyro.sample("closed", dist.Bernoulli(gate))
        rate = jnp.exp(X @ b) * (1 - closed)
        numpyro.sample("y", dist.Poisson(rate + 1e-6 * closed), obs=y)


def inflated_summed(X, y):
    b = numpyro.sample("b", dist.Normal(0, 1).expand([2]))
    gate = numpyro.sample("gate", dist.Beta(1, 1))
    log_p = jnp.stack([jnp.log1p(-gate) + dist.Poisson(jnp.exp(X @ b)).log_prob(y), jnp.log(gate) + dist.Poisson(1e-6).log_prob(y)])
    numpyro.factor("y", jax.scipy.special.logsumexp(log_p, 0).sum())
    numpyro.deterministic("closed", jax.nn.softmax(log_p, 0)[1])


_X = np.stack([np.ones(50), RNG.normal(size=50)], 1).astype(np.float32)
_FISH = RNG.poisson(np.exp(_X @ [0.5, 0.7]) * (RNG.uniform(size=50) < 0.6))


def responses(person, item, y, missing):
    """Item responses; answers that are missing are latent."""
    num_persons, num_items = int(person.max()) + 1, int(item.max()) + 1
    with numpyro.plate("persons", num_persons):
        ability = numpyro.sample("ability", dist.Normal(0, 1))
    with numpyro.plate("items", num_items):
        difficulty = numpyro.sample("difficulty", dist.Normal(0, 1))
    logits = ability[person] - difficulty[item]
    with numpyro.plate("missing", len(missing)):
        latent = numpyro.sample("answer", dist.Bernoulli(logits=logits[missing]))
    known = np.setdiff1d(np.arange(len(y)), missing)
    numpyro.sample("y", dist.Bernoulli(logits=logits[known]), obs=y[known])
    numpyro.deterministic("score", y[known].sum() + latent.sum())


def responses_summed(person, item, y, missing):
    with numpyro.plate("persons", int(person.max()) + 1):
        ability = numpyro.sample("ability", dist.Normal(0, 1))
    with numpyro.plate("items", int(item.max()) + 1):
        difficulty = numpyro.sample("difficulty", dist.Normal(0, 1))
    logits = ability[person] - difficulty[item]
    known = np.setdiff1d(np.arange(len(y)), missing)
    numpyro.sample("y", dist.Bernoulli(logits=logits[known]), obs=y[known])
    p = numpyro.deterministic("answer", jax.nn.sigmoid(logits[missing]))
    numpyro.deterministic("score", y[known].sum() + p.sum())


_PERSON, _ITEM = (x.ravel() for x in np.meshgrid(np.arange(15), np.arange(8), indexing="ij"))
_RIGHT = (RNG.uniform(size=120) < 1 / (1 + np.exp(RNG.normal(size=8)[_ITEM] - RNG.normal(size=15)[_PERSON]))).astype(np.int32)
ANSWERS = (_PERSON, _ITEM, _RIGHT, np.arange(3, 120, 10))


def sprinkler():
    cloudy = numpyro.sample("cloudy", dist.Bernoulli(0.5))
    on = numpyro.sample("sprinkler", dist.Bernoulli(jnp.where(cloudy == 1, 0.1, 0.5)))
    rain = numpyro.sample("rain", dist.Bernoulli(jnp.where(cloudy == 1, 0.8, 0.2)))
    wet = jnp.where(on * rain == 1, 0.99, jnp.where(on + rain == 1, 0.9, 0.01))
    numpyro.sample("wet", dist.Bernoulli(wet), obs=1)


def topics(words, documents, num_words):
    """Latent Dirichlet allocation with a topic for every word."""
    num_documents = int(documents.max()) + 1
    with numpyro.plate("topics", 2):
        phi = numpyro.sample("phi", dist.Dirichlet(jnp.ones(num_words)))
    with numpyro.plate("documents", num_documents):
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.ones(2)))
    with numpyro.plate("words", len(words)):
        z = numpyro.sample("z", dist.Categorical(theta[documents]))
        numpyro.sample("w", dist.Categorical(phi[z]), obs=words)


def topics_summed(words, documents, num_words):
    with numpyro.plate("topics", 2):
        phi = numpyro.sample("phi", dist.Dirichlet(jnp.ones(num_words)))
    with numpyro.plate("documents", int(documents.max()) + 1):
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.ones(2)))
    log_p = jnp.log(theta[documents]) + jnp.log(phi[:, words]).T
    numpyro.factor("w", jax.scipy.special.logsumexp(log_p, 1).sum())
    p = jax.nn.softmax(log_p, 1)
    numpyro.deterministic("pairs", (p @ p.T)[_PAIRS].mean())
    numpyro.deterministic("peaks", (phi**2).sum())


def topics_seen(draws):
    z = draws["z"]
    return {"pairs": (z[..., _PAIRS[0]] == z[..., _PAIRS[1]]).mean(-1), "peaks": (draws["phi"] ** 2).sum((-2, -1))}


_DOCUMENTS = np.repeat(np.arange(6), 12)
_TOPIC = RNG.uniform(size=72) < np.array([0.1, 0.9, 0.2, 0.8, 0.5, 0.95])[_DOCUMENTS]
WORDS = (np.where(_TOPIC, RNG.integers(3, 6, 72), RNG.integers(0, 4, 72)), _DOCUMENTS, 6)
_PAIRS = np.triu_indices(72, 1)


def abundance(counts, most):
    """Animals at every site, counted several times."""
    p = numpyro.sample("p", dist.Beta(2, 2))
    with numpyro.plate("sites", len(counts)):
        n = numpyro.sample("n", dist.DiscreteUniform(0, most))
        with numpyro.plate("visits", counts.shape[1], dim=-2):
            numpyro.sample("y", dist.Binomial(n, p), obs=counts.T)


def abundance_summed(counts, most):
    p = numpyro.sample("p", dist.Beta(2, 2))
    n = jnp.arange(most + 1)
    possible = n >= counts.max(1)[:, None]
    log_y = dist.Binomial(jnp.maximum(n, counts.max(1)[:, None]), p).log_prob(counts.T[..., None]).sum(0)
    log_p = jnp.where(possible, log_y, -jnp.inf)
    numpyro.factor("y", jax.scipy.special.logsumexp(log_p, 1).sum())
    numpyro.deterministic("n", jax.nn.softmax(log_p, 1) @ n)


_ANIMALS = RNG.integers(4, 12, 6)
VISITS = RNG.binomial(_ANIMALS[:, None], 0.6, (6, 4))


def spike_and_slab(X, y):
    with numpyro.plate("columns", X.shape[1]):
        z = numpyro.sample("z", dist.Bernoulli(0.3))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(X @ (z * b), 0.7), obs=y)


def inclusion(X, y, slab=1.0, noise=0.7, prior=0.3):
    """P(z_i = 1 | y) by enumeration, coefficients integrated out."""
    states, log_p = (np.arange(2 ** X.shape[1])[:, None] >> np.arange(X.shape[1])) & 1, []
    for z in states:
        S = noise**2 * np.eye(len(y)) + slab**2 * X[:, z == 1] @ X[:, z == 1].T
        log_p.append(-0.5 * np.linalg.slogdet(S)[1] - 0.5 * y @ np.linalg.solve(S, y) + z.sum() * np.log(prior / (1 - prior)))
    p = np.exp(np.array(log_p) - max(log_p))
    return (p / p.sum()) @ states


_COLUMNS = RNG.normal(size=(30, 6)).astype(np.float32)
_TARGETS = (_COLUMNS[:, 0] - 0.4 * _COLUMNS[:, 3] + 0.7 * RNG.normal(size=30)).astype(np.float32)


def picture(noisy, coupling, flip):
    """A black and white picture: neighbours tend to be equal, pixels were flipped."""
    with numpyro.plate("rows", noisy.shape[0], dim=-2), numpyro.plate("columns", noisy.shape[1], dim=-1):
        z = numpyro.sample("z", dist.Bernoulli(0.5))
        numpyro.sample("y", dist.Bernoulli(jnp.where(z == 1, 1 - flip, flip)), obs=noisy)
    s = 2 * z - 1
    numpyro.factor("neighbours", coupling * (jnp.sum(s[1:] * s[:-1]) + jnp.sum(s[:, 1:] * s[:, :-1])))


PICTURE = (RNG.integers(0, 2, (3, 4)), 0.4, 0.2)


def blocks(adjacency):
    """A stochastic block model."""
    num = len(adjacency)
    within, between = numpyro.sample("within", dist.Beta(4, 2)), numpyro.sample("between", dist.Beta(2, 4))
    with numpyro.plate("nodes", num):
        z = numpyro.sample("z", dist.Bernoulli(0.5))
    i, j = np.triu_indices(num, 1)
    numpyro.sample("edges", dist.Bernoulli(jnp.where(z[i] == z[j], within, between)), obs=adjacency[i, j])


def blocks_seen(draws):
    z = draws["z"]
    return {"with_last": 1.0 * (z[..., :-1] == z[..., -1:]), "within": draws["within"], "between": draws["between"]}


def blocks_summed():
    """With the last node in block 1: labels may be exchanged, so z of the others says who is with it."""
    free = (np.arange(2 ** (len(NETWORK) - 1))[:, None] >> np.arange(len(NETWORK) - 1)) & 1
    found = summed(blocks, (NETWORK,), {"z": np.concatenate([free, np.ones_like(free[:, :1])], 1)})
    return {"with_last": tuple(x[:-1] for x in found.pop("z")), **found}


_BLOCK = np.arange(9) % 2
NETWORK = np.triu(RNG.uniform(size=(9, 9)) < np.where(_BLOCK[:, None] == _BLOCK, 0.75, 0.2), 1).astype(np.int32)


def poisson_counts(counts):
    """Abundance with a Poisson prior: no upper bound."""
    p = numpyro.sample("p", dist.Beta(2, 2))
    with numpyro.plate("sites", len(counts)):
        n = numpyro.sample("n", dist.Poisson(8.0))
        numpyro.sample("y", dist.Binomial(n.astype(int), p), obs=counts[:, 0])


def truncated_counts(counts):
    """The same with the way out that the error names."""
    p, rate = numpyro.sample("p", dist.Beta(2, 2)), numpyro.sample("rate", dist.Gamma(8.0, 1.0))
    with numpyro.plate("sites", len(counts)):
        n = numpyro.sample("n", dist.Categorical(logits=dist.Poisson(rate).log_prob(jnp.arange(40))))
        with numpyro.plate("visits", counts.shape[1], dim=-2):
            numpyro.sample("y", dist.Binomial(n, p), obs=counts.T)


def truncated_summed(counts):
    p, rate = numpyro.sample("p", dist.Beta(2, 2)), numpyro.sample("rate", dist.Gamma(8.0, 1.0))
    n, most = jnp.arange(40), counts.max(1)[:, None]
    log_y = dist.Binomial(jnp.maximum(n, most), p).log_prob(counts.T[..., None]).sum(0)
    log_p = jnp.where(n >= most, log_y + jax.nn.log_softmax(dist.Poisson(rate).log_prob(n)), -jnp.inf)
    numpyro.factor("y", jax.scipy.special.logsumexp(log_p, 1).sum())
    numpyro.deterministic("n", jax.nn.softmax(log_p, 1) @ n)


def compositions(total):
    p = numpyro.sample("p", dist.Dirichlet(jnp.ones(3)))
    k = numpyro.sample("k", dist.Multinomial(total, p))
    numpyro.sample("y", dist.Normal(1.0 * k, 1.0).to_event(1), obs=jnp.array([3.0, 4.0, 3.0]))


def survivors():
    n = numpyro.sample("born", dist.DiscreteUniform(1, 20))
    k = numpyro.sample("survived", dist.Binomial(n, 0.6))
    numpyro.sample("seen", dist.Normal(1.0 * k, 1.0), obs=5.0)


def branching():
    if numpyro.sample("rain", dist.Bernoulli(0.4)) == 1:
        numpyro.sample("umbrella", dist.Bernoulli(0.9))
    else:
        numpyro.sample("hat", dist.Bernoulli(0.5))


_GALLERY = "numpyro tutorial, discrete_imputation"
CASES = [
    *annotators.CASES,
    *sequences.CASES,
    Case(
        "four separate normals",
        "numpyro",
        "docstring of numpyro.infer.DiscreteHMCGibbs",
        mixed_docstring,
        (PROBS, LOCS),
        lambda: exact(x=PROBS @ LOCS, square=PROBS @ LOCS**2 + 0.25, c=PROBS @ np.arange(4)),
        lambda d: {**d, "square": d["x"] ** 2},
        settings={"num_draws": 20000},
    ),
    Case(
        "Gaussian mixture of three", "numpyro", "Pyro tutorial, gmm", components, (THREE,), lambda: nuts(components_summed, THREE)
    ),
    Case("missing binary covariate", "numpyro", _GALLERY, imputed, IMPUTED, lambda: nuts(imputed_summed, *IMPUTED)),
    Case(
        "zero-inflated counts with gates",
        "numpyro",
        "numpyro/examples/zero_inflated_poisson.py",
        inflated,
        (_X, _FISH),
        lambda: nuts(inflated_summed, _X, _FISH),
    ),
    Case(
        "item responses with missing answers",
        "numpyro",
        "NumPyro forum, item response theory",
        responses,
        ANSWERS,
        lambda: nuts(responses_summed, *ANSWERS),
    ),
    Case(
        "sprinkler",
        "numpyro",
        "Pearl's network, as in PyMC and Pyro forums",
        sprinkler,
        (),
        lambda: enumerated(sprinkler, (), {n: ((), [0, 1]) for n in ("cloudy", "sprinkler", "rain")}),
    ),
    Case(
        "topics of words",
        "numpyro",
        "pyro/examples/lda.py",
        topics,
        WORDS,
        lambda: nuts(topics_summed, *WORDS, names=("pairs", "peaks")),
        topics_seen,
    ),
    Case(
        "abundance, bounded counts",
        "numpyro",
        "Kery and Schaub 2011, N-mixture",
        abundance,
        (VISITS, 40),
        lambda: nuts(abundance_summed, VISITS, 40),
    ),
    Case(
        "spike and slab",
        "numpyro",
        "NumPyro forum, variable selection",
        spike_and_slab,
        (_COLUMNS, _TARGETS),
        lambda: exact(z=inclusion(_COLUMNS.astype(float), _TARGETS.astype(float))),
    ),
    Case(
        "noisy picture",
        "numpyro",
        "PyMC forum, Ising denoising",
        picture,
        PICTURE,
        lambda: enumerated(picture, PICTURE, {"z": ((3, 4), [0, 1])}),
    ),
    Case(
        "stochastic block model", "numpyro", "NumPyro forum, stochastic block model", blocks, (NETWORK,), blocks_summed, blocks_seen
    ),
    Case(
        "abundance, Poisson",
        "numpyro",
        "Kery and Schaub 2011, N-mixture",
        poisson_counts,
        (VISITS,),
        refused="'n' ~ Poisson has no upper bound",
    ),
    Case(
        "truncated count",
        "numpyro",
        "Kery and Schaub 2011, N-mixture; the way out that the error names",
        truncated_counts,
        (VISITS,),
        lambda: nuts(truncated_summed, VISITS),
    ),
    Case(
        "latent multinomial",
        "numpyro",
        "PyMC gallery, Dirichlet mixture of multinomials",
        compositions,
        (10,),
        refused="several numbers that depend on each other",
    ),
    Case(
        "survivors of the born",
        "numpyro",
        "Kery and Schaub 2011, state-space models",
        survivors,
        (),
        refused="The support of 'survived' depends on another site",
    ),
    Case("Python branches", "numpyro", "Pyro tutorial, introduction", branching, (), refused="other sites each time"),
]
