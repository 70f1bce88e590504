"""One file format: an npz with a JSON header, written aside and renamed, read without pickle, checked by its CRCs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .. import errors

_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, AttributeError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)
FORMAT = 3  # of everything a run writes; a reader refuses any other


def write_npz(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write all or nothing: a reader sees the old file or the new one, also after a kill."""
    aside = path.with_name(path.name + ".aside")
    text = json.dumps({"format": FORMAT, **header, "arrays": sorted(arrays)})
    named = {f"array.{name}": array for name, array in arrays.items()}
    try:
        with open(aside, "wb") as file:
            np.savez(file, **{"header": np.frombuffer(text.encode(), np.uint8), **named})  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as cause:
        aside.unlink(missing_ok=True)
        raise cannot_write(path, cause) from cause


def read_npz(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(header, arrays) of a file written by `write_npz` for this `kind`; StorageError names the file otherwise."""
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(bytes(file["header"]))
            _check_header(path, header, kind)
            return header, {name: file[f"array.{name}"] for name in header["arrays"]}
    except errors.StorageError:
        raise
    except FileNotFoundError:
        raise damaged(path, "no such file", "it was deleted or never written") from None
    except _UNREADABLE as cause:
        raise damaged(path, f"{type(cause).__name__}: {cause}", "the file was truncated, corrupted, or is not ours") from cause


def _check_header(path: Path, header: dict[str, Any], kind: str) -> None:
    """The version first: a newer file may look different in everything else."""
    if header["format"] != FORMAT:
        newer = header["format"] > FORMAT
        raise errors.StorageError(
            f"{path} was written by {'a newer' if newer else 'an older'} saltus.",
            expected=f"format {FORMAT}",
            found=f"format {header['format']}",
            hint=f"{'upgrade saltus' if newer else 'finish the run with the saltus that began it'}; the file was left as it is",
        )
    if header["kind"] != kind:
        raise damaged(path, f"a file that holds {header['kind']!r}", "files were renamed or mixed up")


def damaged(path: Path, found: str, cause: str) -> errors.StorageError:
    return errors.StorageError(
        f"{path} cannot be read.",
        expected="a file written by saltus.sample(..., checkpoint=...)",
        found=found,
        hint=f"{cause}; it was left as it is. To start afresh pass overwrite=True or another path",
    )


def cannot_write(path: Path, cause: OSError, hint: str = "") -> errors.StorageError:
    return errors.StorageError(
        f"{path} cannot be written.",
        expected="a place with room that this user may write to",
        found=f"{type(cause).__name__}: {cause.strerror or cause}",
        hint=hint or "what was written before is untouched",
    )


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[None]:
    """What is at `path` is moved away while the new takes its place, then deleted: never half of it is there."""
    old = path.with_name(path.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if path.exists():
        path.rename(old)
    yield
    shutil.rmtree(old, ignore_errors=True)


def check_writable(path: Path, what: str) -> None:
    """StorageError now rather than after an hour: the folder that is to hold `path` exists and can be written."""
    folder = path.parent
    if not folder.is_dir():
        raise errors.StorageError(
            f"`{what}` cannot be written there.",
            expected=f"an existing folder {folder}",
            found="no such folder",
            hint="create it first",
        )
    probe = folder / f".saltus-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as cause:
        raise cannot_write(path, cause, "nothing has been computed yet: choose another folder") from cause
