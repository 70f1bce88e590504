"""One word for what stands out most of a run, for scripts; and the warning they get."""

from __future__ import annotations

from typing import NamedTuple

from .doubts import graver
from .judged import Judged

# Every word that `run.attrs["verdict"]` may be, and what it says.
VERDICTS = {
    "ok": "nothing stands out; that is not a proof",
    "point mass": "every draw of every chain is one state, which the chains reached from other states",
    "too few draws": "fewer than four draws a chain: nothing can be judged",
    "undefined": "log_prob or an observable was NaN or infinite at some draws or proposals",
    "no moves": "no chain ever moved",
    "stuck chains": "some chains never moved",
    "modes": "the chains agree in energy and sit in different modes",
    "label switching": "the chains agree but for the names of their labels",
    "chains disagree": "R-hat is above 1.01",
    "low ess": "fewer than 400 effective draws of something",
}


class Verdict(NamedTuple):
    """word: one of VERDICTS. advice: its sentence; empty where there is nothing to warn of. others: doubts besides."""

    word: str
    advice: str = ""
    others: int = 0

    @property
    def warning(self) -> str:
        """What a script is told; empty where nothing is to be doubted."""
        if not self.advice:
            return ""
        more = f" There is more to doubt ({self.others}): print(saltus.summary(run))." if self.others else ""
        return f"{self.advice}{more}"


def verdict_of(s: Judged) -> Verdict:
    """The gravest of what is to be doubted."""
    found = graver(s)
    if not found:
        return Verdict("point mass" if s.point_mass else "ok")
    word, advice = found[0]
    return Verdict(word, "" if word == "too few draws" else advice, len(found) - 1)
