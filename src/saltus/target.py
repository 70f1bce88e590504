r"""A target keeps a space and its log-probability together; a Point is a state with what has been computed there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ._record import changed, default_float, fill, is_concrete, record, static
from .errors import TargetError
from .local import LOCAL_MODELS, LocalModel
from .moves import Moves
from .spaces import Space
from .structure import bind_structure, verify_differences, verify_structure


@record
class Point:
    """One state: its codes, f there, and the local model there (None for kernels that ask for the value only)."""

    codes: jax.Array
    log_prob: jax.Array
    local: Any = None


@record
class Target:
    """p(s) ∝ exp(log_prob(s)) on a space.

    log_prob: JAX function of ONE state s: `log_prob(s)`, or `log_prob(params, s)` where `params` are given.
    params: pytree of arrays; `target.replace(params=p)` with the same shapes never retraces.
    differences: the local model: "gradient", "exact", "hessian_diag" or `saltus.Differences`.
    structure: `saltus.Quadratic`, `saltus.Graph`, several of them, or a function of params that returns them.
    names: one per site. initial: codes of a safe start. truth: whatever is known exactly about this target.
    verify: test the claims of `structure` and of exact `Differences` at random states, and refuse those that are false.
    """

    params: Any
    differences: LocalModel
    structure: tuple
    declared: Any  # the structure as given, unbound, where it is not a function of params
    initial: jax.Array | None
    log_prob: Callable = static()
    space: Space = static()
    names: tuple[str, ...] | None = static()
    structure_of: Callable | None = static()
    verify: bool = static()

    truth = None  # for people: not part of the tree, so `replace` drops it and never retraces

    def __init__(
        self,
        log_prob: Callable,
        space: Space,
        params: Any = None,
        *,
        differences: str | LocalModel = "gradient",
        structure: Any = None,
        names: Sequence[str] | None = None,
        initial: Any = None,
        truth: Any = None,
        verify: bool = True,
    ):
        if not isinstance(space, Space):
            raise TargetError(
                "`space` is not a space.", expected="saltus.Binary(d), Spin, Ordinal or Categorical", found=repr(space)
            )
        fill(
            self,
            params=jax.tree.map(_strong, params),
            differences=local_model(differences, space),
            initial=None if initial is None else space.check_codes(initial, "initial"),
            log_prob=log_prob,
            space=space,
            names=_names(names, space),
            structure_of=structure if callable(structure) else None,
            truth=truth,
            declared=None if callable(structure) else structure,
            verify=verify,
            structure=(),
        )
        _check_log_prob(self)
        fill(self, structure=self.rebound().structure)
        self._verify()

    def replace(self, **changes: Any) -> Target:
        """This target with another `params`, `differences`, `initial`, ...; new params of the same shapes never retrace.

        A structure given as a function of params follows them; a fixed one cannot, and is refused. `truth` is dropped
        where it may no longer hold.
        """
        if set(changes) == {"params"} and self.declared is None:
            return self._with_params(jax.tree.map(_strong, changes["params"]))
        stale = {"params", "log_prob", "space"} & set(changes)
        if stale and self.declared is not None and "structure" not in changes:
            raise TargetError(
                f"The structure of this target was fixed when it was built and cannot follow new {', '.join(sorted(stale))}.",
                expected="structure as a function of params",
                hint="Target(..., structure=lambda params: saltus.Quadratic(b(params), H(params))), or replace both",
            )
        kept = {name: getattr(self, name) for name in ("log_prob", "space", "params", "differences", "names", "initial")}
        kept |= {"structure": self.structure_of or self.declared, "truth": None if stale else self.truth}
        another = stale - {"params"}  # what was known of the old log_prob has to be tested on the new one
        kept |= {"differences": self.differences.by_definition(), "verify": True} if another else {"verify": self.verify}
        return Target(**{**kept, **changes})

    def _with_params(self, params: Any) -> Target:
        new = changed(self, params=params)
        if not _same_shapes(params, self.params):
            _check_log_prob(new)
        new = new.rebound()
        new._verify()
        return new

    def _verify(self) -> None:
        """Test what was claimed about log_prob, where values can be seen."""
        if self.verify and is_concrete(self):
            verify_structure(self)
            verify_differences(self)

    def rebound(self) -> Target:
        """The structure bound anew, from the params and numbers as they are now."""
        declared = self.structure_of(self.params) if self.structure_of else self.declared
        return changed(self, structure=bind_structure(declared, self.space))

    def through(self, differences: str) -> Target:
        """This target seen through another local model; nothing is verified again, so it may be called within jit."""
        return changed(self, differences=local_model(differences, self.space))

    def log_prob_of(self, s: jax.Array) -> jax.Array:
        """f(s) for one real state."""
        f = self.log_prob(s) if self.params is None else self.log_prob(self.params, s)
        return jnp.asarray(f, default_float())

    def value(self, codes: jax.Array) -> jax.Array:
        """f at one state's codes."""
        return self.log_prob_of(self.space.embed(codes))

    def point(self, codes: jax.Array) -> Point:
        """f and the local model at one state's codes."""
        return Point(codes, *self.differences.evaluate(self, codes))

    def moves(self, x: Point) -> Moves:
        """D: the predicted change of f for every single-site move away from x."""
        return self.differences.moves(self, x.codes, x.local)

    def changes(self, x: Point, codes: jax.Array) -> jax.Array:
        """(d,) D_i(s'_i): the predicted change of f, site by site, for going from x to `codes`; D(s -> s') is their sum."""
        return self.differences.changes(self, x.codes, x.local, codes)

    def exact_rows(self, x: Point, sites: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(b, k) the true f for every value of `sites`, up to a constant per site; and how many states were undefined."""
        return self.differences.rows(self, x.codes, x.log_prob, sites)

    def find(self, kind: type) -> Any:
        """The structure of this kind, or None."""
        return next((part for part in self.structure if isinstance(part, kind)), None)

    def __repr__(self) -> str:
        name = getattr(self.log_prob, "__name__", type(self.log_prob).__name__)
        return f"Target({name}, {self.space})"


def evaluate(target: Target, codes: Any) -> Point:
    """For people: the Point at these codes, with log_prob and the local model; leading axes are kept."""
    point = target.point
    codes = target.space.check_codes(codes)
    for _ in range(codes.ndim - 1):
        point = jax.vmap(point)
    return point(codes)


def _strong(leaf: Any) -> Any:
    """Python numbers and weak types become strongly typed arrays, so that equal shapes give equal traces."""
    if isinstance(leaf, (float, int)) and not isinstance(leaf, bool):
        return jnp.asarray(leaf, dtype=default_float() if isinstance(leaf, float) else jnp.int32)
    return jax.lax.convert_element_type(leaf, leaf.dtype) if getattr(leaf, "weak_type", False) else leaf


def _same_shapes(a: Any, b: Any) -> bool:
    (leaves_a, tree_a), (leaves_b, tree_b) = jax.tree.flatten(a), jax.tree.flatten(b)
    return str(tree_a) == str(tree_b) and list(map(jnp.shape, leaves_a)) == list(map(jnp.shape, leaves_b))


def local_model(given: Any, space: Space) -> LocalModel:
    """The local model of this name, or the one given."""
    if isinstance(given, LocalModel):
        return given
    if given not in LOCAL_MODELS:
        expected = ", ".join(map(repr, LOCAL_MODELS)) + " or saltus.Differences(fn)"
        raise TargetError("`differences` is not known.", expected=expected, found=repr(given))
    if given == "hessian_diag" and not space.numeric:
        raise TargetError(
            "hessian_diag needs values that are numbers.",
            expected="Binary, Spin or Ordinal",
            found=str(space),
            hint="a one-hot move changes two entries of s, so the diagonal is not its second order: use differences='exact'",
        )
    return LOCAL_MODELS[given]()


def _names(names: Any, space: Space) -> tuple[str, ...] | None:
    if names is None:
        return None
    names = tuple(map(str, names))
    if len(names) != space.num_sites or len(set(names)) != len(names):
        raise TargetError(
            "`names` does not name every site once.",
            expected=f"{space.num_sites} different names",
            found=f"{len(names)} names, {len(set(names))} different",
        )
    return names


def _check_log_prob(target: Target) -> None:
    """One abstract evaluation: a scalar float for a float state, or an error that says what came instead."""
    s = jax.ShapeDtypeStruct(target.space.shape, default_float())
    call = target.log_prob if target.params is None else lambda s: target.log_prob(target.params, s)
    signature = "log_prob(s)" if target.params is None else "log_prob(params, s)"
    try:
        result = jax.eval_shape(call, s)
    except Exception as cause:
        raise TargetError(
            f"{signature} failed on a state of {target.space}.",
            expected=f"a JAX function of one float state of shape {target.space.shape}",
            found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
            hint="s is an array of floats: index with s.astype(int) (and differences='exact'), and use jnp, not np or math",
        ) from cause
    shape: Any = getattr(result, "shape", None)
    dtype: Any = getattr(result, "dtype", None)
    if shape != ():
        raise TargetError(
            f"{signature} does not return one number.",
            expected="a scalar: the log-probability of ONE state",
            found=f"shape {shape}" if shape is not None else type(result).__name__,
            hint="sum over sites; saltus adds the chains itself",
        )
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TargetError(
            f"{signature} returns {dtype}.", expected="a float", found=str(dtype), hint="it must be differentiable: avoid int casts"
        )
