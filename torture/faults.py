"""Faults between two operations of the disk: crashes, full disks, and a log of what was written for a loss of power."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
from pathlib import Path

from saltus.engine import disk

OPERATIONS = ("create", "folder", "sync", "move", "move_to_nothing", "settle", "swap", "remove")


class Crash(BaseException):
    """The process is dead: it does nothing to the disk any more, not even clean up."""


@contextlib.contextmanager
def watched(before):
    """`before(number, name, arguments)` at every operation of the disk; its result, if not None, is called in its place."""
    real = {name: getattr(disk, name) for name in OPERATIONS}
    count = 0

    def wrapped(name):
        def operation(*arguments):
            nonlocal count
            count += 1
            instead = before(count, name, arguments)
            return (instead or real[name])(*arguments)

        return operation

    for name in OPERATIONS:
        setattr(disk, name, wrapped(name))
    try:
        yield lambda: count
    finally:
        for name in OPERATIONS:
            setattr(disk, name, real[name])


@contextlib.contextmanager
def crash_at(number: int, torn: bool = False):
    """At this operation, and for ever after. torn: a file that is being written is left half."""
    create = disk.create

    def half(path, fill):
        create(path, fill)
        os.truncate(path, path.stat().st_size // 2)
        raise Crash

    def dead(*arguments):
        raise Crash

    def before(count, name, arguments):
        return None if count < number else half if torn and count == number and name == "create" else dead

    with watched(before) as count:
        yield count


@contextlib.contextmanager
def full_at(number: int, size: int):
    """From this operation on no file grows beyond `size` bytes: the kernel refuses for real."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def before(count, name, arguments):
        if count == number:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))

    try:
        with watched(before) as count:
            yield count
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


class Log:
    """What was done to the disk, so that a loss of power at any moment can be replayed."""

    def __init__(self, home: Path):
        self.home, self.events = home, []
        there = sorted(home.rglob("*"))  # all of it safe
        self.events += [("folder", (p,)) if p.is_dir() else ("create", (p,), p.read_bytes()) for p in there]
        self.events.append(("sync", ([home, *there],)))
        self.first = len(self.events)

    def before(self, count, name, arguments):
        self._contents()
        self.events.append((name, arguments if name != "sync" else (list(arguments[0]),)))
        if name == "sync":
            paths = self.events[-1][1][0]
            return lambda _: _sync(paths)
        return None

    def _contents(self):
        """The operation before is done: keep what it created."""
        if self.events and self.events[-1][0] == "create" and len(self.events[-1]) == 2:
            name, arguments = self.events[-1]
            path = arguments[0]
            self.events[-1] = (name, (path,), path.read_bytes() if path.exists() else b"")

    def close(self):
        self._contents()

    def survivors(self, rng: random.Random) -> dict[Path, bytes | None]:
        """The files (and folders: None) after a loss of power at a random moment.

        Names survive in order, up to a random moment after the last sync of a folder; contents that were not synced are
        whole, half or empty.
        """
        stop = rng.randint(self.first, len(self.events))
        names, synced, last = {}, set(), 0
        for number, event in enumerate(self.events[:stop]):
            _apply(names, event, number)
            if event[0] == "sync":
                synced |= {names[p] for p in event[1][0] if isinstance(names.get(p), int)}
                if any(names.get(p) is None for p in event[1][0]):
                    last = number + 1
        kept = rng.randint(last, stop)
        names = {}
        for number, event in enumerate(self.events[:kept]):
            _apply(names, event, number)
        found = {}
        for path, number in names.items():
            data = None if number is None else self.events[number][2]
            if data is not None and number not in synced:
                data = data[: rng.choice([0, len(data) // 2, len(data)])]
            found[path] = data
        return found


def _sync(paths):
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        os.close(handle)


def _apply(names: dict, event, number: int) -> None:
    """names: {path: the event that created the file, None for a folder}."""
    name, arguments = event[:2]
    if name == "create":
        names[arguments[0]] = number
    elif name == "folder":
        names[arguments[0]] = None
    elif name in ("move", "move_to_nothing", "settle"):
        _rename(names, *arguments)
    elif name == "swap":
        aside = Path(str(arguments[0]) + "-swapping")
        _rename(names, arguments[1], aside)
        _rename(names, arguments[0], arguments[1])
        _rename(names, aside, arguments[0])
    elif name == "remove":
        for path in [p for p in names if p == arguments[0] or arguments[0] in p.parents]:
            del names[path]


def _rename(names: dict, old: Path, new: Path) -> None:
    for path in [p for p in names if p == old or old in p.parents]:
        names[new / path.relative_to(old) if path != old else new] = names.pop(path)
