"""Faults of the disk: crashes between its operations, no room, flipped bits, a loss of power."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

import saltus

from . import subject
from .faults import Crash, Log, crash_at, full_at, watched
from .subject import draw, expected, resume, same
from .trials import Case, Trial, cases, fresh, judge


def crashes(root: Path, quick: bool) -> list[Trial]:
    """A crash at every operation of the disk, and within every write."""
    trials: list[Trial] = []
    for case in cases(root):
        seen: list[str] = []
        with watched(lambda number, name, arguments, seen=seen: seen.append(name)):
            case.act(fresh(root, case.before))
        for point, name in enumerate(seen, 1):
            trials += [partial(_crash, root, case, point, torn) for torn in ([False, True] if name == "create" else [False])]
    return trials


def _crash(root: Path, case: Case, point: int, torn: bool) -> Counter:
    count, home = Counter(), fresh(root, case.before)
    try:
        with crash_at(point, torn):
            case.act(home)
        count["ended before"] += 1
    except Crash:
        count["torn writes" if torn else "crashes"] += 1
    count += judge(f"{case.name}, operation {point}", home, case)
    shutil.rmtree(home.parent)
    return count


def full_disk(root: Path, quick: bool) -> list[Trial]:
    """The kernel refuses to write (RLIMIT_FSIZE) from a random moment on; then there is room again."""
    found = [case for case in cases(root) if "save" not in case.name]
    return [partial(_full, root, found[number % len(found)], random.Random(number)) for number in range(198)]


def _full(root: Path, case: Case, rng: random.Random) -> Counter:
    count, home = Counter(), fresh(root, case.before)
    try:
        with full_at(rng.randrange(1, 120), rng.choice([0, 100, 1000, 3000])):
            case.act(home)
        count["ended before it was full"] += 1
    except saltus.StorageError:
        count["refused clearly"] += 1
    except Exception as error:
        count["wrong"] += 1
        print(f"{case.name}: {type(error).__name__}: {error}", flush=True)
    count += judge(case.name, home, case)
    shutil.rmtree(home.parent)
    return count


def power(root: Path, quick: bool) -> list[Trial]:
    """Only what was synced survives for sure."""
    trials: list[Trial] = []
    for case in cases(root):
        if "save" not in case.name:  # HDF5 writes by itself
            home = fresh(root, case.before)
            log = Log(home)
            with watched(log.before):
                case.act(home)
            log.close()
            trials += [partial(_lose, root, case, log, random.Random(number)) for number in range(30)]
    return trials


def _lose(root: Path, case: Case, log: Log, rng: random.Random) -> Counter:
    after = fresh(root)
    for path, data in sorted(log.survivors(rng).items()):
        place = after / path.relative_to(log.home)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(exist_ok=True) if data is None else place.write_bytes(data)
    count = Counter(losses=1) + judge(case.name, after, case)
    shutil.rmtree(after.parent)
    return count


def flips(root: Path, quick: bool) -> list[Trial]:
    """One bit of one file: detected, or nothing changes."""
    home = fresh(root)
    stored, alone = home / "stored", home / "alone"
    for place, store in ((stored, True), (alone, False)):
        place.mkdir()
        draw(place, store)
    saltus.save(draw(None), home / "run.nc")
    saltus.save(draw(None), home / "saved.zarr")
    trained = subject.train(None)
    trained.save(home / "model.npz")
    reads = {
        "store": (stored / "run.zarr", lambda p: same(saltus.open(p).load(), expected())),
        "checkpoint": (alone / "c", lambda p: same(resume(p.parent), expected())),
        "checkpoint of a store": (stored / "c", lambda p: same(resume(p.parent), expected())),
        "netcdf": (home / "run.nc", lambda p: same(saltus.open(p).load(), expected())),
        "saved zarr": (home / "saved.zarr", lambda p: same(saltus.open(p).load(), expected())),
        "model": (home / "model.npz", lambda p: np.array_equal(saltus.training.load(p, subject.model()).params, trained.params)),
    }
    whole = Path(shutil.copytree(home, home.parent / "whole"))
    kinds = list(reads.items())
    return [partial(_flip, home, whole, *kinds[number % len(kinds)], random.Random(number)) for number in range(2400)]


def _flip(home: Path, whole: Path, kind: str, subject_of_it: tuple, rng: random.Random) -> Counter:
    place, read = subject_of_it
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file() and p.stat().st_size)
    file = rng.choice(files)
    content = bytearray(file.read_bytes())
    bit = rng.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    try:
        outcome = "harmless" if read(place) else "wrong"
    except saltus.SaltusError:
        outcome = "detected"
    except Exception as error:
        outcome = "detected, by a raw error"
        print(f"{kind} {file.name}: bit {bit}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    if outcome == "wrong":
        print(f"{kind}: bit {bit} of {file.relative_to(home)}", flush=True)
    _restore(home, whole, place.parent if place.name in ("c", "run.zarr") and place.parent != home else place)
    return Counter([outcome])


def _restore(home: Path, whole: Path, part: Path) -> None:
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    source = whole / part.relative_to(home)
    shutil.copytree(source, part) if source.is_dir() else shutil.copy(source, part)
