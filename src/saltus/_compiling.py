"""`program`: `jax.jit`, with less to compile of what runs only once."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax

from ._record import is_concrete

# XLA:CPU's older code generator has compiled in half the time, but its steps take up to two and a half times as long.
_IN_A_HURRY = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}


_MOST_FUNCTIONS = 8  # log-probabilities whose programs are kept


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
    """A decorator like `jax.jit`. Inside another jit it simply calls the function: only the outermost jit chooses how to compile.

    once: it is called about once a process, and would take longer to optimise than to run.
    JAX is asked for its backend when the function is first called, not when it is defined: importing saltus starts no backend.
    """

    def decorate(fun: Callable) -> Any:
        return _Program(fun, once, jit_options)

    return decorate


class _Program:
    """One jit for every log-probability among the arguments, of the last few of them.

    JAX keeps what it has compiled, and with it the functions it was compiled for, as long as the jitted function lives. A jit
    of its own for each log-probability can be dropped, and its programs with it, when others have come after it.
    """

    def __init__(self, fun: Callable, once: bool, jit_options: dict[str, Any]):
        self._fun, self._once, self._jit_options = fun, once, jit_options
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._built: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()  # {jit: executables}
        functools.update_wrapper(self, fun)

    @property
    def jitted(self) -> Any:
        """The one for arguments without a log-probability."""
        return self._for(())

    def forget(self) -> None:
        """Compile anew from now on, for whoever has changed a method that was traced."""
        self._kept.clear()

    def _cache_size(self) -> int:
        """Programs that are kept."""
        return sum(jitted._cache_size() for jitted in self._kept.values())

    def _for(self, owners: tuple) -> Any:
        """owners: functions, the same of which share their programs; while they are kept, no other has their id."""
        jitted = self._kept.pop(owners, None)
        if jitted is None:
            own = functools.wraps(self._fun)(lambda *args: self._fun(*args))  # JAX's caches are by function, and die with it
            jitted = jax.jit(own, compiler_options=_options() if self._once else None, **self._jit_options)
        self._kept[owners] = jitted
        while len(self._kept) > _MOST_FUNCTIONS:
            self._kept.popitem(last=False)
        return jitted

    def __call__(self, *args: Any) -> Any:
        if not is_concrete(args):
            return self._fun(*args)
        return self._for(_owners(args))(*args)

    def traced(self, *args: Any) -> Any:
        """The jaxpr for arguments like these; a call with them does not trace again."""
        return self._for(_owners(args)).trace(*args).jaxpr

    def executable(self, *args: Any) -> Any:
        """Compiled for arguments like these, once; called with all but the static ones, from any thread."""
        owners = _owners(args)
        jitted, (leaves, form) = self._for(owners), jax.tree.flatten(args)
        key = form, tuple(map(_kind_of, leaves))
        built = self._built.setdefault(jitted, {})
        if key not in built:
            built[key] = jitted.lower(*args).compile()
        return built[key]


def _kind_of(leaf: Any) -> Any:
    """What a program is compiled for: shape, dtype, and the device where an array is bound to one."""
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    return leaf.shape, leaf.dtype, leaf.sharding if getattr(leaf, "committed", False) else None


def _owners(args: tuple) -> tuple:
    """The log-probabilities among the arguments."""
    return tuple(f for arg in args if (f := getattr(arg, "log_prob", None)) is not None and callable(f))
