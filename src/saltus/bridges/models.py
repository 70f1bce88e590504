"""What the bridges share: a model of another language, read into sites and a density, sampled, and shown by its own names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._compiling import program
from .._record import as_real, as_size
from ..engine.arguments import read_flag, read_seed
from ..engine.loop import random_codes
from ..engine.progress import make_progress
from ..errors import RunError, TargetError
from ..local import Differences
from ..run.sample import sample as sample_discrete
from ..spaces import Product
from ..structure import Graph
from ..structure.terms import find_terms
from ..target import Target
from .continuous import constrained_draws, read_continuous
from .discrete_sites import Sites
from .joint import joint_target
from .mixed import finished_tree, run_mixed
from .needed import needed
from .starts import repaired

if TYPE_CHECKING:
    import xarray as xr

_MOST_LIKELIHOOD = 2**26  # numbers
_AT_ONCE = 100


class Model(NamedTuple):
    """A model that was read.

    density: callable (s, u, *data) -> log-density with Jacobian, with `seen(s, u, *data)` -> ({continuous: value},
        {deterministic: value}, {observed: log-likelihood}) and `as_float`, whether it has a gradient in discrete sites; hashable.
    dims, coords: of every variable that has some. told: what a user should know.
    """

    name: str
    density: Any
    sites: Sites
    data: tuple
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, Any]
    told: str


class Asked(NamedTuple):
    """How a model is to be sampled, checked."""

    counts: dict[str, int]
    seed: int
    sampler: Any
    aim: float
    depth: int
    likelihood: bool
    progress: bool


def read_asked(
    seed: Any,
    num_draws: Any,
    num_warmup: Any,
    num_chains: Any,
    thin: Any,
    sampler: Any,
    target_acceptance: Any,
    max_tree_depth: Any,
    log_likelihood: Any,
    progress: Any,
) -> Asked:
    """RunError where one of them cannot be used."""
    given = {"num_draws": num_draws, "num_warmup": num_warmup, "num_chains": num_chains, "thin": thin}
    counts = {name: as_size(value, name, RunError, least=0 if name == "num_warmup" else 1) for name, value in given.items()}
    aim = as_real(target_acceptance, "target_acceptance", RunError, "a number between 0 and 1")
    if not 0 < aim < 1:
        raise RunError("`target_acceptance` is not usable.", expected="a number between 0 and 1", found=f"{aim:g}")
    depth = as_size(max_tree_depth, "max_tree_depth", RunError, most=20)
    flags = read_flag(log_likelihood, "log_likelihood"), read_flag(progress, "progress")
    return Asked(counts, read_seed(seed), sampler, aim, depth, *flags)


def sample_model(model: Model, asked: Asked) -> xr.DataTree:
    """By `saltus.sample` where all sites are discrete, else by a discrete kernel and NUTS in turn."""
    if not model.sites.continuous:
        return _relabelled(_discrete_run(discrete_target(model), asked), model, asked.likelihood)
    needed("blackjax", "A model with continuous sites")
    variables = read_continuous(dict(model.sites.continuous), None)
    target = joint_target(model.density, model.sites.space, variables, model.data, None)
    if not (target.differences.exact or model.density.as_float):
        target = target.through("exact")
    with make_progress(asked.progress) as shown:
        for line in filter(None, model.told.split("; ")):
            shown.tell(line)
        made = run_mixed(target, asked.sampler, asked.counts, asked.seed, None, asked.aim, asked.depth, shown)
    u = constrained_draws(variables, jnp.asarray(made["draws"].pop("theta")))
    return _tree(made, target, model, u, asked.likelihood)


def _discrete_run(target: Target, asked: Asked) -> xr.DataTree:
    """By `saltus.sample`; where no random state is possible, from repaired ones."""

    def run(initial: Any) -> xr.DataTree:
        told: dict[str, Any] = dict(seed=asked.seed, progress=asked.progress, initial=initial, **asked.counts)
        return sample_discrete(target, asked.sampler, **told)

    try:
        return run(None)
    except TargetError:
        codes = random_codes(target.space, asked.seed, np.arange(asked.counts["num_chains"]), 0)
        codes = repaired(target, codes, None, asked.seed)
        if not np.isfinite(jax.vmap(target.value)(jnp.asarray(codes))).all():
            raise
    return run(target.space.show(codes))


class Discrete:
    """A density without continuous variables, as `saltus.Target` calls it; equal for equal densities."""

    def __init__(self, density: Any):
        self.density = density

    def __call__(self, data: Any, s: Any) -> jax.Array:
        return self.density(s, {}, *data)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Discrete) and self.density == other.density

    def __hash__(self) -> int:
        return hash(self.density)


def discrete_target(model: Model) -> Target:
    """Of a model without continuous sites: with exact differences by terms where they are cheap."""
    f, space = Discrete(model.density), model.sites.space
    plain = Target(f, space, model.data, differences="gradient" if model.density.as_float else "exact")
    graph = plain.find(Graph)
    terms = find_terms(f, space, plain.params) if graph is not None else None
    if terms is None:
        return plain
    return Target(f, space, model.data, differences=Differences(terms, exact=True), structure=graph)


def _of_one(density: Any, space: Product, likelihood: bool, each: Any, data: tuple) -> tuple[dict, dict, dict]:
    codes, u = each
    values, told, observed = density.seen(space.embed(codes), u, *data)
    return values, told, observed if likelihood else {}


@program(once=True, static_argnums=(0, 1, 2))
def _of_all(density: Any, space: Product, likelihood: bool, rows: Any, data: tuple) -> tuple[dict, dict, dict]:
    batch = min(_AT_ONCE, len(jax.tree.leaves(rows)[0]))
    return jax.lax.map(lambda each: _of_one(density, space, likelihood, each, data), rows, batch_size=batch)


def _seen(model: Model, codes: np.ndarray, u: Any, likelihood: bool) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What the sites were at draws (chains, draws, ...), a batch at a time."""
    chains, draws = codes.shape[:2]
    flat = jnp.asarray(codes.reshape(chains * draws, -1))
    rows = jax.tree.map(lambda x: jnp.asarray(x).reshape(chains * draws, *x.shape[2:]), u)

    first = jax.tree.map(lambda x: x[0], (flat, rows))
    shapes = jax.eval_shape(lambda each: _of_one(model.density, model.sites.space, likelihood, each, model.data), first)
    size = sum(int(np.prod(x.shape, dtype=int)) for x in jax.tree.leaves(shapes[2]))
    kept = likelihood and size * chains * draws <= _MOST_LIKELIHOOD
    found = _of_all(model.density, model.sites.space, kept, (flat, rows), model.data)
    return jax.tree.map(lambda x: np.asarray(x).reshape(chains, draws, *x.shape[1:]), found)


