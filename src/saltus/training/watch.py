"""Has training gone wrong? Looked at after every update, on the device, so that nothing is trained through."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .._record import default_float, record
from .loss import Energies

HEALTHY, UNDEFINED, FROZEN, APART, BLOWN = range(5)
_FROZEN_RATE = 1e-3  # an acceptance below this counts as none
_APART = 10.0  # standard deviations of f within the data
_PATIENCE = 50  # updates
_BLOWN = 100.0  # times the logarithm of the number of states, and the spread of f at first


@record
class Watch:
    """Counts of consecutive updates in which chains stood still, or in which data and samples were far apart.

    largest: |f|, less what it was at the first update, beyond which no healthy model is: f says how much likelier one state is
    than another, and all states together have log(number of states) to share.
    """

    verdict: jax.Array
    still: jax.Array
    apart: jax.Array
    first: jax.Array  # energy of the data at the first update; NaN before
    largest: jax.Array

    def look(self, finite: jax.Array, energies: Energies, acceptance: jax.Array, jump: jax.Array, patience: jax.Array) -> Watch:
        """The next count. patience: updates for which a gap may last, while chains that have just begun catch up."""
        begins = jnp.isnan(self.first)
        first = jnp.where(begins, energies.data, self.first).astype(self.first.dtype)
        largest = jnp.where(begins, self.largest + _BLOWN * energies.spread, self.largest).astype(self.largest.dtype)
        still = jnp.where((acceptance < _FROZEN_RATE) | (jump == 0), self.still + 1, 0)
        gap = jnp.abs(energies.data - energies.model)
        apart = jnp.where(gap > _APART * energies.spread + 1, self.apart + 1, 0)
        beyond = jnp.maximum(jnp.abs(energies.data - first), jnp.abs(energies.model - first)) > largest
        verdict = jnp.where(apart >= _PATIENCE + patience, APART, HEALTHY)
        verdict = jnp.where(still >= _PATIENCE, FROZEN, verdict)
        verdict = jnp.where(beyond & ~begins, BLOWN, verdict)
        verdict = jnp.where(finite, verdict, UNDEFINED).astype(jnp.int32)
        return Watch(jnp.where(self.verdict == HEALTHY, verdict, self.verdict), still, apart, first, largest)


def watch(num_values_per_site: np.ndarray) -> Watch:
    """num_values_per_site: of the states that data are."""
    zero, states = jnp.zeros((), jnp.int32), float(np.sum(np.log(num_values_per_site)))
    return Watch(zero, zero, zero, jnp.asarray(np.nan, default_float()), jnp.asarray(_BLOWN * states, default_float()))


def describe(verdict: int, update: int, history: dict[str, np.ndarray]) -> str:
    """What went wrong, in a sentence with its numbers and a way out; "" where nothing did."""
    if verdict == HEALTHY:
        return ""
    last = {name: float(series[-1]) for name, series in history.items()}
    energies = f"energy {last['data_energy']:.4g} of the data, {last['model_energy']:.4g} of the samples"
    if verdict == UNDEFINED:
        return (
            f"update {update}: the loss or its gradient is not finite ({energies}); this update was not made. "
            "Look at f for 0/0 and log of 0, and try a smaller learning rate."
        )
    rate = f"acceptance {last['acceptance']:.2g}, jump {last['jump']:.2g}"
    if verdict == BLOWN:
        return (
            f"update {update}: f has blown up ({energies}): differences of f between states are far beyond the logarithm of their "
            "number, so that a single state has all the probability. Try a smaller learning rate, or optax.clip_by_global_norm "
            "before the optimiser, or penalty=saltus.training.Energy(0.01)."
        )
    if verdict == FROZEN:
        step = "larger" if last["acceptance"] > 0.5 else "smaller"  # accepted: nothing but staying was proposed
        return (
            f"update {update}: the chains have stood still for {_PATIENCE} updates ({rate}; {energies}). The samples no longer "
            f"follow the model: more steps per update (num_steps), a {step} step size or retune=True, a smaller learning rate."
        )
    return (
        f"update {update}: samples and data have drifted apart ({energies}; {rate}). The chains cannot follow the model: "
        "more steps per update (num_steps), retune=True, another sampler, or a smaller learning rate."
    )
