"""The targets of the files in this folder. Weights are sums of powers of two: log_prob is exact in float32."""

import jax.numpy as jnp
import numpy as np

import saltus

DATA = np.array([[0, 0, 1], [1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1]])


def chain(s):
    return 0.5 * jnp.sum(s[1:] * s[:-1]) - 0.25 * s[0]


def ladder(s):
    return 0.5 * jnp.sum(s[1:] * s[:-1]) - 0.25 * jnp.sum(s**2)


binary = saltus.Target(chain, saltus.Binary(4), names=("a", "b", "c", "d"))
ordinal = saltus.Target(ladder, saltus.Ordinal(3, [-1.0, 0.0, 0.5, 2.0]))


def model():
    """What the trained model was trained from, with the parameters it began with."""
    return saltus.training.models.ising(saltus.Binary(3), coupling=np.zeros((3, 3)))
