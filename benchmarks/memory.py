"""Memory of a run that streams to disk: python benchmarks/memory.py [NUM_DRAWS].

Prints growth above the start: in each half of the drawing, and while the draws are judged.
10^6 draws x 100 chains x 100 sites by default (`make bench-memory`); a tenth of that in the tests.
"""

import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import saltus

NUM_CHAINS, SHAPE = 100, (10, 10)


def resident() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


class Watch(threading.Thread):
    """(seconds, resident bytes) ten times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen: list[tuple[float, int]] = []

    def run(self):
        while True:
            self.seen.append((time.monotonic(), resident()))
            time.sleep(0.1)


def measure(num_draws: int, folder: Path) -> dict:
    target = saltus.targets.ising(SHAPE, coupling=0.2)
    settings = dict(num_warmup=0, num_chains=NUM_CHAINS, progress=sys.stderr.isatty())
    saltus.sample(target, saltus.NCG(1.0), num_draws=10, store=folder / "first.zarr", **settings)  # compiled, imported
    start, watch = resident(), Watch()
    watch.start()
    began = time.monotonic()
    run = saltus.sample(target, saltus.NCG(1.0), num_draws=num_draws, store=folder / "run.zarr", **settings)
    seconds = time.monotonic() - began
    drawn = began + sum(run.attrs[f"{part}_seconds"] for part in ("compile", "warmup", "sampling"))  # then the draws are judged
    middle = (began + drawn) / 2
    halves = [max(b for t, b in watch.seen if t < drawn and (t < middle) == first) for first in (True, False)]
    judging = max([b for t, b in watch.seen if t >= drawn] or [start])
    stored = sum(p.stat().st_size for p in (folder / "run.zarr").rglob("*") if p.is_file())
    return {
        "draws": num_draws,
        "seconds": round(seconds, 1),
        "growth_MB_first_half": round((halves[0] - start) / 1e6, 1),
        "growth_MB_second_half": round((halves[1] - start) / 1e6, 1),
        "growth_MB_judging": round((judging - start) / 1e6, 1),
        "stored_MB": round(stored / 1e6, 1),
        "last_draw_mean": float(run.posterior.s[:, -1].mean()),
    }


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp(dir=sys.argv[2] if len(sys.argv) > 2 else None))
    try:
        print(json.dumps(measure(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6, folder)))
    finally:
        shutil.rmtree(folder)
