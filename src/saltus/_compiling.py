"""`program`: `jax.jit`, with less to compile of what runs only once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from ._record import is_concrete

# XLA:CPU's older code generator has compiled in half the time, but its steps take up to two and a half times as long.
_IN_A_HURRY = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}


@functools.cache
def _options() -> dict[str, Any] | None:
    """How to compile what runs once; None where there is no such choice."""
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: 0, compiler_options=_IN_A_HURRY).lower().compile()
    except Exception:  # a later XLA, that has lost an option
        return None
    return _IN_A_HURRY


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
        return jax.jit(self._fun, compiler_options=_options() if self._once else None, **self._jit_options)

    def __call__(self, *args: Any) -> Any:
        return self.jitted(*args) if is_concrete(args) else self._fun(*args)
