"""What `saltus tune` leaves: a figure of what was measured, and the command that uses what was found."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..engine import disk
from ..engine.files import cannot_write, check_writable
from ..engine.samplers import tunes_of
from ..errors import StorageError
from ..kernels import Kernel
from .sampler import option_name, options_of

_FIGURES = (".png", ".svg", ".pdf")


def check_plot(path: Path | None, overwrite: bool = False) -> None:
    """StorageError before anything is tuned where --plot cannot be drawn, or would replace a file."""
    if path is None:
        return
    if path.suffix not in _FIGURES:
        expected = f"a name that ends in {', '.join(_FIGURES)}"
        raise StorageError(f"--plot {path} is not a figure.", expected=expected, found=repr(path.suffix or path.name))
    if path.is_dir():
        raise StorageError(f"--plot {path} cannot be written.", expected="a file, or nothing there yet", found="a folder")
    if path.exists() and not overwrite:
        raise StorageError(f"--plot {path} exists already.", expected="a new path", found="a file", hint="--overwrite replaces it")
    if importlib.util.find_spec("matplotlib") is None:
        hint = "pip install 'saltus[plots]'"
        raise StorageError(f"--plot {path} needs matplotlib.", found="not installed", hint=hint)
    check_writable(Path(os.path.abspath(path)), "--plot")


def save_plot(report: Any, path: Path, overwrite: bool = False) -> bool:
    """Whether there was something to draw."""
    if not report.curves:
        warnings.warn(f"--plot {path} was not written: {report}", stacklevel=2)
        return False
    try:
        with disk.replacing(path, overwrite) as aside:
            report.plot()[0].figure.savefig(aside, dpi=160)
    except OSError as cause:
        raise cannot_write(path, cause) from cause
    return True


def sample_command(
    kernel: Kernel, target: str, *, seed: int, initial: Path | None, adaptation: str, sampler: str = ""
) -> list[str]:
    """The command that draws with this kernel. What no option can say, such as a matrix, the same tuning finds again.

    sampler: how it was named, where its class alone does not say.
    """
    kind = type(kernel)
    options = {option_name(field): _text(getattr(kernel, field)) for field in options_of(kind)}
    expressible = None not in options.values() and all(f in options_of(kind) or getattr(kernel, f) is None for f in tunes_of(kind))
    words = ["saltus", "sample", target, "--sampler", sampler if ":" in sampler else kind.name]
    if expressible:
        words += [word for option, text in options.items() if text for word in (option, text)]
    else:
        words += ["--adaptation", adaptation] if adaptation != "default" else []
    words += ["--seed", str(seed)] if seed else []
    words += ["--initial", str(initial)] if initial else []
    note = "Draw with it" if expressible else "Draw with it (the same seed tunes to the same kernel)"
    return [f"{note}:", "  " + shlex.join([*words, "-o", "run.nc"])]


def _text(value: Any) -> str | None:
    """As an option takes it, to the last bit; empty where it is not set, None for what no option takes."""
    if value is None or isinstance(value, str):
        return value or ""
    return None if dataclasses.is_dataclass(value) or np.ndim(value) else str(np.asarray(value)[()])
