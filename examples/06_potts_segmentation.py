"""Image segmentation: a Potts prior cleans a noisy picture."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saltus

rng = np.random.default_rng(0)
y, x = np.mgrid[:24, :24]
truth = ((x - 11) ** 2 + (y - 11) ** 2 < 60).astype(int) + (x > 17)
noisy = truth + 0.8 * rng.normal(size=truth.shape)
fields = -0.5 * (noisy.reshape(-1, 1) - np.arange(3)) ** 2 / 0.8**2
rows, columns = np.arange(576).reshape(24, 24), np.arange(576).reshape(24, 24)
pairs = np.concatenate([np.stack([rows[:, :-1], rows[:, 1:]], -1), np.stack([columns[:-1], columns[1:]], -1).transpose(1, 0, 2)], 1)
pairs = pairs.reshape(-1, 2)


def log_prob(s):
    """Neighbours like the same label; each pixel likes the label near its grey."""
    return jnp.sum(jnp.asarray(fields) * s) + 1.2 * jnp.sum(s[pairs[:, 0]] * s[pairs[:, 1]])


target = saltus.Target(log_prob, saltus.Categorical(576, 3))
run = saltus.sample(target, saltus.Gibbs("coloured"), num_draws=200, num_warmup=200, thin=1, num_chains=2, progress=False)
share = np.stack([(run.posterior["s"].values == label).mean((0, 1)) for label in range(3)], -1)
figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
pictures = {"truth": truth, "seen": noisy, "most probable label": share.argmax(-1).reshape(24, 24)}
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
