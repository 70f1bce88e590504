"""Nonsense for every argument of every public callable; tests/nonsense_calls.py has the valid calls."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from functools import partial
from pathlib import Path

from .trials import Trial


def nonsense(root: Path, quick: bool) -> list[Trial]:
    """Every public callable with every kind of nonsense for every argument: refused by a saltus error, or a valid result."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from nonsense_calls import calls

    valid = calls(root)
    return [partial(_called, root, quick, name, *valid[name]) for name in sorted(valid)]


def _called(root: Path, quick: bool, name: str, call, arguments: dict) -> Counter:
    """quick: only as far as that goes without compiling anything."""
    from nonsense_calls import compiled_values, nothing_compiled, one_by_one

    count, made = Counter(), compiled_values()
    with contextlib.chdir(root), nothing_compiled() if quick else contextlib.nullcontext():  # a word is a path: it is written there
        for argument, kind, outcome in one_by_one(call, arguments, made):
            count["calls"] += 1
            count[outcome if outcome in ("refused", "accepted", "compiles") else "wrong"] += 1
            if outcome not in ("refused", "accepted", "compiles"):
                print(f"{name}({argument}={kind}): {outcome}", flush=True)
    return count
