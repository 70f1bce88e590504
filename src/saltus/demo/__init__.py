"""`saltus demo`: the paper's sparse regression, drawn by `saltus.sample` as it comes and held against the exact answer."""

from __future__ import annotations

import importlib.util
import os
import shlex
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import saltus

from .._words import WIDTH, aligned, show_rhat, significant
from ..engine import disk
from ..engine.arguments import read_seed
from ..engine.files import cannot_write, check_writable
from ..errors import StorageError
from ..judging.doubts import ESS, RHAT
from ..reporting.summary import Summary
from ..target import Target
from .comparison import Comparison, compare

_NEEDS = {"run.nc": ("io", ("h5netcdf", "h5py")), "marginals.png": ("plots", ("matplotlib",))}
_SVG = "marginals.svg"
_MARKS = {"marginals.png": {"Software": "saltus demo"}, _SVG: {"Creator": "saltus demo"}}  # what says that a file is ours
MODEL = """\
import jax.numpy as jnp, saltus
target = saltus.Target(lambda s: 0.8 * jnp.sum(s[1:] * s[:-1]), saltus.Spin(50))
print(saltus.summary(saltus.sample(target, seed=0)))"""


def demo(folder: Path, seed: int = 0, progress: bool = True, tell: Callable[[str], None] = print) -> None:
    """Sample, compare, draw the figure, say all of it. Files of an earlier demo in `folder` are replaced."""
    _check_folder(folder)
    seed = read_seed(seed)
    target = saltus.targets.sparse_regression()
    tell("\n".join(_introduction(target, seed) + [""] * progress))
    run = saltus.sample(target, seed=seed, progress=progress)
    if not run.attrs["complete"]:
        raise KeyboardInterrupt
    summary = saltus.summary(run)
    found = compare(target, run, summary)
    tell("\n".join([*_race(run, told=progress), *_agreement(found), *_convergence(summary)]))
    tell("\n".join([*_written(folder, run, found), *_next(folder)]))


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        hint = "it was left as it is: choose another with -o"
        raise StorageError(f"{folder} is not a folder.", expected="a folder, or nothing there yet", found="a file", hint=hint)
    check_writable(Path(os.path.abspath(folder / "run.nc" if folder.is_dir() else folder)), "-o")
    for name in (*_NEEDS, _SVG):
        file = folder / name
        if file.is_dir() or (file.exists() and not _of_a_demo(file)):
            found, hint = "a folder" if file.is_dir() else "another file", "choose another folder with -o"
            raise StorageError(f"{file} is not replaced.", expected="a file of an earlier demo", found=found, hint=hint)


def _of_a_demo(file: Path) -> bool:
    """Whether saltus wrote it: it says so near its beginning or, in run.nc, anywhere."""
    content = file.read_bytes()
    return b"saltus" in (content if file.suffix == ".nc" else content[:4096])


def _introduction(target: Target, seed: int) -> list[str]:
    space, (columns, used) = target.space, target.params["groups"].shape
    text = f"""A site says whether a column is used. {space.num_sites} sites make {space.num_values}^{space.num_sites} states:
        nobody can go through them all. y is the sum of {columns} columns, and each of these is in X {used // columns} times.
        Any copy will do, so the posterior is full of states that are nearly as probable as each other, and a sampler must
        find its way between them. The other {space.num_sites - used} sites have nothing to do with y."""
    title = f"saltus {saltus.__version__} draws from a posterior whose exact answer is known: which columns of X explain y?"
    call = f"run = saltus.sample(saltus.targets.sparse_regression(), seed={seed})"
    return [title, "", *_wrapped(text), "", f"    {call}"]


def _race(run: Any, told: bool) -> list[str]:
    """told: the progress display has said the paragraph already."""
    race = saltus.race_of(run)
    text = (
        "Before the run samplers are tried, as long as another may save time. ESS: how many independent draws the draws are worth."
    )
    return ["", "The race", *_wrapped(text), "", str(race), *([] if told else ["", *_wrapped(race.paragraph)])]


def _agreement(found: Comparison) -> list[str]:
    rows = [[g.name, f"{g.exact:.4f}", f"{g.drawn:.4f}", f"{g.error:.4f}", f"{g.off:+.1f}"] for g in found.groups]
    verdict = "The draws agree with the exact answer" if found.fits else "The draws do not agree with the exact answer yet"
    text = f"""{verdict}. A standard error is what chance does to the mean of so many draws. Of the {len(found.judged)} sites with
        copies the worst is off by {found.largest:.3f}, or {found.worst:.1f} standard errors; chance alone makes the worst of so
        many about {found.usual:.1f}. The other {found.num_rare} are 1 in too few draws to be judged one by one."""
    head = ["sites", "exact", "drawn", "std error", "off, in std errors"]
    return ["", "The probability that a column is used", *aligned(head, rows), "", *_wrapped(text)]


def _convergence(told: Summary) -> list[str]:
    rhat, ess = told.rhat["lp"], told.ess["lp"]
    done = max(told.rhat.values()) <= RHAT and min(told.ess.values()) >= ESS
    verdict = "Yes, as far as draws can tell" if done else "Not yet: a larger num_draws would help"
    text = f"""{verdict}. The {told.num_chains} chains have an R-hat of {show_rhat(rhat)} for the energy ({RHAT} or less says that
        they agree), and {told.num_chains * told.num_draws} draws are worth {significant(ess)} independent ones ({ESS} do for
        most purposes)."""
    return ["", "Has it converged?", *_wrapped(text)]


def _written(folder: Path, run: Any, found: Comparison) -> list[str]:
    """Write what the installed packages can write."""
    folder.mkdir(exist_ok=True)
    missing = {name: _missing(*needs) for name, needs in _NEEDS.items()}
    if not missing["run.nc"]:
        saltus.save(run, folder / "run.nc", overwrite=True)
    if not missing["marginals.png"]:
        from .figure import draw

        figure = draw(found, saltus.race_of(run).rows)
        for name in ("marginals.png", _SVG):
            _replace(folder / name, partial(figure.savefig, dpi=160, metadata=_MARKS[name]))
    kept = {"run.nc": "the whole run", "marginals.png": f"the comparison and the race; {_SVG}: the same"}
    width = max(len(str(folder / name)) for name in kept)
    return ["", "Files", *(f"  {folder / name!s:<{width}}  {missing[name] or kept[name]}" for name in kept)]


def _missing(extra: str, modules: tuple[str, ...]) -> str:
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    return f"not written: {' and '.join(absent)} not installed; pip install 'saltus[{extra}]'" if absent else ""


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """The old file stays until the new one is whole."""
    try:
        with disk.replacing(path) as aside:
            write(aside)
    except OSError as cause:
        raise cannot_write(path, cause) from cause


def _next(folder: Path) -> list[str]:
    file = folder / "run.nc"
    look = [f"  saltus summary {shlex.quote(str(file))}  # the worst sites, and what to doubt", ""] if file.exists() else []
    model, *_ = MODEL.rpartition("\n")
    commands = {
        "saltus check model.py:target": "can its gradient be trusted?",
        "saltus tune model.py:target --sampler ncg": "one sampler, tuned: what was measured",
        "saltus sample model.py:target -o run.nc": "the race, the draws, a file",
    }
    width = max(map(len, commands))
    return [
        *("", "What to try next", *look),
        *("  A model of your own, in Python:", "", textwrap.indent(MODEL, "    "), ""),
        f"  The same from a shell, with the first {model.count(chr(10)) + 1} lines in model.py:",
        *("", *(f"    {command:<{width}}  # {what}" for command, what in commands.items())),
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
