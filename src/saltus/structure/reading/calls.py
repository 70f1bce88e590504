"""Primitives that call another jaxpr."""

CALLS = {  # where the jaxpr is found, and whether its derivative is its own
    "jit": ("jaxpr", True),
    "pjit": ("jaxpr", True),
    "remat2": ("jaxpr", True),
    "checkpoint": ("jaxpr", True),
    "closed_call": ("call_jaxpr", True),
    "core_call": ("call_jaxpr", True),
    "custom_jvp_call": ("call_jaxpr", False),
    "custom_vjp_call": ("call_jaxpr", False),
    "custom_vjp_call_jaxpr": ("fun_jaxpr", False),
}
