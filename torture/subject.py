"""The small run that is tortured, what it should draw, and a neighbour that nobody may touch."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax

import saltus
from saltus.engine import drive, recording

warnings.simplefilter("ignore")  # so few draws are doubted, of trials
recording._MOST_ROWS = 8  # many blocks
drive._CHUNK_SECONDS = 1e-4  # many chunks: a state after each
TARGET = saltus.Target(lambda s: 0.3 * jnp.sum(s[1:] * s[:-1]) - 0.1 * s[0], saltus.Spin(5))
KERNEL = saltus.UniformMH(2)
RACERS = [saltus.UniformMH(2), saltus.Gibbs()]
OPTIMISER = optax.sgd(0.01)
NUM_DRAWS, LONGER = 44, 61
NEIGHBOURS = ("run.zarr.old/precious.txt", "c.old/precious.txt", "c.aside", "run.zarr.lock", "notes.txt")


def draw(home: Path | None, store: bool = False, sampler=KERNEL, **settings):
    places = {"checkpoint": home / "c", "checkpoint_every": 1e-9} if home else {}
    places |= {"store": home / "run.zarr"} if home and store else {}
    given = dict(num_draws=NUM_DRAWS, num_warmup=9, num_chains=2, thin=1, seed=3, keep_warmup=True, progress=False)
    return saltus.sample(TARGET, sampler, **{**given, **places, **settings})


def resume(home: Path, **settings):
    return saltus.resume(home / "c", TARGET, progress=False, checkpoint_every=1e-9, **settings)


def numbers(run) -> dict[str, np.ndarray]:
    groups = ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats")
    return {f"{g}/{n}": np.asarray(run[g][n]) for g in groups if g in run.children for n in run[g].data_vars}


def same(run, expected) -> bool:
    found = numbers(run)
    return set(found) == set(expected) and all(np.array_equal(found[n], expected[n]) for n in expected)


@cache
def expected(num_draws: int = NUM_DRAWS, seed: int = 3) -> dict[str, np.ndarray]:
    return numbers(draw(None, num_draws=num_draws, seed=seed))


def is_its_own_kernels(run) -> bool:
    """Whether the draws are those of the kernel that the run names, from the start that it names."""
    start = np.asarray(run["start"].s) if "start" in run.children else None  # after a race; else by the seed
    again = draw(None, sampler=saltus.kernel_of(run), initial=start, num_warmup=run.attrs["num_warmup"], thin=run.attrs["thin"])
    found = numbers(run)
    return all(np.array_equal(found[name], value) for name, value in numbers(again).items())


def train(home: Path | None, **settings):
    data = np.array([[1, 1, 0, 1], [0, 0, 1, 0]] * 4)
    places = {"checkpoint": home / "c", "checkpoint_every": 1e-9} if home else {}
    given = dict(optimiser=OPTIMISER, num_updates=6, num_steps=1, batch_size=4, buffer_size=4, retune=False, progress=False)
    return saltus.training.pcd(model(), data, saltus.UniformMH(1), **{**given, **places, **settings})


@cache
def model():
    return saltus.Target(lambda s, w: jnp.sum(w * s), saltus.Binary(4), params=jnp.zeros(4))


def with_neighbours(home: Path) -> Path:
    for name in NEIGHBOURS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("a year of work")
    return home


def untouched(home: Path) -> bool:
    return all((home / name).is_file() and (home / name).read_text() == "a year of work" for name in NEIGHBOURS)
