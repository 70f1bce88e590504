"""Which kernel a run uses and where its chains begin: as given, tuned now, raced now, or as a checkpoint has it."""

from __future__ import annotations

import time
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..engine.arguments import Settings, read_adaptation
from ..engine.checkpoint import Checkpoint, other_settings
from ..engine.codec import check_storable, from_data, record_name, same_record
from ..engine.samplers import AUTO, check_kernel_fits, first_setting, read_samplers
from ..engine.starts import initial_codes
from ..errors import StorageError
from ..kernels import Informed, Kernel
from ..target import Target


@dataclass(frozen=True)
class Choice:
    """What is frozen before the first step of a run."""

    kernel: Kernel
    codes: np.ndarray | None  # (chains, d) the first states; None: random ones
    asked: str = ""  # "auto", the name of a class, several of them joined by commas, or nothing where a kernel was given
    tuning: str = "none: the kernel was given"  # in words
    race: str = ""  # the table of the race, as JSON
    steps_per_effective: float = 0.0  # as the race measured it
    evaluations: int = 0  # of log_prob, that the race made
    cut: str = ""  # what the time limit left out of it, in words
    given: Any = None  # [adaptation, a checksum of `initial`, one of kernels in a list]: a repeated call must give the same

    @property
    def starts_given(self) -> bool:
        """Whether a person, or the target, said where chains begin: those of a race end elsewhere."""
        return bool(self.given[1]) if self.given else self.codes is not None

    def words(self) -> dict[str, Any]:
        """All but kernel and codes, which are arrays."""
        names = ("asked", "tuning", "race", "steps_per_effective", "evaluations", "cut", "given")
        return {name: getattr(self, name) for name in names}


def stored_choice(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Choice:
    """The choice a checkpoint was begun with."""
    leaves = {n.removeprefix("kernel."): a for n, a in arrays.items() if n.startswith("kernel.")}
    kernel = from_data(header["kernel"], leaves)
    if not isinstance(kernel, Kernel):
        raise StorageError("A checkpoint without a kernel.", expected="a kernel", found=type(kernel).__name__)
    return Choice(kernel, arrays.get("initial"), **header["choice"])


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
    stored: bool = False,
) -> Choice:
    """What `sample` was asked for, made into a kernel.

    folder: of a checkpoint whose choice stands, where it was begun by the same words. deadline: of the whole run.
    stored: whether the kernel has to be stored, since the run has a checkpoint.
    """
    codes, adaptation = initial_codes(target, initial, settings.num_chains), read_adaptation(adaptation)
    samplers = read_samplers(sampler if isinstance(sampler, (list, tuple)) else [sampler])
    for one in samplers:
        if one != AUTO:  # seen to be usable before anything is computed
            kernel = one if isinstance(one, Kernel) and not one.unfinished else first_setting(one, target)
            check_kernel_fits(kernel, target)
            kernel.check_start(target, codes)
            check_storable(kernel, must=stored)
    if len(samplers) == 1 and isinstance(samplers[0], Kernel) and not samplers[0].unfinished:
        return _doubted(Choice(samplers[0], codes), target, settings, initial)
    asked = ", ".join(_label(one) for one in samplers)
    given = [adaptation, 0 if codes is None else zlib.crc32(codes.tobytes()), _checksum(samplers)]
    if folder and (folder / "run.npz").exists():
        return _same_again(stored_choice(*Checkpoint(folder).read_run()), asked, given, folder)
    if len(samplers) > 1 or AUTO in samplers:
        from ..race.race import race

        found = race(target, settings, initial=initial, deadline=deadline, progress=progress, asked=samplers)
        progress.tell(found.paragraph)
        return Choice(
            *(found.kernel, found.codes, asked, found.paragraph, found.as_json(), found.steps_per_effective, found.evaluations),
            *(found.cut, given),
        )
    from ..tuning.tune import tune_until

    progress.say(f"tuning {getattr(samplers[0], '__name__', samplers[0])} on {target.space}")
    half = time.monotonic() + (deadline - time.monotonic()) / 2
    tuned, late = tune_until(half, target, samplers[0], settings.seed, initial, adaptation)
    progress.tell(f"tuned to {tuned.kernel!r}")
    choice = Choice(tuned.kernel, codes, asked, str(tuned.report), cut="the tuning" if late else "", given=given)
    return choice if late else _doubted(choice, target, settings, initial)


def _label(sampler: Any) -> str:
    """As a checkpoint remembers it."""
    return sampler if sampler == AUTO else repr(sampler) if isinstance(sampler, Kernel) else record_name(sampler)


def _checksum(samplers: tuple[Any, ...]) -> int:
    """Of the numbers of kernels in a list, of which a label shows some."""
    leaves = [
        np.asarray(leaf) for one in samplers if isinstance(one, Kernel) and not one.unfinished for leaf in jax.tree.leaves(one)
    ]
    return zlib.crc32(b"".join(leaf.tobytes() for leaf in leaves))


def _same_again(before: Choice, asked: str, given: list[Any], folder: Path) -> Choice:
    """The choice of the checkpoint; StorageError, before anything is tuned, where it was begun by other words."""
    if not before.asked or not same_record(before.asked, asked):
        raise other_settings(folder, "sampler", before.asked or repr(before.kernel), asked)
    if before.given[0] != given[0]:
        raise other_settings(folder, "adaptation", before.given[0], given[0])
    if before.given[1] != given[1]:
        raise other_settings(folder, "initial", "the states it was started from", "others")
    if before.given[2:] and before.given[2] != given[2]:
        raise other_settings(folder, "sampler", before.asked, f"{asked}, with other numbers")
    return before


def _doubted(choice: Choice, target: Target, settings: Settings, initial: Any) -> Choice:
    """The choice, with a warning where what guides the sampler may mislead it: a small `saltus.check`."""
    kernel = choice.kernel
    seen = kernel.seen(target) if isinstance(kernel, Informed) else target
    if kernel.uses_local_model and not seen.differences.exact:
        from ..race.local_check import check

        try:
            found = check(seen, settings.seed, initial, small=True)
        except Exception:  # a log_prob that this kernel can use and the check cannot
            return choice
        if not found.trustworthy:
            warnings.warn(f"{found.advice} (saltus.check(target) says more.)", stacklevel=5)
    return choice
