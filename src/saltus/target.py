r"""A target keeps a space and its log-probability together; a Point is a state with what has been computed there."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._convolutions import by_matrix_products, convolves
from ._record import as_flag, as_float, as_sequence, changed, default_float, fill, is_concrete, record, shown, static
from ._words import escaped
from .clamping import clamp, whole_states
from .errors import KernelError, SaltusError, TargetError
from .local import LocalModel, local_model
from .moves import Moves
from .spaces import Space
from .structure import BoundQuadratic, Found, bind_structure, find
from .verifying import failing, verify_differences, verify_structure

_stamps = itertools.count(1)


def _new_stamp() -> np.ndarray:
    return np.asarray(next(_stamps) % 2**31, np.int32)


@record
class Point:
    """One state: its codes, f there, and the local model there (None for kernels that ask for the value only).

    stamp: that of the target it was made for, whose parameters f and the local model belong to; None: not known.
    log_prob: f at the codes, a number.
    """

    codes: jax.Array
    log_prob: jax.Array
    local: Any = None
    stamp: Any = None

    def stale_beside(self, other: Point) -> Any:
        """Whether the two were made for different parameters: KernelError where that can be seen, else a mark inside jit."""
        if self.stamp is None or other.stamp is None:
            return False
        if is_concrete((self.stamp, other.stamp)) and np.all(np.asarray(self.stamp) != np.asarray(other.stamp)):
            raise KernelError(
                "This state was made for other parameters: its log_prob and gradient belong to another target.",
                expected="a state of kernel.init(target, codes) or kernel.refresh(target, state)",
                found="a state from before the target changed",
                hint="after target.replace(...) call state = kernel.refresh(target, state)",
            )
        return self.stamp != other.stamp


@record
class Target:
    """p(s) ∝ exp(log_prob(s)) on a space.

    log_prob: JAX function of ONE state s: `log_prob(s)`, or `log_prob(params, s)` where `params` are given.
    params: pytree of arrays; `target.replace(params=p)` with the same shapes never retraces.
    differences: the local model: "gradient", "exact", "hessian_diag" or `saltus.Differences`.
    structure: "auto" finds what there is in log_prob (`print(target)` says what); None: nothing; or what is declared:
        `saltus.Quadratic`, `saltus.Graph`, several of them, or a function of params that returns them.
    names: one per site; of a product {part: names}, for some parts or all.
    initial: codes of a safe start. truth: whatever is known exactly about this target.
    verify: test the claims of `structure` and of exact `Differences` at random states, and refuse those that are false.
    """

    params: Any
    differences: LocalModel
    structure: tuple
    declared: Any  # the structure as given, unbound, where it is not a function of params
    initial: jax.Array | None
    beta: Any  # the target is exp(β f); None: β = 1
    stamp: Any  # a number of its own for every target whose f may differ
    log_prob: Callable = static()
    space: Space = static()
    names: tuple[str, ...] | None = static()
    structure_of: Callable | None = static()
    convolves: bool = static()  # log_prob has convolutions that are computed as matrix products, on a CPU
    verify: bool = static()

    truth = None  # for people: not part of the tree, so `replace` drops it and never retraces

    def __init__(
        self,
        log_prob: Callable,
        space: Space,
        params: Any = None,
        *,
        differences: str | LocalModel = "gradient",
        structure: Any = "auto",
        names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
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
            verify=as_flag(verify, "verify", TargetError),
            structure=(),
            convolves=False,
            beta=None,
            stamp=_new_stamp(),
        )
        if isinstance(structure, str) and structure != "auto":
            raise TargetError(
                "`structure` is not known.", expected="'auto', None, saltus.Quadratic or saltus.Graph", found=repr(structure)
            )
        finds = isinstance(structure, str)
        fill(self, declared=None if finds else self.declared)
        jaxpr = _check_log_prob(self)
        fill(self, convolves=convolves(jaxpr.jaxpr))
        if finds:
            fill(self, structure_of=find(log_prob, space, self.params, jaxpr))
        fill(self, structure=self.rebound().structure)
        if self.found and self.found.pattern is not None and self.find(BoundQuadratic) is None:
            fill(self, structure_of=find(log_prob, space, self.params, jaxpr, quadratic=False))
            fill(self, structure=self.rebound().structure)
        self._verify()

    def replace(self, **changes: Any) -> Target:
        """This target with another `params`, `differences`, `initial`, ...; new params of the same shapes never retrace.

        A structure given as a function of params follows them; a fixed one cannot, and is refused. `truth` is dropped
        where it may no longer hold.
        """
        if self.beta is not None and set(changes) != {"params"}:
            raise TargetError("A tempered target has only its params replaced.", hint="replace first, then temper")
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
        kept |= {"structure": "auto" if self.found else self.structure_of or self.declared, "truth": None if stale else self.truth}
        another = stale - {"params"}  # what was known of the old log_prob has to be tested on the new one
        kept |= {"differences": self.differences.by_definition(), "verify": True} if another else {"verify": self.verify}
        return Target(**{**kept, **changes})

    def _with_params(self, params: Any) -> Target:
        new = changed(self, params=params, stamp=_new_stamp())
        if not _same_shapes(params, self.params):
            jaxpr = _check_log_prob(new)
            new = changed(new, structure_of=find(self.log_prob, self.space, params, jaxpr)) if self.found else new
        new = new.rebound()
        new._verify()
        return new

    def _verify(self) -> None:
        """Test what was claimed about log_prob, where values can be seen."""
        if self.verify and is_concrete(self):
            if self.found:
                self._drop(failing(self))
            else:
                verify_structure(self)
            verify_differences(self)

    @property
    def found(self) -> Found | None:
        """What was found in log_prob; None where structure was declared or left out."""
        return self.structure_of if isinstance(self.structure_of, Found) else None

    def _drop(self, failed: dict[type, str]) -> None:
        """Do without what was found but does not hold at random states."""
        for kind, reason in failed.items():
            warnings.warn(
                f"What saltus read from log_prob does not hold at random states, and is not used: {reason}. "
                "Please report this function; structure=None turns the search off.",
                UserWarning,
                stacklevel=4,
            )
            parts = tuple(part for part in self.structure if not isinstance(part, kind))
            fill(self, structure=parts, structure_of=self.found.without(kind, reason))  # type: ignore[union-attr]

    def rebound(self) -> Target:
        """The structure bound anew, from the params and numbers as they are now."""
        declared = self._structure_now() if self.structure_of else self.declared
        structure = bind_structure(declared, self.space)
        return changed(self, structure=structure if self.beta is None else tuple(part.scaled(self.beta) for part in structure))

    def _structure_now(self) -> Any:
        """What the function of params returns, or TargetError."""
        assert self.structure_of
        try:
            return self.structure_of(self.params)
        except SaltusError:
            raise
        except Exception as cause:
            raise TargetError(
                "`structure` failed on the params.",
                expected="a function of params that returns saltus.Quadratic or saltus.Graph, or several",
                found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
            ) from cause

    def clamp(self, sites: Any, values: Any = None) -> Target:
        """The target of the other sites, given that these have these values; draws of it are those of the free sites.

        sites: numbers or names of sites, a mask, or {part: values} of a product. values: as a person reads them, one or one each.
        A fixed site costs nothing in proposals. `run["constant_data"]` shows the values; `free` says which sites are left;
        `whole(states)` puts states of the free sites and the fixed values together. Other values of the same sites compile
        nothing again: for a set of values for each chain, sample one chain of each.
        Raises TargetError or SpaceError where a site or a value is not there.
        """
        return clamp(self, sites, values)

    @property
    def free(self) -> np.ndarray:
        """The sites that are sampled, numbered as in the target that was clamped."""
        return np.asarray(getattr(self.log_prob, "free", range(self.space.num_sites)))

    def whole(self, states: Any) -> Any:
        """States of all sites as a person reads them, from states (..., d) of the free sites."""
        return whole_states(self, states)

    def tempered(self, beta: Any) -> Target:
        """The target whose log_prob is β times this one's, with everything it knows about itself.

        beta: in [0, 1]; a leaf, so that another one never retraces. `truth` is dropped.
        """
        beta = as_float(beta, "beta", TargetError)
        if beta.ndim:
            raise TargetError("`beta` is not one number.", expected="a number in [0, 1]", found=f"shape {beta.shape}")
        beta = beta * (1 if self.beta is None else self.beta)
        structure = tuple(part.scaled(beta) for part in changed(self, beta=None).rebound().structure)
        return changed(self, beta=beta, structure=structure, truth=None, stamp=_new_stamp())

    def rung(self, beta: Any) -> Target:
        """`tempered(beta)` for kernels with several temperatures: of the same stamp, and with nothing bound anew."""
        structure = tuple(part.scaled(beta) for part in self.structure)
        return changed(self, beta=beta if self.beta is None else beta * self.beta, structure=structure)

    def tempering(self, x: Any) -> Any:
        """β times what is proportional to f."""
        return x if self.beta is None else jax.tree.map(lambda leaf: self.beta * leaf, x)

    def through(self, differences: str) -> Target:
        """This target seen through another local model; nothing is verified again, so it may be called within jit."""
        return changed(self, differences=local_model(differences, self.space))

    def log_prob_of(self, s: jax.Array) -> jax.Array:
        """f(s) for one real state."""
        return self.tempering(jnp.asarray(self.evaluated(self.params, s), default_float()))

    def evaluated(self, params: Any, s: Any) -> Any:
        """What log_prob says, at these params: at no temperature, and with its convolutions as matrix products."""
        given = (s,) if params is None else (params, s)
        return by_matrix_products(self.log_prob, *given) if self.convolves else self.log_prob(*given)

    def value(self, codes: jax.Array) -> jax.Array:
        """f at one state's codes."""
        return self.log_prob_of(self.space.embed(codes))

    def point(self, codes: jax.Array) -> Point:
        """f and the local model at one state's codes."""
        return Point(codes, *self.differences.evaluate(self, codes), stamp=self.stamp)

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
        return f"Target({escaped(name)}, {self.space})"

    def __str__(self) -> str:
        """With what was found in log_prob, and what that is used for."""
        told = str(self.found or "").splitlines()
        if self.convolves:
            told.append("convolutions are computed as matrix products on a CPU: XLA's own are slow inside a loop")
        return "\n  ".join([repr(self), *told])


