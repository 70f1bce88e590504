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
from . import COMPLETE, INCOMPLETE, MISSED
from .help import APP, BENCH, CHECK, DEMO, REPRODUCE, RESUME, SAMPLE, SUMMARY, TUNE

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


def words(kind: Any, tokens: Sequence[Token]) -> list[str]:
    """a,b or a, b."""
    return [word.strip() for word in tokens[0].value.split(",") if word.strip()]


def numbers(kind: Any, tokens: Sequence[Token]) -> list[int]:
    """1,5."""
    try:
        return [int(word) for word in words(kind, tokens)]
    except ValueError:
        raise ValueError(f"{tokens[0].value} is not a list of whole numbers.") from None


TargetName = Annotated[
    str,
    Parameter(
        help="file.py:target or package.module:target: the name of a saltus.Target there, or of a function without arguments "
        "that returns one."
    ),
]
SAMPLER_NAMES = "ncg, avg, pavg, gwg, gibbs, block-gibbs or uniform-mh"
Adaptation = Annotated[str, option(SAMPLER, "How pavg is tuned: default, or paper for the published schedule.", "NAME")]
Seed = Annotated[int, option(RUN, "The same seed gives the same random numbers.", "N", converter=whole)]
Initial = Annotated[
    Path | None, option(RUN, "States to start from: one for all chains, or one each. Random ones unless given.", "FILE.npy")
]
TimeLimit = Annotated[float | None, option(RUN, "End after so many seconds, with the draws so far.", "SECONDS")]
CheckpointEvery = Annotated[float, option(DISK, "How often the checkpoint is brought up to date.", "SECONDS")]
NoProgress = Annotated[bool, option(OTHER, "Show no progress.", show_default=False)]


def versions() -> str:
    return f"saltus {saltus.__version__} (jax {version('jax')}, Python {platform.python_version()})"


