"""`saltus.report(run, path)`: one HTML file that shows what a run drew, how well it mixed, and what to doubt."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from .._words import escaped
from ..engine import disk
from ..engine.arguments import read_flag, read_path
from ..engine.files import cannot_write, check_writable
from ..errors import StorageError
from .summary import check_run

_TEMPLATES = Path(__file__).parent / "templates"
_SUFFIXES = (".html", ".htm")


def report(run: Any, path: Any, overwrite: bool = False) -> Path:
    """Write a report of a run: one HTML file that needs no network and no other file.

    It has the verdict in words, how the sampler was chosen, traces and ranks, marginals, ESS and R-hat, acceptance, the ladder
    of a tempered run, settings, versions and the lines that draw the same again. Where a run has more than 10^5 draws the page
    is made from at most so many, evenly chosen, and says so: its ESS is then that of the draws it looked at.

    run: what saltus.sample, saltus.resume or saltus.open returned.
    path: the file to write; its name ends in .html.
    overwrite: whether to replace a file. The old one stays until the new one is whole.
    Returns the path. Raises StorageError where it cannot be written, SaltusError where this is no run.

        saltus.report(run, "report.html")
    """
    overwrite = read_flag(overwrite, "overwrite")
    check_run(run)
    place = check_report(read_path(path, "path"), overwrite)
    text = page(run)
    try:
        with disk.replacing(place, overwrite) as aside:
            disk.create(aside, lambda file: file.write(text.encode("utf-8", "backslashreplace")))
    except FileExistsError as cause:
        raise _exists(place) from cause
    except OSError as cause:
        raise cannot_write(place, cause) from cause
    return place


def page(run: Any) -> str:
    """The text of the file."""
    import jinja2
    import markupsafe

    from .report_looked import look
    from .report_sections import sections

    def shown(value: Any) -> Any:
        """Text is escaped by Jinja; what steers a terminal or turns text around is written out."""
        return escaped(value) if type(value) is str else value

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, finalize=shown, undefined=jinja2.StrictUndefined
    )
    environment.globals["source"] = lambda name: markupsafe.Markup((_TEMPLATES / name).read_text("utf-8"))
    return environment.get_template("report.html").render(**sections(look(run), _source(run)))


def _source(run: Any) -> str:
    """The file that a run was opened from; '' where it is not known."""
    return Path(str(run.encoding.get("source", ""))).name


def check_report(place: Path | None, overwrite: bool, shown: str = "", hint: str = "overwrite=True replaces it") -> Path:
    """The place; StorageError where no report can be written there, before the run is read."""
    if place is None:
        raise StorageError("`path` is missing.", expected='saltus.report(run, "report.html")', found="None")
    shown = shown or str(place)
    if place.suffix.lower() not in _SUFFIXES:
        raise StorageError(f"{shown} is not a page.", expected="a name that ends in .html", found=repr(place.suffix or place.name))
    if importlib.util.find_spec("jinja2") is None:
        raise StorageError("A report needs Jinja2.", found="not installed", hint="pip install 'saltus[report]'")
    check_writable(place, "path")
    if place.is_dir():
        raise StorageError(f"{shown} cannot be written.", expected="a file, or nothing there yet", found="a folder")
    if place.exists() and not overwrite:
        raise _exists(place, shown, hint)
    return place


def _exists(place: Path, shown: str = "", hint: str = "overwrite=True replaces it") -> StorageError:
    return StorageError(f"{shown or place} exists already.", expected="a new path", found="a file", hint=hint)
