"""How states are laid out in a result: a variable for each piece of the space, with its own dimension and names of sites."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from ..target import Target


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
