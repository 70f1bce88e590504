"""How zarr's files are written and read: whole, in order, with checksums. (zarr is imported here: import this file late.)

Every chunk ends with zarr's crc32c. Every zarr.json has a checksum of itself among its attributes, under `CHECKSUM`.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numcodecs.zstd import Zstd
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from ..errors import StorageError
from . import disk

CHECKSUM = "saltus_checksum"
CODECS = (ZstdCodec(level=0, checksum=False), Crc32cCodec())  # as `encoded` does
_METADATA = "zarr.json"


def encoded(rows: np.ndarray, chunk_rows: int) -> bytes:
    """A chunk (chains, chunk_rows, ...) of rows (n, chains, ...), n <= chunk_rows, as `CODECS` would make it."""
    chunk = np.zeros((rows.shape[1], chunk_rows, *rows.shape[2:]), rows.dtype.newbyteorder("<"))
    chunk[:, : len(rows)] = np.moveaxis(rows, 0, 1)
    data = Zstd(level=0).encode(chunk.tobytes())
    return data + int(google_crc32c.value(data)).to_bytes(4, "little")


class Written(LocalStore):
    """Files go to their places whole. They are synced by `flush`, or at once where they replace others."""

    def __init__(self, root: Path, *, read_only: bool = False):
        super().__init__(root, read_only=read_only)
        self.pending: list[Path] = []

    def put(self, key: str, data: bytes) -> None:
        path = self.root / key
        self._folders(path.parent)
        aside = disk.beside(path)
        try:
            disk.create(aside, lambda file: file.write(data))
            if path.exists():
                disk.sync([aside])
            disk.move(aside, path)
        except OSError:
            disk.remove(aside)
            raise
        self.pending += [path, path.parent]

    def _folders(self, path: Path) -> None:
        """Below the root, which has to be there."""
        if path != self.root and not path.exists():
            self._folders(path.parent)
            disk.folder(path)
            self.pending.append(path.parent)

    def flush(self) -> None:
        """All that was put is safe once this returns."""
        pending, self.pending = list(dict.fromkeys(self.pending)), []
        disk.sync(path for path in pending if path.exists())

    def set_sync(self, key: str, value: Any) -> None:
        data = value.to_bytes()
        self.put(key, _with_checksum(data) if key.endswith(_METADATA) else data)

    async def set(self, key: str, value: Any) -> None:
        self.set_sync(key, value)

    async def set_if_not_exists(self, key: str, value: Any) -> None:
        if not (self.root / key).exists():
            self.set_sync(key, value)

    def with_read_only(self, read_only: bool = False) -> Written:
        return self


class Checked(LocalStore):
    """Metadata has its checksum, and every chunk that is asked for is there: StorageError otherwise."""

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        path = self.root / key
        try:
            data = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            if not key.endswith(_METADATA) and "c" in key.split("/"):
                raise StorageError(f"{path} is missing.", expected="a chunk of draws", found="no such file") from None
            return None
        if path.name == _METADATA:
            check_metadata(path, data)
        elif int(google_crc32c.value(data[:-4])).to_bytes(4, "little") != data[-4:]:
            raise StorageError(f"{path} is damaged.", expected="a chunk with the checksum at its end", found="another checksum")
        made = (prototype or default_buffer_prototype()).buffer.from_bytes(data)
        return made if byte_range is None else made[_slice(byte_range, len(data))]

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        return self.get_sync(key, prototype=prototype, byte_range=byte_range)

    def with_read_only(self, read_only: bool = False) -> Checked:
        return self


def _slice(asked: Any, size: int) -> slice:
    if hasattr(asked, "end"):
        return slice(asked.start, asked.end)
    return slice(asked.offset, None) if hasattr(asked, "offset") else slice(max(size - asked.suffix, 0), None)


def _with_checksum(data: bytes) -> bytes:
    told = json.loads(data)
    told["attributes"] = {**told.get("attributes", {}), CHECKSUM: ""}
    told["attributes"][CHECKSUM] = _checksum(told)
    return json.dumps(told, indent=2).encode()


def _checksum(told: dict[str, Any]) -> str:
    """Of everything but itself."""
    rest = {name: value for name, value in told.get("attributes", {}).items() if name != CHECKSUM}
    return f"{zlib.crc32(json.dumps({**told, 'attributes': rest}, sort_keys=True).encode()):08x}"


def check_metadata(path: Path, data: bytes) -> dict[str, Any]:
    """The content of a zarr.json; StorageError where it is not what was written."""
    try:
        told = json.loads(data)
        found, expected = _checksum(told), told["attributes"][CHECKSUM]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as cause:
        found, expected = f"{type(cause).__name__}: {cause}", "metadata with a checksum"
    if found != expected:
        raise StorageError(
            f"{path} is damaged.",
            expected=str(expected),
            found=found,
            hint="restore it from a copy; saltus.verify(path) says which draws are safe",
        )
    return told
