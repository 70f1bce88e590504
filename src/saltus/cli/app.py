"""The commands, their options and their help."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, Token, UnusedCliTokensError

import saltus

from ..errors import RunError, SaltusError
from ..kernels import samplers
from . import BAD_INPUT, COMPLETE
from .help import APP, CHECK, DEMO, EXPLORE, REPORT, RESUME, SAMPLE, SELECT, SUMMARY, TUNE

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
    """a,b or a, b; of an option given several times, all."""
    return [word.strip() for token in tokens for word in token.value.split(",") if word.strip()]


TargetName = Annotated[
    str,
    Parameter(
        help="file.py:target or package.module:target: the name of a saltus.Target there, or of a function without arguments "
        "that returns one."
    ),
]
OWN = "or package.module:MyKernel, file.py:MyKernel for one of your own"
Adaptation = Annotated[str, option(SAMPLER, "How a preconditioner is tuned: default, or paper for the published schedule.", "NAME")]
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
        list[str],
        option(
            SAMPLER,
            f"A name of the list below, {OWN}. Several, joined by commas or one --sampler each, race. "
            "auto: those that apply race on this target.",
            "NAME",
            converter=words,
            consume_multiple=False,
        ),
    ] = "auto",  # type: ignore[assignment]
    step_size: Annotated[
        float | None, option(SAMPLER, "Larger moves more sites a step; in squared units of the values.", "EPS")
    ] = None,
    radius: Annotated[
        int | None, option(SAMPLER, "Hops a site may move, or sites that move in a step.", "HOPS", converter=whole)
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
    from .sampler import load_array, read_samplers
    from .target import load_target

    goes_on = checkpoint is not None and checkpoint.exists() and not overwrite
    hint = f"to go on with the run: saltus resume {checkpoint} {target} --overwrite -o {output}" if goes_on else ""
    out = read_output(output, overwrite, streams=True, found_again=goes_on and output.suffix == ".zarr", hint=hint)
    sigma = load_array(preconditioner, "--preconditioner")
    options = dict(step_size=step_size, radius=radius, scan=scan, preconditioner=sigma, scale=scale, shift=shift)
    chosen = read_samplers(sampler, **options)
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


@app.command(help_epilogue=SELECT, usage="Usage: saltus select FILE.csv --response NAME --out FOLDER [OPTIONS]", sort_key=1.5)
def select(
    path: Annotated[Path, Parameter(help="A CSV file with a header; all columns but the response are candidates.")],
    /,
    *,
    response: Annotated[str, option(RUN, "The column to explain.", "NAME")],
    out: Annotated[Path, option(DISK, "The folder for tables, figures and a page.", "FOLDER", alias="-o")],
    prior: Annotated[
        str,
        option(RUN, "Of the coefficients: g, bric, hyper-g, hyper-g/n, zellner-siow, independent, bic, eb-local.", "NAME"),
    ] = "g",
    model_prior: Annotated[str, option(RUN, "Of the models: beta-binomial, uniform, bernoulli.", "NAME")] = "beta-binomial",
    expected_size: Annotated[float | None, option(RUN, "Number of columns the prior expects.", "K")] = None,
    forced: Annotated[str | None, option(RUN, "Columns that are in every model, joined by commas.", "NAMES")] = None,
    ignore: Annotated[str | None, option(RUN, "Columns to leave out, joined by commas.", "NAMES")] = None,
    method: Annotated[str, option(RUN, "auto, enumerate or sample.", "NAME")] = "auto",
    error: Annotated[float, option(RUN, "Sample until every inclusion probability has at most this error.", "E")] = 0.005,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    overwrite: Annotated[bool, option(DISK, "Replace the results in the folder.", show_default=False)] = False,
    no_progress: NoProgress = False,
) -> int:
    """Which columns of a table explain another?

    Bayesian variable selection: the probability of each column, with coefficients, models and pictures.
    """
    from .ending import tell
    from .selecting import check_folder, read_csv, words_of, write_folder

    folder = check_folder(out, overwrite)
    X, y = read_csv(path, response)
    X = X.drop(columns=[name for name in words_of(ignore) or [] if name in X.columns])
    found = saltus.variable_selection(
        X,
        y,
        prior,
        model_prior,
        seed=seed,
        progress=not no_progress,
        method=method,
        expected_size=expected_size,
        forced=words_of(forced),
        error=error,
        time_limit=time_limit,
    )
    write_folder(found, folder)
    tell(found.summary(), "", f"written to {folder}: open {folder / 'index.html'}")
    return COMPLETE


@app.command(help_epilogue=RESUME, usage="Usage: saltus resume CHECKPOINT TARGET [OPTIONS]", sort_key=3)
def resume(
    checkpoint: Annotated[Path, Parameter(help="The folder given as --checkpoint.")],
    target: TargetName,
    /,
    *,
    num_draws: Annotated[int | None, option(RUN, "More draws than were asked for at first.", "N", converter=whole)] = None,
    sampler: Annotated[
        str | None,
        option(RUN, "file.py:MyKernel, where the run has a sampler of your own that the target does not import.", "NAME"),
    ] = None,
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
    from ..engine.checkpoint import Checkpoint
    from .ending import finish
    from .output import Output, read_output
    from .sampler import find_kind
    from .target import load_target

    header = Checkpoint(checkpoint).read_run()[0]  # by the path as given, which is what an error should show
    given = Path(os.path.abspath(output)) if output else None
    saved = Checkpoint(Path(os.path.abspath(checkpoint)))
    stored = saved.store_of(header, given if given and given.suffix == ".zarr" else None)
    out = Output(stored, streamed=True) if stored else None
    if output is not None and given != stored:
        out = read_output(output, overwrite)
    if sampler is not None:
        find_kind(sampler)  # imports it
    result = saltus.resume(
        checkpoint,
        load_target(target),
        num_draws=num_draws,
        progress=not no_progress,
        time_limit=time_limit,
        checkpoint_every=checkpoint_every,
        store=stored,
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


@app.command(help_epilogue=REPORT, usage="Usage: saltus report PATH [OPTIONS] -o REPORT.html", sort_key=4.05)
def report(
    path: Annotated[Path, Parameter(help="run.nc or run.zarr.")],
    /,
    *,
    output: Annotated[Path, option(DISK, "The page to write.", "FILE.html", alias="-o")],
    overwrite: Annotated[bool, option(DISK, "Replace an existing page.", show_default=False)] = False,
) -> int:
    """Show a run as one HTML page: verdict, choice of the sampler, traces, marginals, what to doubt.

    The page needs no network and no other file. Of more than 10^5 draws it looks at so many, evenly chosen.
    """
    from .ending import tell
    from .output import check_report

    check_report(output, overwrite, shown=f"-o {output}", hint="--overwrite replaces it")
    saltus.report(saltus.open(path), output, overwrite=overwrite)
    tell(f"written to {output}")
    return COMPLETE


@app.command(help_epilogue="", usage="Usage: saltus verify PATH", sort_key=4.2)
def verify(path: Annotated[Path, Parameter(help="A checkpoint, run.zarr, run.nc or a trained model.")], /) -> int:
    """Is a run on the disk whole? All of it is read and held against its checksums."""
    from .ending import tell

    found = saltus.verify(path)
    tell(found)
    return COMPLETE if found.ok else BAD_INPUT


@app.command(help_epilogue="", usage="Usage: saltus status PATH", sort_key=4.1)
def status(path: Annotated[Path, Parameter(help="A checkpoint or run.zarr.")], /) -> int:
    """Is it still running, how far is it, how long will it take?"""
    from .ending import tell

    tell(saltus.status(path))
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
    sampler: Annotated[str, option(SAMPLER, f"{', '.join(samplers())}, {OWN}.", "NAME")],
    adaptation: Adaptation = "default",
    seed: Seed = 0,
    initial: Initial = None,
    plot: Annotated[Path | None, option(DISK, "Save what was measured as a figure.", "FILE.png")] = None,
    overwrite: Annotated[bool, option(DISK, "Replace an existing figure.", show_default=False)] = False,
) -> int:
    """Tune one sampler: what was measured, what it chose, and the command that uses it."""
    from .ending import tell
    from .sampler import find_kind, load_array
    from .target import load_target
    from .tuning import check_plot, sample_command, save_plot

    kind = find_kind(sampler)
    check_plot(plot, overwrite)
    tuned = saltus.tune(load_target(target), kind, seed, initial=load_array(initial, "--initial"), adaptation=adaptation)
    tell(tuned.report, f"frozen as {tuned.kernel!r}")
    if plot is not None and save_plot(tuned.report, plot, overwrite):
        tell(f"drawn in {plot}")
    tell("", *sample_command(tuned.kernel, target, seed=seed, initial=initial, adaptation=adaptation, sampler=sampler))
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


@app.command(help_epilogue=EXPLORE, usage="Usage: saltus explore [OPTIONS]", sort_key=1.5)
def explore(
    *,
    output: Annotated[
        Path | None, option(DISK, "Write the page there instead of showing the one that is installed.", "FILE.html", alias="-o")
    ] = None,
    overwrite: Annotated[bool, option(DISK, "Replace an existing page.", show_default=False)] = False,
    no_browser: Annotated[bool, option(OTHER, "Say where the page is, and open nothing.", show_default=False)] = False,
) -> int:
    """See how samplers propose, on a lattice of two sites that you can drag.

    Opens a page in the browser: target, proposal, true local distribution, acceptance, and a running chain. It needs no network.
    """
    from ..explorer import explore as show
    from .ending import tell

    tell(show(output, overwrite=overwrite, browser=not no_browser))
    return COMPLETE


Ignored = Annotated[str, Parameter(help="Whatever is given is told to the new command.", allow_leading_hyphen=True)]


@app.command(help_epilogue="", usage="Usage: saltus bench ...", sort_key=7)
def bench(*given: Ignored) -> int:
    """Moved out of the library: make bench, in a checkout of the repository."""
    return moved("bench", f"make bench, or python -m benchmarks {shlex.join(given)}".rstrip())


@app.command(help_epilogue="", usage="Usage: saltus reproduce ...", sort_key=8)
def reproduce(*given: Ignored) -> int:
    """Moved out of the library: python -m paper, in a checkout of the repository."""
    return moved("reproduce", f"make reproduce, or python -m paper {shlex.join(given)}".rstrip())


def moved(name: str, successor: str) -> int:
    """Say where a command has gone that the next release no longer has."""
    print(
        f"DeprecationWarning: saltus {name} is no longer part of the library, and the command will go in the next release.\n"
        f"  hint      in a checkout of the repository: {successor}",
        file=sys.stderr,
        flush=True,
    )
    return BAD_INPUT
