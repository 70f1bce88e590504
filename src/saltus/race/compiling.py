"""How long JAX has been compiling in this process: a race reports it apart from what it measured."""

from __future__ import annotations

from typing import Any

import jax

_EVENTS = ("/jax/core/compile/backend_compile_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration")
_total = 0.0


def seconds_compiling() -> float:
    """Since this module was imported."""
    return _total


def _add(event: str, duration_secs: float, **_: Any) -> None:
    global _total
    if event in _EVENTS:
        _total += duration_secs


jax.monitoring.register_event_duration_secs_listener(_add)
