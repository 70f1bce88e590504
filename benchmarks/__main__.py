"""`python -m benchmarks [GROUP...]`: words in, exit codes out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import saltus

from .speed.groups import bench

COMPLETE, BAD_INPUT, MISSED = 0, 2, 4
_ABOUT = """\
How fast is it, on this machine?

Ratios measured in one run, each with its goal: against the bare gradient,
textbook code and other packages, and as problems grow."""
_BELOW = """\
groups
  steps        a step of each sampler / the bare gradient, 10x10 Ising
  network      the same on a network of 284 385 parameters; its gradient
  textbook     NCG as one would first write it in JAX / ours
  regression   a posterior by Cholesky factors / ours; accuracy; no hang
  thrml        two-colour sweeps of thrml / ours
  peers        effective draws per second: ours / thrml, numpyro, PyMC
  compile      seconds of compilation
  import       import saltus / import jax
  chains       1 to 10 000 chains
  lattices     10^4 to 10^6 sites of a lattice
  graphs       the same, as a list of edges
  low-rank     PAVG with a preconditioner of rank 32, to 10^6 sites
  values       50 to 5000 values per site
  differences  exact differences: brute force / closed form
  devices      two devices on two cores / one on one
  cores        the same run on all cores / on one
  plain        a function typed by hand / targets.ising, thrml; a dense glass;
               a sum of local terms
  user-network an update of pcd with an equinox network / its gradients
  retuning     a training whose settings follow the model / one at fixed ones
  profile      where the time of a step goes (no goals)
  choices      why the code is written as it is (no goals)

  thrml, peers, plain, user-network and retuning need: pip install 'saltus[bench]'

examples
  python -m benchmarks steps textbook
  python -m benchmarks -o results

exit codes
  0    every goal is met
  2    bad input
  4    some goal is missed
"""


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether all goals are met."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks", description=_ABOUT, epilog=_BELOW, formatter_class=raw)
    parser.add_argument("groups", metavar="GROUP", nargs="*", help="which figures; all unless given. They are listed below.")
    kept = "a folder that keeps what was measured; a group that is there is not measured again"
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help=kept)
    parser.add_argument("--again", action="store_true", help="measure groups again that are in the folder")
    try:
        asked = parser.parse_args(words)
    except SystemExit as told:  # help, or words that make no sense: argparse has said so
        return int(told.code or 0)
    try:
        passed = bench(asked.groups, asked.output, again=asked.again, tell=_tell)
    except saltus.SaltusError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return BAD_INPUT
    return COMPLETE if passed else MISSED


def _tell(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
