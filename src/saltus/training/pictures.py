"""Are samples like data? The maximum mean discrepancy, and a picture of many of them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .._record import as_array, as_flag, as_size
from ..engine import disk
from ..engine.arguments import read_path
from ..engine.files import cannot_write, check_writable
from ..errors import StorageError, TrainingError

_AT_ONCE = 1000  # rows of a table of distances


def mmd(x: Any, y: Any) -> float:
    r"""The maximum mean discrepancy of two sets of states: 0 where they are the same, larger the easier they are told apart.

    $$ \text{MMD}^2 = \overline{k(x, x')} + \overline{k(y, y')} - 2\,\overline{k(x, y)}, \qquad k(a, b) = e^{-H(a, b) / d} $$

    with H the number of sites at which two states differ. x, y: states, (number, d) each, as a person reads them. Returns a number
    from 0 on, pairs of a state with itself counted: for two sets of n states of the same law it is of the order of 1/√n.
    Raises TrainingError where they do not have the same sites.
    """
    a, b = (_table(states, name) for states, name in ((x, "x"), (y, "y")))
    if a.shape[1] != b.shape[1]:
        raise TrainingError("`x` and `y` have other sites.", expected=f"{a.shape[1]} sites", found=f"{b.shape[1]}")
    return float(np.sqrt(max(_mean_kernel(a, a) + _mean_kernel(b, b) - 2 * _mean_kernel(a, b), 0)))


def _table(states: Any, name: str) -> np.ndarray:
    found = np.asarray(as_array(states, name, TrainingError, "states, one a row"))
    if found.ndim != 2 or not found.size:
        raise TrainingError(f"`{name}` is not a table of states.", expected="one state a row", found=f"shape {found.shape}")
    return found


def _mean_kernel(a: np.ndarray, b: np.ndarray) -> float:
    values = np.intersect1d(a, b)
    total = 0.0
    for first in range(0, len(a), _AT_ONCE):
        some = a[first : first + _AT_ONCE]
        same = sum(((some == v).astype(np.float32) @ (b == v).astype(np.float32).T for v in values), np.zeros((len(some), len(b))))
        total += float(np.exp(same / a.shape[1] - 1).sum(dtype=np.float64))
    return total / (len(a) * len(b))


def picture(states: Any, shape: Any, path: Any = None, *, columns: int = 10, scale: int = 3, overwrite: bool = False) -> np.ndarray:
    """States as images beside and below each other, black where a site has its smallest value.

    states: (number, d). shape: (height, width) of one image. path: where a PNG file is written; None: nowhere.
    columns: images beside each other, default 10. scale: pixels of the file for one of an image, each way, default 3.
    overwrite: replace a file that is there. Returns the picture, (rows, columns) of grey values from 0 to 255.
    Raises TrainingError where the states are not images of this shape, StorageError where the file cannot be written.
    """
    table = _table(states, "states").astype(np.float64)
    sides = tuple(np.ravel(as_array(shape, "shape", TrainingError, "(height, width)")).tolist())
    if len(sides) != 2 or any(side != int(side) or side < 1 for side in sides) or int(sides[0] * sides[1]) != table.shape[1]:
        raise TrainingError("`shape` is not that of the states.", expected=f"(h, w) with h w = {table.shape[1]}", found=str(sides))
    columns, scale = (as_size(value, name, TrainingError) for value, name in ((columns, "columns"), (scale, "scale")))
    place, overwrite = read_path(path, "path"), as_flag(overwrite, "overwrite", TrainingError)
    low, high = np.nanmin(table), np.nanmax(table)
    grey = np.round(255 * (table - low) / max(high - low, 1e-300)).astype(np.uint8)
    (h, w), columns = (int(side) for side in sides), min(columns, len(grey))
    rows = -(-len(grey) // columns)
    page = np.full((rows * (h + 1) + 1, columns * (w + 1) + 1), 128, np.uint8)
    for i, image in enumerate(grey.reshape(-1, h, w)):
        top, left = 1 + i // columns * (h + 1), 1 + i % columns * (w + 1)
        page[top : top + h, left : left + w] = image
    if place is not None:
        _write_png(place, np.kron(page, np.ones((scale, scale), np.uint8)), overwrite)
    return page


def _write_png(path: Path, grey: np.ndarray, overwrite: bool) -> None:
    check_writable(path, "path")
    if path.exists() and not overwrite:
        raise StorageError(f"{path} exists.", expected="a new file", found="a file", hint="overwrite=True replaces it")
    if path.exists() and path.read_bytes()[:8] != _PNG:
        raise StorageError(f"{path} is not a PNG file, and is not replaced.", expected="a new file", hint="choose another path")
    size = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    lines = b"".join(b"\0" + row.tobytes() for row in grey)
    content = _PNG + _chunk(b"IHDR", size) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")
    try:
        disk.write(path, lambda file: file.write(content))
    except OSError as cause:
        raise cannot_write(path, cause) from cause


_PNG = b"\x89PNG\r\n\x1a\n"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
