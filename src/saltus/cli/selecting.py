"""`saltus select`: a table on the disk -> its columns, the question, and a folder of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._words import listed
from ..errors import SelectionError, StorageError
from ..selection.page import check_folder, write_folder
from .options import Question, split


def read_table(path: Path, question: Question) -> tuple[Any, Any]:
    """(X, y) of a file with a header; X without the columns to ignore."""
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except FileNotFoundError:
        raise StorageError("There is no such file.", found=str(path)) from None
    except (OSError, ValueError) as cause:  # what pandas raises for files that are no tables is a ValueError
        raise StorageError(
            "The file is not a table.", expected="a CSV file with a header", found=f"{path}: {str(cause)[:80]}"
        ) from None
    ignored, known = split(question.ignore or ""), f"one of {listed(list(table.columns), 10)}"
    for what, name in [("The response", question.response), *(("A column to ignore", name) for name in ignored)]:
        if name not in table.columns:
            raise SelectionError(f"{what} is not a column of the file.", expected=known, found=repr(name))
    return table.drop(columns=[question.response, *ignored]), table[question.response]


__all__ = ["check_folder", "read_table", "write_folder"]
