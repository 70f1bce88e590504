"""What is to be drawn and where it goes, seen to fit before anything is written."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RunError
from ..target import Target
from .checkpoint import Checkpoint, check_fingerprint, check_same_run, fingerprint
from .choice import Choice
from .codec import to_data
from .loop import first_does
from .recording import Recording
from .settings import Settings, block_rows, check_memory, draw_bytes, packed_bytes
from .sinks import Statistics
from .store import check_store


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be drawn, and where it goes."""

    target: Target
    settings: Settings
    recording: Recording
    choice: Choice
    store: Path | None
    checkpoint: Checkpoint | None

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return block_rows(self.recording, self.target, self.settings)

    def bytes_on_disk(self) -> float:
        rows = self.settings.num_draws + self.settings.keep_warmup * self.settings.num_warmup
        return self.settings.num_chains * rows * packed_bytes(self.recording, self.target, self.settings)

    def as_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(header, arrays) of a checkpoint's run.npz."""
        structure, leaves = to_data(self.choice.kernel)
        told, probes = fingerprint(self.target)
        header = {
            "settings": {**vars(self.settings), "keep": list(self.settings.keep)},
            "kernel": structure,
            "kernel_repr": repr(self.choice.kernel),
            "choice": self.choice.words(),
            "store": str(self.store) if self.store else None,
            "fingerprint": told,
        }
        arrays = {"probes": probes, **{f"kernel.{name}": leaf for name, leaf in leaves.items()}}
        return header, arrays | ({"initial": self.choice.codes} if self.choice.codes is not None else {})


def check_room(target: Target, settings: Settings, recording: Recording, store: Path | None) -> None:
    """RunError where what is kept in memory would not fit."""
    rows = settings.num_draws + settings.keep_warmup * settings.num_warmup
    if not store:
        needed = settings.num_chains * rows * draw_bytes(recording, target, settings)
        check_memory(needed, f"{rows} draws of {settings.num_chains} chains")
    if settings.statistics:
        check_memory(Statistics(target.space, settings.statistics).bytes_needed(settings.num_chains), "These statistics")


def check_apart(store: Path | None, folder: Path | None) -> None:
    """RunError where the store would lie in the checkpoint."""
    if store and folder and {store, *store.parents} & {folder}:
        hint = "a store may lie beside a checkpoint"
        raise RunError("`store` lies in `checkpoint`.", expected="two places", found=str(store), hint=hint)


def check_places(plan: Plan, overwrite: bool) -> Any:
    """That everything can be written where it should, before anything is; the state to go on from, if this very run has one."""
    if plan.checkpoint:
        plan.checkpoint.check_place()
        folder = plan.checkpoint.folder
        if plan.checkpoint.exists() and not overwrite:
            old = plan.checkpoint.read_run()
            check_fingerprint(folder, old[0], old[1]["probes"], plan.target)
            check_same_run(folder, old, plan.as_data())
            state = plan.checkpoint.read_state()
            if state:
                return state
            overwrite = True  # killed before its first state: what it wrote is ours to replace
    if plan.store:
        first_does(partial(check_store, plan.store, overwrite, plan.bytes_on_disk()))
    return None