def evaluate(target: Target, codes: Any) -> Point:
    """For people: the Point at these codes, with log_prob and the local model; leading axes are kept.

    target: a `saltus.Target`.
    codes: (..., d) codes of states, such as `space.encode(s)` gives.
    Returns a `Point`. Example: `saltus.evaluate(target, [0, 1, 0]).log_prob`.
    """
    if not isinstance(target, Target):
        raise TargetError("`target` is not a target.", expected="saltus.Target(log_prob, space)", found=shown(target))
    point = target.point
    codes = target.space.check_codes(codes)
    for _ in range(codes.ndim - 1):
        point = jax.vmap(point)
    return point(codes)


def _strong(leaf: Any) -> Any:
    """Python numbers and weak types become strongly typed arrays, so that equal shapes give equal traces."""
    if isinstance(leaf, int) and not isinstance(leaf, bool) and not -(2**31) <= leaf < 2**31:
        raise TargetError("`params` has a number that does not fit 32 bits.", expected="numbers below 2**31", found=shown(leaf))
    if isinstance(leaf, (float, int)) and not isinstance(leaf, bool):
        return jnp.asarray(leaf, dtype=default_float() if isinstance(leaf, float) else jnp.int32)
    return jax.lax.convert_element_type(leaf, leaf.dtype) if getattr(leaf, "weak_type", False) else leaf


