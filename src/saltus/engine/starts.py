"""Where chains begin: at states a person gave, at the target's safe start, or at random states with positive probability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..errors import SpaceError, TargetError
from ..spaces import Space
from ..target import Target
from .loop import random_codes
from .recording import label_dtype

_ATTEMPTS = 100


def initial_codes(target: Target, initial: Any, num_chains: int) -> np.ndarray | None:
    """(chains, d) codes of the given states, or None where they are to be drawn."""
    space = target.space
    if initial is None and target.initial is None:
        return None
    try:
        codes = np.asarray(target.initial) if initial is None else space.encode(initial, "initial")
    except (TypeError, ValueError) as cause:
        if isinstance(cause, SpaceError):
            raise
        raise SpaceError(f"`initial` is not a state of {space}.", expected="an array of states", found=repr(initial)) from cause
    if codes.ndim == 1:
        codes = np.broadcast_to(codes, (num_chains, space.num_sites))
    if codes.shape != (num_chains, space.num_sites):
        raise SpaceError(
            "`initial` does not fit the chains.",
            expected=f"one state, shape {space.shape}, or one for each of {num_chains} chains, shape {(num_chains, *space.shape)}",
            found=f"{codes.shape[0]} states" if codes.ndim == 2 else f"shape {np.shape(initial)}",
            hint=f"num_chains={codes.shape[0]} starts one chain at each" if codes.ndim == 2 else "",
        )
    return np.array(codes, np.int32)


def repeated_codes(target: Target, initial: Any, num: int) -> np.ndarray | None:
    """(num, d) codes of the given states, over and over, for work that has its own chains; None where they are to be drawn."""
    if initial is None and target.initial is None:
        return None
    codes = np.asarray(target.initial) if initial is None else target.space.encode(initial, "initial")
    if not codes.size:
        raise SpaceError("`initial` holds no state.", expected="one state or several", found=f"shape {np.shape(initial)}")
    return np.resize(codes, (num, target.space.num_sites)).astype(np.int32)


def start_codes(target: Target, seed: int, initial: Any, num: int) -> np.ndarray:
    """(num, d) codes of the given states, over and over, or of random ones that are possible."""
    codes, value = repeated_codes(target, initial, num), jax.jit(jax.vmap(target.value))
    if codes is not None:
        check_given(np.asarray(value(codes)))
    else:
        numbers = np.arange(num, dtype=np.int32)
        draw = lambda attempt: random_codes(target.space, seed, numbers, attempt)  # noqa: E731
        codes = possible_codes(draw, lambda c: np.asarray(value(c)))[0]
    return np.asarray(codes, np.int32)


def read_states(space: Space, states: Any, name: str) -> np.ndarray:
    """(m, d) codes in the smallest integer type, of at least one state; SpaceError where they are not of this space."""
    try:
        given = np.asarray(states)
    except (TypeError, ValueError) as cause:
        raise SpaceError(f"`{name}` is not an array.", expected=f"states of {space}", found=type(states).__name__) from cause
    if given.size == 0:
        raise SpaceError(f"`{name}` is empty.", expected=f"states of {space}, one a row", found=f"shape {given.shape}")
    codes = space.encode(given, name)
    if codes.ndim != 2:
        raise SpaceError(
            f"`{name}` is not a table of states.",
            expected=f"one state a row, shape (number of states, {', '.join(map(str, space.shape))})",
            found=f"shape {given.shape}",
            hint=f"{name}[None] makes a table of one state" if codes.ndim == 1 else f"{name}.reshape(-1, ...) makes rows of it",
        )
    return codes.astype(label_dtype(space.num_values))


def start_chains(
    begin: Callable[[Any], Any], log_prob_of: Callable[[Any], np.ndarray], target: Target, codes: Any, chains: np.ndarray, seed: int
) -> Any:
    """What `begin` makes of the given codes, or of the first random ones whose log_prob is finite, chain by chain."""
    if codes is not None:
        extra = np.repeat(codes[-1:], len(chains) - len(codes), axis=0)
        carry = begin(np.concatenate([codes, extra]))
        check_given(log_prob_of(carry)[: len(codes)])
        return carry
    carries: list[Any] = []

    def log_prob(drawn: np.ndarray) -> np.ndarray:
        carries[:] = [begin(drawn)]
        return log_prob_of(carries[0])

    possible_codes(lambda attempt: random_codes(target.space, seed, chains, attempt), log_prob)
    return carries[0]


def possible_codes(
    draw: Callable[[int], np.ndarray], log_prob: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(codes, f): chain by chain the first of a hundred draws whose f is finite."""
    codes = draw(0)
    for attempt in range(1, _ATTEMPTS + 1):
        f = log_prob(codes)
        bad = ~np.isfinite(f)
        if not bad.any():
            return codes, f
        codes = np.where(bad[:, None], draw(attempt), codes)
    raise _no_start(f)


def check_given(f: np.ndarray) -> None:
    """SpaceError where a given state is no possible start."""
    bad = np.flatnonzero(~np.isfinite(f))
    if len(bad):
        shown = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
        raise SpaceError(
            "`initial` is not a possible start.",
            expected="a finite log_prob at every chain's first state",
            found=f"log_prob = {f[bad[0]]} at chain {shown}: {len(bad)} of {len(f)} chains",
            hint="-inf says that the state is impossible, NaN that log_prob is not defined there",
        )


def _no_start(f: np.ndarray) -> TargetError:
    undefined = np.isnan(f).sum()
    if undefined == len(f):
        return TargetError(
            "log_prob is NaN everywhere.",
            expected="a finite number at some states",
            found=f"NaN for all of {len(f)} chains at {_ATTEMPTS} random states each",
            hint="look for 0/0, log of a negative number or missing data: evaluate log_prob at one state by hand",
        )
    return TargetError(
        "No random state is a possible start.",
        expected=f"a finite log_prob within {_ATTEMPTS} random states for every chain",
        found=f"-inf, inf or NaN for {(~np.isfinite(f)).sum()} of {len(f)} chains",
        hint="pass initial=, a state that is possible, or build the target with Target(..., initial=codes)",
    )
