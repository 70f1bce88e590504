"""A checkpoint is a folder:

    run.npz                      what was asked: settings, kernel, start, fingerprint of the target; never changes
    state.npz                    where the run stands: chains, sums, times, the block being filled; replaced as a whole
    draws-000000004096.npz ...   full blocks of draws; never change
    lock                         locked by the process that writes; who that is, for messages

Every npz has a JSON header with the mark of saltus and the id of the run. Blocks are safe on the disk before the state
that counts on them is written, so a kill or a loss of power at any moment leaves the last state with all of its blocks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import StorageError
from ..spaces import Space
from ..target import Target
from . import disk
from .files import cannot_write, check_writable, damaged, put_folder, read_header, read_npz, understood, write_npz
from .lock import Lock, is_held, myself, told
from .store import is_store_of

_PROBES = 8
_LOCK = "lock"
_OURS = re.compile(rf"run\.npz|state\.npz|{_LOCK}|\w*draws-\d{{12}}\.npz|{re.escape(disk.ASIDE)}.*")


class Checkpoint:
    """Of a run; training has its own kinds and words."""

    run_kind, state_kind = "run", "state"
    what, written_by = "a checkpoint", "saltus.sample(..., checkpoint=...)"

    def __init__(self, folder: Path):
        self.folder = folder
        self.run_id = ""
        self._lock: Lock | None = None

    def create(self, header: dict[str, Any], arrays: dict[str, np.ndarray], replace: bool = True) -> None:
        """The folder with its run.npz; it appears as a whole and locked, in place of an older one where that may be replaced."""
        self.run_id = header.get("run_id", "")
        place = disk.real(self.folder)
        aside = disk.beside(place)
        lock = Lock(aside / _LOCK, self.folder)
        try:
            disk.folder(aside)
            disk.create(lock.file, lambda file: file.write(json.dumps(myself()).encode()))
            write_npz(aside / "run.npz", {"kind": self.run_kind, **header}, arrays)
            lock.take(dict)
            put_folder(aside, place, self._taken if replace else None)
        except BaseException as cause:
            lock.free()
            disk.remove(aside)
            if isinstance(cause, FileExistsError):
                raise self._begun_meanwhile() from cause
            if isinstance(cause, OSError):
                raise cannot_write(self.folder, cause) from cause
            raise
        self.free()
        self._lock = Lock(place / _LOCK, self.folder).holding(lock)

    def update(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """A run made longer: run.npz anew."""
        write_npz(self.folder / "run.npz", {"kind": self.run_kind, **header}, arrays)

    # ---- one writer ----------------------------------------------------------------------------------------------

    @property
    def taken(self) -> bool:
        return self._lock is not None

    def take(self) -> None:
        """Become the only writer; StorageError where there is one already."""
        if not self._lock:
            file = disk.real(self.folder) / _LOCK
            try:
                if not file.exists():
                    disk.create(file, lambda file: None)
                lock = Lock(file, self.folder)
                lock.take(lambda: _holder(file))
            except OSError as cause:
                raise cannot_write(self.folder, cause) from cause
            self._lock = lock

    def sign(self) -> None:
        """Say who writes from now on."""
        if self._lock:
            self._lock.sign(json.dumps(myself()))

    def free(self) -> None:
        if self._lock:
            self._lock.free()
            self._lock = None

    def writer(self) -> tuple[bool | None, Any]:
        """(whether a process writes here now, the one that last did)."""
        return is_held(self.folder / _LOCK), _holder(self.folder / _LOCK)

    @contextlib.contextmanager
    def _taken(self, place: Path) -> Iterator[None]:
        """What is there, to be replaced: StorageError unless it is ours, nothing else is in it, and nobody writes to it."""
        self.check_replaceable()
        held = self._lock is not None
        self.take()
        try:
            yield
        finally:
            if not held:
                self.free()

    # ---- what is there -------------------------------------------------------------------------------------------

    def check_place(self) -> None:
        """StorageError where nothing can be written, or where something lies that is not a checkpoint."""
        check_writable(self.folder, "checkpoint")
        if not self.exists():
            return
        if not self.folder.is_dir() or not (self.folder / "run.npz").exists():
            raise self._foreign()

    def check_replaceable(self) -> None:
        """StorageError where something would be lost that is not ours."""
        self.check_place()
        if not self.exists():
            return
        foreign = [name for name in sorted(os.listdir(self.folder)) if not _OURS.fullmatch(name)]
        if foreign:
            raise self._foreign(f"{foreign[0]} among its files")
        try:
            read_header(self.folder / "run.npz")
        except StorageError as cause:
            raise self._foreign("a run.npz that is not ours, or damaged") from cause

    def exists(self) -> bool:
        """Whether anything is there; an empty folder is as good as none."""
        return self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir()))

    def read_run(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if not self.folder.exists():
            raise StorageError(
                f"There is no checkpoint at {self.folder}.",
                expected=f"a folder written by {self.written_by}",
                found="nothing",
            )
        if not self.folder.is_dir() or not (self.folder / "run.npz").exists():
            raise self._foreign()
        header, arrays = read_npz(self.folder / "run.npz", self.run_kind)
        self.run_id = str(header.get("run_id", ""))
        return header, arrays

    def store_words(self, store: Path | None) -> dict[str, Any]:
        """What run.npz says of the store: the way to it from beside this folder."""
        if store is None:
            return {"store": None}
        here = os.path.dirname(os.path.realpath(self.folder))
        return {"store": os.path.relpath(os.path.realpath(store), here)}

    def store_of(self, header: dict[str, Any], given: Path | None = None) -> Path | None:
        """The store of the run in this folder: beside it, or below that. StorageError where it is elsewhere and not `given`.

        A copy has its own store, in the same place relative to it. A file may come from a stranger, so what it says is
        not followed out of the folder that the checkpoint is in.
        """
        way = header["store"]
        if way is None:
            return None
        if os.path.isabs(way):  # begun by saltus 0.1: the store beside it, if that is its own
            way = os.path.basename(way)
        if ".." not in Path(way).parts:
            homes = [self.folder.parent, Path(os.path.realpath(self.folder)).parent]
            return next((home / way for home in homes if is_store_of(home / way, header)), homes[0] / way)
        if given is None:
            raise StorageError(
                "The store of this run is not beside its checkpoint.",
                expected="store=, the path of its draws",
                found=f"{way}, seen from {self.folder.parent}",
                hint="a path in a file is not followed: say saltus.resume(path, target, store=...)",
            )
        return given

    def write_state(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The state; what it counts on is safe already."""
        write_npz(self.folder / "state.npz", {"kind": self.state_kind, "run_id": self.run_id, **header}, arrays)

    def read_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """None where the run was killed before its first state."""
        path = self.folder / "state.npz"
        if not os.path.lexists(path):
            return None
        header, arrays = read_npz(path, self.state_kind)
        if self.run_id and header.get("run_id") != self.run_id:
            raise damaged(path, "the state of another run", "files of two checkpoints were mixed up")
        return header, arrays

    def _foreign(self, found: str = "") -> StorageError:
        return StorageError(
            f"{self.folder} is not {self.what}.",
            expected=f"a folder written by {self.written_by}, with run.npz in it",
            found=found or ("a file" if self.folder.is_file() else "a folder without run.npz"),
            hint="it was left as it is: choose another path",
        )

    def _begun_meanwhile(self) -> StorageError:
        return StorageError(
            f"{self.folder} was begun by another process meanwhile.",
            expected="nothing there yet",
            found=told(self.writer()[1]),
            hint="wait until it has ended and repeat the call, or choose another path",
        )


