"""`saltus.summary(run)`: what ran, what the draws are worth, and what to doubt, in one page of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._record import as_size
from .._words import escaped
from ..errors import SaltusError
from ..judging import Judged, judge, verdict_of
from ..judging.doubts import what_to_doubt
from .page import page

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Judged):
    """What a run amounts to; `print` it. For scripts:

    table: rows (`Judgement`: name, mean, sd, ess, rhat, moves, ...), the worst first and constants last; ess, rhat,
    ess_per_second, ess_per_evaluation: {"lp": ..., "distance": ...}; doubts: sentences, none where nothing stands out;
    verdict: one word for the gravest of them, as in `run.attrs["verdict"]` (docs/runs.md lists them).
    """

    shown: int = 10  # rows of the table to print

    @property
    def doubts(self) -> list[str]:
        return what_to_doubt(self)

    @property
    def verdict(self) -> str:
        return verdict_of(self).word

    def __str__(self) -> str:
        return escaped(page(self))

    __repr__ = __str__


def summary(run: xr.DataTree, sites: int = 10) -> Summary:
    """What a run amounts to: print it, or read its attributes. `sites`: how many of the worst sites are printed.

    Draws are read once, a block at a time, so a run opened from disk need not fit in memory. Where there are more than
    2000 sites, ESS and R-hat are those of 2000, evenly spaced.
    """
    shown = as_size(sites, "sites", SaltusError, least=0)
    check_run(run)
    return Summary(**vars(judge(run)), shown=shown)


def check_run(run: Any) -> None:
    """SaltusError where this is no run of saltus."""
    attributes = getattr(run, "attrs", {})
    if not hasattr(run, "children") or attributes.get("inference_library") != "saltus":
        path = isinstance(run, str) or hasattr(run, "__fspath__")
        raise SaltusError(
            "This is not a run of saltus.",
            expected="what saltus.sample or saltus.open returned, as a whole",
            found=f"{type(run).__name__}"
            + (f" made by {attributes['inference_library']}" if "inference_library" in attributes else ""),
            hint=f"saltus.summary(saltus.open({str(run)!r})) reads it from disk" if path else "",
        )
