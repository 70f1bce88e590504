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
from ..engine.checkpoint import Checkpoint
from ..engine.store import taken
from ..errors import StorageError
from ..reporting.report import check_report
from ..run.saving import check_output, save
from .options import Places

__all__ = ["Output", "check_report", "new_output", "output_of_resumed"]


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


def new_output(places: Places, target: str) -> Output:
    """StorageError before the run where its output cannot be written, or would replace something."""
    goes_on = places.checkpoint is not None and places.checkpoint.exists() and not places.overwrite
    again = f"saltus resume {places.checkpoint} {target} --overwrite -o {places.output}"
    streamed = places.output.suffix == ".zarr"  # then it may be there because this very run began it
    hint = f"to go on with the run: {again}" if goes_on else ""
    return _read_output(places.output, places.overwrite, streamed, goes_on and streamed, hint)


def output_of_resumed(checkpoint: Path, given: Path | None, overwrite: bool) -> tuple[Path | None, Output | None]:
    """(the store of the run, if it has one; where its draws go, or None: they stay in the checkpoint)."""
    header = Checkpoint(checkpoint).read_run()[0]  # by the path as given, which is what an error should show
    place = Path(os.path.abspath(given)) if given else None
    named = place if place and place.suffix == ".zarr" else None
    store = Checkpoint(Path(os.path.abspath(checkpoint))).store_of(header, named)
    if given is not None and place != store:
        return store, _read_output(given, overwrite)
    return store, Output(store, streamed=True) if store else None


def _read_output(given: Path, overwrite: bool, streamed: bool = False, found_again: bool = False, hint: str = "") -> Output:
    """found_again: what is there may be gone on with. hint: if it exists."""
    path = Path(os.path.abspath(given))
    check_output(path, overwrite or found_again, hint or "--overwrite replaces it", shown=f"-o {given}")
    return Output(path, streamed, overwrite)


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
