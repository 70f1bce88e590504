"""What is to be drawn and where it goes, seen to fit before anything is written."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.arguments import Settings, block_rows, check_memory, draw_bytes, packed_bytes, readable
from ..engine.checkpoint import Checkpoint, check_fingerprint, check_same_run, fingerprint, other_settings
from ..engine.codec import to_data
from ..engine.kept import Statistics
from ..engine.loop import first_does
from ..engine.recording import Recording
from ..engine.store import check_own_store, check_store
from ..errors import RunError
from ..target import Target
from .choice import Choice

_WORTH_TELLING = 10**8  # bytes: what a run keeps is told beforehand


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be drawn, and where it goes."""

    target: Target
    settings: Settings
    recording: Recording
    choice: Choice
    store: Path | None
    checkpoint: Checkpoint | None
    run_id: str = ""  # by which checkpoint and store know each other; empty in a run begun by saltus 0.1

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return block_rows(self.recording, self.target, self.settings)

    def as_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(header, arrays) of a checkpoint's run.npz."""
        structure, leaves = to_data(self.choice.kernel)
        told, probes = fingerprint(self.target)
        header = {
            "settings": {**vars(self.settings), "keep": list(self.settings.keep)},
            "kernel": structure,
            "kernel_repr": repr(self.choice.kernel),
            "choice": self.choice.words(),
            "run_id": self.run_id,
            **(self.checkpoint.store_words(self.store) if self.checkpoint else {}),
            "fingerprint": told,
        }
        arrays = {"probes": probes, **{f"kernel.{name}": leaf for name, leaf in leaves.items()}}
        return header, arrays | ({"initial": self.choice.codes} if self.choice.codes is not None else {})


def check_places(
    target: Target, settings: Settings, recording: Recording, store: Path | None, checkpoint: Checkpoint | None, overwrite: bool
) -> None:
    """That everything can be written where it should, before anything is computed."""
    _check_apart(store, checkpoint)
    check_room(target, settings, recording, store)
    if checkpoint:
        (checkpoint.check_replaceable if overwrite else checkpoint.check_place)()
    if store and (overwrite or not (checkpoint and checkpoint.exists())):
        rows = settings.num_draws + settings.keep_warmup * settings.num_warmup
        size = settings.num_chains * rows * packed_bytes(recording, target, settings)
        first_does(partial(check_store, store, overwrite, size))


def check_room(target: Target, settings: Settings, recording: Recording, store: Path | None) -> None:
    """RunError where what is kept in memory would not fit."""
    rows = settings.num_draws + settings.keep_warmup * settings.num_warmup
    if not store:
        needed = settings.num_chains * rows * draw_bytes(recording, target, settings)
        check_memory(needed, f"{rows} draws of {settings.num_chains} chains")
    if settings.statistics:
        check_memory(Statistics(target.space, settings.statistics).bytes_needed(settings.num_chains), "These statistics")


def estimate(target: Target, settings: Settings, recording: Recording, store: Path | None) -> str:
    """What the run will keep, in words: about so much of memory or disk. Empty where that is nothing to speak of."""
    rows = settings.num_chains * (settings.num_draws + settings.keep_warmup * settings.num_warmup)
    each = packed_bytes(recording, target, settings) if store else draw_bytes(recording, target, settings)
    if rows * each < _WORTH_TELLING:
        return ""
    return f"draws will take about {readable(rows * each)} {f'on disk in {store}' if store else 'of memory'}"


def _check_apart(store: Path | None, checkpoint: Checkpoint | None) -> None:
    """RunError where the store would lie in the checkpoint."""
    if store and checkpoint and {store, *store.parents} & {checkpoint.folder}:
        hint = "a store may lie beside a checkpoint"
        raise RunError("`store` lies in `checkpoint`.", expected="two places", found=str(store), hint=hint)


def find_state(plan: Plan, overwrite: bool) -> tuple[Plan, Any]:
    """The plan, with the id of the run it goes on with, and the state to go on from, if this very run has one.

    StorageError where the checkpoint is another run's, or another process writes to it. One that was killed before its
    first state is begun anew.
    """
    if not plan.checkpoint or overwrite or not plan.checkpoint.exists():
        return plan, None
    first_does(plan.checkpoint.take)
    old = plan.checkpoint.read_run()
    check_fingerprint(plan.checkpoint.folder, old[0], old[1]["probes"], plan.target)
    check_same_run(plan.checkpoint.folder, old, plan.as_data())
    _check_same_store(plan.checkpoint, old[0], plan.store)
    plan = dataclasses.replace(plan, run_id=old[0].get("run_id", ""))
    return plan, own_state(plan, old[0])


def own_state(plan: Plan, header: dict[str, Any]) -> Any:
    """The state of the checkpoint, or None; StorageError where what is at the store's place is not this run's."""
    assert plan.checkpoint
    state = plan.checkpoint.read_state()
    if plan.store and (state or os.path.lexists(plan.store)):
        first_does(partial(check_own_store, plan.store, header))
    return state


def _check_same_store(checkpoint: Checkpoint, header: dict[str, Any], store: Path | None) -> None:
    """StorageError where a repeated call names another store."""
    expected = checkpoint.store_of(header, given=store)
    if (expected and os.path.realpath(expected)) != (store and os.path.realpath(store)):
        raise other_settings(checkpoint.folder, "store", expected, store)
    here = checkpoint.store_words(store)["store"]
    if store and not os.path.isabs(header["store"]) and os.path.normpath(here) != os.path.normpath(header["store"]):
        raise other_settings(checkpoint.folder, "store", header["store"], here)
