"""What a kernel supplies of the protocol, and what is put around one that is `step` and little more."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..kernels import Informed, Kernel, begin
from ..kernels.declarations import accepts
from ..target import Target


@jax.tree_util.register_pytree_node_class
class Bare:
    """A kernel with the rest of the protocol around it: a tree of its numbers, or of none where it is no data."""

    def __init__(self, kernel: Any, data: bool | None = None):
        self.kernel, self.data = kernel, is_data(kernel) if data is None else data

    def tree_flatten(self) -> tuple[tuple, Any]:
        return ((self.kernel,), None) if self.data else ((), _Itself(self.kernel))

    @classmethod
    def tree_unflatten(cls, itself: Any, children: tuple) -> Bare:
        return cls(children[0], data=True) if itself is None else cls(itself.kernel, data=False)

    def step(self, key: jax.Array, target: Target, x: Any) -> tuple[Any, Any]:
        return self.kernel.step(key, target, x)

    def init(self, target: Target, codes: jax.Array, key: Any = None) -> Any:
        if not hasattr(self.kernel, "init"):
            return target.point(codes)
        return begin(self.kernel, target, codes, key) if key is not None else self.kernel.init(target, codes)

    def refresh(self, target: Target, state: Any) -> Any:
        own = getattr(self.kernel, "refresh", None)
        return self.init(target, self.draw(state)) if own is None else own(target, state)

    def draw(self, state: Any) -> jax.Array:
        own = getattr(self.kernel, "draw", None)
        return state.codes if own is None else own(state)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["kernel"], name)

    def __repr__(self) -> str:
        return repr(self.kernel)


class _Itself:
    """A kernel that is compared by identity, whatever its own equality says."""

    def __init__(self, kernel: Any):
        self.kernel = kernel

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Itself) and self.kernel is other.kernel

    def __hash__(self) -> int:
        return id(self.kernel)


def protocol(kernel: Any) -> Any:
    """The kernel, or `Bare` around it where it lacks part of the protocol or is no tree of numbers."""
    return kernel if _whole(kernel) and is_data(kernel) else Bare(kernel)


def given(kernel: Any) -> Any:
    """The kernel as the caller gave it."""
    return kernel.kernel if isinstance(kernel, Bare) else kernel


def is_data(kernel: Any) -> bool:
    """Whether a kernel is a tree of arrays, which a compiled function takes as an argument; else it is part of the function."""
    return all(isinstance(leaf, (jax.Array, np.ndarray, np.generic, float, int)) for leaf in jax.tree.leaves(kernel))


def offers(kernel: Any, name: str) -> bool:
    """Whether a kernel supplies this part of the protocol itself."""
    if isinstance(kernel, Bare):
        return _whole(kernel.kernel) and offers(kernel.kernel, name)
    if isinstance(kernel, Informed):
        return offers(kernel.kernel, name)
    method = getattr(type(kernel), name, None)
    return method is not None and method is not getattr(Kernel, name, None)


def takes_key(kernel: Any) -> bool:
    """Whether a chain's state holds something that `init` draws."""
    init = getattr(type(given(kernel)), "init", None)
    return init is not None and init is not Kernel.init and accepts(init, "key")


def _whole(kernel: Any) -> bool:
    return all(hasattr(kernel, name) for name in ("init", "refresh", "draw"))
