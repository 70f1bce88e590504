"""Which sampler is meant, where its settings begin, and whether it can step a target: read off what samplers declare."""

from __future__ import annotations

import dataclasses
import difflib
import warnings
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import KernelError, SaltusError
from ..kernels import Info, Kernel, begin, samplers
from ..kernels.declarations import Decades, Radii
from ..spaces import Space
from ..target import Target
from .recording import stepped

AUTO = "auto"  # the word for a race among all that apply
_LEGACY = {"step_size": Decades(), "radius": Radii()}  # what 0.1 tuned, by the name of the field


def find_sampler(sampler: Any) -> Any:
    """The class that a name means, or the class itself; KernelError where there is none.

    Names are those of `kernels.samplers()`, then those of any other sampler that has been imported.
    """
    kind = _named(sampler) if isinstance(sampler, str) else sampler
    if not is_sampler(kind):
        known = ", ".join(map(repr, samplers()))
        raise KernelError(
            "`sampler` is not known.",
            expected=f"a kernel such as saltus.NCG(step_size=0.5), 'auto', or one of {known}",
            found=repr(sampler),
            hint=nearest(sampler, (AUTO, *samplers(), *others())),
        )
    return kind


def is_sampler(kind: Any) -> bool:
    """Whether this is a class of samplers; bases and wrappers have no name."""
    return isinstance(kind, type) and issubclass(kind, Kernel) and bool(kind.name)


def _named(name: str) -> Any:
    name = _plain(name)
    if name in samplers():
        return samplers()[name]
    found = others().get(name, [])
    if len(found) > 1:
        places = ", ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in found)
        raise KernelError(f"Several samplers are called {name!r}.", expected="one of them, as a class", found=places)
    return found[0] if found else None


def others() -> dict[str, list[Any]]:
    """{name: classes} of samplers from outside the package, as far as they have been imported."""
    found: dict[str, dict[str, Any]] = {}
    for kind in _descendants(Kernel):
        if is_sampler(kind) and kind not in samplers().values():
            place = f"{kind.__module__}.{kind.__qualname__}"
            found.setdefault(_plain(str(kind.name)), {})[place] = kind  # one that was defined again replaces the old one
    return {name: list(kinds.values()) for name, kinds in found.items()}


