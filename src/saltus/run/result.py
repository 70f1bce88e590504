"""What a run returns: an `xarray.DataTree` as ArviZ and PyMC use it, and how to read one back from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StorageError
from ..kernels import Kernel
from .codec import from_data
from .recording import STATS
from .settings import read_path
from .store import read_mark, zarr_module

if TYPE_CHECKING:
    import xarray as xr

_MEANING = {
    "lp": "log-probability of the draw, not normalised",
    "acceptance_rate": "min(1, ratio), mean over the steps since the draw before",
    "accepted": "whether the last step's proposal was taken, null proposals included",
    "jump": "L1 distance of a step, mean over the steps since the draw before",
    "changed_sites": "sites at which the last step's proposal differed, taken or not",
}
_STATISTIC_DIMS = {
    "count": (),
    "mean": ("chain", "entry"),
    "covariance": ("chain", "entry", "entry_"),
    "pairs": ("chain", "site", "value", "site_", "value_"),
    "best": ("chain", "site"),
    "best_lp": ("chain",),
}


def statistic_variables(statistics: dict[str, np.ndarray], per_site: bool) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Dimensions for `Statistics.result()`; where s has one entry per site, an entry is a site."""
    dims = {name: tuple(d.replace("entry", "site") if per_site else d for d in _STATISTIC_DIMS[name]) for name in statistics}
    return {name: (dims[name], values) for name, values in statistics.items()}


def kernel_variables(arrays: dict[str, np.ndarray]) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    return {name: (tuple(f"{name}_dim_{i}" for i in range(array.ndim)), array) for name, array in arrays.items()}


def make_tree(
    groups: dict[str, dict[str, Any]],
    names: Any,
    kernel: tuple[dict[str, Any], dict[str, Any]],
    others: dict[str, dict[str, Any]],
    attributes: dict[str, Any],
) -> xr.DataTree:
    """groups: {"" or "warmup_": {variable: (chains, draws, ...)}}; kernel: (attributes, variables); others: {group: variables}."""
    import xarray as xr

    children = {}
    for group, variables in groups.items():
        for home, chosen in (("posterior", [n for n in variables if n not in STATS]), ("sample_stats", STATS)):
            found = {n: variables[n] for n in chosen if n in variables}
            if found:
                children[f"{group}{home}"] = _draws(found, names)
    for home, found in others.items():
        if found:
            children[home] = xr.Dataset(found, _site_coordinates(found, names))
    children["kernel"] = xr.Dataset(kernel[1], attrs=kernel[0])
    tree = xr.DataTree.from_dict(children)
    tree.attrs.update(attributes)
    return tree


def _draws(variables: dict[str, Any], names: Any) -> xr.Dataset:
    import xarray as xr

    def dims(name: str, values: Any) -> tuple[str, ...]:
        return ("chain", "draw", *(("site",) if name == "s" else (f"{name}_dim_{i}" for i in range(values.ndim - 2))))

    data = {name: (dims(name, v), v, {"long_name": _MEANING[name]} if name in _MEANING else {}) for name, v in variables.items()}
    chains, draws = next(iter(variables.values())).shape[:2]
    coordinates = {"chain": np.arange(chains), "draw": np.arange(draws)}
    return xr.Dataset(data, coordinates | ({"site": names} if "s" in variables else {}))


def _site_coordinates(variables: dict[str, Any], names: Any) -> dict[str, Any]:
    used = {dim for dims, *_ in variables.values() for dim in dims}
    return {dim: names for dim in ("site", "site_") if dim in used}


def site_names(names: Any, num_sites: int) -> np.ndarray:
    return np.arange(num_sites) if names is None else np.array(names)


def kernel_of(run: Any) -> Kernel:
    """The frozen kernel that made these draws, rebuilt from the run's `kernel` group."""
    try:
        group = run["kernel"]
        structure = json.loads(group.attrs["structure"])
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise StorageError(
            "This is not a run of saltus: it has no kernel.",
            expected="what saltus.sample or saltus.open returned",
            found=type(run).__name__,
        ) from cause
    return from_data(structure, {name: group[name].values for name in group.data_vars})


def open_run(path: Any) -> xr.DataTree:
    """A run from disk: `run.zarr` (from store= or to_zarr), lazily; or `run.nc` (from to_netcdf or the command line)."""
    import xarray as xr

    where = read_path(path, "path")
    if where is None or not where.exists():
        raise StorageError(f"There is no run at {where}.", expected="a .zarr folder or .nc file", found="nothing")
    if where.is_file():
        try:
            return xr.open_datatree(where, engine="h5netcdf")
        except Exception as cause:
            raise StorageError(
                f"{where} cannot be read.", expected="a .nc file of a run", found=f"{type(cause).__name__}: {cause}"
            ) from cause
    try:
        read_mark(where)
    except StorageError as cause:
        return _open_plain_zarr(where, cause)
    return _open_store(where)


def _open_plain_zarr(path: Path, cause: StorageError) -> xr.DataTree:
    """A tree that `to_zarr` wrote."""
    import xarray as xr

    try:
        tree = xr.open_datatree(path, engine="zarr", chunks=None)
        tree["kernel"]
    except Exception:
        raise cause from None
    return tree


def _open_store(path: Path) -> xr.DataTree:
    root = zarr_module().open_group(str(path), mode="r")
    attributes = dict(root.attrs)
    labels = np.array(json.loads(attributes.pop("labels")), dtype=attributes.pop("label_dtype"))
    others: dict[str, dict[str, Any]] = {}
    kernel: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    groups: dict[str, dict[str, Any]] = {}
    for home, group in root.groups():
        if home == "kernel":
            kernel = (dict(group.attrs), {n: (a.metadata.dimension_names or (), a[...]) for n, a in group.arrays()})
        elif home in ("statistics", "start"):
            others[home] = {n: (a.metadata.dimension_names or (), a[...]) for n, a in group.arrays()}
        else:
            prefix = "warmup_" if home.startswith("warmup_") else ""
            count = group.attrs.get("draws", 0)
            lazily = {n: _lazy(a, count, labels if n == "s" else None) for n, a in group.arrays()}
            groups.setdefault(prefix, {}).update(lazily)
    names = site_names(attributes.pop("names", None), attributes["num_sites"])
    return make_tree(groups, names, kernel, others, attributes)


def _lazy(array: Any, count: int, labels: np.ndarray | None) -> Any:
    """A zarr array's first `count` draws as xarray reads it: when asked, and only what is asked."""
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Stored(BackendArray):
        shape = (array.shape[0], count, *array.shape[2:])
        dtype = array.dtype if labels is None else labels.dtype

        def __getitem__(self, key: Any) -> Any:
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

        def _read(self, key: Any) -> np.ndarray:
            values = array.oindex[tuple(_within(k, n) for k, n in zip(key, self.shape, strict=True))]
            return values if labels is None else labels[values]

    return indexing.LazilyIndexedArray(Stored())


def _within(key: Any, length: int) -> Any:
    return slice(*key.indices(length)) if isinstance(key, slice) else key
