"""One writer at a time: a lock of the operating system on a file of a checkpoint or store.

The system releases it when the process ends, also by SIGKILL. Who holds it is written beside it, for the message only.
"""

from __future__ import annotations

import datetime
import errno
import os
import socket
import time
import warnings
from pathlib import Path
from typing import Any

from ..errors import StorageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PATIENCE = 1.0  # seconds: a process that was just killed, or a look from `saltus status`, is gone by then
_TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Lock:
    """Of the run at `place`, on one of its files."""

    def __init__(self, file: Path, place: Path):
        self.file, self.place = file, place
        self._handle: int | None = None

    def take(self, holder: Any) -> None:
        """StorageError where another process, or another call of this one, writes there. holder: () -> who, if so."""
        if self._handle is not None:
            return
        while True:
            handle = os.open(self.file, os.O_RDWR | os.O_CLOEXEC)
            try:
                if not _locked(handle, self.place):
                    break
                if _same(handle, self.file):
                    self._handle = handle
                    return
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # it was replaced meanwhile
        os.close(handle)
        raise StorageError(
            f"{self.place} is being written by another process.",
            expected="one writer at a time",
            found=told(holder()),
            hint="wait until it has ended, or choose another path; nothing was changed",
        )

    def sign(self, text: str) -> None:
        """Write who holds it into the file itself."""
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, text.encode(), 0)

    def holding(self, other: Lock) -> Lock:
        """This lock, with what `other` held: its file was moved here."""
        self._handle, other._handle = other._handle, None
        return self

    def free(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _same(handle: int, file: Path) -> bool:
    """Whether what was opened is still what lies there."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        return False


def _locked(handle: int, place: Path) -> bool:
    """Whether it is ours now; True with a warning on a file system without locks."""
    if fcntl is None:
        return _without(place, "this system has none")
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as cause:
            if cause.errno not in _TAKEN:
                return _without(place, cause.strerror or str(cause))
        if time.monotonic() > until:
            return False
        time.sleep(0.02)


def _without(place: Path, why: str) -> bool:
    told = f"{place} cannot be locked ({why}): see to it yourself that no two processes write there at once."
    warnings.warn(told, stacklevel=6)
    return True


def is_held(file: Path) -> bool | None:
    """Whether some process writes there now; None where that cannot be known."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if fcntl is None:
            return None
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError as cause:
        return True if cause.errno in _TAKEN else None
    finally:
        os.close(handle)


def myself() -> dict[str, Any]:
    """Host, process and time, as a file tells them."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "pid": os.getpid(), "since": now}


def told(holder: Any) -> str:
    """In words; whatever a file says is text here."""
    if not isinstance(holder, dict) or not {"host", "pid", "since"} <= set(holder):
        return "a process that has not said which it is"
    return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
