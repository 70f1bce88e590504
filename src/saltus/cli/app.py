"""The commands, their options and their help."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, Token, UnusedCliTokensError

import saltus

from ..errors import RunError, SaltusError
from . import COMPLETE

CODES = """\
[bold]Exit codes[/]
  0    complete
  1    failed unexpectedly; --debug, anywhere on the line, shows the traceback
  2    bad input, or a run that cannot go on: the message says why
  3    ended early (--time-limit, Ctrl-C); the draws so far are kept
  130  interrupted before there was a draw to keep
"""
APP_EPILOGUE = f"""\
[bold]Example[/]
  Write the model, model.py:

    import jax.numpy as jnp, saltus
    def log_prob(s):  # spins, -1 or +1, that like their neighbours
        return 0.8 * jnp.sum(s[1:] * s[:-1])
    target = saltus.Target(log_prob, saltus.Spin(50))

  Draw from it, and look:

    saltus sample model.py:target --sampler ncg --step-size 0.5 -o run.nc
    saltus summary run.nc

{CODES}"""
SAMPLE_EPILOGUE = f"""\
[bold]Samplers[/] and their options
  ncg          --step-size               all sites at once, by the gradient
  avg          --step-size               the same, by an auxiliary variable
  pavg         --step-size               the same, for correlated sites
               --preconditioner \\[--scale]
  gwg          \\[--radius]                one site a step, by the gradient
  gibbs        \\[--scan]                  exact conditionals, no gradient
  block-gibbs  \\[--shift]                 quadratic targets, always accepted
  uniform-mh   --radius                  a baseline that knows nothing

[bold]Examples[/]
  saltus sample model.py:target --sampler ncg --step-size 0.5 -o run.nc

  An hour at most, streamed to disk, and then on from there:

  saltus sample model.py:target --sampler gibbs --scan systematic \\
      --num-draws 100000 --time-limit 3600 --checkpoint run.ckpt -o run.zarr
  saltus resume run.ckpt model.py:target

{CODES}"""
RESUME_EPILOGUE = f"""\
[bold]Examples[/]
  saltus resume run.ckpt model.py:target -o run.nc
  saltus resume run.ckpt model.py:target --num-draws 5000 --overwrite -o run.nc

{CODES}"""
SUMMARY_EPILOGUE = """\
[bold]Examples[/]
  saltus summary run.nc
  saltus summary run.zarr --sites 50
