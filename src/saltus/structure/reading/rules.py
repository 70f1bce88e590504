"""What each primitive does to dependences. A rule returns the outputs, or None where it cannot tell: then all interacts.

Three kinds: those that move elements (nothing interacts), linear ones (what is summed does not interact) and the others
(what one element depends on interacts). Integers wrap round and half precision rounds, so their sums are not linear.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import indexing
from .constants import UNKNOWN, Known, Unknown
from .dependence import Dependence, all_entries, grouped, mapped, shared, united

Value = Dependence | Known | Unknown
_DENSE = 0.5  # of a constant matrix: with more than this share of it not zero, it counts as full


def _linear_type(dtype: Any) -> bool:
    return np.dtype(dtype) in (np.float32, np.float64)


def at_most_one_each(part: Dependence) -> bool:
    return part.indptr is not None and bool((part.counts() <= 1).all())


def together(reader: Any, parts: list[Dependence]) -> Dependence:
    """A single element that depends on all of them."""
    parts = [reader.listed(part) for part in parts]
    return shared((), all_entries(*parts), united([part.like(shape=(), indptr=None) for part in parts], (), reader.n))


def spread(x: Value, shape: tuple[int, ...]) -> Value:
    """An operand of one element along some axes, or a scalar, beside an array."""
    if isinstance(x, Dependence) and x.shape != shape:
        return x.taken(np.broadcast_to(np.arange(x.num).reshape(x.shape), shape).ravel(), shape)
    if isinstance(x, Known) and x.value.shape != shape:
        return Known(np.broadcast_to(x.value, shape), x.exact)
    return x


def _finite(inputs: list[Value]) -> bool:
    """Whether constants beside a dependence leave it finite."""
    return all(isinstance(x, Dependence) or (isinstance(x, Known) and bool(np.isfinite(x.value).all())) for x in inputs)


def _arithmetic(reader: Any, eqn: Any, part: Dependence) -> list[Value]:
    """The result of a linear rule; where the type's sums are not linear all interacts."""
    return [part if _linear_type(eqn.outvars[0].aval.dtype) else reader.interacting(part)]


def cannot_tell(reader: Any, eqn: Any, inputs: list[Value]) -> None:
    """Of every primitive that has no rule."""


# ---- element by element --------------------------------------------------------------------------------------------


