"""The proposal explorer: one HTML page, built from web/explorer and shipped with the package."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from ..engine import disk
from ..engine.files import cannot_write, check_writable
from ..errors import StorageError

PAGE = Path(__file__).parent / "explorer.html"


def explore(output: Path | None = None, *, overwrite: bool = False, browser: bool = True) -> str:
    """Show the page, or write it to `output` first; returns the line to tell.

    output: where a copy goes; the page that is installed unless given.
    overwrite: whether a copy may replace a file.
    browser: whether to open it.
    Raises StorageError where the copy cannot be written.
    """
    place = PAGE if output is None else _copied(output, overwrite)
    opened = browser and webbrowser.open(place.resolve().as_uri())
    if output is not None:
        return f"written to {output}"
    return f"opened {place}" if opened else f"the page is {place}: open it in a browser"


def _copied(output: Path, overwrite: bool) -> Path:
    if output.suffix.lower() not in (".html", ".htm"):
        raise StorageError(
            f"-o {output} is not a page.", expected="a name that ends in .html", found=repr(output.suffix or output.name)
        )
    check_writable(output, "-o")
    if output.is_dir() or (output.exists() and not overwrite):
        what = "a folder" if output.is_dir() else "a file"
        hint = "" if output.is_dir() else "--overwrite replaces it"
        raise StorageError(f"-o {output} exists already.", expected="a new path", found=what, hint=hint)
    try:
        with disk.replacing(output, overwrite) as aside:
            disk.create(aside, lambda file: file.write(PAGE.read_bytes()))
    except OSError as cause:
        raise cannot_write(output, cause) from cause
    return output
