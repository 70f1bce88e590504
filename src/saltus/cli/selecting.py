"""`saltus select`: a table on the disk -> its columns, the question, and a folder of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._words import listed
from ..errors import SelectionError, StorageError
from ..selection.page import check_folder, write_folder


def read_csv(path: Path, response: str) -> tuple[Any, Any]:
    """(X, y) of a file with a header; SelectionError says which columns are not numbers."""
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except FileNotFoundError:
        raise StorageError("There is no such file.", found=str(path)) from None
    except (OSError, ValueError) as cause:  # what pandas raises for files that are no tables is a ValueError
        raise StorageError(
            "The file is not a table.", expected="a CSV file with a header", found=f"{path}: {str(cause)[:80]}"
        ) from None
    if response not in table.columns:
        raise SelectionError(
            "The response is not a column of the file.", expected=f"one of {listed(list(table.columns), 10)}", found=repr(response)
        )
    return table.drop(columns=response), table[response]


def words_of(text: str | None) -> list[str] | None:
    return [word.strip() for word in text.split(",") if word.strip()] if text else None


__all__ = ["check_folder", "read_csv", "words_of", "write_folder"]
