"""Synthetic 16x16 digits: strokes drawn with a moving hand, so that examples and tests need no file."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .._record import as_size
from ..engine.arguments import read_seed
from ..errors import TrainingError
from .kinds import Images

SIDE = 16


def _arc(x: float, y: float, rx: float, ry: float, start: float, stop: float) -> list[tuple[float, float]]:
    angles = np.pi * np.linspace(start, stop, 9)
    return [(x + rx * float(np.cos(a)), y + ry * float(np.sin(a))) for a in angles]


# Strokes of every digit on [0, 1]², y downwards: points joined by straight lines.
_STROKES: list[list[list[tuple[float, float]]]] = [
    [_arc(0.5, 0.5, 0.33, 0.45, 0, 2)],
    [[(0.35, 0.2), (0.55, 0.05), (0.55, 0.95)]],
    [[*_arc(0.5, 0.3, 0.3, 0.25, -1, 0.15), (0.2, 0.95), (0.82, 0.95)]],
    [[*_arc(0.45, 0.28, 0.3, 0.23, -0.9, 0.5), *_arc(0.45, 0.73, 0.34, 0.22, -0.5, 0.9)]],
    [[(0.65, 0.95), (0.65, 0.05), (0.15, 0.65), (0.88, 0.65)]],
    [[(0.8, 0.05), (0.28, 0.05), (0.25, 0.45), *_arc(0.45, 0.68, 0.35, 0.27, -0.55, 0.85)]],
    [[(0.68, 0.05), (0.3, 0.4), *_arc(0.5, 0.68, 0.3, 0.27, 1, 3)]],
    [[(0.15, 0.05), (0.83, 0.05), (0.4, 0.95)]],
    [_arc(0.5, 0.28, 0.26, 0.23, 0, 2), _arc(0.5, 0.73, 0.32, 0.23, 0, 2)],
    [[*_arc(0.48, 0.32, 0.3, 0.27, 0, 2), (0.7, 0.95)]],
]


def digits(num_train: int = 2000, num_test: int = 500, seed: int = 0) -> Images:
    """Binary images of handwritten-looking digits, 256 pixels a row, the same for the same seed.

    Each is a digit's strokes, sheared, stretched, moved and drawn with a pen of varying width; a few pixels are wrong.

    num_train, num_test: how many images. seed: an integer. Returns `Images`.
    """
    num_train = as_size(num_train, "num_train", TrainingError)
    num_test = as_size(num_test, "num_test", TrainingError, least=0)
    rng = np.random.default_rng([read_seed(seed), SIDE])
    labels = rng.integers(10, size=num_train + num_test)
    pixels = np.array([_draw(rng, int(label)) for label in labels], np.int8)
    train, test = pixels[:num_train], pixels[num_train:]
    return Images(train, test, train_labels=labels[:num_train].astype(np.uint8), test_labels=labels[num_train:].astype(np.uint8))


def _draw(rng: np.random.Generator, digit: int) -> np.ndarray:
    """(256,) one image."""
    shear, turn = rng.normal(0, 0.12), rng.normal(0, 0.05)
    stretch, move = rng.normal([9.5, 12.5], [0.9, 0.7]), rng.normal(SIDE / 2 - 0.5, 0.6, 2)
    pen, grid = rng.uniform(0.75, 1.25), np.indices((SIDE, SIDE))[::-1].reshape(2, -1).T
    distance = np.full(SIDE * SIDE, np.inf)
    for stroke in _STROKES[digit]:
        p: Any = np.array(stroke) - 0.5 + rng.normal(0, 0.012, (len(stroke), 2))
        p = np.stack([p[:, 0] - shear * p[:, 1], p[:, 1] + turn * p[:, 0]], axis=1) * stretch + move
        for a, b in itertools.pairwise(p):
            along = np.clip((grid - a) @ (b - a) / max((b - a) @ (b - a), 1e-9), 0, 1)
            distance = np.minimum(distance, np.linalg.norm(grid - a - along[:, None] * (b - a), axis=1))
    return (distance < pen) ^ (rng.random(SIDE * SIDE) < 0.003)
