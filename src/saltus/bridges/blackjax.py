"""BlackJAX: a kernel of saltus as one of its sampling algorithms."""

from __future__ import annotations

from typing import Any

import jax

from ..engine.samplers import check_kernel_fits
from ..errors import KernelError
from ..kernels import Kernel, begin
from ..target import Target
from .needed import needed

__all__ = ["as_sampling_algorithm"]


def as_sampling_algorithm(kernel: Kernel, target: Target) -> Any:
    """A `blackjax.base.SamplingAlgorithm` whose state is that of the kernel, for BlackJAX's own loops.

    kernel: frozen, such as `saltus.NCG(0.5)` or `saltus.tune(target, "ncg").kernel`. target: a `saltus.Target`.
    A position is the codes of one chain, `target.space.encode(s)`; `kernel.draw(state)` gives codes back, and
    `target.space.embed(codes)` or `.show(codes)` the state. `info` is a `saltus.Info`.
    Raises KernelError where the kernel cannot step the target.

        algorithm = as_sampling_algorithm(saltus.NCG(0.5), target)
        state, (codes, info) = blackjax.util.run_inference_algorithm(
            rng_key=key, inference_algorithm=algorithm, num_steps=1000, initial_position=codes,
            transform=lambda state, info: (state.codes, info))
    """
    base = needed("blackjax.base", "saltus.bridges.blackjax")
    if not isinstance(kernel, Kernel):
        raise KernelError("`kernel` is not a kernel.", expected="such as saltus.NCG(0.5)", found=repr(kernel))
    if not isinstance(target, Target):
        raise KernelError("`target` is not a target.", expected="saltus.Target(log_prob, space)", found=repr(target))
    check_kernel_fits(kernel, target)

    def init(position: jax.Array, rng_key: Any = None) -> Any:
        codes = target.space.check_codes(position).astype(target.space.code_dtype)
        return begin(kernel, target, codes, jax.random.key(0) if rng_key is None else rng_key)

    def step(rng_key: Any, state: Any) -> tuple[Any, Any]:
        return kernel.step(_new_style(rng_key), target, state)

    return base.SamplingAlgorithm(init, step)


def _new_style(key: jax.Array) -> jax.Array:
    """BlackJAX passes on whatever keys it is given, those of two words too."""
    return key if jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)
