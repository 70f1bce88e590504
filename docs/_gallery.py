"""Runs the examples and keeps the figure of each: `python docs/_gallery.py`. What is newer than its script is not run again."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build/gallery"
LONGEST = 15.0  # processor seconds an example may take: on quiet cores the clock shows fewer, beside other programs more
_RUN = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.show = lambda *a, **k: plt.savefig(sys.argv[2], bbox_inches="tight")
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    failed = [example.name for example in sorted((ROOT / "examples").glob("*.py")) if not made(example)]
    if failed:
        sys.exit(f"examples that failed or drew nothing: {', '.join(failed)}")


def made(example):
    picture = OUT / f"{example.stem}.svg"
    if picture.exists() and picture.stat().st_mtime > example.stat().st_mtime:
        return True
    began, clock = spent(), time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-c", _RUN, str(example), str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    seconds = spent() - began
    late = "  (longer than it should)" if seconds > LONGEST else ""
    print(f"{example.name:32} {seconds:5.1f} processor seconds, {time.perf_counter() - clock:5.1f} s{late}", flush=True)
    if done.returncode:
        print(done.stderr[-2000:])
    return done.returncode == 0 and picture.exists()


def spent():
    """Processor seconds of all examples so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
