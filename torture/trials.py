"""What the rows share: a trial is a call that returns what it counted, {word: number}; `wrong` must stay 0."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import saltus

from . import subject
from .subject import LONGER, draw, expected, resume, same, untouched, with_neighbours

Trial = Callable[[], Counter]


class Case(NamedTuple):
    """What somebody does with files, and how to see afterwards that it was done right."""

    name: str
    before: Path | None  # the folder it begins with
    act: Callable[[Path], Any]  # done again after a fault, it has to give what is right
    right: Callable[[Any], bool]


def fresh(root: Path, like: Path | None = None) -> Path:
    """A folder with neighbours in it; a copy of `like`."""
    home = Path(tempfile.mkdtemp(dir=root)) / "home"
    if like:
        shutil.copytree(like, home, symlinks=True)
    else:
        home.mkdir()
    return with_neighbours(home)


@cache
def cases(root: Path) -> list[Case]:
    """Run, resume, overwrite, save, tune, race, train."""
    begun = {}
    for store in (False, True):
        begun[store] = fresh(root)
        draw(begun[store], store)
    return [*_of_runs(begun), *_saving(), *_choosing(), _training()]


def _of_runs(begun: dict[bool, Path]) -> list[Case]:
    found = []
    for store in (False, True):
        kind = "with store" if store else "with segments"
        found += [
            Case(f"run {kind}", None, lambda h, s=store: draw(h, s), lambda r: same(r, expected())),
            Case(f"longer {kind}", begun[store], lambda h: resume(h, num_draws=LONGER), lambda r: same(r, expected(LONGER))),
            Case(
                f"overwrite {kind}",
                begun[store],
                lambda h, s=store: draw(h, s, seed=4, overwrite=True),
                lambda r: same(r, expected(seed=4)),
            ),
        ]
    return found


def _saving() -> list[Case]:
    run, found = draw(None), []
    for suffix in (".nc", ".zarr"):
        act = lambda h, s=suffix: saltus.open(saltus.save(run, h / f"saved{s}", overwrite=True)).load()  # noqa: E731
        found.append(Case(f"save {suffix}", None, act, lambda r: same(r, expected())))
    return found


def _choosing() -> list[Case]:
    """What a run chose is in its checkpoint: the draws are those of its kernel, from the start it names."""
    return [
        Case("tuned", None, lambda h: draw(h, sampler=saltus.UniformMH), subject.is_its_own_kernels),
        Case("race", None, lambda h: draw(h, sampler=subject.RACERS), subject.is_its_own_kernels),
    ]


def _training() -> Case:
    trained = subject.train(None)
    return Case("training", None, subject.train, lambda r: np.array_equal(r.params, trained.params))


def judge(what: str, home: Path, case: Case) -> Counter:
    """After a fault the same call gives the right numbers, or refuses with a StorageError; neighbours are as they were."""
    try:
        outcome = "right" if case.right(case.act(home)) else "wrong"
    except saltus.StorageError:
        outcome = "refused"
    except Exception as error:
        outcome = "wrong"
        print(f"{what}: {type(error).__name__}: {error}", flush=True)
    if outcome == "wrong" or not untouched(home):
        print(f"{what}: {outcome}, neighbours {'untouched' if untouched(home) else 'TOUCHED'}", flush=True)
    return Counter([outcome if untouched(home) else "wrong"])
