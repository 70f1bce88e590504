"""Is this version as fast as 0.1? python benchmarks/versions.py [LINE ...], on a quiet machine; about half an hour for all lines.

The benchmark code of 0.1 is taken from the repository as it was, and steps the samplers of both versions in the order A B B A,
each in a process of its own. A line (such as "W1 NCG") holds where neither median is outside the other's spread, and, where
the spread is under 10 %, the new one takes at most 7 % longer. The table is kept in benchmarks/results/versions.txt.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FROZEN = "9145f75"  # the last commit of 0.1
PARTS = ("loops", "clock", "workloads")  # of its benchmark code: the loops, the clock, the targets and samplers
CALM, MOST = 0.10, 1.07  # the spread of a line that counts as calm, and how much longer it may take then

# What the frozen code asks of inside the package, wherever that is now.
INTERNALS = """
from saltus._record import default_float
try:
    from saltus.run.loop import each_chain
    from saltus.run.drive import steps_of_a_chunk
except ImportError:
    from saltus.engine.loop import each_chain
    from saltus.engine.drive import steps_of_a_chunk
"""

MEASURE = """
import json, sys
import saltus
from frozen.clock import seconds_per_step
from frozen.loops import bare_loop, sampler_loop
from frozen.workloads import WORKLOADS, num_chains, samplers

asked, found = set(sys.argv[1:]), {}
for name, make in WORKLOADS.items():
    if asked and not any(line.rpartition(" ")[0] == name or line == f"{name} coloured Gibbs" for line in asked):
        continue
    target, loops = make(), {}
    kernels = samplers(name, target)
    if name in ("W1", "W2", "W6"):
        kernels["coloured Gibbs"] = saltus.Gibbs("coloured")
    for sampler, kernel in kernels.items():
        if not asked or f"{name} {sampler}" in asked:
            loops[f"{name} {sampler}"] = sampler_loop(kernel, target, num_chains(name))
    if not asked:
        loops[f"{name} bare gradient"] = bare_loop(target, num_chains(name))
    found |= {line: list(times) for line, times in seconds_per_step(loops).items()}
    print(name, file=sys.stderr, flush=True)
print(json.dumps(found))
"""


def frozen_code(place: Path) -> None:
    """The package `frozen` there: files of 0.1, their relative imports made absolute."""
    (place / "frozen").mkdir()
    (place / "frozen" / "__init__.py").write_text("")
    (place / "frozen" / "internals.py").write_text(INTERNALS)
    inside = {"run.loop": "internals", "run.drive": "internals", "_record": "internals"}
    for part in PARTS:
        text = _git("show", f"{FROZEN}:src/saltus/bench/{part}.py").decode()
        text = re.sub(r"^from \.\.([\w.]+) import", lambda m: f"from {_home(m[1], inside)} import", text, flags=re.M)
        text = text.replace("from .. import", "from saltus import")
        # The one line that read a private field of a target: the same edges, written out.
        text = re.sub(r"edges = np\.asarray\(.*incidence\.edges\)", f"edges = np.array({_torus(10)})", text)
        (place / "frozen" / f"{part}.py").write_text(text)


def _home(module: str, inside: dict[str, str]) -> str:
    return f".{inside[module]}" if module in inside else f"saltus.{module}"


def _torus(side: int) -> list[list[int]]:
    site = np.arange(side * side).reshape(side, side)
    return np.concatenate([np.stack([site.ravel(), np.roll(site, -1, axis).ravel()], 1) for axis in (0, 1)]).tolist()


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=HERE, capture_output=True, check=True).stdout


def measure(source: Path, place: Path, lines: list[str]) -> dict[str, list[float]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(place)]), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, *lines]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def judged(old: np.ndarray, new: np.ndarray) -> tuple[float, float, bool]:
    """(new over old, by medians; the wider spread, as a share; whether it holds)."""
    a, b = np.median(old), np.median(new)
    spread = max(float((x.max() - x.min()) / np.median(x)) for x in (old, new))
    within = old.min() <= b <= old.max() and new.min() <= a <= new.max()
    return b / a, spread, bool(b <= a or (b / a <= MOST if spread < CALM else within))


def main() -> int:
    lines, found = sys.argv[1:], {"A": [], "B": []}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        frozen_code(place)
        with tarfile.open(fileobj=io.BytesIO(_git("-C", "..", "archive", FROZEN, "src/saltus"))) as archive:
            archive.extractall(place / "old", filter="data")
        sources = {"A": place / "old" / "src", "B": HERE.parent / "src"}
        for version in "ABBA":
            print(f"{version}: {'0.1' if version == 'A' else 'this checkout'}", file=sys.stderr, flush=True)
            found[version].append(measure(sources[version], place, lines))
    told = [f"seconds a step, order A B B A; A = 0.1 ({FROZEN}), B = {_git('log', '-1', '--format=%h').decode().strip()}"]
    told += [f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"]
    told += [f"{'line':<24}{'A':>12}{'B':>12}{'B / A':>8}{'spread':>8}"]
    failed = 0
    for line in found["A"][0]:
        old, new = (np.concatenate([np.asarray(run[line]) for run in found[v]]) for v in "AB")
        times, spread, holds = judged(old, new)
        failed += not holds
        told.append(
            f"{line:<24}{np.median(old):>12.3e}{np.median(new):>12.3e}{times:>8.2f}{spread:>8.0%}{'' if holds else '  SLOWER'}"
        )
    told.append(f"{len(found['A'][0]) - failed} of {len(found['A'][0])} lines hold")
    print("\n".join(told))
    if not lines:
        (HERE / "results" / "versions.txt").write_text("\n".join(told) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
