"""How far the chains move, which moves are accepted, and which sites never change."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_array, default_float, is_concrete, shown
from ..errors import SaltusError
from ..spaces import Space

_BLOCK = 2**20


def distance(space: Space, codes: Any, reference: Any) -> jax.Array:
    """The paper's scalar statistic t = |s - s_0|_1, in units of s: codes (..., sites), reference codes (sites,) -> (...,).

    space: that of the codes.
    """
    codes = checked_codes(space, codes, "codes", "(..., sites)", least_axes=1)
    reference = checked_codes(space, reference, "reference", "(sites,)", least_axes=1)
    if reference.ndim != 1:
        raise SaltusError("`reference` is not one state.", expected="codes of shape (sites,)", found=f"shape {reference.shape}")
    return _travelled(space, jnp.asarray(reference), jnp.asarray(codes))


def jump(space: Space, codes: Any) -> jax.Array:
    """Mean L1 distance between successive draws of a chain, in units of s: codes (..., draws, sites) -> (...,).

    space: that of the codes.
    """
    codes = checked_codes(space, codes, "codes", "(..., draws, sites)", least_axes=2)
    if codes.shape[-2] < 2:
        found = f"shape {tuple(codes.shape)}"
        raise SaltusError("One draw makes no jump.", expected="codes of shape (..., draws, sites), draws >= 2", found=found)
    return jnp.mean(_travelled(space, jnp.asarray(codes[..., :-1, :]), jnp.asarray(codes[..., 1:, :])), axis=-1)


@functools.partial(jax.jit, static_argnums=0)
def _travelled(space: Space, a: jax.Array, b: jax.Array) -> jax.Array:
    """|s_b - s_a|_1, piece by piece."""
    each = [_travelled_within(piece.space, a[..., piece.sites], b[..., piece.sites]) for piece in space.pieces]
    return sum(each[1:], each[0])


def _travelled_within(space: Space, a: jax.Array, b: jax.Array) -> jax.Array:
    """From a table of |v - v'|_1, which is made in float64: an offset of the grid costs no digits."""
    values = space.values.reshape(space.num_values, -1)
    table = np.abs(values[:, None] - values[None]).sum(-1)
    a, b = a.astype(jnp.int32), b.astype(jnp.int32)
    if np.all(table == table[0, 1] * (1 - np.eye(space.num_values))):  # two values, one-hot: count the sites, no gather
        return jnp.asarray(table[0, 1], default_float()) * jnp.sum(a != b, axis=-1).astype(default_float())
    return jnp.sum(jnp.asarray(table, default_float())[a, b], axis=-1)


def checked_codes(space: Space, codes: Any, name: str, shape: str, least_axes: int) -> Any:
    """Codes as they came, at least one state; SpaceError, from the space itself, where they are none of its own."""
    if not isinstance(space, Space):
        raise SaltusError("`space` is not a space.", expected="the space of the target, target.space", found=shown(space))
    codes = as_array(codes, name, SaltusError, f"codes of shape {shape}")
    if codes.ndim < least_axes or codes.size == 0:
        raise SaltusError(f"`{name}` cannot be used.", expected=f"codes of shape {shape}", found=f"shape {tuple(codes.shape)}")
    fits = codes.dtype.kind in "iu" and codes.shape[-1] == space.num_sites
    # The extremes first: check_codes makes an int32 copy, four times the size of stored draws.
    if not fits or (is_concrete(codes) and (codes.min() < 0 or codes.max() >= space.num_values)):
        space.check_codes(codes, name)
    return codes


class AcceptanceBin(NamedTuple):
    """Proposals that changed `label` sites, and the share of them that was accepted.

    proposals: how many they were.
    """

    label: str
    proposals: int
    share: float