def _holder(file: Path) -> Any:
    """Who wrote there last, as far as that can be read."""
    try:
        with open(file, "rb") as content:
            return json.loads(content.read(4096))
    except (OSError, ValueError, RecursionError):
        return None


def space_mark(space: Space) -> str:
    """What tells one space from another."""
    return f"{space} #{zlib.crc32(space.tables):08x}"


def fingerprint(target: Target) -> tuple[dict[str, Any], np.ndarray]:
    """What tells one target from another: the space, how it is seen, and f at fixed states."""
    space = target.space
    keys = jax.random.split(jax.random.key(20221), _PROBES)
    codes = jax.vmap(space.random)(keys)
    told = {
        "space": space_mark(space),
        "local model": type(target.differences).__name__,
        "structure": [] if target.found else [type(part).__name__ for part in target.structure],  # what is found follows from f
        "float": jnp.result_type(float).name,
    }
    return told, np.asarray(jax.jit(jax.vmap(target.value))(codes))


def check_fingerprint(path: Path, header: dict[str, Any], probes: Any, target: Target) -> None:
    """StorageError where the checkpoint belongs to another target."""
    told, values = fingerprint(target)
    with understood(path / "run.npz"):
        before = {name: header["fingerprint"][name] for name in told}
        if probes is None or np.shape(probes) != np.shape(values):
            raise ValueError("no values at probe states")
    for name, found in told.items():
        if before[name] != found:
            raise _another_target(path, name, before[name], found)
    check_log_probs(path, "log_prob at a probe state", probes, values)


def check_codes(space: Space, codes: Any, num_chains: int) -> None:
    """ValueError unless these are None or (num_chains, d) codes of the space."""
    if codes is None:
        return
    if codes.dtype.kind not in "iu" or codes.shape != (num_chains, space.num_sites):
        raise ValueError(f"states of type {codes.dtype} and shape {codes.shape}")
    if codes.size and ((codes < 0) | (codes >= space.num_values_per_site)).any():
        raise ValueError(f"codes outside {space}")


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
