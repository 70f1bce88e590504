"""`python -m paper NAME`: words in, exit codes out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import saltus

from .job import make_page, reproduce

COMPLETE, BAD_INPUT, INCOMPLETE = 0, 2, 3
_ABOUT = """\
Run the paper's experiments again, and judge its claims.

Every sampler is held against exact truth; a page says for each claim what was
measured and whether it holds. Interrupted, the same command goes on."""
_BELOW = """\
experiments
  ordinal      seven samplers on the mixtures in 20 dimensions
  regression   five samplers on the sparse regression; and what exact
               local models, saltus.tune and auto add
  third-order  PAVG and AVG where PAVG's quadratic model is wrong
  figure1      where GWG, NCG and PAVG propose to go
  proposals    the same of GWG, ordinal GWG and uniform MH
  targets2d    both ordinal mixtures in two dimensions

  table1       six samplers learn an Ising lattice; and retuned ones
  stepsize-sensitivity
               the same, with step sizes that are too small or too large
  lattice      true and learned couplings, and samples
  table2       five samplers learn in front of a convolutional network
  buffers      what their chains look like when training ends

  sampling     ordinal to targets2d
  training     table1 to buffers
  all          all there are

  page         draw the figures and write the page again, measure nothing

  Figures need: pip install 'saltus[plots]', training 'saltus[ebm]'

examples
  python -m paper ordinal
  python -m paper sampling --seeds 5 --out elsewhere
  python -m paper training --workers 2
  python -m paper page --out results

exit codes
  0    complete, whatever the verdicts
  2    bad input
  3    interrupted: the same command goes on
"""


def _words(text: str) -> tuple[str, ...]:
    """a,b or a, b."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in _words(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a list of whole numbers.") from None


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m paper", description=_ABOUT, epilog=_BELOW, formatter_class=raw)
    add = parser.add_argument
    add("name", metavar="NAME", help="an experiment, or sampling, training, all; or page. They are listed below.")
    add(
        "--scale",
        default="quick",
        metavar="quick|full",
        help="quick: minutes on two cores. full: the paper's lengths, a day or more",
    )
    add("--seeds", type=int, metavar="N", help="repetitions; 1 at quick scale, at full 5 (training: 3). More may be added later")
    cores = os.cpu_count() or 1
    add("--workers", type=int, default=cores, metavar="N", help="processes for training experiments; as many as cores unless given")
    add("--samplers", type=_words, metavar="NAME,...", help="these samplers only")
    add("--k", type=_numbers, metavar="N,...", help="Table 1, 2: these columns; at quick scale 1,5 and 5,20")
    add("--dask", metavar="ADDRESS", help="share training out on the cluster of this dask scheduler")
    results = Path("saltus-results")
    add("-o", "--out", type=Path, default=results, metavar="FOLDER", help="what is finished there is not run again (%(default)s)")
    add("--no-progress", action="store_true", help="show no progress")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Every error is a few lines on stderr."""
    try:
        asked = _parser().parse_args(words)
    except SystemExit as told:  # help, or words that make no sense: argparse has said so
        return int(told.code or 0)
    say = (lambda text: None) if asked.no_progress else _say
    try:
        page = _run(asked, say)
    except saltus.SaltusError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"interrupted: what is finished is kept in {asked.out}, and the same command goes on from there", flush=True)
        return INCOMPLETE
    print(f"written to {page}", f"  as text    {page.with_suffix('.md')}", f"  figures    {page.parent / 'figures'}", sep="\n")
    return COMPLETE


def _run(asked: argparse.Namespace, say) -> Path:
    if asked.name == "page":
        return make_page(asked.out, say)
    return reproduce(
        asked.name,
        scale=asked.scale,
        out=asked.out,
        seeds=asked.seeds,
        workers=asked.workers,
        samplers=asked.samplers,
        columns=asked.k,
        dask=asked.dask,
        say=say,
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
