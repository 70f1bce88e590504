"""python -m torture [--quick] [ROW ...]: rows whose output is kept are not run again; delete one to repeat it."""

import math
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax

from .rows import ROWS, SECONDS

RESULTS = Path(__file__).parent / "results"
MEMORY = Path("/dev/shm")  # a file system in memory: syncing takes no time, and its order is what is tested


def main() -> int:
    quick, asked = "--quick" in sys.argv, [word for word in sys.argv[1:] if not word.startswith("-")]
    failed = 0
    for name in asked or ROWS:
        kept = RESULTS / f"{name}.txt"
        if kept.exists() and not quick and not asked:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="saltus-torture-", dir=MEMORY if MEMORY.is_dir() else None) as root:
            count = ROWS[name](Path(root), quick)
        wrong = count.pop("wrong", 0)
        line = f"{name}: {', '.join(f'{n} {word}' for word, n in sorted(count.items()))}; {wrong} wrong"
        line += f" ({time.monotonic() - began:.0f} s)"
        print(line, flush=True)
        failed += bool(wrong)
        if not quick and not wrong:
            commit = subprocess.run(["git", "log", "-1", "--format=%h, %cs"], capture_output=True, text=True).stdout.strip()
            RESULTS.mkdir(exist_ok=True)
            versions = f"commit {commit}; Python {platform.python_version()}, jax {jax.__version__}"
            if math.isfinite(SECONDS):  # a part of the row: `make torture` still does all of it
                kept = kept.with_suffix(".partial.txt")
                versions = f"PART of the row, ended by TORTURE_SECONDS={SECONDS:.0f}; {versions}"
            kept.write_text(f"{versions}\n{(ROWS[name].__doc__ or '').strip()}\n{line}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
