"""What every sampler shares: its declaration, its chain state, and the one accept/reject step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .. import random
from .._record import changed, default_float, record
from ..errors import KernelError
from ..spaces import Space
from ..target import Point, Target
from .declarations import LOCAL_MODEL, VALUES, Needs, Search, accepts
from .metropolis import Info, metropolis


@record
class Kernel:
    """One transition that leaves exp(f) invariant.

    A sampler declares itself on its class; nothing else in the package lists samplers:

        name         "ncg": in `sample(target, "ncg")`, on the command line, in tables; made from the class's name
        needs        what it asks of a target: `VALUES`, `LOCAL_MODEL`, or `Needs(structure=..., two_values=...)`
        tunes        {field: how it is searched}; nothing where there is nothing to tune
        rejects      whether it can refuse a move
        simplicity   of samplers as good as each other the race takes the one with the smallest number
        races        whether "auto" tries it; False: only where it is asked for
        cites        keys of what to cite (`reporting/citation.py`), or whole BibTeX entries

    A Metropolis sampler supplies `propose` and `log_ratio` (and `noise`, where it draws an auxiliary variable first); any
    other overrides `step`. Its chain state is a `Point`, or a record with `codes`, `log_prob` and more leaves, which then
    overrides `init` and `refresh`. For certification it may add `condition`, `log_definition`, or `blocks`, `compose` and
    `reversible`; see `saltus.testing`.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[Needs] = LOCAL_MODEL
    tunes: ClassVar[Mapping[str, Search]] = {}
    rejects: ClassVar[bool] = True
    simplicity: ClassVar[int] = 70
    races: ClassVar[bool] = True
    cites: ClassVar[tuple[str, ...]] = ()
    uses_local_model: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        if "uses_local_model" in cls.__dict__ and "needs" not in cls.__dict__:  # as 0.1 said it
            cls.needs = LOCAL_MODEL if cls.uses_local_model else VALUES
        if isinstance(cls.needs, Needs):
            cls.uses_local_model = cls.needs.local_model

    @classmethod
    def first(cls, target: Target, states: Any = None) -> Any:
        """A setting to start from. states: (num, d) codes that are typical of the target, where some are known."""
        try:
            return cls()
        except TypeError as cause:
            raise KernelError(
                f"{cls.__name__} does not say which setting to start from.",
                expected=f"an instance, {cls.__name__}(...), or a classmethod first(cls, target, states=None) that returns one",
                found=str(cause),
                hint="`tunes` says which fields saltus.tune searches: tunes = {'step_size': saltus.extending.Decades()}",
            ) from cause

    @classmethod
    def enters(cls, target: Target) -> bool:
        """Whether "auto" tries it on this target, which meets its needs. Default: wherever `races` says so."""
        return cls.races

    @classmethod
    def last_resort(cls, space: Space) -> bool:
        """Whether it enters a race only where no other sampler moves."""
        return False

    # ---- the chain's state ---------------------------------------------------------------------------------------

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Any:
        """The state at `codes`: f and the local model. key: for what else it holds, drawn from its law given the codes."""
        codes = self.check(target, codes)
        return target.point(codes) if self.uses_local_model else Point(codes, target.value(codes), stamp=target.stamp)

    def refresh(self, target: Target, state: Any) -> Any:
        """The state after the target has changed: what is cached is computed anew, all else is kept."""
        return self.init(target, self.draw(state))

    def draw(self, state: Any) -> jax.Array:
        """The codes that are kept of a state."""
        return state.codes

    def counts(self, states: Any) -> dict[str, Any]:
        """{name: number or words}: what the states of several chains have counted, for a run to keep. Default nothing."""
        return {}

    def log_weight(self, state: Any) -> jax.Array:
        """log of what a draw counts: the chain is stationary for exp(f - log_weight). 0 unless overridden."""
        return jnp.zeros((), default_float())

    @property
    def weighted(self) -> bool:
        """Whether draws carry weights."""
        return type(self).log_weight is not Kernel.log_weight

    # ---- for kernels made of kernels -----------------------------------------------------------------------------

    @property
    def plain(self) -> bool:
        """Whether the state is a Point of f and the target's local model, and no more."""
        return type(self).init is Kernel.init

    def adopt(self, target: Target, x: Point, own: Any = None) -> Any:
        """This kernel's state at x, where another kernel has moved the chain. f, and the local model where x has it, are kept.

        own: this kernel's last state. Its auxiliary parts (a momentum) are kept: their law must not depend on the codes.
        """
        if self.plain and (not self.uses_local_model or x.local is not None):
            return Point(x.codes, x.log_prob, x.local if self.uses_local_model else None, x.stamp)
        if own is None or type(self).refresh is Kernel.refresh:
            return self.init(target, x.codes)
        return self.refresh(target, changed(own, codes=x.codes))

    @property
    def unfinished(self) -> bool:
        """Whether some part is a class, whose settings are still to be chosen."""
        return False

    def finished(self, finish: Callable[[Any], Any]) -> Any:
        """This kernel with `finish(class)` in place of every part that is a class."""
        return self

    # ---- one transition ------------------------------------------------------------------------------------------

    def step(self, key: jax.Array, target: Target, x: Any) -> tuple[Any, Info]:
        """One chain, one transition."""
        noise_key, move_key, accept_key = random.split(key, 3)
        noise = self.noise(noise_key, target)
        codes, forward = drawn(self.propose(target, x, noise), move_key)
        y = self.init(target, codes.astype(x.codes.dtype))
        return metropolis(accept_key, target.space, x, y, self.ratio(target, x, y, noise, forward))

    def noise(self, key: jax.Array, target: Target) -> Any:
        """The auxiliary variable of this step; None where there is none."""
        return None

    def propose(self, target: Target, x: Any, noise: Any) -> Any:
        """q(. | x, noise): an object with sample(key) -> codes and log_prob(codes).

        One that takes an auxiliary path offers draw(key) -> (codes, itself with the path) instead of sample.
        """
        raise NotImplementedError

    def log_ratio(self, target: Target, x: Any, y: Any, noise: Any, forward: Any = None) -> jax.Array:
        """log of p(y) q(x | y, noise) / p(x) q(y | x, noise), seen as one expression.

        forward: the proposal that y was drawn from, path included; given by name to those that take it.
        """
        raise NotImplementedError

    def ratio(self, target: Target, x: Any, y: Any, noise: Any, forward: Any) -> jax.Array:
        """`log_ratio`, with the proposal where it asks for it."""
        if accepts(type(self).log_ratio, "forward"):
            return self.log_ratio(target, x, y, noise, forward=forward)
        return self.log_ratio(target, x, y, noise)

    # ---- what a run asks -----------------------------------------------------------------------------------------

    def evaluations(self, target: Target) -> int:
        """Evaluations of f, with or without its gradient, that one step of one chain makes."""
        return target.differences.evaluations_on(target) if self.uses_local_model else 1

    def keeps_parity(self, space: Space) -> bool:
        """Whether every accepted step changes exactly one site of a two-valued space: draws then need odd distances."""
        return False

    def check(self, target: Target, codes: Any) -> jax.Array:
        """The codes, once they and this kernel's settings are seen to fit the target."""
        if not isinstance(target, Target):
            raise KernelError("`target` is not a target.", expected="saltus.Target(log_prob, space)", found=repr(target))
        checked = target.space.check_codes(codes)
        if checked.ndim != 1:
            raise KernelError(
                "A kernel steps one chain at a time.",
                expected=f"codes of shape ({target.space.num_sites},)",
                found=f"shape {tuple(checked.shape)}",
                hint="jax.vmap(kernel.init, in_axes=(None, 0))(target, codes) for several chains",
            )
        self.check_settings(target)
        self.check_needs(target)
        return checked

    def check_settings(self, target: Target) -> None:
        """Raise KernelError where this kernel cannot sample this target."""
        self.single("step_size")

    def check_start(self, target: Target, codes: Any) -> None:
        """Raise KernelError where chains must not begin here. codes: (chains, d); None: random states."""

    def check_needs(self, target: Target) -> None:
        """Raise KernelError where the target lacks what this kernel declares to need."""
        missing = self.needs.missing(target)
        if missing:
            name = type(self).__name__
            raise KernelError(f"{name} cannot sample this target.", expected=missing, found=f"{target!r} without it")

    def single(self, name: str) -> None:
        """A stack of kernels is for vmap; stepping it as one is a mistake."""
        value: Any = getattr(self, name, None)
        if np.ndim(value):
            raise KernelError(
                f"`{name}` is an array: this is a stack of kernels.",
                expected="one number",
                found=f"shape {value.shape}",
                hint="jax.vmap(lambda eps: saltus.NCG(eps).step(key, target, x))(step_sizes) steps one kernel for each",
            )

    def fits(self, target: Target, name: str) -> None:
        """A setting that may be one number, one per site, or one per entry of s."""
        shape, space = getattr(self, name).shape, target.space
        if shape not in ((), (space.num_sites,), (space.size,), space.shape):
            raise KernelError(
                f"`{name}` does not fit {space}.", expected=f"a number, or shape ({space.num_sites},)", found=f"shape {shape}"
            )


def drawn(proposal: Any, key: jax.Array) -> tuple[jax.Array, Any]:
    """(codes, the proposal they were drawn from, with the path it took)."""
    return proposal.draw(key) if hasattr(proposal, "draw") else (proposal.sample(key), proposal)


def begin(kernel: Any, target: Target, codes: jax.Array, key: jax.Array) -> Any:
    """`kernel.init`, with a key where it takes one.

    kernel, target: as for a run. codes: (d,) of the first state. key: a JAX key, for kernels whose state is random.
    """
    return kernel.init(target, codes, key=key) if accepts(type(kernel).init, "key") else kernel.init(target, codes)
