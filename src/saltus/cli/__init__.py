"""The command line: words in, exit codes out. What the words ask for is done by the functions of the same names in saltus.

app.py       the commands
options.py   their options
help.py      what stands below them: examples, samplers, exit codes
target.py    file.py:target -> Target
sampler.py   --sampler ncg --step-size 0.5 -> Kernel
importing.py file.py, package.module -> the user's module
output.py    -o run.nc or run.zarr
tuning.py    what saltus tune leaves
selecting.py what saltus select reads
ending.py    what saltus sample says at the end
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from .._words import escaped
from ..errors import ConvergenceWarning, SaltusError

COMPLETE, FAILED, BAD_INPUT, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Every error is a few lines on stderr; `--debug` adds the traceback."""
    words = list(sys.argv[1:] if words is None else words)
    debug = "--debug" in words
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("ignore", ConvergenceWarning)  # what to doubt is printed with the rest
            return _run([word for word in words if word != "--debug"])
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        code, text = _told(error, debug)
        print(escaped(text), file=sys.stderr, flush=True)
        return code


def _told(error: BaseException, debug: bool) -> tuple[int, str]:
    """The exit code of an error, and its text."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "saltus: interrupted before the draws were written"
    if isinstance(error, SaltusError):
        return BAD_INPUT, f"error: {error}"
    first = next(iter(str(error).splitlines()), "")
    again = "" if debug else "; run again with --debug to see where"
    return FAILED, f"saltus failed: {type(error).__name__}: {first}{again}"


def _run(words: list[str]) -> int:
    try:
        import cyclopts  # noqa: F401
    except ImportError:
        print("error: The command line needs cyclopts.\n  hint      pip install 'saltus[cli]'", file=sys.stderr)
        return BAD_INPUT
    from .app import run

    return run(words)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """A line a person reads, in place of Python's two with a line of ours in them."""
    print(escaped(f"warning: {message}"), file=sys.stderr, flush=True)
