"""`saltus.verify`: is everything that a run wrote still there, and as it was written? `saltus.status`: how far is it?"""

from __future__ import annotations

import datetime
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._words import counted, escaped
from ..engine.arguments import read_path
from ..engine.checkpoint import Checkpoint
from ..engine.files import read_header, read_npz, understood
from ..engine.keys import DRAWS, WARMUP
from ..engine.lock import told
from ..engine.store import CHECKED, Reader, check_own_store, open_checked, read_mark, writer_of
from ..errors import RunError, StorageError
from .opening import open_run
from .saving import check_netcdf


@dataclass
class Verified:
    """What was looked at and what was found; `print` it.

    path: what was asked for. problems: in words, empty where all is well. seen: what was read, in words.
    safe: draws of each chain that can be read in every variable; None where there are none to count.
    """

    path: Path
    seen: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    safe: int | None = None

    @property
    def ok(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        verdict = "is whole: every checksum is right" if self.ok else f"has {counted(len(self.problems), 'problem')}"
        lines = [f"{self.path} {verdict}.", *(f"  looked at  {text}" for text in self.seen)]
        lines += [f"  problem    {text}" for text in self.problems]
        if not self.ok and self.safe is not None:
            lines.append(f"  safe       the first {counted(self.safe, 'draw')} of each chain")
        return escaped("\n".join(lines))

    def try_to(self, action: Any, *given: Any) -> Any:
        """What the action returns; None and a problem where it raises."""
        try:
            return action(*given)
        except Exception as cause:
            self.problems.append(str(cause).replace("\n ", ";"))
            return None

    def at_most(self, safe: int) -> None:
        self.safe = safe if self.safe is None else min(self.safe, safe)


def verify(path: Any) -> Verified:
    """Read all of a run on the disk and hold it against its checksums; nothing is changed.

    path: a checkpoint (its store is looked at too), a run.zarr, a run.nc, or a trained model.
    Returns a report with `.ok`, `.problems` and `.safe`, the draws of each chain that can be relied on.
    Raises StorageError where nothing of saltus is there.

        print(saltus.verify("run.zarr"))
    """
    where = read_path(path, "path")
    if where is None or not os.path.lexists(where):
        raise StorageError(f"There is nothing at {where}.", expected="a checkpoint, run.zarr, run.nc or model", found="nothing")
    found = Verified(where)
    if where.is_file():
        _verify_file(found, where)
    elif (where / "run.npz").exists():
        _verify_checkpoint(found, Checkpoint(where))
    else:
        _verify_zarr(found, where)
    return found


def _verify_file(found: Verified, path: Path) -> None:
    with open(path, "rb") as file:
        is_npz = file.read(2) == b"PK"
    if is_npz:
        header = found.try_to(read_header, path)
        if header:
            found.try_to(read_npz, path, header["kind"])
            found.seen.append(f"a file that holds a {header['kind']}, with a CRC of each array")
        return
    checked = found.try_to(check_netcdf, path)
    tree = found.try_to(lambda: open_run(path).load())
    words = {
        True: "the checksum of the whole file",
        False: "a file without a checksum: only whether it can be read",
        None: "a file",
    }
    found.seen.append(words[checked])
    if tree is not None and "sample_stats" in tree.children:
        found.at_most(tree["sample_stats"].sizes["draw"])


def _verify_zarr(found: Verified, path: Path) -> None:
    try:
        read_mark(path)
    except StorageError:
        found.try_to(lambda: open_run(path).load())
        found.seen.append("a run that was saved: every chunk")
        return
    _verify_store(found, path)


def _verify_store(found: Verified, path: Path) -> None:
    root = found.try_to(open_checked, path)
    if root is None:
        found.at_most(0)
        return
    for home in found.try_to(lambda: sorted(root.group_keys())) or []:
        group = found.try_to(lambda home=home: root[home])
        arrays = found.try_to(lambda group=group: dict(group.arrays())) if group is not None else None
        for array in (arrays or {}).values():
            if array.ndim > 1 and array.metadata.dimension_names[:2] == ("chain", "draw"):
                _verify_draws(found, path, home, array, int(group.attrs.get("draws", 0)), root.attrs.get("run_id"))
            else:
                found.try_to(lambda array=array: array[...])
        if arrays is None and group is not None:
            found.at_most(0)
        found.seen.append(f"{home}: {', '.join(arrays or {}) or 'no variables'}")
    if root.attrs.get("saltus_store", 0) < CHECKED:
        found.seen.append("written by saltus 0.1, without checksums: a missing chunk or a flipped bit cannot be told")


def _verify_draws(found: Verified, path: Path, home: str, array: Any, count: int, run_id: Any) -> None:
    """The chunks of one array. Draws of the warm-up do not count as safe draws."""
    rows = array.chunks[1]
    _, bad = Reader(path, array, home, count, run_id).chunks()
    if array.shape[1] < count:
        found.problems.append(f"{array.path} has {array.shape[1]} draws where {count} are counted")
    if bad:
        which = ", ".join(f"{n * rows} to {min((n + 1) * rows, count) - 1}" for n in bad[:5])
        found.problems.append(f"{array.path}: draws {which}{' and more' if len(bad) > 5 else ''} are damaged or missing")
    if not home.startswith("warmup_"):
        found.at_most(min([array.shape[1], count, *(n * rows for n in bad)]))


def _verify_checkpoint(found: Verified, saved: Checkpoint) -> None:
    read = found.try_to(_either_run, saved)
    if read is None:
        return
    header = read[0]
    found.seen.append("run.npz: what was asked")
    state = found.try_to(saved.read_state)
    found.seen.append("state.npz: where it stands" if state else "no state.npz")
    for file in sorted(saved.folder.glob("*draws-*.npz")):
        found.try_to(read_npz, file, "segment")
    if saved.run_kind != "run":
        return
    counted_rows = _rows_of(state[0], header) if state else {}
    if header.get("store") is None:
        _verify_segments(found, saved, counted_rows, int(state[0]["rows"]) if state else 1)
        return
    store = found.try_to(saved.store_of, header)
    before = len(found.problems)
    if store is not None:
        found.try_to(check_own_store, store, header)
    if store is not None and len(found.problems) == before:
        _verify_store(found, store)
        if found.safe is not None and found.safe < counted_rows.get(DRAWS, 0):
            found.problems.append(f"{store} has {found.safe} safe draws where the checkpoint counts on {counted_rows[DRAWS]}")


def _either_run(saved: Checkpoint) -> Any:
    """run.npz, of a run or of training: which of them, the header says."""
    header = read_header(saved.folder / "run.npz")
    if header["kind"] == "training":
        saved.run_kind, saved.state_kind = "training", "training state"
    return saved.read_run()


def _rows_of(state: dict[str, Any], header: dict[str, Any]) -> dict[int, int]:
    """By phase: rows that are made, the block being filled included."""
    phase, done = int(state["phase"]), int(state["done"])
    return {phase: done // max(int(state["thin"]), 1) if phase == DRAWS else done}


def _verify_segments(found: Verified, saved: Checkpoint, rows: dict[int, int], size: int) -> None:
    """That the full blocks before the one in the state are there."""
    starts = {int(f.stem[-12:]) for f in saved.folder.glob("*draws-*.npz") if not f.name.startswith("warmup_")}
    missing = sorted(set(range(0, rows.get(DRAWS, 0) // size * size, size)) - starts)
    found.problems += [f"the block of draws from {start} is missing" for start in missing]
    found.seen.append(f"{counted(len(starts), 'block')} of draws")
    found.at_most(min([rows.get(DRAWS, 0), *missing]))


def status(path: Any) -> str:
    """How a run is doing, from its files alone: whether a process writes to it, how far it is, how long it will take.

    path: a checkpoint or a run.zarr. Returns a few lines. Nothing is changed, and the run is not disturbed.

        print(saltus.status("run.ckpt"))
    """
    where = read_path(path, "path")
    if where is None:
        raise RunError("`path` is missing.", expected="a checkpoint or a run.zarr", found="None")
    with understood(where):
        return escaped("\n".join(_checkpoint_status(Checkpoint(where)) if (where / "run.npz").exists() else _store_status(where)))


def _alive(place: Path, writer: tuple[bool | None, Any]) -> str:
    words = {True: "is running", False: "is not running", None: "may be running (its lock cannot be looked at)"}
    return f"{place} {words[writer[0]]}: {'written' if writer[0] else 'last written'} by {told(writer[1])}"


def _checkpoint_status(saved: Checkpoint) -> list[str]:
    header, _ = _either_run(saved)
    lines = [_alive(saved.folder, saved.writer())]
    file = saved.folder / "state.npz"
    if not file.exists():
        return [*lines, "  nothing has been saved yet"]
    ago = max(time.time() - file.stat().st_mtime, 0)
    last = f"  last checkpoint {_seconds(ago)} ago"
    state = read_header(file)
    if saved.run_kind != "run":
        return [*lines, f"  training, {_seconds(float(state['seconds']))} of updates", last]
    asked, phase, done = header["settings"], int(state["phase"]), int(state["done"])
    thin = max(int(state["thin"]), 1)
    total = asked["num_draws"] * thin if phase == DRAWS else asked["num_warmup"]
    spent = float(state["times"]["sampling" if phase == DRAWS else "warmup"])
    later = asked["num_draws"] * thin if phase == WARMUP else 0
    what = f"{done // thin} of {asked['num_draws']} draws" if phase == DRAWS else f"{done} of {total} steps of the warm-up"
    lines.append(f"  {what} of {counted(asked['num_chains'], 'chain')}, {100 * done / max(total, 1):.0f} %")
    if phase == DRAWS and done >= total:
        lines.append("  it is complete")
    elif done and spent:
        lines.append(f"  about {_seconds((total - done + later) * spent / done)} left at the pace so far")
    return [*lines, last]


def _store_status(path: Path) -> list[str]:
    root = open_checked(path)
    writer, attributes = writer_of(path), dict(root.attrs)
    draws = min(
        (int(g.attrs.get("draws", 0)) for n, g in root.groups() if n.endswith("sample_stats") and "warmup" not in n), default=0
    )
    total = int(attributes["num_draws"])
    lines = [
        _alive(path, writer),
        f"  {draws} of {total} draws of {counted(attributes['num_chains'], 'chain')}, {100 * draws / total:.0f} %",
    ]
    if attributes.get("complete"):
        return [*lines, "  it is complete"]
    if not writer[0]:
        return [*lines, f"  incomplete ({attributes.get('incomplete_because') or 'it was ended from outside'})"]
    began = datetime.datetime.fromisoformat(str(attributes["created_at"]))
    spent = (datetime.datetime.now(datetime.UTC) - began).total_seconds()
    return [*lines, f"  about {_seconds(spent * (total - draws) / draws)} left at the pace so far"] if draws else lines


def _seconds(seconds: float) -> str:
    """'40 s', '12 min', '3.5 h', '2.1 days'."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"
