"""`program`: `jax.jit` for what a run compiles, which on a CPU then takes less time to compile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from ._record import is_concrete

_OLDER_EMITTERS = {"xla_cpu_use_fusion_emitters": False}
_UNOPTIMISED = {"xla_backend_optimization_level": 0}  # of LLVM, from 0 to 3; at 2 some steps are a fifth slower


@functools.cache
def _options(once: bool) -> dict[str, Any] | None:
    """XLA:CPU's older code generator makes steps as fast in half the time; None where there is no such choice."""
    if jax.default_backend() != "cpu":
        return None
    chosen = _OLDER_EMITTERS | (_UNOPTIMISED if once else {})
    try:
        jax.jit(lambda: 0, compiler_options=chosen).lower().compile()
    except Exception:  # a later XLA, that has lost an option
        return None
    return chosen


def program(*, once: bool = False, **jit_options: Any) -> Callable[[Callable], Any]:
    """A decorator like `jax.jit`; of tracers it is the function itself, since only an outermost jit may choose how to compile.

    once: it is called about once a process, and would take longer to optimise than to run.
    JAX is asked for its backend when the function is first called, not when it is defined: importing saltus starts no backend.
    """

    def decorate(fun: Callable) -> Any:
        return _Program(fun, once, jit_options)

    return decorate


class _Program:
    def __init__(self, fun: Callable, once: bool, jit_options: dict[str, Any]):
        self._fun, self._once, self._jit_options = fun, once, jit_options
        functools.update_wrapper(self, fun)

    @functools.cached_property
    def jitted(self) -> Any:
        return jax.jit(self._fun, compiler_options=_options(self._once), **self._jit_options)

    def __call__(self, *args: Any) -> Any:
        return self.jitted(*args) if is_concrete(args) else self._fun(*args)
