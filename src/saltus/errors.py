"""Errors that say what was expected, what was found and where, the likely cause, and the way out."""

from __future__ import annotations

from ._words import escaped


class SaltusError(ValueError):
    """Base of every error saltus raises on purpose.

    Control characters are written out: a message may quote a file or another's exception.
    Printed as one sentence followed by the labelled lines that are known:

        `initial` is not a state of Binary(100).
          expected  0 or 1 at every site, shape (..., 100)
          found     -1 at site 3; 52 of 100 sites are wrong
          hint      these look like spins: use saltus.Spin(100), or pass (initial + 1) // 2
    """

    def __init__(self, message: str, *, expected: str = "", found: str = "", hint: str = ""):
        labelled = {"expected": expected, "found": found, "hint": hint}
        lines = [f"  {label:<9} {text}" for label, text in labelled.items() if text]
        super().__init__(escaped("\n".join([message, *lines])))


class SpaceError(SaltusError):
    """A space that cannot be built, or a state outside its space."""


class TargetError(SaltusError):
    """A log-probability, its parameters or its declared structure cannot be used as given."""


class KernelError(SaltusError):
    """A kernel's settings are impossible, or do not fit the target."""


class RunError(SaltusError):
    """An argument of `sample` or `resume` cannot be used, or the run cannot go on."""


class TrainingError(SaltusError):
    """An argument of `saltus.training` cannot be used, or its data, model and optimiser do not fit together."""


class SelectionError(SaltusError):
    """Data or an argument of `saltus.variable_selection` cannot be used."""


class StorageError(SaltusError):
    """A file or folder cannot be read or written, is not what it should be, or belongs to another run."""


class CheckError(SaltusError):
    """A kernel or a space failed certification; the message is the report."""


class ConvergenceWarning(UserWarning):
    """The draws of a run are to be doubted: chains that disagree or never moved, modes, few effective draws, undefined states.

    `saltus.sample` and `saltus.resume` warn once, of the gravest; `run.attrs["verdict"]` has its word, `saltus.summary(run)` all.
    """