def _descendants(cls: Any) -> list[Any]:
    return [d for sub in cls.__subclasses__() for d in (sub, *_descendants(sub))]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def nearest(found: Any, known: Any) -> str:
    """A hint: the one of `known` that looks most like what was found."""
    close = difflib.get_close_matches(_plain(str(found)), list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else ""


def read_samplers(given: Any) -> tuple[Any, ...]:
    """What a list of samplers means: "auto", classes and kernels; KernelError where it is empty, unclear or says one twice."""
    expected = 'a list such as ["auto", MyKernel] or ["ncg", saltus.GWG, MyKernel(0.3)]'
    asked: list[Any] = []
    for sampler in given:
        if isinstance(sampler, str) and sampler.lower() == AUTO:
            asked.append(AUTO)
        else:
            asked.append(sampler if isinstance(sampler, Kernel) else find_sampler(sampler))
    open_parts = [x for x in asked if isinstance(x, Kernel) and x.unfinished]
    if open_parts and len(asked) > 1:
        raise KernelError(
            "A race takes compositions that are tuned.",
            expected="parts that are kernels, such as saltus.NCG(0.5)",
            found=repr(open_parts[0]),
            hint="saltus.tune(target, composition).kernel first",
        )
    twice = [x for i, x in enumerate(asked) if any(_same(x, y) for y in asked[:i])]
    if AUTO in asked:
        twice += [x for x in asked if any(x is kind and kind.races for kind in samplers().values())]
    if not asked or twice:
        found = "an empty list" if not asked else f"{twice[0] if isinstance(twice[0], (str, Kernel)) else twice[0].__name__} twice"
        hint = '"auto" has this sampler in it' if twice and AUTO in asked else ""
        raise KernelError("`sampler` is not a list of samplers.", expected=expected, found=found, hint=hint)
    return tuple(asked)


def _same(x: Any, y: Any) -> bool:
    return x is y or (isinstance(x, str) and x == y)


def tunes_of(kind: Any) -> Any:
    """{field: Search} of what is tuned. A class of 0.1, which had no way to say so, is known by the names of its fields."""
    legacy = _legacy(kind)
    return {legacy: _LEGACY[legacy]} if legacy else kind.tunes


def _legacy(kind: Any) -> str:
    """The field by which 0.1 would have tuned a class that declares nothing; else nothing."""
    if kind.tunes is not Kernel.tunes or kind.first.__func__ is not Kernel.first.__func__:  # type: ignore[attr-defined]
        return ""
    return next((f.name for f in dataclasses.fields(kind) if f.name in _LEGACY), "")


def _legacy_first(kind: Any, name: str, target: Target) -> Any:
    how = _LEGACY[name]
    warnings.warn(
        f"{kind.__name__} does not say how it is tuned, and is tuned by its `{name}` as in saltus 0.1. Declare it: "
        f"tunes = {{{name!r}: saltus.extending.{how!r}}}, and a classmethod first(cls, target, states=None)",
        DeprecationWarning,
        stacklevel=2,
    )
    return kind(how.unit(target.space) if isinstance(how, Decades) else 1)


def first_setting(kind: Any, target: Target, states: Any = None) -> Kernel:
    """Where this sampler's settings begin on this target, seen to fit; KernelError where it does not say, or cannot sample it.

    states: (num, d) codes that are typical of the target, where some are known.
    """
    if isinstance(kind, Kernel):  # made of kernels, some of them still to be tuned
        return kind.finished(lambda part: first_setting(part, target, states))
    legacy = _legacy(kind)
    try:
        if legacy:
            kernel = _legacy_first(kind, legacy, target)
        else:
            kernel = kind.first(target) if states is None else kind.first(target, states)
    except SaltusError:
        raise
    except Exception as cause:
        what = f"{kind.__name__} has no first setting for {target!r}."
        expected = f"an instance, or a classmethod first(cls, target, states=None) of {kind.__name__} that returns one"
        raise _failed(what, expected, cause) from cause
    if not isinstance(kernel, kind):
        raise KernelError(f"{kind.__name__}.first does not return a setting.", expected=f"a {kind.__name__}", found=repr(kernel))
    kernel.check_settings(target)
    kernel.check_needs(target)
    return kernel


def check_kernel_fits(kernel: Kernel, target: Target) -> None:
    """That this kernel can step this target: its own checks, then one abstract step whose state must be like the one before."""
    _check_record(kernel)
    kernel.check_settings(target)
    kernel.check_needs(target)
    codes = jax.ShapeDtypeStruct((target.space.num_sites,), target.space.code_dtype)

    def one_step(codes: jax.Array) -> Any:
        x = begin(kernel, target, codes, jax.random.key(0))
        y, info = stepped(kernel, jax.random.key(1), target, x)
        return x, y, info, kernel.draw(y), kernel.log_weight(y)

    try:
        x, y, info, kept, weight = jax.eval_shape(one_step, codes)
    except SaltusError:
        raise
    except Exception as cause:
        hint = "a kernel whose arrays have another number of sites was built for another space"
        raise _failed(f"{kernel!r} cannot step {target!r}.", "settings made for this space", cause, hint) from cause
    _check_state(kernel, x, y)
    _check_told(kernel, info, kept, weight, codes)


def _check_record(kernel: Kernel) -> None:
    """That JAX can take the kernel apart, and compare what is left."""
    name = type(kernel).__name__
    leaves, rest = jax.tree.flatten(kernel)
    if any(leaf is kernel for leaf in leaves):
        raise KernelError(
            f"{name} is not a record.", expected=f"@saltus.extending.record before class {name}", found="a class without it"
        )
    try:
        hash(rest)
    except TypeError as cause:
        raise KernelError(
            f"A field of {name} cannot be part of a compiled program.",
            expected="numbers and arrays as fields, all else hashable and declared static()",
            found=str(cause),
        ) from cause


def _check_state(kernel: Kernel, x: Any, y: Any) -> None:
    """That a step leaves a state of the form it was given."""
    name, wanted, found = type(kernel).__name__, *(_forms(state) for state in (x, y))
    if not {".codes", ".log_prob"} <= {path.partition("[")[0] for path in wanted}:
        raise KernelError(
            f"The state of {name} lacks something.", expected="arrays `codes` and `log_prob`", found=", ".join(wanted) or repr(x)
        )
    differs = [path for path in {**wanted, **found} if wanted.get(path) != found.get(path)]
    if differs or jax.tree.structure(x) != jax.tree.structure(y):  # type: ignore[operator]
        path = differs[0] if differs else ""
        of_codes = path == ".codes" and wanted.get(path, ("",))[0] == found.get(path, (" ",))[0]
        raise KernelError(
            f"A step of {name} changes the form of its state{f' at `{path[1:]}`' if path else ''}.",
            expected=_told_form(wanted.get(path)) if path else str(jax.tree.structure(x)),
            found=_told_form(found.get(path)) if path else str(jax.tree.structure(y)),
            hint="codes keep their type: codes.astype(x.codes.dtype)" if of_codes else "",
        )


def _forms(state: Any) -> dict[str, tuple[Any, Any]]:
    """{path: (shape, dtype)} of a state's leaves."""
    return {jax.tree_util.keystr(path): (x.shape, x.dtype) for path, x in jax.tree_util.tree_leaves_with_path(state)}


def _told_form(form: tuple[Any, Any] | None) -> str:
    return f"{form[1]} of shape {form[0]}" if form else "nothing there"


def _check_told(kernel: Kernel, info: Any, kept: Any, weight: Any, codes: Any) -> None:
    """That what a step tells besides its state can be kept."""
    name = type(kernel).__name__
    if not isinstance(info, Info):
        raise KernelError(
            f"{name}.step returns something else than a state and an Info.",
            expected="(state, saltus.Info(...))",
            found=f"(state, {type(info).__name__})",
            hint="saltus.extending.describe(space, x, y, accepted, rate, undefined) makes one",
        )
    wrong = [field for field, x in vars(info).items() if jnp.shape(x) != ()]
    if wrong:
        shape = jnp.shape(getattr(info, wrong[0]))
        raise KernelError(f"`{wrong[0]}` of {name}'s Info is not one number.", expected="shape ()", found=f"shape {shape}")
    if jnp.shape(kept) != codes.shape or not jnp.issubdtype(jnp.result_type(kept), jnp.integer):
        found = f"{jnp.result_type(kept)} of shape {jnp.shape(kept)}"
        raise KernelError(f"{name}.draw does not return codes.", expected=f"integers of shape {codes.shape}", found=found)
    if jnp.shape(weight) != ():
        raise KernelError(f"{name}.log_weight is not one number.", expected="shape ()", found=f"shape {jnp.shape(weight)}")


def _failed(what: str, expected: str, cause: Exception, hint: str = "") -> KernelError:
    first = next(iter(str(cause).splitlines()), "")
    return KernelError(what, expected=expected, found=f"{type(cause).__name__}: {first}", hint=hint)


def warn_of_parity(kernel: Kernel, space: Space, thin: int | str) -> None:
    """Where one site flips each step and moves are rarely refused, an even number of steps keeps the parity."""
    if isinstance(thin, int) and thin % 2 == 0 and kernel.keeps_parity(space):
        warnings.warn(
            f"{kernel!r} flips one site of a two-valued space each step, so after {thin} steps the number of ones is even or odd "
            f"as it was, unless a move is refused: an odd `thin`, such as {thin + 1}, sees both",
            stacklevel=4,
        )
