"""The internals of saltus that benchmarks measure, in one place. Everything else here uses the public API only.

A name is listed with why the public one will not do. Who moves an internal mends this file, and no benchmark.
"""

from saltus._fusion import total  # a sum as a product with ones: `choices` holds it against jnp.sum
from saltus._record import changed  # a point with other codes, stale on purpose: `profile` times parts of a step on their own
from saltus.bridges.alternating import draw  # the compiled loop of `saltus.mixed`: `calibration` counts how often it was compiled
from saltus.engine.arguments import read_settings
from saltus.engine.drive import steps_of_a_chunk  # how many steps a run makes at a time: slow loops are timed over as many
from saltus.engine.loop import (  # one step of all chains as a run has it; how often a run compiled it
    advance,
    each_chain,
    step_chains,
)
from saltus.engine.progress import Silent
from saltus.engine.samplers import first_setting  # where a sampler begins on a target: `step_cost` times each as it is there
from saltus.kernels import begin, samplers
from saltus.race.cost import SECONDS, seconds_of, work_of_step  # the cost of a step, computed
from saltus.race.entrants import find_entrants, simplest  # the samplers of a race: `race` runs all of them for long
from saltus.race.race import race  # saltus.sample tells who won; `race` needs the kernel and the table without the run
from saltus.race.trial_run import Trials  # a trial of the race, here of seconds in place of fractions of one
from saltus.structure import find  # the reading of a log_prob alone: `found` times it apart from what is then built
from saltus.targets.conv_ebm import _LAYERS as LAYERS  # shapes of the network's layers, written again with plain convolutions
from saltus.targets.conv_ebm import SIDE
from saltus.targets.sites import lattice  # the lattice's neighbours: `choices` holds them against jnp.roll
from saltus.tuning.trial import Chains
from saltus.tuning.tune import start_codes, tune_from  # tuning from burnt-in states, with more effort than saltus.tune

__all__ = [
    "LAYERS",
    "SECONDS",
    "SIDE",
    "Chains",
    "Silent",
    "Trials",
    "advance",
    "begin",
    "changed",
    "draw",
    "each_chain",
    "find",
    "find_entrants",
    "first_setting",
    "lattice",
    "race",
    "read_settings",
    "samplers",
    "seconds_of",
    "simplest",
    "start_codes",
    "step_chains",
    "steps_of_a_chunk",
    "total",
    "tune_from",
    "work_of_step",
]