def _fitting(model: Model, variables: dict[str, np.ndarray]) -> dict[str, tuple[str, ...]]:
    """The model's dimensions, of variables that have as many."""
    return {name: dims for name, x in variables.items() if len(dims := model.dims.get(name, ())) == x.ndim - 2}


def _dataset(model: Model, variables: dict[str, np.ndarray]) -> Any:
    import xarray as xr

    dims = _fitting(model, variables)
    shaped = {
        name: (("chain", "draw", *dims.get(name, [f"{name}_dim_{i}" for i in range(x.ndim - 2)])), x)
        for name, x in variables.items()
    }
    chains, draws = next(iter(variables.values())).shape[:2]
    used = {d for told, _ in shaped.values() for d in told}
    named = {d: values for d, values in model.coords.items() if d in used}
    return xr.Dataset(shaped, {"chain": np.arange(chains), "draw": np.arange(draws), **named})


def _attributes(model: Model) -> dict[str, Any]:
    return {"model": model.name, "local_model": model.told or "as chosen"}


def _tree(made: Any, target: Target, model: Model, u: Any, likelihood: bool) -> xr.DataTree:
    codes = made["draws"]["codes"]
    continuous, deterministic, observed = _seen(model, codes, u, likelihood)
    states = model.sites.shown(codes)
    variables = {**continuous, **deterministic}
    groups = {"log_likelihood": _dataset(model, observed)} if observed else {}
    dims, coords = _fitting(model, {**states, **variables}), model.coords
    told = dict(states=states, dims=dims, coords=coords, groups=groups, attributes=_attributes(model))
    return finished_tree(made, target, variables, **told)  # type: ignore[arg-type]


def _relabelled(run: Any, model: Model, likelihood: bool) -> xr.DataTree:
    """A run of the product space, with the model's own sites in its posterior."""
    import xarray as xr

    posterior, space = run["posterior"], model.sites.space
    codes = np.concatenate([p.space.encode(posterior[p.name].values) for p in space.pieces], axis=-1)
    _, deterministic, observed = _seen(model, codes, {}, likelihood)
    children = {name: child.to_dataset() for name, child in run.children.items() if name != "posterior"}
    groups = {"log_likelihood": _dataset(model, observed)} if observed else {}
    variables = {**model.sites.shown(codes), **deterministic}
    tree = xr.DataTree.from_dict({"posterior": _dataset(model, variables), **children, **groups})
    tree.attrs.update({**run.attrs, "pieces": "[]", **_attributes(model)})
    return tree
