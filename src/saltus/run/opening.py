"""A run from disk, as it was returned; and the kernel that made its draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.arguments import read_path
from ..engine.codec import from_data
from ..engine.store import checked_files, read_mark
from ..errors import StorageError
from ..kernels import Kernel
from .saving import check_netcdf
from .stored import open_store

if TYPE_CHECKING:
    import xarray as xr


def kernel_of(run: Any) -> Kernel:
    """The frozen kernel that made these draws, rebuilt from the run's `kernel` group."""
    try:
        group = run["kernel"]
        structure = json.loads(group.attrs["structure"])
    except (LookupError, TypeError, ValueError, AttributeError) as cause:
        raise StorageError(
            "This is not a run of saltus: it has no kernel.",
            expected="what saltus.sample or saltus.open returned",
            found=type(run).__name__,
        ) from cause
    return from_data(structure, {name: group[name].values for name in group.data_vars})


def open_run(path: Any) -> xr.DataTree:
    """A run from disk: `run.zarr` (from store= or to_zarr), lazily; or `run.nc` (from to_netcdf or the command line).

    path: the file or folder; StorageError where it is no run of saltus, or damaged.
    Returns an `xarray.DataTree`. Example: `run = saltus.open("run.nc")`.
    """
    import xarray as xr

    where = read_path(path, "path")
    try:
        found = "" if where is not None and where.exists() else "nothing"
    except OSError as cause:  # a folder that this user may not look into
        found = f"{type(cause).__name__}: {cause.strerror}"
    if where is None or found:
        raise StorageError(f"There is no run at {where}.", expected="a .zarr folder or .nc file", found=found)
    if where.is_file():
        try:
            check_netcdf(where)
            return xr.open_datatree(where, engine="h5netcdf")
        except StorageError:
            raise
        except Exception as cause:
            raise StorageError(
                f"{where} cannot be read.", expected="a .nc file of a run", found=f"{type(cause).__name__}: {cause}"
            ) from cause
    try:
        read_mark(where)
    except StorageError as cause:
        return _open_plain_zarr(where, cause)
    return open_store(where)


def _open_plain_zarr(path: Path, cause: StorageError) -> xr.DataTree:
    """A tree that `to_zarr` wrote."""
    import xarray as xr

    try:
        root = json.loads((path / "zarr.json").read_text())
        files = checked_files(path) if "saltus_checksum" in root["attributes"] else path
        tree = xr.open_datatree(files, engine="zarr", chunks=None, consolidated="consolidated_metadata" in root)
        tree["kernel"]
    except StorageError:
        raise
    except Exception:
        raise cause from None
    return tree
