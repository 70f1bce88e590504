r"""What a step costs, computed: work counted over its jaxpr, times constants measured once for classes of primitives.

$$ \text{seconds} = \sum_c k_c \, n_c $$

n_c is the work of class c in one step of all chains: numbers computed, products added, numbers moved, operations started. Bodies of
loops count as often as they run. No clock is read, so that what is chosen by it is the same on a busy machine and a quiet one.
`python -m benchmarks.step_cost` measures the constants and holds computed against measured times.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.chains import Chains
from ..engine.keys import RACING
from ..engine.loop import advance, step_chains
from ..kernels import Kernel, begin
from ..target import Target

Work = Counter[str]  # {class of primitives: amount}

# Seconds per unit of work, on one core of an x86-64 processor with AVX-512.
SECONDS = {
    "step": 7.6e-7,
    "operation": 9.9e-8,
    "turn": 2.0e-7,
    "simple": 5.1e-11,
    "bits": 4.7e-11,
    "transcendental": 1.3e-9,
    "product": 1.2e-10,
    "sum": 8.9e-10,
    "moved": 3.9e-10,
    "looked up": 7.6e-10,
    "in order": 7.1e-9,
}
_UNKNOWN_TURNS = 10  # of a loop whose end depends on what it computes

_FREE = {
    *("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type", "bitcast_convert_type", "iota", "copy"),
    *("stop_gradient", "random_wrap", "random_unwrap", "copy_p", "pvary", "optimization_barrier", "slice", "rev"),
}
_TRANSCENDENTAL = {
    *("exp", "exp2", "log", "log1p", "expm1", "tanh", "logistic", "sin", "cos", "tan", "pow", "erf", "erf_inv", "erfc"),
    *("sqrt", "rsqrt", "cbrt", "atan2", "asin", "acos", "atan", "sinh", "cosh", "lgamma", "digamma", "igamma", "div", "rem"),
}
_BITS = {"and", "or", "xor", "not", "shift_left", "shift_right_logical", "shift_right_arithmetic", "random_bits", "threefry2x32"}
_MOVES = {"transpose", "concatenate", "pad", "dynamic_update_slice", "dynamic_slice", "select_and_scatter_add", "copy"}
_LOOK_UPS = {"gather", "scatter", "scatter-add", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_apply"}
_IN_ORDER = {"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "sort", "top_k", "approx_top_k"}
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def step_seconds(kernel: Kernel, target: Target, num_chains: int) -> float:
    """Seconds, computed, of one step of so many chains."""
    return seconds_of(work_of_step(kernel, target, num_chains))


def loop_seconds(chains: Chains) -> float:
    """Seconds, computed, of one step of a run's chains, with what is kept of it. Nothing is traced that will not be run."""
    clock = {name: np.int32(1) for name in ("first", "stop", "start", "thin")}
    given = (chains.kernel, chains.target, chains.words(RACING)[0], chains.carries[0], clock)
    body = _loop_body(advance.traced(chains.mesh, chains.recording, *given).jaxpr)
    return len(chains.groups) * seconds_of(work_of(body) + Counter({"step": 1}))


def _loop_body(jaxpr: Any) -> Any:
    """Of the first loop, in it or in what it calls."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "while":
            return equation.params["body_jaxpr"].jaxpr
        for _, inner in _inner(equation) or ():
            found = _loop_body(inner)
            if found is not None:
                return found
    return None


def seconds_of(work: Work) -> float:
    return sum(SECONDS[name] * amount for name, amount in work.items())


def work_of_step(kernel: Kernel, target: Target, num_chains: int) -> Work:
    """The work of one step of so many chains, by classes of primitives; nothing is computed but shapes."""
    codes = jax.ShapeDtypeStruct((target.space.num_sites,), target.space.code_dtype)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), num_chains))
    one = jax.eval_shape(lambda k, t, c: begin(k, t, c, jax.random.key(0)), kernel, target, codes)
    states = jax.tree.map(lambda x: jax.ShapeDtypeStruct((num_chains, *x.shape), x.dtype), one)
    traced = jax.make_jaxpr(lambda *given: step_chains(*given))(kernel, target, keys, jnp.int32(0), states)
    return work_of(traced.jaxpr) + Counter({"step": 1})


def work_of(jaxpr: Any) -> Work:
    """The work of a jaxpr, those that it calls included."""
    work: Any = Counter()
    for equation in jaxpr.eqns:
        inner = _inner(equation)
        if inner is None:
            work.update(_own_work(equation))
        for times, body in inner or ():
            for name, amount in work_of(body).items():
                work[name] += times * amount
            if equation.primitive.name in ("scan", "while"):
                work["turn"] += times
    return work


def _inner(equation: Any) -> list[tuple[float, Any]] | None:
    """[(how often, jaxpr)] that an equation runs; None where it is an operation by itself."""
    name, params = equation.primitive.name, equation.params
    if name == "scan":
        return [(params["length"], params["jaxpr"].jaxpr)]
    if name == "while":
        return [(_turns(equation), params["body_jaxpr"].jaxpr)]
    if name == "cond":
        bodies = [branch.jaxpr for branch in params["branches"]]
        return [(1, max(bodies, key=lambda body: seconds_of(work_of(body))))]
    found = next((params[key] for key in _CALLS if key in params), None)
    return None if found is None else [(1, getattr(found, "jaxpr", found))]


def _turns(equation: Any) -> float:
    """How often a loop runs: known where it counts up to a constant."""
    condition = equation.params["cond_jaxpr"].jaxpr
    ends = [x.val for e in condition.eqns for x in e.invars if e.primitive.name == "lt" and hasattr(x, "val")]
    given = [getattr(x, "val", None) for x in equation.invars]
    ends += [n for n in given if n is not None and np.ndim(n) == 0 and isinstance(n, (int, np.integer)) and n > 0]
    return float(ends[0]) if ends and np.ndim(ends[0]) == 0 else _UNKNOWN_TURNS


def _own_work(equation: Any) -> dict[str, float]:
    name = equation.primitive.name
    made = float(sum(math.prod(x.aval.shape) for x in equation.outvars))
    read = float(sum(math.prod(x.aval.shape) for x in equation.invars if hasattr(x.aval, "shape")))
    if name in _FREE:
        return {}
    if name in _TRANSCENDENTAL or (name == "integer_pow" and abs(equation.params["y"]) > 3):
        return {"transcendental": made}
    if name in _BITS:
        return {"bits": made}
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        each = math.prod(equation.invars[0].aval.shape[i] for i in contracted)
        return {"product": made * each, "moved": read, "operation": 1}
    if name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        return {"product": made * math.prod(kernel) / max(kernel), "moved": read, "operation": 1}
    if name.startswith(("reduce", "arg")):
        return {"sum": read, "operation": 1}
    if name in _LOOK_UPS:
        return {"looked up": made if name == "gather" else read - made, "operation": 1}
    if name in _IN_ORDER:
        return {"in order": made * (max(math.log2(max(made, 2)), 1) if name == "sort" else 1), "operation": 1}
    if name in _MOVES:
        return {"moved": _moved(equation, made), "operation": 1}
    return {"simple": made}


def _moved(equation: Any, made: float) -> float:
    """Numbers that are written: of an update in place, those of the update."""
    if equation.primitive.name == "dynamic_update_slice":
        return float(math.prod(equation.invars[1].aval.shape))
    return made