"""

SAMPLER = Group("Sampler", sort_key=1)
RUN = Group("Run", sort_key=2)
DISK = Group("Disk", sort_key=3)
OTHER = Group("Other", sort_key=4)


def option(group: Group, text: str, metavar: str | None = None, **settings: Any) -> Parameter:
    return Parameter(group=group, help=text, metavar=metavar, negative="", **settings)


def whole(kind: Any, tokens: Sequence[Token]) -> int:
    """1000 or 1e3. (The parser's own reading rounds 1.5 to 2.)"""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        with contextlib.suppress(ValueError):
            if float(text).is_integer():
                return int(float(text))
    raise ValueError(f"{text} is not a whole number.")


TargetName = Annotated[
    str,
    Parameter(
        help="file.py:target or package.module:target: the name of a saltus.Target there, or of a function without arguments "
        "that returns one."
    ),
]
TimeLimit = Annotated[float | None, option(RUN, "End after so many seconds, with the draws so far.", "SECONDS")]
CheckpointEvery = Annotated[float, option(DISK, "How often the checkpoint is brought up to date.", "SECONDS")]
NoProgress = Annotated[bool, option(OTHER, "Show no progress.", show_default=False)]


def versions() -> str:
    return f"saltus {saltus.__version__} (jax {version('jax')}, Python {platform.python_version()})"


app = App(
    name="saltus",
    help="Sample probability distributions over discrete spaces, with gradients.",
    help_epilogue=APP_EPILOGUE,
    help_format="rich",
    version=versions,
    version_format="plaintext",
    suppress_keyboard_interrupt=False,
    print_error=False,
    exit_on_error=False,
    result_action="return_value",
)
app["--help"].group = app["--version"].group = OTHER
app["--help"].help = "Show this and exit; saltus sample --help shows a command's."
app["--version"].help = "Show the versions of saltus, jax and Python, and exit."


def run(words: list[str]) -> int:
    """Do what the words say; the exit code."""
    try:
        code = app(words)
    except CycloptsError as error:
        raise usage_error(error) from error
    return COMPLETE if code is None else code


def usage_error(error: CycloptsError) -> SaltusError:
    """A parser's complaint, as ours."""
    command = " ".join(["saltus", *(error.command_chain or ())])
    error.verbose = False
    text, argument = str(error), error.argument
    if isinstance(error, MissingArgumentError) and argument:
        name, value = argument.names[-1], argument.parameter.metavar or ""
        text = f"{error.keyword} needs a value: {value}." if error.keyword else f"{command} needs {f'{name} {value}'.rstrip()}."
    elif isinstance(error, UnusedCliTokensError):
        text = f"{command} has no use for {shlex.join(error.unused_tokens or ())}."
    return RunError(text, hint=f"{command} --help")


@app.command(help_epilogue=SAMPLE_EPILOGUE, usage="Usage: saltus sample TARGET --sampler NAME [OPTIONS] -o PATH", sort_key=1)
def sample(
    target: TargetName,
    /,
    *,
    sampler: Annotated[str, option(SAMPLER, "ncg, avg, pavg, gwg, gibbs, block-gibbs or uniform-mh; see below.", "NAME")],
    step_size: Annotated[
        float | None, option(SAMPLER, "Larger moves more sites a step; in squared units of the values.", "EPS")
    ] = None,
    radius: Annotated[
        int | None, option(SAMPLER, "Hops a site may move; uniform-mh without an order: sites a step.", "HOPS", converter=whole)
    ] = None,
    scan: Annotated[str | None, option(SAMPLER, "random, systematic or coloured.", "ORDER")] = None,
    preconditioner: Annotated[
        Path | None, option(SAMPLER, "A symmetric matrix with a row for every entry of s.", "FILE.npy")
    ] = None,
    scale: Annotated[float | None, option(SAMPLER, "A factor of the preconditioner; 1 unless given.", "GAMMA")] = None,
    shift: Annotated[float | None, option(SAMPLER, "The diagonal added; the least that works unless given.", "D")] = None,
    num_draws: Annotated[int, option(RUN, "Draws kept of each chain.", "N", converter=whole)] = 1000,
    num_warmup: Annotated[int, option(RUN, "Steps of each chain before its first draw.", "N", converter=whole)] = 1000,
    num_chains: Annotated[int, option(RUN, "Chains, side by side.", "N", converter=whole)] = 4,
    thin: Annotated[str, option(RUN, "Steps for each draw, or auto.", "N")] = "auto",
    seed: Annotated[int, option(RUN, "The same seed gives the same draws.", "N", converter=whole)] = 0,
    initial: Annotated[
        Path | None, option(RUN, "States to start from: one for all chains, or one each. Random ones unless given.", "FILE.npy")
    ] = None,
    time_limit: TimeLimit = None,
    output: Annotated[
        Path,
        option(
            DISK,
            "run.nc: one file, written when the run is over. run.zarr: a folder, written while it goes on; memory stays flat.",
            "PATH",
            alias="-o",
        ),
    ],
    keep: Annotated[
        str, option(DISK, "draws; or statistics only, some of mean, covariance, pairs, best, joined by commas.", "WHAT")
    ] = "draws",
    keep_warmup: Annotated[bool, option(DISK, "Keep the warm-up steps too, in groups of their own.", show_default=False)] = False,
    checkpoint: Annotated[
        Path | None, option(DISK, "A folder from which saltus resume goes on after a time limit or a kill.", "PATH")
    ] = None,
    checkpoint_every: CheckpointEvery = 10.0,
    overwrite: Annotated[bool, option(DISK, "Replace an existing output and checkpoint.", show_default=False)] = False,
    no_progress: NoProgress = False,
) -> int:
    """Draw from a target.

    The sampler is used as it is given, never adapted.
    """
    from .ending import finish
    from .output import read_output
    from .sampler import build_kernel, load_array
    from .target import load_target

    goes_on = checkpoint is not None and checkpoint.exists() and not overwrite
    hint = f"to go on with the run: saltus resume {checkpoint} {target} --overwrite -o {output}" if goes_on else ""
    out = read_output(output, overwrite, streams=True, found_again=goes_on and output.suffix == ".zarr", hint=hint)
    sigma = load_array(preconditioner, "--preconditioner")
    kernel = build_kernel(sampler, step_size=step_size, radius=radius, scan=scan, preconditioner=sigma, scale=scale, shift=shift)
    result = saltus.sample(
        load_target(target),
        kernel,
        num_draws=num_draws,
        num_warmup=num_warmup,
        num_chains=num_chains,
        seed=seed,
        initial=load_array(initial, "--initial"),
        thin=int(thin) if thin.isdecimal() else thin,
        progress=not no_progress,
        time_limit=time_limit,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        store=out.path if out.streamed else None,
        keep=tuple(keep.split(",")) if "," in keep else keep,
        keep_warmup=keep_warmup,
        overwrite=overwrite,
    )
    return finish(result, out, target, checkpoint)


@app.command(help_epilogue=RESUME_EPILOGUE, usage="Usage: saltus resume CHECKPOINT TARGET [OPTIONS]", sort_key=2)
def resume(
    checkpoint: Annotated[Path, Parameter(help="The folder given as --checkpoint.")],
    target: TargetName,
    /,
    *,
    num_draws: Annotated[int | None, option(RUN, "More draws than were asked for at first.", "N", converter=whole)] = None,
    time_limit: TimeLimit = None,
    output: Annotated[
        Path | None,
        option(DISK, "run.nc or run.zarr. Not needed where the run streams to a run.zarr of its own.", "PATH", alias="-o"),
    ] = None,
    checkpoint_every: CheckpointEvery = 10.0,
    overwrite: Annotated[bool, option(DISK, "Replace an existing output; never the checkpoint.", show_default=False)] = False,
    no_progress: NoProgress = False,
) -> int:
    """Go on with a run from its checkpoint, bit for bit as if it had never stopped."""
    from ..run.checkpoint import Checkpoint
    from .ending import finish
    from .output import Output, read_output
    from .target import load_target

    stored = Checkpoint(checkpoint).read_run()[0]["store"]
    out = Output(Path(stored), streamed=True) if stored else None
    if output is not None and not (stored and os.path.abspath(output) == stored):
        out = read_output(output, overwrite)
    result = saltus.resume(
        checkpoint,
        load_target(target),
        num_draws=num_draws,
        progress=not no_progress,
        time_limit=time_limit,
        checkpoint_every=checkpoint_every,
    )
    return finish(result, out, target, checkpoint)


@app.command(help_epilogue=SUMMARY_EPILOGUE, usage="Usage: saltus summary PATH [OPTIONS]", sort_key=3)
def summary(
    path: Annotated[Path, Parameter(help="run.nc or run.zarr.")],
    /,
    *,
    sites: Annotated[int, option(OTHER, "Sites shown.", "N", converter=whole)] = 10,
) -> int:
    """Show what a run drew, how well it mixed, and what to doubt."""
    from .ending import tell

    tell(saltus.summary(saltus.open(path), sites=sites))
    return COMPLETE