def acceptance_by_changes(changed_sites: Any, accepted: Any) -> list[AcceptanceBin]:
    """Share of proposals accepted by the number of sites they change: 0, 1, 2, 3-4, 5-8, 9-16, ...; empty bins left out.

    `changed_sites` and `accepted` are those of `Info`, in arrays of any one shape; for `accepted` an acceptance rate will do.
    """
    changed, accepted = (np.asarray(as_array(x, name)) for x, name in ((changed_sites, "changed_sites"), (accepted, "accepted")))
    _check_proposals(changed, accepted)
    highest = np.array([0, *(2**i for i in range(int(changed.max()).bit_length() + 1))])
    lowest = np.array([0, *(highest[:-1] + 1)])
    of = np.searchsorted(highest, changed.ravel())
    proposals = np.bincount(of, minlength=len(highest))
    taken = np.bincount(of, weights=accepted.ravel().astype(np.float64), minlength=len(highest))
    labels = [str(low) if low == high else f"{low}-{high}" for low, high in zip(lowest, highest, strict=True)]
    return [AcceptanceBin(labels[i], int(proposals[i]), float(taken[i] / proposals[i])) for i in np.flatnonzero(proposals)]


def together(chains: list[list[AcceptanceBin]]) -> list[AcceptanceBin]:
    """The bins of several chains as those of all their proposals."""
    found: dict[str, list[AcceptanceBin]] = {}
    for bins in chains:
        for each in bins:
            found.setdefault(each.label, []).append(each)
    totals = {label: sum(b.proposals for b in bins) for label, bins in found.items()}
    shares = {label: sum(b.proposals * b.share for b in bins) / totals[label] for label, bins in found.items()}
    return [AcceptanceBin(n, totals[n], shares[n]) for n in sorted(found, key=lambda label: int(label.partition("-")[0]))]


def _check_proposals(changed: np.ndarray, accepted: np.ndarray) -> None:
    if changed.size == 0 or changed.shape != accepted.shape:
        raise SaltusError(
            "`changed_sites` and `accepted` do not describe the same proposals.",
            expected="two arrays of one shape, not empty",
            found=f"shapes {changed.shape} and {accepted.shape}",
        )
    if changed.dtype.kind not in "iu" or changed.min() < 0:
        found = f"{changed.dtype}, smallest {changed.min()}"
        raise SaltusError("`changed_sites` does not count sites.", expected="whole numbers >= 0", found=found)
    if accepted.dtype.kind not in "biuf" or not np.all((accepted >= 0) & (accepted <= 1)):
        found = f"{accepted.dtype} from {accepted.min()} to {accepted.max()}"
        raise SaltusError("`accepted` is not a share.", expected="True or False, or rates in [0, 1]", found=found)


def never_moving(codes: Any) -> np.ndarray:
    """(sites,), True where every draw of each chain equals the chain's first: codes (chains, draws, sites).

    Chains may differ from each other there. Shown states will do as well as codes. Reads one block of draws at a time, so
    anything that is sliced like an array (a memory map, a zarr array) is never held as a whole.
    """
    codes = codes if hasattr(codes, "shape") and hasattr(codes, "dtype") else as_array(codes, "codes")
    if len(codes.shape) != 3 or 0 in codes.shape:
        found = f"shape {tuple(codes.shape)}"
        raise SaltusError("`codes` cannot be used.", expected="shape (chains, draws, sites), none of them 0", found=found)
    chains, draws, sites = codes.shape
    block = max(1, _BLOCK // sites)
    still = np.ones(sites, bool)
    for chain in range(chains):
        first = np.asarray(codes[chain, 0])
        for start in range(0, draws, block):
            still &= (np.asarray(codes[chain, start : start + block]) == first).all(axis=0)
    return still


def label_distance(block: np.ndarray, origin: np.ndarray, numeric: bool) -> np.ndarray:
    """(...) |s - s_0|_1 of shown states (..., d); of categories, sites that differ."""
    if not numeric:
        return np.count_nonzero(block != origin, axis=-1)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.subtract(block, origin, dtype=np.result_type(block, np.float32))
        return np.abs(apart, out=apart).sum(axis=-1, dtype=np.float64)
