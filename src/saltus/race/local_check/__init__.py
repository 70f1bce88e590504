r"""`saltus.check(target)`: can the local model, most often the gradient, be trusted here?

Every sampler but Gibbs and UniformMH is guided by D_i(v), the predicted change of f when site i takes value v.
They are exact with any D, and slow with a bad one. Here D is held against the true changes
f(s with s_i = v) - f(s), at random states and at states that a short run without gradients reaches.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..._record import as_size
from ...engine.arguments import read_flag, read_seed, read_target
from ...engine.starts import repeated_codes
from ...errors import RunError
from ...target import Target
from .advice import LocalCheck, judge
from .fit import LocalFit, Seen
from .looking import (
    choose_probes,
    choose_steps,
    evaluations_of_model,
    look,
    possible,
    random_states,
    usual_sizes,
    values_at,
)

__all__ = ["LocalCheck", "LocalFit", "check"]

_PURPOSE = 0xC4EC  # sets the keys apart from those of the phases of a run


def check(
    target: Target,
    seed: int = 0,
    initial: Any = None,
    num_states: int | None = None,
    num_moves: int | None = None,
    num_steps: int | None = None,
    small: bool = False,
) -> LocalCheck:
    """Predicted against true single-site changes of log_prob: can the gradient (or other local model) be trusted here?

    `trustworthy` is decided at typical states, on moves of one hop where values have an order and else on all. The
    model must be finite at every move looked at, rank moves with a correlation of at least 0.5, be 0 without reason at
    less than half of the sites, be off by more than 2 (log-probabilities are in nats) at less than half of the moves,
    and have an R-squared of at least 0: below it, one number for all moves would predict them better. Exact differences
    are trustworthy by construction; closed forms declared exact must be exact to rounding.

    Random states are uniform, drawn again up to 100 times while log_prob is not finite. Typical ones are where chains
    end that started there (or at `initial`, one state or several, or at the target's own) and made `num_steps`
    Metropolis steps of a single site: no gradient is used, so a bad one cannot spoil them.
    num_states: of each kind, 8. num_moves: of each state, 96, spread over sites and values. num_steps: 300.
    small: 3, 16 and 48 instead: at most 256 evaluations of log_prob, against 4096; but more where a possible state is
    hard to find, and where one local model alone takes as many (hessian_diag).

    seed: an integer; the same one looks at the same states.
    """
    target, rng = read_target(target), np.random.default_rng([read_seed(seed), _PURPOSE])
    sizes = usual_sizes(target, read_flag(small, "small"))
    for name, asked in (("num_states", num_states), ("num_moves", num_moves), ("num_steps", num_steps)):
        sizes[name] = sizes[name] if asked is None else as_size(asked, name, RunError)
    given = repeated_codes(target, initial, sizes["num_states"])
    codes, f, attempts = random_states(target, sizes["num_states"], rng)
    start = (codes, f) if given is None else (given, possible(values_at(target, given)))
    probes, steps = choose_probes(target.space, sizes, rng), choose_steps(target.space, sizes, rng)
    seen = jax.tree.map(np.asarray, look(target, codes, start, steps, probes))
    evaluations = attempts * len(f) + steps[0].size + seen["after"].size + 2 * len(f) * evaluations_of_model(target)
    return judge(target, Seen(target, f, probes[0], seen), seen["history"], evaluations)
