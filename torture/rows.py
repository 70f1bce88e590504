"""The rows: each yields what it counted, {word: number}; `wrong` must stay 0."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import saltus

from . import subject
from .faults import Crash, Log, crash_at, full_at, watched
from .subject import LONGER, draw, expected, resume, same, untouched, with_neighbours

SECONDS = float(os.environ.get("TORTURE_SECONDS", "inf"))  # a row ends when these are over


def in_time(trials):
    """The trials, as far as there is time for them."""
    began = time.monotonic()
    for trial in trials:
        if time.monotonic() - began > SECONDS:
            print("not all: TORTURE_SECONDS are over", flush=True)
            return
        yield trial


def fresh(root: Path, like: Path | None = None) -> Path:
    """A folder with neighbours in it; a copy of `like`."""
    home = Path(tempfile.mkdtemp(dir=root)) / "home"
    if like:
        shutil.copytree(like, home, symlinks=True)
    else:
        home.mkdir()
    return with_neighbours(home)


def scenarios(root: Path):
    """name -> (prepare, act, act again after the fault, is it right?)."""
    begun = {}
    for store in (False, True):
        begun[store] = fresh(root)
        draw(begun[store], store)
    trained = subject.train(None)
    for store in (False, True):
        kind = "with store" if store else "with segments"
        yield f"run {kind}", None, lambda h, s=store: draw(h, s), lambda h, s=store: draw(h, s), lambda r: same(r, expected())
        yield (
            f"longer {kind}",
            begun[store],
            lambda h: resume(h, num_draws=LONGER),
            lambda h: resume(h, num_draws=LONGER),
            lambda r: same(r, expected(LONGER)),
        )
        yield (
            f"overwrite {kind}",
            begun[store],
            lambda h, s=store: draw(h, s, seed=4, overwrite=True),
            lambda h, s=store: draw(h, s, seed=4, overwrite=True),
            lambda r: same(r, expected(seed=4)),
        )
    for suffix in (".nc", ".zarr"):
        run = draw(None)
        act = lambda h, s=suffix, r=run: saltus.open(saltus.save(r, h / f"saved{s}", overwrite=True)).load()  # noqa: E731
        yield f"save {suffix}", None, act, act, lambda r: same(r, expected())
    yield "training", None, subject.train, subject.train, lambda r: np.array_equal(r.params, trained.params)


def crashes(root: Path, quick: bool) -> Counter:
    """A crash at every operation of the disk, and within every write."""
    count, trials = Counter(), []
    for case in scenarios(root):
        name, before, act, *_ = case
        seen = []
        with watched(lambda number, name, arguments, seen=seen: seen.append(name)):
            act(fresh(root, before))
        count["operations"] += len(seen)
        own = [(point, torn, *case) for point, n in enumerate(seen, 1) for torn in ([False, True] if n == "create" else [False])]
        trials += random.Random(0).sample(own, 4) if quick else own
    random.Random(0).shuffle(trials)
    for point, torn, name, before, act, again, right in in_time(trials):
        home = fresh(root, before)
        try:
            with crash_at(point, torn):
                act(home)
        except Crash:
            count["crashes"] += 1
        judge(count, f"{name}, operation {point}", home, again, right)
        shutil.rmtree(home.parent)
    return count


def judge(count: Counter, what: str, home: Path, again, right) -> None:
    """After a fault the same call gives the right numbers, or refuses with a StorageError; neighbours are as they were."""
    try:
        outcome = "right" if right(again(home)) else "wrong"
    except saltus.StorageError:
        outcome = "refused"
    except Exception as error:
        outcome = "wrong"
        print(f"{what}: {type(error).__name__}: {error}", flush=True)
    if outcome == "wrong" or not untouched(home):
        print(f"{what}: {outcome}, neighbours {'untouched' if untouched(home) else 'TOUCHED'}", flush=True)
    count[outcome if untouched(home) else "wrong"] += 1


def full_disk(root: Path, quick: bool) -> Counter:
    """The kernel refuses to write (RLIMIT_FSIZE) from a random moment on; then there is room again."""
    count, rng = Counter(), random.Random(1)
    cases = [case for case in scenarios(root) if "save" not in case[0]]
    for trial in in_time(range(8 if quick else 210)):
        name, before, act, again, right = cases[trial % len(cases)]
        home = fresh(root, before)
        try:
            with full_at(rng.randrange(1, 120), rng.choice([0, 100, 1000, 3000])):
                act(home)
            count["ended before it was full"] += 1
        except saltus.StorageError:
            count["refused clearly"] += 1
        except Exception as error:
            count["wrong"] += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        judge(count, name, home, again, right)
        shutil.rmtree(home.parent)
    return count


def power(root: Path, quick: bool) -> Counter:
    """Only what was synced survives for sure."""
    count, rng = Counter(), random.Random(2)
    for name, before, act, again, right in scenarios(root):
        if before or "save" in name:
            continue
        home = fresh(root)
        log = Log(home)
        with watched(log.before):
            act(home)
        log.close()
        for _ in in_time(range(3 if quick else 80)):
            after = fresh(root)
            for path, data in sorted(log.survivors(rng).items()):
                place = after / path.relative_to(home)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.mkdir(exist_ok=True) if data is None else place.write_bytes(data)
            count["losses"] += 1
            judge(count, name, after, again, right)
            shutil.rmtree(after.parent)
    return count


def flips(root: Path, quick: bool) -> Counter:
    """One bit of one file: detected, or nothing changes."""
    count, rng = Counter(), random.Random(3)
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
        "model": (home / "model.npz", lambda p: np.array_equal(saltus.training.load(p, subject._model()).params, trained.params)),
    }
    whole = Path(shutil.copytree(home, home.parent / "whole"))
    for trial in in_time(range(60 if quick else 2400)):
        kind, (place, read) = list(reads.items())[trial % len(reads)]
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
            print(f"{kind} {file.name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        if outcome == "wrong":
            print(f"{kind}: bit {bit} of {file.relative_to(home)}", flush=True)
        count[outcome] += 1
        part = place.parent if place.name in ("c", "run.zarr") and place.parent != home else place
        shutil.rmtree(part) if part.is_dir() else part.unlink()
        source = whole / part.relative_to(home)
        shutil.copytree(source, part) if source.is_dir() else shutil.copy(source, part)
    return count


WORKER = [sys.executable, "-m", "torture.worker"]


class Worker:
    """A process that draws when it is told to."""

    def __init__(self):
        self.process = subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n"

    def tell(self, home: Path) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{home}\n")

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def kills(root: Path, quick: bool) -> Counter:
    """Real SIGKILLs at random moments of a run with a store; now and then it is let finish and looked at."""
    count, rng = Counter(), random.Random(4)
    home, number = fresh(root), 2 if quick else 300
    for trial in in_time(range(number)):
        worker = Worker()
        worker.tell(home)
        time.sleep(rng.uniform(0, 0.4))
        worker.kill()
        count["kills"] += 1
        if trial % 5 == 4 or trial == number - 1 or quick:
            judge(count, "killed run", home, lambda h: draw(h, True), lambda r: same(r, expected()))
            home = fresh(root)
    return count


def crowds(root: Path, quick: bool) -> Counter:
    """Two to four processes at one checkpoint and store; in every third group one of them is killed."""
    count, rng = Counter(), random.Random(5)
    crowd = [Worker() for _ in range(2 if quick else 4)]
    for group in in_time(range(3 if quick else 66)):
        home, size = fresh(root), rng.randint(2, len(crowd))
        for worker in crowd[:size]:
            worker.tell(home)
            time.sleep(rng.uniform(0, 0.05))
        dead = rng.randrange(size) if group % 3 == 0 else -1
        if dead >= 0:
            crowd[dead].kill()
        for number in range(size):
            if number != dead:
                told = crowd[number].answer()
                count[told if told in ("right", "refused") else "wrong"] += 1
                if told not in ("right", "refused"):
                    print(told, flush=True)
        judge(count, "afterwards", home, lambda h: draw(h, True), lambda r: same(r, expected()))
        count["groups"] += 1
        if dead >= 0:
            crowd[dead] = Worker()
    for worker in crowd:
        worker.kill()
    return count


def places(root: Path, quick: bool) -> Counter:
    """Copy, move, rename, link, read-only, another user."""
    count = Counter()
    home = fresh(root)
    draw(home, True)
    for how in (shutil.copytree, shutil.move):
        moved = fresh(root)
        for name in ("c", "run.zarr"):
            how(home / name, moved / name)
        judge(count, how.__name__, moved, lambda h: resume(h, num_draws=LONGER), lambda r: same(r, expected(LONGER)))
        home = fresh(root)
        draw(home, True)
    (home / "c").rename(home / "renamed")
    (home / "c").symlink_to(home / "renamed")
    judge(count, "link", home, lambda h: resume(h, num_draws=LONGER), lambda r: same(r, expected(LONGER)))
    if not os.geteuid() and shutil.which("setpriv"):
        count["other users refused" if _as_nobody(home) else "wrong"] += 1
    return count


def _as_nobody(home: Path) -> bool:
    """Another user may read all of it and write nothing: opening works, going on is refused clearly."""
    for path in (home.parent, home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    home.parent.parent.chmod(0o755)
    code = (
        "import sys; from pathlib import Path; import saltus; from torture.subject import *\n"
        f"home = Path({str(home)!r}); assert same(saltus.open(home / 'run.zarr'), expected(LONGER))\n"
        "try: resume(home, num_draws=80)\nexcept saltus.StorageError as e: print('refused')"
    )
    command = ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.stdout.strip() != "refused":
        print(done.stderr[-600:], flush=True)
    return done.stdout.strip() == "refused"


ROWS = {
    "crashes": crashes,
    "full_disk": full_disk,
    "flips": flips,
    "power": power,
    "places": places,
    "crowds": crowds,
    "kills": kills,
}
