"""What a run returns: an `xarray.DataTree` as ArviZ and PyMC use it, with a variable for each piece of the space."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engine.recording import STATS
from ..target import Target

if TYPE_CHECKING:
    import xarray as xr

RAW = "weighted_"  # in front of the raw chain's groups
WORTH = "weighted_worth"  # in a store: what belongs into `weighted_posterior` and is no draw
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


class Variable(NamedTuple):
    """A piece of the space among the draws. sites: its slice of the codes."""

    name: str
    dim: str
    sites: slice
    labels: np.ndarray
    numeric: bool
    names: np.ndarray


class Layout(NamedTuple):
    """The variables of the states; `flat`: names of all sites together, of what is kept for all of them."""

    variables: tuple[Variable, ...]
    flat: np.ndarray

    @classmethod
    def of(cls, target: Target) -> Layout:
        space = target.space
        told = [(p.name, p.dim, p.sites.start, p.sites.stop, p.space.labels, p.space.numeric) for p in space.pieces]
        return cls._made(told, target.names, space.num_sites)

    @classmethod
    def _made(cls, told: list[tuple], names: Any, num_sites: int) -> Layout:
        variables = []
        for name, dim, start, stop, labels, numeric in told:
            own = np.arange(stop - start) if names is None else np.array(names[start:stop])
            variables.append(Variable(name, dim, slice(start, stop), np.asarray(labels), bool(numeric), own))
        flat = [f"{v.name}[{own}]" for v in variables for own in v.names] if len(variables) > 1 else variables[0].names
        return cls(tuple(variables), np.array(flat))

    def coordinates(self, dims: Any) -> dict[str, np.ndarray]:
        """The names of sites, of those dimensions that are in use."""
        known = {v.dim: v.names for v in self.variables}
        known = {"site": self.flat, "site_": self.flat} | known
        return {dim: names for dim, names in known.items() if dim in dims}

    def dims(self, variable: str) -> tuple[str, ...] | None:
        """Behind chain and draw; None where this is no state."""
        return next(((v.dim,) for v in self.variables if v.name == variable), None)

    def as_text(self) -> str:
        """For a store or the attributes of a run."""
        return json.dumps([
            [v.name, v.dim, v.sites.start, v.sites.stop, v.labels.tolist(), str(v.labels.dtype), int(v.numeric)]
            for v in self.variables
        ])  # fmt: skip

    @classmethod
    def from_attributes(cls, attributes: dict[str, Any]) -> Layout:
        """Of a store, whose attributes lose what is said here; those of 0.1 have one table of labels."""
        names, num_sites = attributes.pop("names", None), int(attributes["num_sites"])
        labels, dtype = attributes.pop("labels", "[]"), attributes.pop("label_dtype", "int8")
        if "pieces" not in attributes:
            numeric = attributes.get("numeric", 1)
            return cls._made([("s", "site", 0, num_sites, np.array(json.loads(labels), dtype), numeric)], names, num_sites)
        told = json.loads(attributes["pieces"])
        return cls._made([(n, d, a, b, np.array(own, kind), num) for n, d, a, b, own, kind, num in told], names, num_sites)


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
