"""Real processes: killed at random moments, and several at one run."""

from __future__ import annotations

import atexit
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import cache, partial
from pathlib import Path

import saltus

from .subject import draw, expected, same
from .trials import Case, Trial, cases, fresh, judge
from .worker import KINDS


class Worker:
    """A process that does what it is told."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "torture.worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        atexit.register(self.kill)
        self.ready = False

    def wait(self) -> None:
        """Until it listens."""
        if not self.ready:
            self.ready = self.answer() == "ready"

    def tell(self, kind: str, home: Path) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{kind} {home}\n")

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def kills(root: Path, quick: bool) -> list[Trial]:
    """Real SIGKILLs at random moments of runs, resumptions, replacements, races and training; then the same is done once more."""
    found = {case.name: case for case in cases(root)}
    return [partial(_kill, root, found[KINDS[number % len(KINDS)]], random.Random(number)) for number in range(160)]


def _kill(root: Path, case: Case, rng: random.Random) -> Counter:
    """Two kills, one after the other, of the same."""
    home, count = fresh(root, case.before), Counter()
    for _ in range(2):
        worker = Worker()
        worker.wait()
        worker.tell(case.name, home)
        time.sleep(rng.uniform(0, 0.6))
        worker.kill()
        count["kills"] += 1
    count += judge(f"killed {case.name}", home, case)
    shutil.rmtree(home.parent)
    return count


@cache
def _crowd() -> list[Worker]:
    return [Worker() for _ in range(4)]


def crowds(root: Path, quick: bool) -> list[Trial]:
    """Two to four processes at one checkpoint and store; in every third group one of them is killed."""
    return [partial(_group, root, random.Random(number), number % 3 == 0) for number in range(66)]


def _group(root: Path, rng: random.Random, one_dies: bool) -> Counter:
    home, size, count = fresh(root), rng.randint(2, 4), Counter(groups=1)
    crowd = _crowd()
    for worker in crowd:
        worker.wait()
    for worker in crowd[:size]:
        worker.tell("run with store", home)
        time.sleep(rng.uniform(0, 0.05))
    dead = rng.randrange(size) if one_dies else -1
    if one_dies:
        crowd[dead].kill()
    for number in range(size):
        if number != dead:
            told = crowd[number].answer()
            count[told if told in ("right", "refused") else "wrong"] += 1
            if told not in ("right", "refused"):
                print(told, flush=True)
    count += judge("afterwards", home, Case("", None, lambda h: draw(h, True), lambda r: same(r, expected())))
    if one_dies:
        crowd[dead] = Worker()
    shutil.rmtree(home.parent)
    return count


def readers(root: Path, quick: bool) -> list[Trial]:
    """A run is opened, and read to its end while another process makes it longer or replaces it: the same draws or an error."""
    return [partial(_read, root, "longer with store" if number % 2 else "overwrite with store") for number in range(20)]


def _read(root: Path, kind: str) -> Counter:
    home, count = fresh(root), Counter()
    draw(home, True)
    run, worker = saltus.open(home / "run.zarr"), _crowd()[0]
    worker.wait()
    worker.tell(kind, home)
    for _ in range(20):
        try:
            count["the same draws" if same(run, expected()) else "wrong"] += 1
        except saltus.StorageError:
            count["said to have changed"] += 1
    told = worker.answer()
    count["right" if told == "right" else "wrong"] += 1
    shutil.rmtree(home.parent)
    return count
