"""python -m torture [--quick] [ROW ...]: rows that are done are not done again (delete their output to repeat them).

A row that was ended, by Ctrl-C or by TORTURE_SECONDS, goes on at the trial where it was: what it has counted is kept in
torture/results/ROW.partial.txt. --quick: a few trials of each row, for at most QUICK_SECONDS a row; nothing is kept.
"""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax

from .rows import ROWS

RESULTS = Path(__file__).parent / "results"
MEMORY = Path("/dev/shm")  # a file system in memory: syncing takes no time, and its order is what is tested
SECONDS = float(os.environ.get("TORTURE_SECONDS", "inf"))  # of each row, in this call
QUICK_SECONDS, QUICK_TRIALS = 15.0, 40
_MARK = "progress "


def main() -> int:
    quick, asked = "--quick" in sys.argv, [word for word in sys.argv[1:] if not word.startswith("-")]
    unknown = set(asked) - set(ROWS)
    if unknown:
        sys.exit(f"There is no row {', '.join(unknown)}; there are {', '.join(ROWS)}.")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="saltus-torture-", dir=MEMORY if MEMORY.is_dir() else None) as root:
        for name in asked or ROWS:
            if quick or not (RESULTS / f"{name}.txt").exists():
                wrong += (_quick if quick else _row)(name, Path(root))
    return 1 if wrong else 0


def _quick(name: str, root: Path) -> int:
    """A few trials, the same ones each time unless the machine is too slow for them."""
    began = time.monotonic()
    trials = ROWS[name](root, True)
    chosen, made, count = random.Random(name).sample(trials, min(QUICK_TRIALS, len(trials))), 0, Counter[str]()
    ready = time.monotonic()
    for trial in chosen:
        if time.monotonic() - ready > QUICK_SECONDS:
            break
        count += trial()
        made += 1
    print(_told(name, made, len(trials), count, time.monotonic() - began), flush=True)
    return count["wrong"]


def _row(name: str, root: Path) -> int:
    """All trials that are left, as far as there is time."""
    partial, began = RESULTS / f"{name}.partial.txt", time.monotonic()
    before = _read(partial)
    done, count, spent = before.get("done", 0), Counter[str](before.get("count", {})), before.get("seconds", 0.0)
    commits = [*(c for c in before.get("commits", []) if c != _commit()), _commit()]
    trials = ROWS[name](root, False)
    random.Random(name).shuffle(trials)
    saved = time.monotonic()
    while done < len(trials) and time.monotonic() - began < SECONDS:
        count += trials[done]()
        done += 1
        if time.monotonic() - saved > 5:
            _keep(partial, name, done, len(trials), count, spent + time.monotonic() - began, commits)
            saved = time.monotonic()
    if done < len(trials):
        print(_keep(partial, name, done, len(trials), count, spent + time.monotonic() - began, commits), flush=True)
        return count["wrong"]
    place = RESULTS / f"{name}{'.wrong' if count['wrong'] else ''}.txt"
    print(_keep(place, name, done, done, count, spent + time.monotonic() - began, commits), flush=True)
    partial.unlink(missing_ok=True)
    return count["wrong"]


def _told(name: str, done: int, of: int, count: Counter[str], seconds: float) -> str:
    counted = ", ".join(f"{n} {word}" for word, n in sorted(count.items()) if word != "wrong")
    return f"{name}: {done} of {of} trials: {counted}; {count['wrong']} wrong ({seconds:.0f} s)"


def _keep(place: Path, name: str, done: int, of: int, count: Counter[str], seconds: float, commits: list[str]) -> str:
    """Write what was counted so far, whole or not at all; the line that says it."""
    line = _told(name, done, of, count, seconds)
    state = json.dumps({"done": done, "count": count, "seconds": round(seconds), "commits": commits})
    versions = f"commits {'; '.join(commits)}; Python {platform.python_version()}, jax {jax.__version__}"
    text = [versions, (ROWS[name].__doc__ or "").strip(), line, *([] if done == of else [_MARK + state])]
    RESULTS.mkdir(exist_ok=True)
    aside = place.with_suffix(".tmp")
    aside.write_text("\n".join(text) + "\n")
    aside.replace(place)
    return line


def _read(partial: Path) -> dict[str, Any]:
    """What an earlier call has counted."""
    lines = partial.read_text().splitlines() if partial.exists() else []
    return next((json.loads(line.removeprefix(_MARK)) for line in lines if line.startswith(_MARK)), {})


def _commit() -> str:
    command = ["git", "log", "-1", "--format=%h, %cs"]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
