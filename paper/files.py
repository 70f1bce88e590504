"""Small JSON and text files, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shlex
from pathlib import Path
from typing import Any

import saltus


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old file or the new one, also after a kill."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.aside")
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as cause:
        raise saltus.StorageError(
            f"{path} cannot be read.",
            expected="a file written by python -m paper",
            found=f"{type(cause).__name__}: {cause}",
            hint=f"delete it, and the same command makes it again: rm {shlex.quote(str(path))}",
        ) from cause


def rounded(value: Any, digits: int = 6) -> Any:
    """Numbers of curves and tables to so many significant digits; single numbers, which are printed, as they are."""
    if isinstance(value, dict):
        return {name: rounded(each, digits) for name, each in value.items()}
    return _list_rounded(value, digits) if isinstance(value, list) else value


def _list_rounded(values: list, digits: int) -> list:
    if values and isinstance(values[0], list):
        return [_list_rounded(each, digits) for each in values]
    return [float(f"{each:.{digits}g}") if isinstance(each, float) else each for each in values]
