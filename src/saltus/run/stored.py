"""A run in a store, as a tree: every array is read when it is asked for, and only what is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.files import understood
from ..engine.store import Reader, open_checked
from ..errors import StorageError
from .tree import FIXED, RAW, WORTH, Layout, Variable, make_tree
from .weights import resampling

if TYPE_CHECKING:
    import xarray as xr


def open_store(path: Path) -> xr.DataTree:
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
