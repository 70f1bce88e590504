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
    response, known = question.response, f"one of {listed(list(table.columns), 10)}"
    if response not in table.columns:
        raise SelectionError("The response is not a column of the file.", expected=known, found=repr(response))
    ignored = [name for name in split(question.ignore or "") if name in table.columns]
    return table.drop(columns=[response, *ignored]), table[response]


__all__ = ["check_folder", "read_table", "write_folder"]
