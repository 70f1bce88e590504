"""A run as one file or folder: written under a random name, synced, moved to its place; with checksums, and read back by them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine import disk
from ..engine.arguments import read_flag, read_path
from ..engine.files import cannot_write, check_writable, put_folder
from ..engine.store import new_files, read_mark, taken
from ..errors import StorageError

if TYPE_CHECKING:
    import xarray as xr

SUFFIXES = {".nc": ("h5netcdf", "h5py"), ".zarr": ("zarr",)}  # and what writes them
_TRAILER = b"\nsaltus crc32 "  # then 8 hexadecimal digits and a newline, after the end of the file as HDF5 sees it
_TRAILER_SIZE = len(_TRAILER) + 9


def save(run: Any, path: Any, *, overwrite: bool = False) -> Path:
    """Write a run to `run.nc` (one file) or `run.zarr` (a folder), all or nothing; `saltus.open` reads it.

    run: what saltus.sample, saltus.resume or saltus.open returned.
    path: where to; the suffix says what is written.
    overwrite: whether to replace a file, or a folder that saltus wrote. The old one stays until the new one is whole.
    Returns the path. Raises StorageError.

        saltus.save(run, "run.nc")
    """
    place, overwrite = read_path(path, "path"), read_flag(overwrite, "overwrite")
    if place is None or not hasattr(run, "subtree"):
        what, found = ("`path` is missing.", "None") if place is None else ("This is not a run of saltus.", type(run).__name__)
        raise StorageError(what, expected='saltus.save(run, "run.nc"), run from saltus.sample', found=found)
    check_output(place, overwrite)
    try:
        (_save_netcdf if place.suffix == ".nc" else _save_zarr)(run, place, overwrite)
    except OSError as cause:
        raise cannot_write(place, cause) from cause
    return place


def check_output(path: Path, overwrite: bool, hint: str = "", shown: str = "") -> None:
    """StorageError where a run cannot be saved there, before anything is computed.

    hint: what to do where something is there already. shown: the path as it was given.
    """
    shown = shown or str(path)
    if path.suffix not in SUFFIXES:
        raise StorageError(
            f"{shown} has no suffix that says what to write.",
            expected="run.nc (one file, when the run is over) or run.zarr (a folder, while it goes on)",
            found=repr(path.suffix) if path.suffix else "no suffix",
        )
    missing = [name for name in SUFFIXES[path.suffix] if importlib.util.find_spec(name) is None]
    if missing:
        raise StorageError(f"{shown} needs {' and '.join(missing)}.", found="not installed", hint="pip install 'saltus[io]'")
    check_writable(path, shown.split()[0] if shown.startswith("-") else "path")
    if not path.exists():
        return
    what = "a folder" if path.is_dir() else "a file"
    if not overwrite:
        raise StorageError(f"{shown} exists already.", expected="a new path", found=what, hint=hint or "overwrite=True replaces it")
    if not (path.is_file() if path.suffix == ".nc" else is_ours(path)):
        raise StorageError(
            f"{shown} is not a run, and is not replaced.",
            expected="a run.zarr folder of saltus" if path.suffix == ".zarr" else "a file",
            found=what,
            hint="it was left as it is: choose another path",
        )


def is_ours(path: Path) -> bool:
    """Whether a zarr folder there was written by saltus: a store, or a run saved by it or by `to_zarr`."""
    try:
        return json.loads((path / "zarr.json").read_text())["attributes"].get("inference_library") == "saltus"
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _save_netcdf(run: xr.DataTree, path: Path, overwrite: bool) -> None:
    # Scalars have no chunks, and checksums of strings cover only the places where HDF5 keeps them: the trailer covers all.
    checked = {
        node.path: {str(name): {"fletcher32": True} for name, x in node.variables.items() if x.ndim and x.dtype.kind in "biuf"}
        for node in run.subtree
    }
    with disk.replacing(path, overwrite) as aside:
        run.to_netcdf(aside, engine="h5netcdf", encoding={name: own for name, own in checked.items() if own})
        with open(aside, "r+b") as file:
            number = _crc32(file, os.fstat(file.fileno()).st_size)
            file.seek(0, os.SEEK_END)
            file.write(_TRAILER + f"{number:08x}\n".encode())


def check_netcdf(path: Path) -> bool:
    """Whether the file has a checksum; StorageError where it has, and is not what was written."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size - _TRAILER_SIZE
        if size <= 0:
            return False
        file.seek(size)
        trailer = file.read()
        if not trailer.startswith(_TRAILER):
            return False
        file.seek(0)
        found, expected = f"{_crc32(file, size):08x}", trailer[len(_TRAILER) :].strip().decode(errors="replace")
    if found != expected:
        raise StorageError(
            f"{path} is damaged.",
            expected=f"the checksum {expected}, as it was written",
            found=found,
            hint="restore it from a copy. A file that was changed on purpose can be read by xarray.open_datatree",
        )
    return True


def _crc32(file: Any, size: int) -> int:
    number = 0
    while size > 0 and (part := file.read(min(size, 2**20))):
        number, size = zlib.crc32(part, number), size - len(part)
    return number


def _save_zarr(run: xr.DataTree, path: Path, overwrite: bool) -> None:
    place = disk.real(path)
    aside = disk.beside(place)
    try:
        disk.folder(aside)
        files, codecs = new_files(aside)
        coded = {n.path: {str(name): {"compressors": codecs} for name in n.variables} for n in run.subtree}
        options: dict[str, Any] = {"mode": "w-", "write_empty_chunks": True, "consolidated": False}
        run.to_zarr(files, encoding={name: own for name, own in coded.items() if own}, **options)
        files.flush()
        put_folder(aside, place, _ours_to_replace if overwrite else None)
    except BaseException:
        disk.remove(aside)
        raise


@contextlib.contextmanager
def _ours_to_replace(path: Path) -> Iterator[None]:
    try:
        read_mark(path)
    except StorageError:
        check_output(path, overwrite=True)  # a saved run: nobody writes to it
        yield
    else:
        with taken(path):
            yield
