"""A NumPyro model with discrete sites, unchanged: which causes explain the symptoms?"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist

import saltus

rng = np.random.default_rng(1)
links = rng.uniform(0.2, 0.9, size=(10, 14)) * (rng.uniform(size=(10, 14)) < 0.3)  # P(cause j brings symptom i about)
seen = np.array([1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0])


def causes(seen):
    with numpyro.plate("cause", 10):
        present = numpyro.sample("present", dist.Bernoulli(0.15))
    nothing = jnp.log(0.99) + present @ jnp.log1p(-links)  # log-probability that a symptom stays away
    numpyro.sample("symptom", dist.Bernoulli(-jnp.expm1(nothing)), obs=seen)


target = saltus.bridges.numpyro.target(causes, seen)
run = saltus.sample(target, "gibbs", num_draws=2000, seed=0, progress=False)
print(saltus.summary(run))

drawn = run.posterior["present"].mean(("chain", "draw"))
exact = saltus.testing.exact_moments(target).means  # 1024 states: small enough to enumerate
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
axes[0].imshow(links, aspect="auto", cmap="Blues")
axes[0].set(
    xlabel="symptom (seen: ticks)", ylabel="cause", xticks=np.flatnonzero(seen), yticks=range(10), title="strength of links"
)
axes[1].barh(range(10), drawn, color="#0072B2", label="drawn")
axes[1].plot(exact, range(10), "kx", label="exact")
axes[1].invert_yaxis()
axes[1].set(xlabel="probability of being present", yticks=range(10), xlim=(0, 1))
axes[1].legend()
plt.show()
