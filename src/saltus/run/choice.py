"""Which kernel a run uses and where its chains begin: as given, tuned now, raced now, or as a checkpoint has it."""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..kernels import Informed, Kernel
from ..target import Target
from .checkpoint import Checkpoint, other_settings
from .codec import from_data
from .settings import Settings, check_kernel_fits, find_sampler
from .start import initial_codes

AUTO = "auto"


@dataclass(frozen=True)
class Choice:
    """What is frozen before the first step of a run."""

    kernel: Kernel
    codes: np.ndarray | None  # (chains, d) the first states; None: random ones
    asked: str = ""  # "auto", the name of a class, or nothing where an instance was given
    tuning: str = "none: the kernel was given"  # in words
    race: str = ""  # the table of the race, as JSON
    steps_per_effective: float = 0.0  # as the race measured it
    evaluations: int = 0  # of log_prob, that the race made
    given: Any = None  # [adaptation, a checksum of `initial`]: a repeated call must give the same

    def words(self) -> dict[str, Any]:
        """All but kernel and codes, which are arrays."""
        return {name: getattr(self, name) for name in ("asked", "tuning", "race", "steps_per_effective", "evaluations", "given")}


def stored_choice(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Choice:
    """The choice a checkpoint was begun with."""
    leaves = {n.removeprefix("kernel."): a for n, a in arrays.items() if n.startswith("kernel.")}
    return Choice(from_data(header["kernel"], leaves), arrays.get("initial"), **header["choice"])


def choose(
    sampler: Any,
    target: Target,
    settings: Settings,
    *,
    initial: Any,
    adaptation: str,
    folder: Path | None,
    deadline: float,
    progress: Any,
) -> Choice:
    """folder: of a checkpoint whose choice stands, where it was begun by the same words. deadline: of the whole run."""
    codes = initial_codes(target, initial, settings.num_chains)
    if isinstance(sampler, Kernel):
        check_kernel_fits(sampler, target)
        return _doubted(Choice(sampler, codes), target, settings, initial)
    asked = AUTO if _is_auto(sampler) else find_sampler(sampler).__name__
    given = [adaptation, 0 if codes is None else zlib.crc32(codes.tobytes())]
    if folder and (folder / "run.npz").exists():
        return _same_again(stored_choice(*Checkpoint(folder).read_run()), asked, given, folder)
    if asked == AUTO:
        from ..adaptation.race import race

        found = race(target, settings, initial=initial, deadline=deadline, progress=progress)
        progress.tell(found.paragraph)
        return Choice(
            found.kernel, found.codes, AUTO, found.paragraph, found.as_json(), found.steps_per_effective, found.evaluations, given
        )
    from ..adaptation import tune

    progress.say(f"tuning {asked} on {target.space}")
    tuned = tune(target, sampler, settings.seed, initial=initial, adaptation=adaptation)
    progress.tell(f"tuned to {tuned.kernel!r}")
    return _doubted(Choice(tuned.kernel, codes, asked, str(tuned.report), given=given), target, settings, initial)


def _same_again(before: Choice, asked: str, given: list[Any], folder: Path) -> Choice:
    """The choice of the checkpoint; StorageError, before anything is tuned, where it was begun by other words."""
    if before.asked != asked:
        raise other_settings(folder, "sampler", before.asked or repr(before.kernel), asked)
    if before.given[0] != given[0]:
        raise other_settings(folder, "adaptation", before.given[0], given[0])
    if before.given[1] != given[1]:
        raise other_settings(folder, "initial", "the states it was started from", "others")
    return before


def _is_auto(sampler: Any) -> bool:
    return isinstance(sampler, str) and sampler.lower() == AUTO


def _doubted(choice: Choice, target: Target, settings: Settings, initial: Any) -> Choice:
    """The choice, with a warning where what guides the sampler may mislead it: a small `saltus.check`."""
    kernel = choice.kernel
    seen = kernel.seen(target) if isinstance(kernel, Informed) else target
    if kernel.uses_local_model and not seen.differences.exact:
        from ..diagnostics.local_model import check

        try:
            found = check(seen, settings.seed, initial, small=True)
        except Exception:  # a log_prob that this kernel can use and the check cannot
            return choice
        if not found.trustworthy:
            warnings.warn(f"{found.advice} (saltus.check(target) says more.)", stacklevel=4)
    return choice
