"""Every write, sync, rename and removal of saltus: what a crash can fall between is in this file, and nowhere else.

A new file gets a random name that nothing has, is filled, synced, and moved to its place; then its folder is synced.
Nothing is written in place, so a reader sees the old file or the new one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

ASIDE = ".saltus-"  # begins every temporary name
_MANY = 8  # files: more are synced with the whole file system, which is faster
_AT_FDCWD, _EXCHANGE = -100, 2  # of renameat2


def beside(path: Path) -> Path:
    """A short random name in the same folder: a fixed one could be somebody else's, a longer one too long."""
    return path.with_name(f"{ASIDE}{secrets.token_hex(8)}{path.suffix if len(path.suffix) < 8 else ''}")


def create(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """A new file, not synced; FileExistsError where anything is there."""
    with open(path, "xb") as file:
        fill(file)


def folder(path: Path) -> None:
    """A new folder, not synced."""
    path.mkdir()


def sync(paths: Iterable[Path]) -> None:
    """Files and folders as they are now survive a loss of power, once this returns."""
    paths = list(paths)
    if len(paths) > _MANY and _sync_all(paths[0]):
        return
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as cause:
            if cause.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # a file system that cannot sync folders
                raise
        finally:
            os.close(handle)


def _sync_all(path: Path) -> bool:
    """The whole file system that `path` is on; whether the machine can."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        if call(handle):
            number = ctypes.get_errno()
            if number == errno.ENOSYS:
                return False
            raise OSError(number, os.strerror(number), str(path))
        return True
    finally:
        os.close(handle)


def move(new: Path, path: Path) -> None:
    """The file `new` takes the place of `path`, whether or not something is there, in one step."""
    os.replace(new, path)


def settle(new: Path, path: Path) -> None:
    """The folder `new` goes to `path`, where nothing or an empty folder may be; FileExistsError otherwise."""
    try:
        os.rename(new, path)
    except OSError as cause:
        if cause.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, "something is there already", str(path)) from cause
        raise


def swap(new: Path, path: Path) -> None:
    """Two folders change places: in one step where the system can, so that there is one at `path` at every moment."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call and call(_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(path), _EXCHANGE) == 0:
        return
    aside = beside(path)
    os.rename(path, aside)
    try:
        os.rename(new, path)
    except OSError:
        os.rename(aside, path)
        raise
    os.rename(aside, new)


def remove(path: Path) -> None:
    """A file or folder of ours, as far as that goes: what is left has a temporary name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def move_to_nothing(new: Path, path: Path) -> None:
    """The file `new` goes to `path`; FileExistsError where something is there, however late it came."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "something is there already", str(path)) from None
        os.rename(new, path)
    else:
        os.unlink(new)


@contextlib.contextmanager
def replacing(path: Path, overwrite: bool = True) -> Iterator[Path]:
    """A name for a new file, which then goes to `path`: whole and synced, or not at all.

    overwrite: whether it may take the place of a file. A symbolic link stays one: the file that it leads to is replaced.
    """
    place = real(path)
    aside = beside(place)
    try:
        yield aside
        sync([aside])
        (move if overwrite else move_to_nothing)(aside, place)
        sync([place.parent])
    except BaseException:
        remove(aside)
        raise


def write(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """A file at `path`, whole and synced, in place of what was there."""
    with replacing(path) as aside:
        create(aside, fill)


def real(path: Path) -> Path:
    """Where a symbolic link leads, also where nothing is there yet."""
    return Path(os.path.realpath(path))
