"""What a data set holds, and how each kind of file is read."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Images:
    """Binary images, one a row, 0 or 1 (int8), row by row from the top; labels are None where the file has none.

    train, test, valid: (images, pixels). train_labels, test_labels: one whole number an image.
    """

    train: np.ndarray
    test: np.ndarray
    valid: np.ndarray | None = None
    train_labels: np.ndarray | None = None
    test_labels: np.ndarray | None = None


@dataclass(frozen=True)
class Regression:
    """X (rows, columns), y (rows,), and the names of the columns."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True)
class MaxCut:
    """A graph with weighted edges (0-based); best_cut is the largest cut known, None where we know of none.

    edges: (m, 2) pairs of sites. weights: (m,). num_sites: of the graph.
    """

    edges: np.ndarray
    weights: np.ndarray
    num_sites: int
    best_cut: int | None


def read_images(path: Path, pixels: int) -> Images:
    with np.load(path, allow_pickle=False) as file:
        parts = {name: file[name] for name in file.files}
    bits = {
        name: np.unpackbits(parts[name], axis=1)[:, :pixels].astype(np.int8) for name in ("train", "valid", "test") if name in parts
    }
    return Images(**bits, train_labels=parts.get("train_y"), test_labels=parts.get("test_y"))


def read_table(path: Path, response: str, dropped: tuple[str, ...] = ()) -> Regression:
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    columns = [i for i, name in enumerate(header) if name != response and name not in dropped]
    X = np.array([[float(row[i]) for i in columns] for row in rows])
    y = np.array([float(row[header.index(response)]) for row in rows])
    return Regression(X, y, tuple(header[i] for i in columns))


def read_genes(path: Path) -> Regression:
    with np.load(path, allow_pickle=False) as file:
        return Regression(file["x"].astype(np.float64), file["y"].astype(np.float64), tuple(map(str, file["names"])))


def read_graph(path: Path, best_cut: int | None) -> MaxCut:
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    num_sites, num_edges = map(int, first.split()[:2])
    table: Any = np.array([line.split() for line in lines if line.strip()][:num_edges], dtype=int)
    return MaxCut(table[:, :2] - 1, table[:, 2].astype(float), num_sites, best_cut)
