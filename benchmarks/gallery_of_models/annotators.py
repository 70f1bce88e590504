"""Models of annotators, after numpyro/examples/annotation.py: as written there, and with the true classes summed out by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.infer.reparam import LocScaleReparam
from numpyro.ops.indexing import Vindex

from .compare import Case, nuts

SOURCE = "numpyro/examples/annotation.py"


def simulated(num_items: int, positions: np.ndarray, num_classes: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    right = rng.uniform(0.6, 0.9, positions.max() + 1)
    truth = rng.integers(num_classes, size=num_items)
    other = rng.integers(num_classes, size=(num_items, len(positions)))
    return np.where(rng.uniform(size=other.shape) < right[positions], truth[:, None], other)


POSITIONS = np.array([0, 0, 1, 2, 3])
THREE, TWO = simulated(30, POSITIONS, 3, 1), simulated(25, POSITIONS, 2, 2)


def multinomial(annotations):
    num_classes = int(np.max(annotations)) + 1
    num_items, num_positions = annotations.shape
    with numpyro.plate("class", num_classes):
        zeta = numpyro.sample("zeta", dist.Dirichlet(jnp.ones(num_classes)))
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(num_classes)))
    with numpyro.plate("item", num_items, dim=-2):
        c = numpyro.sample("c", dist.Categorical(pi))
        with numpyro.plate("position", num_positions):
            numpyro.sample("y", dist.Categorical(zeta[c]), obs=annotations)


def told(log_p: jax.Array, pi: jax.Array) -> None:
    """The classes summed out: log_p (items, classes). What does not depend on their labels is kept."""
    numpyro.factor("classes", jax.scipy.special.logsumexp(log_p, axis=1).sum())
    p = jax.nn.softmax(log_p, axis=1)
    pairs = p @ p.T
    numpyro.deterministic("same_class", pairs[np.triu_indices(len(p), 1)].mean())
    numpyro.deterministic("concentration", jnp.sum(pi**2))


def seen(draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    c, pi = draws["c"][..., 0], draws["pi"]
    i, j = np.triu_indices(c.shape[-1], 1)
    return {"same_class": (c[..., i] == c[..., j]).mean(-1), "concentration": (pi**2).sum(-1)}


def multinomial_summed(annotations):
    num_classes = int(np.max(annotations)) + 1
    with numpyro.plate("class", num_classes):
        zeta = numpyro.sample("zeta", dist.Dirichlet(jnp.ones(num_classes)))
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(num_classes)))
    told(jnp.log(pi) + jnp.log(zeta)[:, annotations].sum(-1).T, pi)
    numpyro.deterministic("sharpness", jnp.sum(pi * (zeta**2).sum(-1)))


def multinomial_seen(draws):
    return {**seen(draws), "sharpness": (draws["pi"] * (draws["zeta"] ** 2).sum(-1)).sum(-1)}


def dawid_skene(positions, annotations):
    num_annotators, num_classes = int(np.max(positions)) + 1, int(np.max(annotations)) + 1
    num_items, num_positions = annotations.shape
    with numpyro.plate("annotator", num_annotators, dim=-2), numpyro.plate("class", num_classes):
        beta = numpyro.sample("beta", dist.Dirichlet(jnp.ones(num_classes)))
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(num_classes)))
    with numpyro.plate("item", num_items, dim=-2):
        c = numpyro.sample("c", dist.Categorical(pi), infer={"enumerate": "parallel"})
        with numpyro.plate("position", num_positions):
            numpyro.sample("y", dist.Categorical(Vindex(beta)[positions, c, :]), obs=annotations)


def dawid_skene_summed(positions, annotations):
    num_annotators, num_classes = int(np.max(positions)) + 1, int(np.max(annotations)) + 1
    with numpyro.plate("annotator", num_annotators, dim=-2), numpyro.plate("class", num_classes):
        beta = numpyro.sample("beta", dist.Dirichlet(jnp.ones(num_classes)))
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(num_classes)))
    told(jnp.log(pi) + jnp.log(beta)[positions[None, :], :, annotations].sum(1), pi)
    numpyro.deterministic("sharpness", jnp.sum(pi * (beta**2).sum(-1), -1))


def dawid_skene_seen(draws):
    return {**seen(draws), "sharpness": (draws["pi"][..., None, :] * (draws["beta"] ** 2).sum(-1)).sum(-1)}


def mace(positions, annotations):
    num_annotators, num_classes = int(np.max(positions)) + 1, int(np.max(annotations)) + 1
    num_items, num_positions = annotations.shape
    with numpyro.plate("annotator", num_annotators):
        epsilon = numpyro.sample("epsilon", dist.Dirichlet(jnp.full(num_classes, 10)))
        theta = numpyro.sample("theta", dist.Beta(0.5, 0.5))
    with numpyro.plate("item", num_items, dim=-2):
        c = numpyro.sample("c", dist.DiscreteUniform(0, num_classes - 1), infer={"enumerate": "parallel"})
        with numpyro.plate("position", num_positions):
            s = numpyro.sample("s", dist.Bernoulli(1 - theta[positions]), infer={"enumerate": "parallel"})
            probs = jnp.where(s[..., None] == 0, jax.nn.one_hot(c, num_classes), epsilon[positions])
            numpyro.sample("y", dist.Categorical(probs), obs=annotations)


def mace_summed(positions, annotations):
    num_annotators, num_classes = int(np.max(positions)) + 1, int(np.max(annotations)) + 1
    with numpyro.plate("annotator", num_annotators):
        epsilon = numpyro.sample("epsilon", dist.Dirichlet(jnp.full(num_classes, 10)))
        theta = numpyro.sample("theta", dist.Beta(0.5, 0.5))
    spam = ((1 - theta)[positions] * epsilon[positions, annotations])[..., None]
    knows = theta[positions][:, None] * (annotations[..., None] == np.arange(num_classes))
    log_p = jnp.log(spam + knows).sum(1) - jnp.log(num_classes)
    numpyro.factor("classes", jax.scipy.special.logsumexp(log_p, axis=1).sum())
    p = jax.nn.softmax(log_p, axis=1)
    numpyro.deterministic("c", (p @ jnp.arange(num_classes))[:, None])
    numpyro.deterministic("s", jnp.sum(p[:, None] * spam / (spam + knows), -1))


def item_difficulty(annotations):
    num_classes = int(np.max(annotations)) + 1
    num_items, num_positions = annotations.shape
    with numpyro.plate("class", num_classes):
        eta = numpyro.sample("eta", dist.Normal(0, 1).expand([num_classes - 1]).to_event(1))
        chi = numpyro.sample("Chi", dist.HalfNormal(1).expand([num_classes - 1]).to_event(1))
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(num_classes)))
    with numpyro.plate("item", num_items, dim=-2):
        c = numpyro.sample("c", dist.Categorical(pi), infer={"enumerate": "parallel"})
        with handlers.reparam(config={"theta": LocScaleReparam(0)}):
            theta = numpyro.sample("theta", dist.Normal(eta[c], chi[c]).to_event(1))
            theta = jnp.pad(theta, [(0, 0)] * (jnp.ndim(theta) - 1) + [(0, 1)])
        with numpyro.plate("position", num_positions):
            numpyro.sample("y", dist.Categorical(logits=theta), obs=annotations)


def item_difficulty_summed(annotations):
    num_classes, num_items = int(np.max(annotations)) + 1, len(annotations)
    with numpyro.plate("class", num_classes):
        eta = numpyro.sample("eta", dist.Normal(0, 1).expand([num_classes - 1]).to_event(1))
        chi = numpyro.sample("Chi", dist.HalfNormal(1).expand([num_classes - 1]).to_event(1))
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(num_classes)))
    with numpyro.plate("item", num_items, dim=-2):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([1, num_classes - 1]).to_event(2))
    theta = jnp.pad(eta + chi * jnp.reshape(z, (num_items, 1, -1)), [(0, 0), (0, 0), (0, 1)])  # (items, classes, values)
    log_y = jax.nn.log_softmax(theta)
    counts = jax.nn.one_hot(annotations, num_classes).sum(1)[:, None]
    told(jnp.log(pi) + (log_y * counts).sum(-1), pi)


CASES = [
    Case(
        "multinomial annotators",
        "numpyro",
        SOURCE,
        multinomial,
        (THREE,),
        lambda: nuts(multinomial_summed, THREE, names=("same_class", "concentration", "sharpness")),
        multinomial_seen,
    ),
    Case(
        "Dawid and Skene",
        "numpyro",
        SOURCE,
        dawid_skene,
        (POSITIONS, TWO),
        lambda: nuts(dawid_skene_summed, POSITIONS, TWO, names=("same_class", "concentration", "sharpness")),
        dawid_skene_seen,
    ),
    Case("MACE", "numpyro", SOURCE, mace, (POSITIONS, THREE), lambda: nuts(mace_summed, POSITIONS, THREE)),
    Case(
        "item difficulty",
        "numpyro",
        SOURCE,
        item_difficulty,
        (TWO,),
        lambda: nuts(item_difficulty_summed, TWO, names=("same_class", "concentration")),
        seen,
    ),
]
