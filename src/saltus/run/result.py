"""What a run returns: an `xarray.DataTree` as ArviZ and PyMC use it, and how to read one back from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.arguments import read_path
from ..engine.codec import from_data
from ..engine.files import understood
from ..engine.recording import STATS
from ..engine.store import Reader, checked_files, open_checked, read_mark
from ..errors import StorageError
from ..kernels import Kernel
from .layout import Layout, Variable
from .saving import check_netcdf
from .weights import RAW, WORTH, resampling

if TYPE_CHECKING:
    import xarray as xr

FIXED = "constant_data"  # the group of clamped sites
_MEANING = {
    "lp": "log-probability of the draw, not normalised",
    "acceptance_rate": "min(1, ratio), mean over the steps since the draw before",
    "accepted": "whether the last step's proposal was taken, null proposals included",
    "jump": "L1 distance of a step, mean over the steps since the draw before",
    "log_weight": "log of what the draw counts",
    "changed_sites": "sites at which the last step's proposal differed, taken or not",
}
_STATISTIC_DIMS = {
    "count": (),
    "mean": ("chain", "entry"),
    "covariance": ("chain", "entry", "entry_"),
    "pairs": ("chain", "site", "value", "site_", "value_"),
    "best_lp": ("chain",),
}


def statistic_variables(
    statistics: dict[str, np.ndarray], per_site: bool, layout: Layout
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Dimensions for `Statistics.result()`; where s has one entry per site, an entry is a site."""
    whole = len(layout.variables) == 1
    known = {"best" if whole else f"best_{v.name}": ("chain", v.dim) for v in layout.variables} | _STATISTIC_DIMS
    dims = {name: tuple(d.replace("entry", "site") if per_site else d for d in known[name]) for name in statistics}
    return {name: (dims[name], values) for name, values in statistics.items()}


def kernel_variables(arrays: dict[str, np.ndarray]) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    return {name: (tuple(f"{name}_dim_{i}" for i in range(array.ndim)), array) for name, array in arrays.items()}


def make_tree(
    groups: dict[str, dict[str, Any]],
    layout: Layout,
    kernel: tuple[dict[str, Any], dict[str, Any]],
    others: dict[str, dict[str, Any]],
    attributes: dict[str, Any],
) -> xr.DataTree:
    """One group for each kind of draw, the kernel and what else there is.

    groups: {"", "warmup_" or RAW: {variable: (chains, draws, ...)}}. kernel: (attributes, variables). others: {group: variables}.
    """
    import xarray as xr

    children = {}
    for group, variables in groups.items():
        states = [n for n in variables if n not in STATS or (group == RAW and n == "log_weight")]
        for home, chosen in (("posterior", states), ("sample_stats", [n for n in STATS if n not in states])):
            found = {n: variables[n] for n in chosen if n in variables}
            if found:
                children[f"{group}{home}"] = _draws(found, layout)
    worth = others.pop(WORTH, {})
    if worth:
        children[f"{RAW}posterior"] = children[f"{RAW}posterior"].assign(worth)
    for home, found in others.items():
        if found:
            used = {dim for dims, *_ in found.values() for dim in dims}
            children[home] = xr.Dataset(found, layout.coordinates(used))
    children["kernel"] = xr.Dataset(kernel[1], attrs=kernel[0])
    tree = xr.DataTree.from_dict(children)
    tree.attrs.update(attributes)
    return tree


def _draws(variables: dict[str, Any], layout: Layout) -> xr.Dataset:
    import xarray as xr

    def dims(name: str, values: Any) -> tuple[str, ...]:
        return ("chain", "draw", *(layout.dims(name) or (f"{name}_dim_{i}" for i in range(values.ndim - 2))))

    data = {name: (dims(name, v), v, {"long_name": _MEANING[name]} if name in _MEANING else {}) for name, v in variables.items()}
    chains, draws = next(iter(variables.values())).shape[:2]
    coordinates = {"chain": np.arange(chains), "draw": np.arange(draws)}
    return xr.Dataset(data, coordinates | layout.coordinates({dim for dims, *_ in data.values() for dim in dims}))


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
    return _open_store(where)


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


