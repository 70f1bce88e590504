"""A checkpoint is a folder:

    run.npz                      what was asked: settings, kernel, start, fingerprint of the target; never changes
    state.npz                    where the run stands: chains, sums, times, the block being filled; replaced as a whole
    draws-000000004096.npz ...   full blocks of draws; never change

Every file is an npz with a JSON header. State and blocks are written aside and renamed, blocks first, so a kill at any
moment leaves the last state with all the blocks it knows of.
"""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import StorageError
from ..target import Target
from .files import check_writable, damaged, read_npz, replaced, write_npz

_PROBES = 8


class Checkpoint:
    def __init__(self, folder: Path):
        self.folder = folder

    def create(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The folder with its run.npz; it appears as a whole, in place of an older one."""
        aside = self.folder.with_name(self.folder.name + ".aside")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        write_npz(aside / "run.npz", {"kind": "run", **header}, arrays)
        self.check_place()
        with replaced(self.folder):
            aside.rename(self.folder)

    def update(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """A run made longer: run.npz anew."""
        write_npz(self.folder / "run.npz", {"kind": "run", **header}, arrays)

    def check_place(self) -> None:
        """StorageError where nothing can be written, or where something lies that is not a checkpoint."""
        check_writable(self.folder, "checkpoint")
        if self.exists() and not (self.folder / "run.npz").exists():
            raise _foreign(self.folder)

    def exists(self) -> bool:
        """Whether anything is there; an empty folder is as good as none."""
        return self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir()))

    def read_run(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if not self.folder.exists():
            raise StorageError(
                f"There is no checkpoint at {self.folder}.",
                expected="a folder written by saltus.sample(..., checkpoint=...)",
                found="nothing",
            )
        if not self.folder.is_dir() or not (self.folder / "run.npz").exists():
            raise _foreign(self.folder)
        return read_npz(self.folder / "run.npz", "run")

    def write_state(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        write_npz(self.folder / "state.npz", {"kind": "state", **header}, arrays)

    def read_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """None where the run was killed before its first state."""
        path = self.folder / "state.npz"
        return read_npz(path, "state") if path.exists() else None


def _foreign(folder: Path) -> StorageError:
    return StorageError(
        f"{folder} is not a checkpoint.",
        expected="a folder written by saltus.sample(..., checkpoint=...), with run.npz in it",
        found="a file" if folder.is_file() else "a folder without run.npz",
        hint="it was left as it is: choose another path",
    )


def fingerprint(target: Target) -> tuple[dict[str, Any], np.ndarray]:
    """What tells one target from another: the space, how it is seen, and f at fixed states."""
    space = target.space
    keys = jax.random.split(jax.random.key(20221), _PROBES)
    codes = jax.vmap(space.random)(keys)
    told = {
        "space": f"{space} #{zlib.crc32(space.values.tobytes() + space.labels.tobytes()):08x}",
        "local model": type(target.differences).__name__,
        "structure": [type(part).__name__ for part in target.structure],
        "float": jnp.result_type(float).name,
    }
    return told, np.asarray(jax.jit(jax.vmap(target.value))(codes))


def check_fingerprint(path: Path, header: dict[str, Any], probes: np.ndarray, target: Target) -> None:
    """StorageError where the checkpoint belongs to another target."""
    told, values = fingerprint(target)
    for name, found in told.items():
        if header["fingerprint"][name] != found:
            raise _another_target(path, name, header["fingerprint"][name], found)
    check_log_probs(path, "log_prob at a probe state", probes, values)


def check_log_probs(path: Path, where: str, expected: np.ndarray, found: np.ndarray) -> None:
    """StorageError where f is another function: equal up to the rounding of another machine, no more."""
    finite = np.abs(expected[np.isfinite(expected)])
    rounding = 32 * np.finfo(expected.dtype).eps * max(finite.max(initial=0), 1)
    same = np.isclose(found, expected, rtol=0, atol=rounding, equal_nan=True)
    if not same.all():
        i = int(np.argmin(same))
        raise _another_target(path, where, f"{expected[i]:.8g}", f"{found[i]:.8g}")


def _another_target(path: Path, what: str, expected: Any, found: Any) -> StorageError:
    return StorageError(
        f"{path} belongs to another target: the {what} differs.",
        expected=str(expected),
        found=str(found),
        hint="pass the target the run was started with, or another path; the checkpoint was left as it is",
    )


def check_same_run(
    path: Path, old: tuple[dict[str, Any], dict[str, np.ndarray]], new: tuple[dict[str, Any], dict[str, np.ndarray]]
) -> None:
    """StorageError naming the first setting in which a repeated call differs from the one that began this checkpoint."""
    for name in new[0]["settings"]:
        if old[0]["settings"].get(name) != new[0]["settings"][name]:
            raise other_settings(path, name, old[0]["settings"].get(name), new[0]["settings"][name])
    if old[0]["store"] != new[0]["store"]:
        raise other_settings(path, "store", old[0]["store"], new[0]["store"])
    changed = {
        n for n in {*old[1], *new[1]} - {"probes"} if n not in old[1] or n not in new[1] or not np.array_equal(old[1][n], new[1][n])
    }
    if old[0]["kernel"] != new[0]["kernel"] or changed - {"initial"}:
        raise other_settings(path, "sampler", old[0]["kernel_repr"], new[0]["kernel_repr"])
    if changed:
        raise other_settings(path, "initial", "the states it was started from", "others")


def other_settings(path: Path, name: str, expected: Any, found: Any) -> StorageError:
    """A repeated call that asks for something else."""
    extend = "; saltus.resume(path, target, num_draws=...) makes a run longer" if name == "num_draws" else ""
    return StorageError(
        f"{path} holds a run with another `{name}`.",
        expected=str(expected),
        found=str(found),
        hint=f"overwrite=True starts afresh, another path keeps both{extend}",
    )


def pack(tree: Any, prefix: str) -> dict[str, np.ndarray]:
    """The leaves of a tree as named arrays."""
    return {f"{prefix}.{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def unpack(like: Any, arrays: dict[str, np.ndarray], prefix: str, path: Path) -> Any:
    """`pack` undone, into the structure and shapes of `like`."""
    leaves, structure = jax.tree.flatten(like)
    found = [arrays.get(f"{prefix}.{i}") for i in range(len(leaves))]
    for leaf, array in zip(leaves, found, strict=True):
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            shape = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise damaged(path, f"{shape} for {leaf.dtype} of shape {leaf.shape}", "it was written for another target or version")
    return jax.tree.unflatten(structure, found)
