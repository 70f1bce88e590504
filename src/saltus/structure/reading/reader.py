"""The interpreter: a jaxpr, equation by equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from . import rules
from .calls import CALLS
from .constants import UNKNOWN, Known, Unknown, evaluate
from .dependence import MANY, Budget, Dependence, TooLarge
from .interactions import Interactions

Value = Dependence | Known | Unknown

_LONGEST_SCAN = 1000  # steps that are followed one by one


@dataclass(frozen=True)
class Reading:
    """What was read.

    pairs: (p, 2) entries i < j that may interact; None: all of them may. degree: of f as a polynomial, on-site parts left
    out; MANY where it is none of degree 2 or less. potential: whether it has on-site parts of another form.
    why: what keeps it from being quadratic, or from saying anything; in words, with the line of code where it is known.
    """

    pairs: np.ndarray | None
    degree: int
    potential: bool
    why: str
    failures: tuple[str, ...] = ()


def read(jaxpr: Any, constants: list[Any], inputs: list[Value], num_entries: int, site_of: np.ndarray) -> Reading:
    """Interpret a jaxpr of one scalar output.

    inputs: one value per argument. num_entries: n. site_of: (n,) the site of each entry, in ascending order.
    """
    reader = Reader(num_entries, site_of)
    values: list[Value] = [as_value(c) for c in constants]
    try:
        try:
            (out,) = reader.run(jaxpr, values, inputs)
        except TooLarge:  # once more, with every element taken to depend on all: degrees can still be told
            reader = Reader(num_entries, site_of)
            (out,) = reader.run(jaxpr, values, [_coarse(x) for x in inputs])
    except Nothing as nothing:
        return Reading(None, MANY, False, str(nothing))
    except TooLarge:
        return Reading(None, MANY, False, "log_prob is too large to be read in the time that is set aside for it")
    if not isinstance(out, Dependence):
        return Reading(np.zeros((0, 2), np.int64), 0, False, "")
    reader.listed(out)
    keys = None if reader.interactions.everything else reader.interactions.keys()
    pairs = None if keys is None else np.stack(np.divmod(keys, max(num_entries, 1)), axis=1)
    return Reading(pairs, out.degree, out.potential, reader.why if out.degree == MANY else "", tuple(reader.failures))


def read_rows(jaxpr: Any, constants: list[Any], inputs: list[Value], num_entries: int, site_of: np.ndarray) -> Dependence | None:
    """What each element of the one output, a vector, may depend on; None where that cannot be told."""
    try:
        (out,) = Reader(num_entries, site_of).run(jaxpr, [as_value(c) for c in constants], inputs)
    except (TooLarge, Nothing):
        return None
    return out if isinstance(out, Dependence) and out.indptr is not None else None


def _coarse(x: Value) -> Value:
    return x.like(indptr=None) if isinstance(x, Dependence) else x


def as_value(constant: Any) -> Known | Unknown:
    """A constant of a jaxpr; those of an enclosing trace have no value yet."""
    if isinstance(constant, jax.core.Tracer) or not hasattr(constant, "dtype"):
        return UNKNOWN if isinstance(constant, jax.core.Tracer) else Known(np.asarray(constant))
    try:
        array = np.asarray(constant)
    except Exception:  # such as keys of jax.random
        return UNKNOWN
    return Known(array) if array.dtype.kind in "biuf" else UNKNOWN


class Nothing(Exception):
    """There is nothing to be found."""


class Reader:
    """The state of one reading."""

    def __init__(self, num_entries: int, site_of: np.ndarray):
        self.n, self.site_of, self.budget = num_entries, site_of, Budget(num_entries)
        self.interactions = Interactions(num_entries, self.budget)
        self.why = ""
        self.failures: list[str] = []  # for the tests: rules that met a form of their primitive that they do not know
        self._here: Any = None
        self._within: list[Any] = []  # the calls that led here

    def run(self, jaxpr: Any, constants: list[Value], inputs: list[Value]) -> list[Value]:
        known: dict[Any, Value] = dict(zip(jaxpr.constvars, constants, strict=True))
        known |= dict(zip(jaxpr.invars, inputs, strict=True))

        def value(atom: Any) -> Value:
            return as_value(atom.val) if hasattr(atom, "val") else known[atom]

        for eqn in jaxpr.eqns:
            outputs = self._equation(eqn, [value(atom) for atom in eqn.invars])
            known.update(zip(eqn.outvars, outputs, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: Any, inputs: list[Value]) -> list[Value]:
        name = eqn.primitive.name
        if name in CALLS and CALLS[name][0] in eqn.params:
            return self._call(eqn, inputs)
        depends = [x for x in inputs if isinstance(x, Dependence)]
        if not depends:
            self.budget.spend(10 + sum(v.aval.size for v in eqn.outvars) // 16)
            return list(evaluate(eqn, inputs))  # type: ignore[arg-type]
        self._here = eqn
        read = () if name == "dynamic_slice" else depends  # of one element, in a scan, it does not look at the others
        self.budget.spend(100 + sum(x.weight for x in read) + sum(v.aval.size for v in eqn.outvars))
        if name == "scan" and eqn.params["length"] <= _LONGEST_SCAN:
            return self._scan(eqn, inputs)
        rule: Callable = rules.RULES.get(name, rules.cannot_tell)
        try:
            found = rule(self, eqn, inputs)
        except (TooLarge, Nothing):
            raise
        except Exception as cause:  # a form of the primitive that the rule does not know
            self.failures.append(f"{name}: {type(cause).__name__}: {cause}")
            found = None
        return found if found is not None else self.unknown(eqn, depends)

    def _call(self, eqn: Any, inputs: list[Value]) -> list[Value]:
        where, own_derivative = CALLS[eqn.primitive.name]
        inner = eqn.params[where]
        closed = hasattr(inner, "consts")
        self._within.append(eqn)
        found = self.run(inner.jaxpr if closed else inner, [as_value(c) for c in (inner.consts if closed else ())], inputs)
        self._within.pop()
        if own_derivative:
            return found
        self._here = eqn
        return [self.underived(x) if isinstance(x, Dependence) else x for x in found]

    def _scan(self, eqn: Any, inputs: list[Value]) -> list[Value]:
        """Step after step."""
        p, inner = eqn.params, eqn.params["jaxpr"]
        num_consts, num_carry, length = p["num_consts"], p["num_carry"], p["length"]
        fixed, carry, rows = inputs[:num_consts], inputs[num_consts : num_consts + num_carry], inputs[num_consts + num_carry :]
        shapes = [v.aval.shape for v in eqn.invars[num_consts + num_carry :]]
        stacked: list[list[Value]] = [[UNKNOWN] * length for _ in eqn.outvars[num_carry:]]
        for step in reversed(range(length)) if p["reverse"] else range(length):
            here = [rules.row(x, shape, step) for x, shape in zip(rows, shapes, strict=True)]
            out = self.run(inner.jaxpr, [as_value(c) for c in inner.consts], [*fixed, *carry, *here])
            carry = out[:num_carry]
            for column, found in zip(stacked, out[num_carry:], strict=True):
                column[step] = found
        columns = zip(stacked, eqn.outvars[num_carry:], strict=True)
        return [*carry, *(rules.stack(self, column, v.aval.shape) for column, v in columns)]

    # ---- what rules ask for ----------------------------------------------------------------------------------------

    def unknown(self, eqn: Any, depends: list[Dependence]) -> list[Value]:
        """All it sees interacts."""
        together = self.interacting(rules.together(self, depends))
        return [together.like(shape=v.aval.shape) for v in eqn.outvars]

    def listed(self, part: Dependence) -> Dependence:
        """With its pending pairs among the interactions."""
        if part.pairs is None:
            return part
        self.interactions.add_keys(part.pairs)
        return part.like(pairs=None)

    def interacting(self, part: Dependence, finite: bool = False) -> Dependence:
        """All that an element depends on interacts, in a way that is no polynomial."""
        part = self.listed(part)
        if part.one_site_each(self.site_of):
            return part.like(degree=0, potential=True, finite=finite)
        self._explain()
        self.interactions.within(part)
        if self.interactions.everything:
            raise Nothing(f"all sites may interact: {self.why}" if self.why else "all sites may interact")
        return part.like(degree=MANY, finite=finite)

    def underived(self, part: Dependence) -> Dependence:
        """The same numbers, whose derivative is not that of a polynomial."""
        part = self.listed(part)
        if part.one_site_each(self.site_of):
            return part.like(degree=0, potential=True)
        self._explain()
        return part.like(degree=MANY)

    def product(self, a: Dependence, b: Dependence) -> Dependence:
        """Element by element; both have the same shape."""
        a, b = self.listed(a), self.listed(b)
        both = rules.united([a, b], a.shape, self.n).like(finite=a.finite and b.finite)
        on_site = both.one_site_each(self.site_of)
        mixed = (a.potential or b.potential) and not on_site
        degree = MANY if mixed else min(a.degree + b.degree, MANY)
        if on_site and (a.potential or b.potential or degree == MANY):
            return both.like(degree=0, potential=True)
        if degree == MANY:
            self._explain()
        result = both.like(degree=degree, potential=False)
        if rules.at_most_one_each(a) and rules.at_most_one_each(b):
            return result.like(pairs=self._keys(a, b))
        self.interactions.of_product(a, b)
        if self.interactions.everything and degree == MANY:
            raise Nothing(f"all sites may interact: {self.why}")
        return result

    def _keys(self, a: Dependence, b: Dependence) -> np.ndarray:
        assert a.indptr is not None
        assert b.indptr is not None
        both = (a.counts() == 1) & (b.counts() == 1)
        keys = np.full(a.num, -1, np.int64)
        first, second = a.entries[a.indptr[:-1][both]], b.entries[b.indptr[:-1][both]]
        low, high = np.minimum(first, second), np.maximum(first, second)
        keys[both] = np.where(low == high, -1, low * self.n + high)
        return keys

    def _explain(self) -> None:
        if self.why:
            return
        frame = next(filter(None, map(_line, [self._here, *reversed(self._within)])), "")
        self.why = f"`{self._here.primitive.name}` of several sites" + (f" ({frame})" if frame else "")


def _line(eqn: Any) -> str:
    """file:line of the user's code, where JAX tells it."""
    try:
        from jax._src import source_info_util

        frame = source_info_util.user_frame(eqn.source_info.traceback)
        return f"{frame.file_name.rsplit('/', 1)[-1]}:{frame.start_line}" if frame else ""
    except Exception:  # not part of JAX's public interface
        return ""