def _operands(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    return [spread(x, eqn.outvars[0].aval.shape) for x in inputs]


def add(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    inputs = _operands(reader, eqn, inputs)
    parts = [reader.listed(x) for x in inputs if isinstance(x, Dependence)]
    result = united(parts, eqn.outvars[0].aval.shape, reader.n)
    return _arithmetic(reader, eqn, result.like(finite=result.finite and _finite(inputs)))


def mul(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    a, b = _operands(reader, eqn, inputs)
    if isinstance(a, Dependence) and isinstance(b, Dependence):
        if not _linear_type(eqn.outvars[0].aval.dtype):
            return joint(reader, eqn, inputs)
        return [reader.product(a, b)]
    part, factor = (a, b) if isinstance(a, Dependence) else (b, a)
    assert isinstance(part, Dependence)
    if isinstance(factor, Known) and part.finite:
        part = part.without((factor.value == 0).ravel())
    return _arithmetic(reader, eqn, part.like(finite=part.finite and _finite([factor])))


def div(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    a, b = _operands(reader, eqn, inputs)
    if isinstance(b, Dependence):
        return joint(reader, eqn, inputs)
    assert isinstance(a, Dependence)
    safe = isinstance(b, Known) and bool((b.value != 0).all()) and _finite([b])
    return _arithmetic(reader, eqn, a.like(finite=a.finite and safe))


def neg(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    return _arithmetic(reader, eqn, inputs[0])  # type: ignore[arg-type]


def joint(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    """Any function of each element."""
    parts = [reader.listed(x) for x in _operands(reader, eqn, inputs) if isinstance(x, Dependence)]
    bounded = eqn.primitive.name in _BOUNDED and all(part.finite for part in parts)
    others_finite = _finite([x for x in inputs if not isinstance(x, Dependence)])
    result = reader.interacting(united(parts, eqn.outvars[0].aval.shape, reader.n), finite=bounded and others_finite)
    return [result for _ in eqn.outvars]


def convert(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    before, after = eqn.invars[0].aval.dtype, eqn.params["new_dtype"]
    widens = _linear_type(after) and (_linear_type(before) or np.dtype(before).kind in "biu")
    return [inputs[0]] if widens or before == after else joint(reader, eqn, inputs)


def integer_pow(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    (x,), power = inputs, eqn.params.get("y", 2)
    assert isinstance(x, Dependence)
    if not _linear_type(eqn.outvars[0].aval.dtype) or power not in (1, 2):
        return joint(reader, eqn, inputs)
    return [x if power == 1 else reader.product(x, x)]


def stop_gradient(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    return [reader.underived(x) if isinstance(x, Dependence) else x for x in inputs]


def same(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    return list(inputs)


def select(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    which, *cases = _operands(reader, eqn, inputs)
    if isinstance(which, Dependence):
        return joint(reader, eqn, inputs)
    if isinstance(which, Known) and not which.exact:
        which = UNKNOWN
    shape = eqn.outvars[0].aval.shape
    parts = []
    for number, case in enumerate(cases):
        if isinstance(case, Dependence):
            case = reader.listed(case) if isinstance(which, Unknown) or _num_dependent(cases) > 1 else case
            chosen = isinstance(which, Known) and which.value.astype(int).ravel() == number
            parts.append(case.without(~chosen) if isinstance(which, Known) else case)  # type: ignore[arg-type]
    result = parts[0] if len(parts) == 1 else united(parts, shape, reader.n)
    return [result.like(finite=result.finite and _finite([x for x in cases if not isinstance(x, Dependence)]))]


def _num_dependent(values: list[Value]) -> int:
    return sum(isinstance(x, Dependence) for x in values)


# ---- elements that move ---------------------------------------------------------------------------------------------


def moved(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    (x,), name, shape = inputs, eqn.primitive.name, eqn.outvars[0].aval.shape
    assert isinstance(x, Dependence)
    if name in indexing.IN_ORDER or x.num == math.prod(shape) == 1:
        return [x.like(shape=shape)]
    places = indexing.ONE_OPERAND[name](x.shape, eqn.params)
    return [x.taken(places.ravel(), shape)]


def concatenate(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    shapes, axis = [v.aval.shape for v in eqn.invars], eqn.params["dimension"]
    starts = np.cumsum([0, *map(math.prod, shapes)])
    blocks = [start + np.arange(math.prod(shape)).reshape(shape) for start, shape in zip(starts, shapes, strict=False)]
    whole = end_to_end(reader, inputs, shapes)
    return [whole.taken(np.concatenate(blocks, axis).ravel(), eqn.outvars[0].aval.shape)]


def end_to_end(reader: Any, inputs: list[Value], shapes: list[tuple[int, ...]]) -> Dependence:
    """One long vector of all elements."""
    num = sum(map(math.prod, shapes))
    own = [x for x in inputs if isinstance(x, Dependence)]
    if sum(x.num * len(x.entries) for x in own if x.indptr is None) <= 4 * (num + reader.n):  # such as rows of a scan
        inputs = [x.by_element() if isinstance(x, Dependence) else x for x in inputs]
    parts = [reader.listed(x) for x in inputs if isinstance(x, Dependence)]
    like = united([part.like(shape=(), indptr=None) for part in parts], (), reader.n)
    like = like.like(finite=like.finite and _finite(inputs))
    if any(part.indptr is None for part in parts):
        return shared((num,), all_entries(*parts), like)
    counts = [x.counts() if isinstance(x, Dependence) else np.zeros(math.prod(s), int) for x, s in zip(inputs, shapes, strict=True)]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return like.like(shape=(num,), indptr=indptr, entries=np.concatenate([part.entries for part in parts]))


def split(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    (x,) = inputs
    assert isinstance(x, Dependence)
    places = np.split(np.arange(x.num).reshape(x.shape), np.cumsum(eqn.params["sizes"])[:-1], axis=eqn.params["axis"])
    return [x.taken(place.ravel(), place.shape) for place in places]


def pad(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    x, value = inputs
    if not isinstance(x, Dependence) or isinstance(value, Dependence):
        return None
    shape = eqn.outvars[0].aval.shape
    places = indexing.padded(x.shape, eqn.params["padding_config"], shape)
    return [x.taken(places.ravel(), shape).like(finite=x.finite and _finite([value]))]


def _starts(values: list[Value]) -> list[int] | None:
    known = [x for x in values if isinstance(x, Known) and x.exact]
    return [int(x.value) for x in known] if len(known) == len(values) else None


def dynamic_slice(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    x, *where = inputs
    shape, starts = eqn.outvars[0].aval.shape, _starts(where)
    if any(isinstance(i, Dependence) for i in where):
        return None  # one element of the rest: all interacts
    assert isinstance(x, Dependence)
    if starts is None:
        reader.budget.spend(x.weight)
        return [reader.listed(x).like(shape=shape, indptr=None, entries=all_entries(x))]
    return [x.taken(indexing.dynamic_sliced(x.shape, starts, shape).ravel(), shape)]


def dynamic_update_slice(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    x, new, *where = inputs
    starts, shape = _starts(where), eqn.outvars[0].aval.shape
    if starts is None:
        return None
    places = indexing.dynamic_sliced(shape, starts, eqn.invars[1].aval.shape)
    return [_written(reader, [x, new], [eqn.invars[0].aval.shape, eqn.invars[1].aval.shape], places.ravel(), shape)]


def _written(reader: Any, inputs: list[Value], shapes: list[Any], places: np.ndarray, shape: Any) -> Dependence:
    """x with new elements at `places`, each written once."""
    whole = end_to_end(reader, inputs, shapes)
    source = np.arange(math.prod(shapes[0]))
    source[places[places >= 0]] = math.prod(shapes[0]) + np.flatnonzero(places >= 0)
    return whole.taken(source, shape)


def scatter(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    x, where, new = inputs
    if not isinstance(where, Known) or not where.exact:
        return None
    shapes = [v.aval.shape for v in eqn.invars]
    places = indexing.scattered(shapes[0], where.value, shapes[2], eqn.params).ravel()
    inside = places >= 0
    if eqn.primitive.name == "scatter":
        if len(np.unique(places[inside])) < inside.sum():
            return None
        return [_written(reader, [x, new], [shapes[0], shapes[2]], places, shapes[0])]
    whole = end_to_end(reader, [x, new], [shapes[0], shapes[2]])
    num = math.prod(shapes[0])
    out, into = np.concatenate([np.arange(num), places[inside]]), np.concatenate([np.arange(num), num + np.flatnonzero(inside)])
    return _arithmetic(reader, eqn, mapped(whole, out, into, shapes[0], reader.n))


def gather(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    x, where = inputs
    shape = eqn.outvars[0].aval.shape
    if isinstance(where, Dependence):
        return _looked_up(reader, eqn, x, where, shape)
    assert isinstance(x, Dependence)
    if isinstance(where, Unknown) or not where.exact:
        return [reader.listed(x).like(shape=shape, indptr=None, entries=all_entries(x), finite=False)]
    places = indexing.gathered(x.shape, where.value, eqn.params, len(shape)).ravel()
    return [x.taken(places, shape).like(finite=x.finite and bool((places >= 0).all()))]


def _looked_up(reader: Any, eqn: Any, table: Value, where: Dependence, shape: tuple[int, ...]) -> list[Value]:
    """Elements of a table that s chooses: all parts of an index interact, with all it may choose among where that depends on s."""
    batch, numbers = where.shape[:-1], eqn.params["dimension_numbers"]
    parts = grouped(reader.listed(where), np.arange(where.num) // max(where.shape[-1], 1), batch, reader.n)
    if isinstance(table, Dependence) and table.indptr is not None and parts.indptr is not None and numbers.operand_batching_dims:
        parts = united([parts, _rows_for(reader, table, numbers, batch)], batch, reader.n)
        table = UNKNOWN
    spread_out = [1 if axis in numbers.offset_dims else size for axis, size in enumerate(shape)]
    places = np.broadcast_to(np.arange(math.prod(batch)).reshape(spread_out), shape)
    part = parts.taken(places.ravel(), shape)
    if isinstance(table, Dependence):
        part = shared(shape, all_entries(part, reader.listed(table)), part)
    return [reader.interacting(part)]


def _rows_for(reader: Any, table: Dependence, numbers: Any, batch: tuple[int, ...]) -> Dependence:
    """What an index of `batch` may choose among: its own row of the table, as in take_along_axis."""
    sizes = tuple(table.shape[axis] for axis in numbers.operand_batching_dims)

    def row_of(full: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
        along = np.indices(full).reshape(len(full), -1)
        return np.ravel_multi_index(tuple(along[axis] for axis in axes), sizes)

    rows = grouped(reader.listed(table), row_of(table.shape, numbers.operand_batching_dims), sizes, reader.n)
    return rows.taken(row_of(batch, numbers.start_indices_batching_dims), batch)


def row(x: Value, shape: tuple[int, ...], number: int) -> Value:
    """x[number]."""
    if isinstance(x, Known):
        return Known(x.value[number], x.exact)
    if isinstance(x, Unknown):
        return x
    size = math.prod(shape[1:])
    return x.taken(number * size + np.arange(size), shape[1:])


def stack(reader: Any, parts: list[Value], shape: tuple[int, ...]) -> Value:
    """Arrays as the rows of one."""
    if not any(isinstance(x, Dependence) for x in parts):
        return UNKNOWN
    return end_to_end(reader, parts, [shape[1:]] * shape[0]).like(shape=shape)


# ---- sums over axes ---------------------------------------------------------------------------------------------------


def _groups(shape: tuple[int, ...], axes: Any) -> np.ndarray:
    """Per element, where it ends up when these axes are summed over."""
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    return np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape).ravel()


def reduce_sum(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    return _arithmetic(reader, eqn, _reduced(reader, eqn, inputs))


def _reduced(reader: Any, eqn: Any, inputs: list[Value]) -> Dependence:
    (x,) = inputs
    assert isinstance(x, Dependence)
    x = reader.listed(x)
    shape = eqn.outvars[0].aval.shape
    if not math.prod(shape) > 1:
        return x.like(shape=shape, indptr=None, entries=all_entries(x))
    return grouped(x, _groups(x.shape, eqn.params["axes"]), shape, reader.n)


def reduce_any(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    """Maxima and the like."""
    if len(inputs) != 1:
        return None
    part = _reduced(reader, eqn, inputs)
    return [reader.interacting(part, finite=eqn.primitive.name in _BOUNDED and part.finite)]


def _along(reader: Any, part: Dependence, axis: int) -> Dependence:
    """Every element depends on all of its line."""
    groups = _groups(part.shape, (axis,))
    shape = tuple(1 if a == axis else size for a, size in enumerate(part.shape))
    return grouped(reader.listed(part), groups, shape, reader.n).taken(groups, part.shape)


def cumsum(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    return _arithmetic(reader, eqn, _along(reader, inputs[0], eqn.params["axis"]))  # type: ignore[arg-type]


def cumulate(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    return [reader.interacting(_along(reader, inputs[0], eqn.params["axis"]))]  # type: ignore[arg-type]


def sort(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value]:
    parts = [reader.listed(x) for x in inputs if isinstance(x, Dependence)]
    whole = _along(reader, united(parts, parts[0].shape, reader.n), eqn.params["dimension"])
    result = reader.interacting(whole, finite=whole.finite and _finite(inputs))
    return [result for _ in eqn.outvars]


# ---- products of matrices -----------------------------------------------------------------------------------------------


def dot_general(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    r"""sum_k A[b, m, k] B[b, n, k], as a product element by element and a sum."""
    (contract_a, contract_b), (batch_a, batch_b) = eqn.params["dimension_numbers"]
    a = _as_three(inputs[0], eqn.invars[0].aval.shape, batch_a, contract_a)
    b = _as_three(inputs[1], eqn.invars[1].aval.shape, batch_b, contract_b)
    (batches, m, k), n = a[1], b[1][1]
    shape = eqn.outvars[0].aval.shape
    if isinstance(a[0], Dependence) and isinstance(b[0], Dependence):
        if not _linear_type(eqn.outvars[0].aval.dtype):
            return None
        return [_both_depend(reader, a[0], b[0], (batches, m, n, k)).like(shape=shape)]
    if isinstance(a[0], Dependence):
        result = _matrix_times(reader, a[0], b[0], (batches, m, n, k), first=True)
    else:
        result = _matrix_times(reader, b[0], a[0], (batches, m, n, k), first=False)  # type: ignore[arg-type]
    return _arithmetic(reader, eqn, result.like(shape=shape))


def _as_three(x: Value, shape: tuple[int, ...], batch: Any, contract: Any) -> tuple[Value, tuple[int, ...]]:
    """The operand with its axes as (batch, free, contracted)."""
    free = [axis for axis in range(len(shape)) if axis not in (*batch, *contract)]
    order = [*batch, *free, *contract]
    new = tuple(math.prod(shape[axis] for axis in axes) for axes in (batch, free, contract))
    if isinstance(x, Known):
        return Known(x.value.transpose(order).reshape(new), x.exact), new
    if isinstance(x, Dependence):
        in_order = order == sorted(order)
        places = None if in_order else np.arange(x.num).reshape(shape).transpose(order).ravel()
        return (x.like(shape=new) if places is None else x.taken(places, new)), new
    return x, new


def _both_depend(reader: Any, a: Dependence, b: Dependence, sizes: tuple[int, int, int, int]) -> Dependence:
    batches, m, n, k = sizes
    whole = (batches, m, n, k)
    if (m == n == 1) or a.indptr is None or b.indptr is None:
        a, b = a.like(shape=(batches, m, 1, k)), b.like(shape=(batches, m, 1, k))
        product = reader.listed(reader.product(a, b) if a.num == b.num else reader.product(*_shared(a, b)))
    else:
        reader.budget.spend(math.prod(whole))
        index = np.arange(batches * m * k).reshape(batches, m, 1, k), np.arange(batches * n * k).reshape(batches, 1, n, k)
        spread_a, spread_b = (x.taken(np.broadcast_to(i, whole).ravel(), whole) for x, i in zip((a, b), index, strict=True))
        product = reader.listed(reader.product(spread_a, spread_b))
    if product.indptr is None or batches * m * n == 1:
        return product.like(indptr=None, entries=all_entries(product))
    return grouped(product, np.arange(product.num) // k, (batches, m, n), reader.n)


def _shared(a: Dependence, b: Dependence) -> tuple[Dependence, Dependence]:
    """As single elements that depend on all of it."""
    return tuple(x.like(shape=(), indptr=None, entries=all_entries(x), pairs=None) for x in (a, b))  # type: ignore[return-value]


def _matrix_times(reader: Any, x: Dependence, c: Value, sizes: tuple[int, int, int, int], first: bool) -> Dependence:
    """x is A where `first`, else B; the other is constant, and its zeros count."""
    batches, m, n, k = sizes
    x = reader.listed(x)
    x = x.like(finite=x.finite and _finite([c]))
    own, other = (m, n) if first else (n, m)
    if isinstance(c, Known) and x.finite and x.indptr is not None:
        not_zero = c.value != 0  # (batches, other, k)
        if not_zero.sum() <= _DENSE * not_zero.size:
            return _sparse_times(reader, x, not_zero, (batches, own, other, k), first)
    if x.indptr is None or x.num == k:  # one vector: every element of the result depends on all of it
        return shared((batches, m, n), all_entries(x), x)
    sums = grouped(x, np.arange(x.num) // max(k, 1), (batches, own), reader.n)
    index = np.arange(batches * own).reshape(batches, own, 1) if first else np.arange(batches * own).reshape(batches, 1, own)
    reader.budget.spend(batches * m * n)
    return sums.taken(np.broadcast_to(index, (batches, m, n)).ravel(), (batches, m, n))


def _sparse_times(reader: Any, x: Dependence, not_zero: np.ndarray, sizes: tuple[int, int, int, int], first: bool) -> Dependence:
    batches, own, other, k = sizes
    batch, far, inner = np.nonzero(not_zero)
    reader.budget.spend(len(inner) * own)
    near = np.arange(own)[:, None]
    into = ((batch * own + near) * k + inner).ravel()
    out = (((batch * own + near) * other + far) if first else ((batch * other + far) * own + near)).ravel()
    return mapped(x, out, into, (batches, own, other) if first else (batches, other, own), reader.n)


def conv(reader: Any, eqn: Any, inputs: list[Value]) -> list[Value] | None:
    """Linear, and taken to mix everything."""
    parts = [reader.listed(x) for x in inputs if isinstance(x, Dependence)]
    if len(parts) != 1:
        return None
    whole = shared(eqn.outvars[0].aval.shape, all_entries(*parts), parts[0])
    return _arithmetic(reader, eqn, whole.like(finite=whole.finite and _finite(inputs)))


_BOUNDED = {  # finite for finite arguments
    *("abs", "sign", "max", "min", "floor", "ceil", "round", "tanh", "logistic", "sin", "cos", "erf", "atan", "clamp"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "xor", "is_finite", "convert_element_type", "select_n"),
    *("reduce_max", "reduce_min", "argmax", "argmin", "reduce_and", "reduce_or"),
}
_JOINT = (
    *("abs", "sign", "max", "min", "floor", "ceil", "round", "tanh", "logistic", "sin", "cos", "tan", "erf", "erfc", "clamp"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "xor", "is_finite", "exp", "exp2", "log", "log1p", "expm1"),
    *("sqrt", "rsqrt", "cbrt", "pow", "rem", "atan", "atan2", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("lgamma", "digamma", "erf_inv", "nextafter", "reduce_precision", "shift_left", "shift_right_logical"),
    *("shift_right_arithmetic", "population_count", "clz", "igamma", "igammac"),
)
RULES: dict[str, Any] = {
    **dict.fromkeys(_JOINT, joint),
    **dict.fromkeys(indexing.ONE_OPERAND, moved),
    **dict.fromkeys(("add", "sub", "add_any"), add),
    **dict.fromkeys(("integer_pow", "square"), integer_pow),
    **dict.fromkeys(("reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_prod", "argmax", "argmin"), reduce_any),
    **dict.fromkeys(("cummax", "cummin", "cumprod", "cumlogsumexp"), cumulate),
    **dict.fromkeys(("scatter", "scatter-add", "scatter_add"), scatter),
    "mul": mul,
    "div": div,
    "neg": neg,
    "convert_element_type": convert,
    "stop_gradient": stop_gradient,
    "optimization_barrier": same,
    "select_n": select,
    "concatenate": concatenate,
    "split": split,
    "pad": pad,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "reduce_sum": reduce_sum,
    "cumsum": cumsum,
    "sort": sort,
    "dot_general": dot_general,
    "conv_general_dilated": conv,
}
