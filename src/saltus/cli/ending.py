"""How a run ends: its draws are written, a few lines say where and what to doubt, and the exit code says whether that is all."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import saltus

from .._words import escaped
from . import COMPLETE, INCOMPLETE, INTERRUPTED

if TYPE_CHECKING:
    from .output import Output

_WIDTH = 96  # of the summary's page too


def finish(run: Any, out: Output | None, target: str, checkpoint: Path | None) -> int:
    """Write the draws, say where they are; the exit code. `out` is None where only the checkpoint has them."""
    told = run.attrs
    draws = run["sample_stats"].sizes["draw"] if "sample_stats" in run.children else 0
    again = _go_on(out, target, checkpoint)
    if not draws:
        if out and not checkpoint:
            out.discard()
        print(f"saltus: ended before the first draw ({told['incomplete_because']}){again and f'; {again}'}", file=sys.stderr)
        return INCOMPLETE if checkpoint else INTERRUPTED
    if out:
        out.write(run, f"the draws are safe in the checkpoint; {again}" if again else "the draws are lost: a checkpoint keeps them")
    how_far = f"{draws} draws" if told["complete"] else f"{draws} of {told['num_draws']} draws ({told['incomplete_because']})"
    tell(f"{told['num_chains']} chains x {how_far} from {told['space']} by {told['sampler']}")
    if out:
        where = str(_relative(out.path))
        tell(
            f"written to {where}", f"  python     run = saltus.open({where!r})", f"  in full    saltus summary {shlex.quote(where)}"
        )
    else:
        tell(f"kept in {checkpoint}; -o run.nc writes them to a file")
    if again and not told["complete"]:
        tell(f"  {again}")
    tell(*_race(run))
    tell(*_doubts(run))
    return COMPLETE if told["complete"] else INCOMPLETE


def _go_on(out: Output | None, target: str, checkpoint: Path | None) -> str:
    """The command that goes on with the run; nothing where there is no checkpoint."""
    if not checkpoint:
        return ""
    aim = ["--overwrite", "-o", str(_relative(out.path))] if out and not out.streamed else []
    return "to go on   " + shlex.join(["saltus", "resume", str(checkpoint), target, *aim])


def _race(run: Any) -> list[str]:
    """How --sampler auto chose; nothing where it was not asked to."""
    if run.attrs.get("race"):
        return ["The race", str(saltus.race_of(run))]
    tuning = str(run.attrs.get("tuning", ""))
    return [textwrap.fill(tuning, _WIDTH)] if tuning.startswith("Skipped") else []


def _doubts(run: Any) -> list[str]:
    try:
        doubts = saltus.summary(run).doubts
    except Exception as error:  # the draws are written: no script may think that they are not
        warnings.warn(f"no summary: {type(error).__name__}: {error}", stacklevel=2)
        return []
    if not doubts:
        return ["Nothing stands out to doubt. That is not a proof."]
    return ["What to doubt", *(textwrap.fill(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ") for text in doubts)]


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def tell(*lines: Any) -> None:
    """Print; a reader who left (`| head`), or a stdout that is closed (`>&-`), changes nothing."""
    if sys.stdout is None:
        return
    try:
        for line in lines:
            print(escaped(line))
        sys.stdout.flush()
    except AttributeError:  # stdout was closed before: sys.stdout is None
        return
    except (BrokenPipeError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
