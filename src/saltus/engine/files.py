"""One file format: an npz with a JSON header, written aside and renamed, read without pickle, checked by its CRCs.

A file may come from a stranger: nothing is unpacked, no array is read that the header has not announced with type and
shape, and the header itself has a bounded size.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .. import errors
from . import disk
from .arguments import memory_bytes, readable

_UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, EOFError, AttributeError, NotImplementedError, RuntimeError),
    *(ArithmeticError, RecursionError, MemoryError, AssertionError, struct.error, zipfile.BadZipFile, zlib.error),
)
FORMAT = 5  # of everything that is written
_OLDEST = {"run": 5, "state": 5, "segment": 5}  # that can be read, by kind: format 3, of saltus 0.1, has other chain states
_MOST_HEADER = 2**24  # bytes
_MOST_ARRAYS = 10_000
_KINDS = "biufc"  # of numpy: numbers


def write_npz(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write all or nothing, synced: a reader sees the old file or the new one, also after a kill or a loss of power."""
    try:
        disk.write(path, lambda file: _fill(file, header, arrays))
    except OSError as cause:
        raise cannot_write(path, cause) from cause


def write_npz_later(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """As `write_npz`, but not synced: what counts on it has to `disk.sync` it first."""
    aside = disk.beside(path)
    try:
        disk.create(aside, lambda file: _fill(file, header, arrays))
        disk.move(aside, path)
    except OSError as cause:
        disk.remove(aside)
        raise cannot_write(path, cause) from cause


def _fill(file: BinaryIO, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    announced = {name: [array.dtype.str, list(array.shape)] for name, array in sorted(arrays.items())}
    text = json.dumps({"saltus": "saltus", "format": FORMAT, **header, "arrays": announced})
    named = {f"array.{name}": array for name, array in arrays.items()}
    np.savez(file, **{"header": np.frombuffer(text.encode(), np.uint8), **named})  # type: ignore[arg-type]


def read_npz(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(header, arrays) of a file written by `write_npz` for this `kind`; StorageError names the file otherwise."""
    with understood(path), zipfile.ZipFile(path) as archive:
        members = _members(archive)
        header = _header(archive, members)
        _check_header(path, header, kind)
        announced = _announced(header["arrays"])
        needed = sum(np.dtype(a[0]).itemsize * int(np.prod(a[1], dtype=object)) for a in announced.values() if a)
        if needed > memory_bytes() / 2:
            raise damaged(path, f"arrays of {readable(needed)}", "they would not fit this machine's memory")
        return header, {name: _array(archive, members[f"array.{name}.npy"], a) for name, a in announced.items()}


def read_header(path: Path) -> dict[str, Any]:
    """The header alone, of any kind and version; StorageError where it is not a file of saltus."""
    with understood(path), zipfile.ZipFile(path) as archive:
        header = _header(archive, _members(archive))
        if not isinstance(header.get("format"), int) or not isinstance(header.get("kind"), str):
            raise ValueError("no mark of saltus")
        return header


@contextlib.contextmanager
def understood(path: Path) -> Iterator[None]:
    """What goes wrong in here is the file's fault: StorageError names it."""
    try:
        yield
    except errors.StorageError:
        raise
    except FileNotFoundError:
        raise damaged(path, "no such file", "it was deleted or never written") from None
    except errors.SaltusError as cause:
        raise damaged(path, str(cause).replace("\n ", ";"), "a value in it is not possible") from cause
    except _UNREADABLE as cause:
        raise damaged(path, f"{type(cause).__name__}: {cause}", "the file was truncated, corrupted, or is not ours") from cause


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Stored as they are, each once, within the file."""
    infos = archive.infolist()
    if len(infos) > _MOST_ARRAYS or len({i.filename for i in infos}) < len(infos):
        raise ValueError("too many members, or one twice")
    size = os.fstat(archive.fp.fileno()).st_size if archive.fp else 0
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise ValueError(f"{info.filename} is compressed or encrypted: saltus writes neither")
        if info.file_size != info.compress_size or info.file_size > size:
            raise ValueError(f"{info.filename} is said to be larger than the file")
    return {info.filename: info for info in infos}


def _header(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
    info = members["header.npy"]
    if info.file_size > _MOST_HEADER:
        raise ValueError(f"a header of {readable(info.file_size)}")
    header = json.loads(bytes(_array(archive, info, None, "u")))
    if not isinstance(header, dict):
        raise TypeError("the header is not a table")
    return header


def _announced(told: Any) -> dict[str, tuple[str, tuple[int, ...]] | None]:
    """{name: (dtype, shape)}; None where saltus 0.1 wrote only names."""
    if isinstance(told, list):
        return {str(name): None for name in told}
    found: dict[str, tuple[str, tuple[int, ...]] | None] = {}
    for name, (dtype, shape) in told.items():
        if np.dtype(dtype).kind not in _KINDS or not all(type(n) is int and n >= 0 for n in shape):
            raise TypeError(f"{name} is announced as {dtype} of shape {shape}")
        found[name] = dtype, tuple(shape)
    return found


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, announced: Any, kinds: str = _KINDS) -> np.ndarray:
    """A member, where it is what was announced; its CRC is checked when its end is reached."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = read(member)
        if dtype.kind not in kinds or (announced and (dtype.str, shape) != announced):
            raise ValueError(f"{info.filename} holds {dtype} of shape {shape}, not what was announced")
        count = int(np.prod(shape, dtype=object))
        if member.tell() + count * dtype.itemsize != info.file_size:
            raise ValueError(f"{info.filename} has another size than its shape")
        flat = np.empty(count, dtype)
        if count and member.readinto(memoryview(flat).cast("B")) != flat.nbytes:  # type: ignore
            raise EOFError(f"{info.filename} ends too soon")
        if member.read(1):
            raise ValueError(f"{info.filename} is longer than its shape")
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _check_header(path: Path, header: dict[str, Any], kind: str) -> None:
    """The version first: a newer file may look different in everything else."""
    oldest, found = _OLDEST.get(kind, 3), header["format"]
    if type(found) is not int or found < 1:
        raise damaged(path, f"format {found!r}", "the file was corrupted, or is not ours")
    if not oldest <= found <= FORMAT:
        newer = found > FORMAT
        raise errors.StorageError(
            f"{path} was written by {'a newer' if newer else 'an older'} saltus.",
            expected=f"format {FORMAT}" if oldest == FORMAT else f"formats {oldest} to {FORMAT}",
            found=f"format {found}",
            hint=f"{'upgrade saltus' if newer else 'saltus 0.1 can finish this run'}; the file was left as it is",
        )
    if header["kind"] != kind:
        raise damaged(path, f"a file that holds {header['kind']!r}", "files were renamed or mixed up")


def damaged(path: Path, found: str, cause: str) -> errors.StorageError:
    return errors.StorageError(
        f"{path} cannot be read.",
        expected="a file written by saltus.sample(..., checkpoint=...)",
        found=found,
        hint=f"{cause}; it was left as it is. To start afresh choose another path",
    )


def cannot_write(path: Path, cause: OSError, hint: str = "") -> errors.StorageError:
    return errors.StorageError(
        f"{path} cannot be written.",
        expected="a place with room that this user may write to",
        found=f"{type(cause).__name__}: {cause.strerror or cause}",
        hint=hint or "what was written before is untouched",
    )


def check_writable(path: Path, what: str) -> None:
    """StorageError now rather than after an hour: the folder that is to hold `path` exists and can be written."""
    place = disk.real(path)
    try:
        if not place.parent.is_dir():
            raise errors.StorageError(
                f"`{what}` cannot be written there.",
                expected=f"an existing folder {place.parent}",
                found="no such folder",
                hint="create it first",
            )
        with contextlib.suppress(FileNotFoundError):
            os.lstat(place)  # a name that is too long is found out here
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=disk.ASIDE):
            pass
    except OSError as cause:
        raise cannot_write(path, cause, "nothing has been computed yet: choose another path") from cause


Taking = Callable[[Path], AbstractContextManager[None]]  # of a folder that is to be replaced: raises unless it may be


def put_folder(new: Path, path: Path, take: Taking | None) -> None:
    """The folder `new` goes to `path`, synced. What is there is replaced where `take` allows it, and removed last."""
    try:
        disk.settle(new, path)
    except FileExistsError:
        if take is None:
            raise
        with take(path):
            disk.swap(new, path)
            disk.sync([path.parent])
            disk.remove(new)
    else:
        disk.sync([path.parent])
