"""Copied, moved, renamed, linked, read-only, another user's, and with any name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import saltus

from .subject import LONGER, TARGET, draw, expected, resume, same, untouched
from .trials import Case, Trial, fresh, judge

NAMES = ["with a space", "new\nline", "tab\tand \x1b[31m", "é" * 120, "n" * 255, "-o", "*?", "日本語", ".hidden", "a'b\"c"]
GOES_ON = Case("", None, lambda h: resume(h, num_draws=LONGER), lambda r: same(r, expected(LONGER)))


def places(root: Path, quick: bool) -> list[Trial]:
    """Each is one trial: the run goes on bit for bit, or is refused clearly, and nothing else is touched."""
    changes = (copied, moved, renamed, linked, linked_folder, read_only, of_another_user)
    return [partial(_after, root, change) for change in changes] + [partial(_named, root, name) for name in NAMES]


def _after(root: Path, change) -> Counter:
    home = fresh(root)
    draw(home, True)
    told = change(root, home)
    if isinstance(told, Path):
        return judge(change.__name__, told, GOES_ON)
    return Counter([told])


def copied(root: Path, home: Path) -> Path:
    place = fresh(root)
    for name in ("c", "run.zarr"):
        shutil.copytree(home / name, place / name)
    before = {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}
    resume(place, num_draws=LONGER)
    assert before == {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}, "the original was touched"
    return place


def moved(root: Path, home: Path) -> Path:
    place = fresh(root)
    for name in ("c", "run.zarr"):
        shutil.move(home / name, place / name)
    return place


def renamed(root: Path, home: Path) -> Path:
    """The folder of both."""
    return home.rename(home.with_name("another name"))


def linked(root: Path, home: Path) -> Path:
    (home / "c").rename(home / "real")
    (home / "c").symlink_to(home / "real")
    return home


def linked_folder(root: Path, home: Path) -> Path:
    link = home.with_name("link")
    link.symlink_to(home)
    return link


def read_only(root: Path, home: Path) -> str:
    """A user who may not write: root may always, so this is of another user where we are root."""
    if not os.geteuid():
        return of_another_user(root, home)
    _allow(home, 0o555, 0o444)
    try:
        return _reads_and_is_refused(home)
    finally:
        _allow(home, 0o755, 0o644)


def of_another_user(root: Path, home: Path) -> str:
    """May read all of it and write nothing: opening works, going on is refused clearly."""
    if os.geteuid() or not shutil.which("setpriv"):
        return "no second user here"
    _allow(home, 0o755, 0o644)
    for path in (home.parent, home.parent.parent):
        path.chmod(0o755)
    code = (
        "from pathlib import Path; from torture.place_rows import _reads_and_is_refused\n"
        f"print(_reads_and_is_refused(Path({str(home)!r})))"
    )
    command = ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.strip():
        print(done.stderr[-600:], flush=True)
    return done.stdout.strip() or "wrong"


def _allow(home: Path, folders: int, files: int) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(folders if path.is_dir() else files)


def _reads_and_is_refused(home: Path) -> str:
    if not same(saltus.open(home / "run.zarr").load(), expected()):
        return "wrong"
    try:
        resume(home, num_draws=LONGER)
    except saltus.StorageError:
        return "read, and refused to write"
    return "wrong"


def _named(root: Path, name: str) -> Counter:
    """A run in a folder of this name, and a checkpoint of this name."""
    home = fresh(root)
    (home / name).mkdir()
    draw(home / name, True)
    inside = same(resume(home / name, num_draws=LONGER), expected(LONGER))
    other = home / name / name
    draw(None, checkpoint=other)
    itself = same(saltus.resume(other, TARGET, num_draws=LONGER, progress=False), expected(LONGER))
    return Counter(["right" if inside and itself and untouched(home) else "wrong"])