def _open_store(path: Path) -> xr.DataTree:
    with understood(path):
        root = open_checked(path)
        attributes = dict(root.attrs)
        layout = Layout.from_attributes(attributes)
        for name in ("saltus_checksum", "writer"):
            attributes.pop(name, None)
        others: dict[str, dict[str, Any]] = {}
        kernel: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        stored: dict[str, dict[str, Reader]] = {}
        for home, group in root.groups():
            told = {name: value for name, value in group.attrs.items() if name != "saltus_checksum"}
            if home == "kernel":
                kernel = (told, {n: (a.metadata.dimension_names or (), a[...]) for n, a in group.arrays()})
            elif home in ("statistics", "start", FIXED, WORTH):
                others[home] = {n: (a.metadata.dimension_names or (), a[...]) for n, a in group.arrays()}
            else:
                prefix = next((p for p in ("warmup_", RAW) if home.startswith(p)), "")
                count = told.get("draws", 0)
                readers = {n: Reader(path, a, home, count, attributes.get("run_id")) for n, a in group.arrays()}
                stored.setdefault(prefix, {}).update(readers)
    provisional = [p for p, own in stored.items() for home in {r.home for r in own.values()} if root[home].attrs.get("provisional")]

    def lazily(own: dict[str, Reader], index: np.ndarray | None = None) -> dict[str, Any]:
        found = {n: _lazy(reader, None, index) for n, reader in own.items() if n != "s"}
        states = {v.name: _lazy(own["s"], v, index) for v in layout.variables} if "s" in own else {}
        return states | found

    groups = {prefix: lazily(own) for prefix, own in stored.items()}
    if "log_weight" in stored.get(RAW, {}):
        weights = stored[RAW]["log_weight"]
        index = resampling(weights.read((slice(None), slice(weights.count))), int(attributes["seed"]))
        chosen = {n: a for n, a in stored[RAW].items() if n != "log_weight"}
        groups = {"": lazily(chosen, index), **groups}
    tree = make_tree(groups, layout, kernel, others, attributes)
    for prefix in provisional:  # what will be replaced when the run goes on is not left to be read later
        for home in ("posterior", "sample_stats"):
            tree[f"{prefix}{home}"].dataset.load()
    return tree


def _lazy(reader: Reader, piece: Variable | None, index: np.ndarray | None = None) -> Any:
    """A zarr array's counted draws as xarray reads it: when asked, and only what is asked. index: of `resampling`.

    piece: of codes, the sites that are read and their labels.
    """
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class Stored(BackendArray):
        shape = (reader.array.shape[0], reader.count, *(reader.array.shape[2:] if piece is None else (len(piece.names),)))
        dtype = reader.array.dtype if piece is None else piece.labels.dtype

        def __getitem__(self, key: Any) -> Any:
            return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

        def _read(self, key: Any) -> np.ndarray:
            within = tuple(_within(k, n) for k, n in zip(key, self.shape, strict=True))
            if piece is not None:
                within = (*within[:2], _shifted(within[2], piece.sites.start))
            values = reader.read(within) if index is None else _chosen(reader, index, within)
            return values if piece is None else _labelled(values, piece.labels, reader)

    return indexing.LazilyIndexedArray(Stored())


def _labelled(codes: np.ndarray, labels: np.ndarray, reader: Reader) -> np.ndarray:
    if codes.size and (codes.max() >= len(labels) or codes.min() < 0):
        raise StorageError(
            f"{reader.path} holds codes outside its space.",
            expected=f"0 to {len(labels) - 1}",
            found=str(codes.max()),
            hint="it was not written by saltus, or is damaged",
        )
    return labels[codes]


def _chosen(reader: Reader, index: np.ndarray, key: tuple) -> np.ndarray:
    """An array at draws of its own for each chain."""
    chains, draws = (np.arange(n)[k] for n, k in zip(index.shape, key, strict=False))
    found = []
    for c in np.atleast_1d(chains):
        rows, back = np.unique(np.atleast_1d(index[c, draws]), return_inverse=True)
        found.append(reader.read((slice(c, c + 1), rows, *key[2:]))[0][back])
    shape = (*np.shape(chains), *np.shape(draws))
    return np.stack(found).reshape(*shape, *found[0].shape[1:])


def _shifted(key: Any, by: int) -> Any:
    """A key of one piece's sites, among all sites."""
    if not isinstance(key, slice):
        return key + by
    start, stop, step = key.start + by, key.stop + by, key.step
    return slice(start, stop if stop >= 0 else None, step)


def _within(key: Any, length: int) -> Any:
    return slice(*key.indices(length)) if isinstance(key, slice) else key
