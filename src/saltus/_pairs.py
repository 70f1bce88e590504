"""Tables of two-valued pairs."""

from __future__ import annotations

import numpy as np


def pair_tables(ones: np.ndarray, together: np.ndarray) -> np.ndarray:
    """(..., d, d, 2, 2) P(code_i = k, code_j = l), from P(code_i = 1) (..., d) and P(code_i = code_j = 1) (..., d, d)."""
    i, j = ones[..., :, None], ones[..., None, :]
    cells = [[1 - i - j + together, j - together], [i - together, together]]
    return np.stack([np.stack(row, axis=-1) for row in cells], axis=-2)