def _same_shapes(a: Any, b: Any) -> bool:
    (leaves_a, tree_a), (leaves_b, tree_b) = jax.tree.flatten(a), jax.tree.flatten(b)
    return str(tree_a) == str(tree_b) and list(map(jnp.shape, leaves_a)) == list(map(jnp.shape, leaves_b))


def _names(names: Any, space: Space) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, Mapping):
        return _names_of_pieces(names, space)
    expected = f"{space.num_sites} different names"
    names = tuple(map(str, as_sequence(names, "names", TargetError, expected)))
    if len(names) != space.num_sites or len(set(names)) != len(names):
        raise TargetError(
            "`names` does not name every site once.",
            expected=expected,
            found=f"{len(names)} names, {len(set(names))} different",
        )
    return names


def _names_of_pieces(names: Mapping, space: Space) -> tuple[str, ...]:
    """One name for each site, piece by piece: those not named are numbered."""
    known = {piece.name: piece for piece in space.pieces}
    if not set(names) <= set(known):
        found = ", ".join(repr(name) for name in names if name not in known)
        raise TargetError("`names` names parts that are not there.", expected=f"some of {list(known)}", found=found)
    told: list[str] = []
    for piece in known.values():
        own = names.get(piece.name)
        told += map(str, range(piece.space.num_sites)) if own is None else _names(own, piece.space) or ()
    return tuple(told)


def _check_log_prob(target: Target) -> Any:
    """The jaxpr of one abstract evaluation: a scalar float for a float state, or an error that says what came instead."""
    s = (target.space.abstract(),) if target.params is None else (jax.tree.map(_abstract, target.params), target.space.abstract())
    signature = "log_prob(s)" if target.params is None else "log_prob(params, s)"
    try:
        jaxpr, result = jax.make_jaxpr(lambda *a: target.log_prob(*a), return_shape=True)(*s)
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
    return jaxpr


def _abstract(leaf: Any) -> Any:
    try:
        return jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf))
    except (TypeError, ValueError) as cause:
        raise TargetError(
            "`params` holds something that is not an array of numbers.",
            expected="a tree of arrays",
            found=shown(leaf),
            hint="what is not a number belongs in the function: functools.partial(log_prob, option)",
        ) from cause
