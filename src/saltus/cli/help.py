"""What stands below the options in the help of each command."""

import inspect
import re
import textwrap
from typing import Any

from ..kernels import samplers
from .sampler import needed_by, option_name, options_of

CODES = """\
[bold]Exit codes[/]
  0    complete
  1    failed unexpectedly; --debug, anywhere on the line, shows the traceback
  2    bad input, or a run that cannot go on: the message says why
  3    ended early (--time-limit, Ctrl-C); the draws so far are kept
  130  interrupted before there was a draw to keep
"""
APP = f"""\
[bold]Example[/]
  saltus demo shows what it does. For a model of your own, write model.py:

    import jax.numpy as jnp, saltus
    def log_prob(s):  # spins, -1 or +1, that like their neighbours
        return 0.8 * jnp.sum(s[1:] * s[:-1])
    target = saltus.Target(log_prob, saltus.Spin(50))

  Draw from it, and look:

    saltus sample model.py:target -o run.nc
    saltus summary run.nc

{CODES}"""


def _list_of_samplers() -> str:
    """A line for each with its options, those it can do without in brackets; below it what it is, as its class says."""
    lines = ["  auto         a race of all that apply; the fastest is used"]
    for name, kind in samplers().items():
        needed = needed_by(kind)
        options = [option_name(f) if f in needed else f"\\[{option_name(f)}]" for f in options_of(kind)]
        lines.append(f"  {name:<12} {' '.join(options)}".rstrip())
        lines += textwrap.wrap(_about(kind), 78, initial_indent=" " * 15, subsequent_indent=" " * 15)
    return "\n".join(lines)


def _about(kind: Any) -> str:
    """The first sentence of a class, without references."""
    first = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    return re.sub(r" \([^()]*\d{4}[^()]*\)", "", first).replace("`", "").replace("[", "\\[")


SAMPLE = f"""\
[bold]Samplers[/] and their options
{_list_of_samplers()}

[bold]Examples[/]
  saltus sample model.py:target -o run.nc
  saltus sample model.py:target --sampler ncg --step-size 0.5 -o run.nc
  saltus sample model.py:target --sampler ncg,my_kernel.py:MyKernel -o run.nc

  An hour at most, streamed to disk, and then on from there:

  saltus sample model.py:target --sampler gibbs --scan systematic \\
      --num-draws 100000 --time-limit 3600 --checkpoint run.ckpt -o run.zarr
  saltus resume run.ckpt model.py:target

{CODES}"""
RESUME = f"""\
[bold]Examples[/]
  saltus resume run.ckpt model.py:target -o run.nc
  saltus resume run.ckpt model.py:target --num-draws 5000 --overwrite -o run.nc

{CODES}"""
SUMMARY = """\
[bold]Examples[/]
  saltus summary run.nc
  saltus summary run.zarr --sites 50
"""
EXPLORE = """\
[bold]Examples[/]
  saltus explore
  saltus explore --no-browser -o explorer.html
"""
REPORT = """\
[bold]Examples[/]
  saltus report run.nc -o report.html
  saltus report run.zarr --overwrite -o report.html
"""
SELECT = f"""\
[bold]Examples[/]
  saltus select crime.csv --response y --out crime
  saltus select genes.csv --response y --prior hyper-g/n --expected-size 10 --out genes

It writes columns.csv, models.csv, size.csv, summary.txt, selection.png and index.html, a page that needs no other file.

{CODES}"""
CHECK = """\
[bold]Examples[/]
  saltus check model.py:target
  saltus check model.py:target --initial start.npy --small

The exit code is 0 whatever the verdict, 2 where the input is bad.
"""
TUNE = """\
[bold]Examples[/]
  saltus tune model.py:target --sampler ncg
  saltus tune model.py:target --sampler pavg --plot curve.png

The last line printed is the saltus sample command that uses what was found.
"""
DEMO = """\
[bold]Examples[/]
  saltus demo
  saltus demo -o elsewhere --seed 1

It leaves run.nc, marginals.png and marginals.svg in the folder.
"""
