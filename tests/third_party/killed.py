"""A run of one of the stranger's samplers in a process of its own: python killed.py SAMPLER FOLDER."""

import sys

import jax.numpy as jnp
import stranger

import saltus


def chain(s):
    """f of a small chain of two-valued sites."""
    return 0.6 * jnp.sum(s[1:] * s[:-1]) - 0.3 * jnp.sum(s) + 0.2 * s[0] * s[2]


def target():
    return saltus.Target(chain, saltus.Binary(4))


TARGET = target()
ASKED = stranger.ShortPaths(3)  # for the command line, which finds kernels as well as classes
KERNELS = {
    "Hopper": stranger.Hopper(),
    "GuidedWalk": stranger.GuidedWalk(),
    "TwoReplicas": stranger.TwoReplicas(),
    "Jumps": stranger.Jumps(),
    "ShortPaths": stranger.ShortPaths(3),
    "Undeclared": stranger.Undeclared(0.8),
}


def run(name, folder=None, **settings):
    given = dict(num_draws=200_000, num_warmup=1000, num_chains=2, thin=1, seed=3, progress=False)
    kept = dict(checkpoint=f"{folder}/run.ckpt", checkpoint_every=0.02) if folder else {}
    return saltus.sample(target(), KERNELS[name], **{**given, **kept, **settings})


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2])
