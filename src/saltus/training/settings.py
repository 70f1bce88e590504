"""The arguments of `pcd` and `cd`, seen to be usable before anything is computed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_size, default_float
from ..errors import TargetError, TrainingError
from ..kernels import AVG, NCG, PAVG, Kernel
from ..run.settings import check_kernel_fits, find_sampler, read_seed
from ..spaces import Space
from ..target import Target
from .buffer import VISITS, read_states


@dataclass(frozen=True)
class Settings:
    """What training was asked to do; training that goes on from a checkpoint must have been asked the same."""

    method: str  # "pcd" or "cd"
    num_steps: int
    batch_size: int
    buffer_size: int
    visits: str
    reinitialise: float
    average: float | None
    seed: int

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def read_settings(method: str, data: np.ndarray, **asked: Any) -> Settings:
    sizes = {name: as_size(asked[name], name, TrainingError) for name in ("num_steps", "batch_size", "buffer_size")}
    if asked["visits"] not in VISITS:
        raise TrainingError("`visits` is not known.", expected=" or ".join(map(repr, VISITS)), found=repr(asked["visits"]))
    batch = sizes["batch_size"]
    for name, rows in (("data", len(data)), ("buffer", sizes["buffer_size"])):
        if rows < batch:
            raise TrainingError(
                f"The {name} has fewer rows than a batch.",
                expected=f"at least batch_size = {batch} rows",
                found=f"{rows}",
                hint=f"batch_size={rows} uses all of them in every update",
            )
    reinitialise = _fraction(asked["reinitialise"], "reinitialise", closed=True)
    average = None if asked["average"] is None else _fraction(asked["average"], "average", closed=False)
    return Settings(method, **sizes, visits=asked["visits"], reinitialise=reinitialise, average=average, seed=read_seed(asked["seed"]))


def _fraction(value: Any, name: str, closed: bool) -> float:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not (0 <= value < 1 or (closed and value == 1)):
        raise TrainingError(f"`{name}` is not usable.", expected=f"a number from 0 to 1{'' if closed else ', 1 excluded'}", found=repr(value))
    return float(value)


def read_model(target: Any) -> Target:
    """A target with parameters."""
    if not isinstance(target, Target):
        raise TargetError("`target` is not a target.", expected="saltus.Target(log_prob, space, params)", found=repr(target))
    if not jax.tree.leaves(target.params):
        raise TrainingError(
            "The target has no parameters to train.",
            expected="saltus.Target(log_prob, space, params) with log_prob(params, s)",
            found=f"{target} without params",
        )
    if target.declared is not None:
        raise TrainingError(
            "The structure of this target is fixed and cannot follow the parameters.",
            expected="structure as a function of params",
            found=f"{target}",
            hint="Target(..., structure=lambda params: saltus.Quadratic(b(params), H(params)))",
        )
    return target


def read_data(space: Space, data: Any) -> np.ndarray:
    """(rows, d) codes."""
    return read_states(space, data, "data")


def read_kernel(sampler: Any, target: Target, data: np.ndarray) -> tuple[Kernel, bool]:
    """(kernel, whether it should be retuned): an instance as it is; a class, a name or "auto" at the paper's settings."""
    if isinstance(sampler, Kernel):
        kernel: Any = sampler
    else:
        auto = isinstance(sampler, str) and sampler.lower() == "auto"
        kernel = _paper_kernel(NCG if auto else find_sampler(sampler), target.space, data)
    check_kernel_fits(kernel, target)
    return kernel, not isinstance(sampler, Kernel)


def _paper_kernel(kind: Any, space: Space, data: np.ndarray) -> Kernel:
    """At the step sizes of the paper's Ising experiment, in units of the space; PAVG with the covariance of the data."""
    table = space.distance_table()
    unit = float(table[table > 0].min())
    if issubclass(kind, PAVG):
        return kind(0.2 * unit, data_covariance(space, data), scale=unit**-2)
    steps = {NCG: 0.5, AVG: 0.2}
    if kind in steps:
        return kind(steps[kind] * unit)
    try:
        return kind()
    except TypeError as cause:
        raise TrainingError(
            f"{kind.__name__} has settings that training cannot choose.",
            expected=f"an instance: saltus.{kind.__name__}(...)",
            found=f"the class {kind.__name__}",
        ) from cause


def data_covariance(space: Space, codes: np.ndarray) -> np.ndarray:
    """(n, n) covariance of the data as f sees them: PAVG's preconditioner in the paper's training experiments.

    Its scale is 1 on {0, 1}; in general the inverse square of the squared distance between neighbouring values.
    """
    s = np.asarray(space.values, np.float64)[codes].reshape(len(codes), -1)
    return np.cov(s.T, bias=True).reshape(space.size, space.size)


def read_optimiser(optimiser: Any, trained: Any) -> Any:
    """The state an optimiser begins with for these parameters; TrainingError where it was made for others."""
    if not (callable(getattr(optimiser, "init", None)) and callable(getattr(optimiser, "update", None))):
        raise TrainingError("`optimiser` is not an optimiser.", expected="e.g. optax.adam(1e-3)", found=repr(optimiser)[:100])
    shapes = lambda tree: jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x).name), tree)  # noqa: E731
    try:
        state = optimiser.init(trained)
        changes, after = jax.eval_shape(optimiser.update, trained, state, trained)
        same = shapes(changes) == shapes(trained) and jax.tree.structure(after) == jax.tree.structure(state)
        found = "updates of other shapes"
    except Exception as cause:
        raise _other_params(f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}", trained) from cause
    if not same:
        raise _other_params(found, trained)
    return jax.tree.map(_strong, state)


def _strong(leaf: Any) -> Any:
    """As the state looks after an update, so that the first one compiles for all."""
    return jnp.asarray(leaf) if not getattr(leaf, "weak_type", False) else jax.lax.convert_element_type(leaf, leaf.dtype)


def _other_params(found: str, trained: Any) -> TrainingError:
    leaves = jax.tree.leaves(trained)
    return TrainingError(
        "The optimiser does not fit the parameters.",
        expected=f"one that updates {len(leaves)} arrays, {sum(math.prod(leaf.shape) for leaf in leaves)} numbers in all",
        found=found,
        hint="masks and labels of an optimiser must follow the parameters that are trained (trainable=)",
    )


def check_defined(target: Target, data: np.ndarray) -> None:
    """That f is finite at the data: otherwise the first gradient is not."""
    codes = data[:256].astype(np.int32)
    f = np.asarray(jax.jit(jax.vmap(target.value))(jnp.asarray(codes)), np.dtype(default_float()))
    if not np.isfinite(f).all():
        i = int(np.argmin(np.isfinite(f)))
        raise TrainingError(
            "f is not finite at the data.",
            expected="a finite log_prob(params, s) at every state of the data",
            found=f"{f[i]} at row {i}",
            hint="look at the parameters training begins with",
        )
