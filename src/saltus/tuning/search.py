"""What `tune` does with each kind of declared setting, and whether the declarations can be followed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..engine.samplers import first_setting, tunes_of
from ..errors import KernelError
from ..kernels import Kernel
from ..kernels.declarations import Decades, Fit, Persistence, Radii, Rungs, Search, Signed
from ..target import Target
from .ladder import search_ladder
from .momentum import tune_momentum
from .preconditioner import Candidate, tune_fit
from .step_size import Curve, tune_positive, tune_radius, tune_signed
from .trial import Chains


@dataclass
class Work:
    """What a search works with, and what it leaves besides the kernel. known: {class: kernel} tuned here before."""

    target: Target
    chains: Chains
    adaptation: str = "default"
    known: Mapping[Any, Any] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    fits: list[Candidate] = field(default_factory=list)
    note: str = ""
    warmup: str = ""  # the class that made a warm-up


def search_all(kind: Any, work: Work) -> Any:
    """The sampler with every setting that it declares chosen, in the order of their declaration; fits first."""
    if isinstance(kind, Kernel):  # made of kernels: each part is tuned by itself
        return kind.finished(lambda part: search_all(part, work))
    kernel, tunes = first_setting(kind, work.target), tunes_of(kind)
    _check_declared(kernel, tunes)
    fits = {name: how for name, how in tunes.items() if isinstance(how, Fit)}
    found_by_fits = {part for how in fits.values() for part in (how.scale, how.step_size)}
    for name, how in {**fits, **tunes}.items():
        if name not in found_by_fits and not work.chains.late():
            kernel = search_one(how, kernel, name, work)
    return kernel


@functools.singledispatch
def search_one(how: Any, kernel: Any, name: str, work: Work) -> Any:
    """The kernel with this setting chosen. Another kind of Search registers what is to be done with it here."""
    raise KernelError(
        f"`{name}` of {type(kernel).__name__} is searched in a way that is not known.",
        expected="Decades, Radii, Signed or Fit of saltus.extending",
        found=repr(how),
    )


@search_one.register
def _(how: Decades, kernel: Any, name: str, work: Work) -> Any:
    kernel, curve = tune_positive(kernel, work.target, name, how, work.chains)
    work.curves.append(curve)
    return kernel


@search_one.register
def _(how: Radii, kernel: Any, name: str, work: Work) -> Any:
    if not callable(getattr(kernel, "largest_radius", None)):
        name = type(kernel).__name__
        raise KernelError(f"{name} does not say how large its radius may be.", expected="a method largest_radius(self, space)")
    kernel, curve = tune_radius(kernel, work.target, name, work.chains)
    work.curves.append(curve)
    return kernel


@search_one.register
def _(how: Signed, kernel: Any, name: str, work: Work) -> Any:
    kernel, curve = tune_signed(kernel, work.target, name, how.unit(work.target.space), work.chains)
    work.curves.append(curve)
    return kernel


@search_one.register
def _(how: Fit, kernel: Any, name: str, work: Work) -> Any:
    warm, work.warmup = work.known.get(how.warmup), how.warmup.__name__
    if warm is None:
        before = Work(work.target, work.chains)
        warm = search_all(how.warmup, before)
        work.curves += before.curves
        if work.chains.late():
            return kernel
    found = tune_fit(kernel, work.target, name, how, work.chains, warm, work.adaptation)
    work.curves += found.curves
    work.fits, work.note = found.fits, found.told
    return found.kernel


@search_one.register
def _(how: Persistence, kernel: Any, name: str, work: Work) -> Any:
    if work.adaptation != "momentum":
        return kernel
    kernel, told = tune_momentum(kernel, work.target, name, how, work.chains)
    work.note = "; ".join(filter(None, [work.note, told]))
    return kernel


@search_one.register
def _(how: Rungs, kernel: Any, name: str, work: Work) -> Any:
    found = search_ladder(work.target, kernel.kernel, work.chains.codes[:8], work.chains.seed, work.chains.length(100) / 100)
    work.chains.evaluations += found.evaluations
    work.note = f"{found.swaps!r}"
    return found.kernel


def _check_declared(kernel: Any, tunes: Any) -> None:
    """KernelError where `tunes` says something that cannot be done."""
    name = type(kernel).__name__
    expected = "{field: a Search of saltus.extending}, such as {'step_size': Decades()}"
    if not isinstance(tunes, Mapping) or not all(isinstance(how, Search) for how in tunes.values()):
        raise KernelError(f"`tunes` of {name} is not usable.", expected=expected, found=repr(tunes))
    fits = [how for how in tunes.values() if isinstance(how, Fit)]
    needed = {*tunes, *(part for how in fits for part in (how.scale, how.step_size))}
    fields = {f.name: f for f in dataclasses.fields(kernel)}
    matrices = {field for field, how in tunes.items() if isinstance(how, (Fit, Persistence, Rungs))}
    for field_name in sorted(needed):
        if field_name not in fields:
            found = ", ".join(fields) or "no fields"
            raise KernelError(f"{name} has no field {field_name!r} to tune.", expected="the name of a field", found=found)
        value = getattr(kernel, field_name)
        if field_name not in matrices and (fields[field_name].metadata.get("static") or not _is_number(value)):
            raise KernelError(
                f"`{field_name}` of {name} cannot be tuned.", expected="one number, and not static()", found=repr(value)
            )


def _is_number(value: Any) -> bool:
    try:
        return np.ndim(value) == 0 and jnp.issubdtype(jnp.result_type(value), jnp.number)
    except TypeError:
        return False