app = App(
    name="saltus",
    help="Sample probability distributions over discrete spaces, with gradients.",
    help_epilogue=APP,
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


@app.command(help_epilogue=SAMPLE, usage="Usage: saltus sample TARGET [OPTIONS] -o PATH", sort_key=2)
def sample(
    target: TargetName,
    /,
    *,
    sampler: Annotated[
        str, option(SAMPLER, f"{SAMPLER_NAMES}; see below. auto: those that apply race on this target.", "NAME")
    ] = "auto",
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
    adaptation: Adaptation = "default",
    num_draws: Annotated[int, option(RUN, "Draws kept of each chain.", "N", converter=whole)] = 1000,
    num_warmup: Annotated[int, option(RUN, "Steps of each chain before its first draw.", "N", converter=whole)] = 1000,
    num_chains: Annotated[int, option(RUN, "Chains, side by side.", "N", converter=whole)] = 4,
    thin: Annotated[
        str, option(RUN, "Steps for each draw. auto: by how many an independent draw took in the warm-up.", "N")
    ] = "auto",
    seed: Seed = 0,
    initial: Initial = None,
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

    Without --sampler those that apply race, and the fastest here is used. A sampler
    given by name alone is tuned; with its options it is used as it is.
    """
    from .ending import finish
    from .output import read_output
    from .sampler import load_array, read_sampler
    from .target import load_target

    goes_on = checkpoint is not None and checkpoint.exists() and not overwrite
    hint = f"to go on with the run: saltus resume {checkpoint} {target} --overwrite -o {output}" if goes_on else ""
    out = read_output(output, overwrite, streams=True, found_again=goes_on and output.suffix == ".zarr", hint=hint)
    sigma = load_array(preconditioner, "--preconditioner")
    options = dict(step_size=step_size, radius=radius, scan=scan, preconditioner=sigma, scale=scale, shift=shift)
    chosen = read_sampler(sampler, **options)
    result = saltus.sample(
        load_target(target),
        chosen,
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
        adaptation=adaptation,
    )
    return finish(result, out, target, checkpoint)


@app.command(help_epilogue=RESUME, usage="Usage: saltus resume CHECKPOINT TARGET [OPTIONS]", sort_key=3)
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


@app.command(help_epilogue=SUMMARY, usage="Usage: saltus summary PATH [OPTIONS]", sort_key=4)
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


@app.command(help_epilogue=CHECK, usage="Usage: saltus check TARGET [OPTIONS]", sort_key=5)
def check(
    target: TargetName,
    /,
    *,
    seed: Seed = 0,
    initial: Initial = None,
    small: Annotated[bool, option(RUN, "A quick look, with far fewer evaluations of log_prob.", show_default=False)] = False,
) -> int:
    """Can the gradient be trusted here?

    Predicted changes of log_prob are held against true ones, and the verdict is printed.
    """
    from .ending import tell
    from .sampler import load_array
    from .target import load_target

    tell(saltus.check(load_target(target), seed, load_array(initial, "--initial"), small=small))
    return COMPLETE


@app.command(help_epilogue=TUNE, usage="Usage: saltus tune TARGET --sampler NAME [OPTIONS]", sort_key=6)
def tune(
    target: TargetName,
    /,
    *,
    sampler: Annotated[str, option(SAMPLER, f"{SAMPLER_NAMES}.", "NAME")],
    adaptation: Adaptation = "default",
    seed: Seed = 0,
    initial: Initial = None,
    plot: Annotated[
        Path | None, option(DISK, "Save what was measured as a figure. A file that is there is replaced.", "FILE.png")
    ] = None,
) -> int:
    """Tune one sampler: what was measured, what it chose, and the command that uses it."""
    from .ending import tell
    from .sampler import find_kind, load_array
    from .target import load_target
    from .tuning import check_plot, sample_command, save_plot

    kind = find_kind(sampler)
    check_plot(plot)
    tuned = saltus.tune(load_target(target), kind, seed, initial=load_array(initial, "--initial"), adaptation=adaptation)
    tell(tuned.report, f"frozen as {tuned.kernel!r}")
    if plot is not None and save_plot(tuned.report, plot):
        tell(f"drawn in {plot}")
    tell("", *sample_command(tuned.kernel, target, seed=seed, initial=initial, adaptation=adaptation))
    return COMPLETE


@app.command(help_epilogue=DEMO, usage="Usage: saltus demo [OPTIONS]", sort_key=1)
def demo(
    *,
    output: Annotated[
        Path, option(DISK, "The folder for its files; those of an earlier demo are replaced.", "FOLDER", alias="-o")
    ] = Path("saltus-demo"),
    seed: Seed = 0,
    no_progress: NoProgress = False,
) -> int:
    """See it work, in a minute.

    Which columns of a table explain y? There are too many answers to go through:
    they are sampled, and the draws held against the exact probabilities.
    """
    from ..demo import demo as show
    from .ending import tell

    show(output, seed, progress=not no_progress, tell=tell)
    return COMPLETE


@app.command(help_epilogue=BENCH, usage="Usage: saltus bench [GROUP...] [OPTIONS]", sort_key=7)
def bench(
    *groups: Annotated[str, Parameter(help="Which figures; all unless given. They are listed below.")],
    output: Annotated[
        Path | None,
        option(DISK, "A folder that keeps what was measured; a group that is there is not measured again.", "FOLDER", alias="-o"),
    ] = None,
    again: Annotated[bool, option(DISK, "Measure groups again that are in the folder.", show_default=False)] = False,
) -> int:
    """How fast is it, on this machine?

    Ratios measured in one run, each with its goal: against the bare gradient,
    textbook code and other packages, and as problems grow.
    """
    from ..bench import bench as measure
    from .ending import tell

    return COMPLETE if measure(groups, output, again=again, tell=tell) else MISSED


@app.command(help_epilogue=REPRODUCE, usage="Usage: saltus reproduce NAME [OPTIONS]", sort_key=8)
def reproduce(
    name: Annotated[str, Parameter(help="An experiment, or sampling, training or all. They are listed below.")],
    /,
    *,
    scale: Annotated[
        str, option(RUN, "quick: minutes on two cores. full: the paper's lengths, a day or more.", "quick|full")
    ] = "quick",
    seeds: Annotated[
        int | None,
        option(
            RUN,
            "Repetitions; 1 at quick scale, at full 5 (training: 3). More may be added later.",
            "N",
            converter=whole,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        option(RUN, "Processes for training experiments; as many as cores unless given.", "N", converter=whole, show_default=False),
    ] = None,
    samplers: Annotated[
        list[str] | None, option(RUN, "These samplers only.", "NAME,...", converter=words, show_default=False)
    ] = None,
    k: Annotated[
        list[int] | None,
        option(RUN, "Table 1, 2: these columns; at quick scale 1,5 and 5,20.", "N,...", converter=numbers, show_default=False),
    ] = None,
    dask: Annotated[
        str | None, option(RUN, "Share training out on the cluster of this dask scheduler.", "ADDRESS", show_default=False)
    ] = None,
    out: Annotated[
        Path, option(DISK, "The folder for results; what is finished there is not run again.", "FOLDER", alias="-o")
    ] = Path("saltus-results"),
    no_progress: NoProgress = False,
) -> int:
    """Run the paper's experiments again, and judge its claims.

    Every sampler is held against exact truth; a page says for each claim what was
    measured and whether it holds. Interrupted, the same command goes on.
    """
    from ..experiments import reproduce as run_again
    from ..run.progress import make_progress
    from .ending import tell

    workers = (os.cpu_count() or 1) if workers is None else workers
    try:
        with make_progress(not no_progress) as shown:
            chosen: dict[str, Any] = {"samplers": samplers and tuple(samplers), "columns": k and tuple(k), "dask": dask}
            page = run_again(name, scale=scale, out=out, seeds=seeds, workers=workers, **chosen, say=shown.say)
    except KeyboardInterrupt:
        tell(f"interrupted: what is finished is kept in {out}, and the same command goes on from there")
        return INCOMPLETE
    tell(f"written to {page}", f"  as text    {page.with_suffix('.md')}", f"  figures    {page.parent / 'figures'}")
    return COMPLETE
