"""Where random numbers come from: one seed, the phases of all work that is done with it, and the chains' numbers.

The key of a step is folded from (seed, phase, chain, step). No two kinds of work share a phase, so none draws the numbers of
another.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .. import random

START, WARMUP, DRAWS = 0, 1, 2  # first states, burn-in, what is kept
TUNING, RACING = 3, 4  # before the run
TRAINING, ANNEALING = 5, 6
RESAMPLING = 7  # of weighted chains
OPTIMISING = 8

_STATE = 2**20  # in phase START: beyond every attempt at a first state


def seed_words(seed: int) -> np.ndarray:
    """The threefry key of a seed, as `jax.random.key(seed)` has it; whole 64 bits."""
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def wrapped(words: jax.Array) -> jax.Array:
    """Keys, from their words."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def chain_key(words: jax.Array, phase: Any, chain: jax.Array) -> jax.Array:
    """The key of a chain in a phase; words: of the seed."""
    return random.fold_in(random.fold_in(wrapped(words), phase), chain)


def chain_keys(seed: int, phase: int, chains: np.ndarray) -> np.ndarray:
    """(chains, 2) the words of the chains' keys in a phase, made on the host."""
    return random.folded(random.folded(seed_words(seed), [phase])[0], chains)


def state_keys(seed: int, chains: np.ndarray) -> np.ndarray:
    """(chains, 2) the words of keys for what a first state holds besides its codes, such as a momentum."""
    return random.folded(chain_keys(seed, START, chains), [_STATE])
