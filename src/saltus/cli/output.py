"""Where the draws go: `run.nc`, written aside and renamed once the run is over, or `run.zarr`, streamed while it goes on."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StorageError
from ..run.files import cannot_write, check_writable

SUFFIXES = (".nc", ".zarr")


@dataclass(frozen=True)
class Output:
    """A place that was seen to be usable before anything was computed."""

    path: Path
    streamed: bool  # the run writes there itself

    def discard(self) -> None:
        """Leave nothing where there is no draw."""
        if self.streamed:
            _remove(self.path)

    def write(self, run: Any, kept: str = "") -> None:
        """All or nothing; `kept` says where the draws are safe if this fails."""
        if self.streamed:
            return
        aside = self.path.with_name(self.path.name + ".aside")
        try:
            with _patiently(f"writing {self.path}: wait, or its draws are lost"):
                _remove(aside)
                run.to_netcdf(aside, engine="h5netcdf") if self.path.suffix == ".nc" else run.to_zarr(aside)
                if self.path.is_dir():
                    _remove(self.path)
                os.replace(aside, self.path)
        except OSError as cause:
            raise cannot_write(self.path, cause, kept) from cause
        finally:
            _remove(aside)


def read_output(given: Path, overwrite: bool, *, streams: bool = False, found_again: bool = False, hint: str = "") -> Output:
    """StorageError before the run where the output cannot be written, or would replace something.

    streams: the run writes a .zarr itself. found_again: it is there because this very run began it. hint: if it exists.
    """
    path = Path(os.path.abspath(given))
    if path.suffix not in SUFFIXES:
        raise StorageError(
            f"-o {given} has no suffix that says what to write.",
            expected="run.nc (one file, when the run is over) or run.zarr (a folder, while it goes on)",
            found=repr(path.suffix) if path.suffix else "no suffix",
        )
    needs = ("h5netcdf", "h5py") if path.suffix == ".nc" else ("zarr",)
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    if missing:
        raise StorageError(f"-o {given} needs {' and '.join(missing)}.", found="not installed", hint="pip install 'saltus[io]'")
    check_writable(path, "-o")
    if path.exists() and not found_again:
        _check_replaceable(path, given, overwrite, hint)
    return Output(path, streamed=streams and path.suffix == ".zarr")


def _check_replaceable(path: Path, given: Path, overwrite: bool, hint: str) -> None:
    if not overwrite:
        raise StorageError(
            f"-o {given} exists already.",
            expected="a new path",
            found="a folder" if path.is_dir() else "a file",
            hint=hint or "--overwrite replaces it",
        )
    ours = (path / "zarr.json").exists() if path.suffix == ".zarr" else path.is_file()
    if not ours:
        raise StorageError(
            f"-o {given} is not a run, and is not replaced.",
            expected="a run.zarr folder" if path.suffix == ".zarr" else "a file",
            found="a folder" if path.is_dir() else "a file",
            hint="it was left as it is: choose another path",
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _patiently(text: str) -> Iterator[None]:
    """Ctrl-C answers with `text` and does nothing: the impatient second press must not cost an hour of draws."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    answer: Callable[[int, Any], None] = lambda number, frame: print(f"saltus: {text}", file=sys.stderr, flush=True)  # noqa: E731
    before = signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
