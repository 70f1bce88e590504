"""Where the draws go: `run.nc`, written aside and renamed once the run is over, or `run.zarr`, streamed while it goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine import disk
from ..engine.store import taken
from ..errors import StorageError
from ..reporting.report import check_report
from ..run.saving import check_output, save

__all__ = ["Output", "check_report", "read_output"]


@dataclass(frozen=True)
class Output:
    """A place that was seen to be usable before anything was computed."""

    path: Path
    streamed: bool  # the run writes there itself
    overwrite: bool = False

    def discard(self) -> None:
        """Leave nothing where there is no draw; what is not a store of ours stays."""
        if self.streamed:
            with contextlib.suppress(StorageError), taken(self.path):
                disk.remove(self.path)

    def write(self, run: Any, kept: str = "") -> None:
        """All or nothing; `kept` says where the draws are safe if this fails."""
        if self.streamed:
            return
        try:
            with _patiently(f"writing {self.path}: wait, or its draws are lost"):
                save(run, self.path, overwrite=self.overwrite)
        except StorageError as cause:
            raise StorageError(f"{cause}\n  besides   {kept}" if kept else str(cause)) from cause


def read_output(given: Path, overwrite: bool, *, streams: bool = False, found_again: bool = False, hint: str = "") -> Output:
    """StorageError before the run where the output cannot be written, or would replace something.

    streams: the run writes a .zarr itself. found_again: it is there because this very run began it. hint: if it exists.
    """
    path = Path(os.path.abspath(given))
    check_output(path, overwrite or found_again, hint or "--overwrite replaces it", shown=f"-o {given}")
    return Output(path, streamed=streams and path.suffix == ".zarr", overwrite=overwrite)


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
