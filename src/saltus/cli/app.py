"""The commands: each reads its words, calls the function of its name, and tells what came of it."""

from __future__ import annotations

import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

import saltus

from ..errors import RunError, SaltusError
from ..kernels import samplers
from . import BAD_INPUT, COMPLETE, INCOMPLETE
from .ending import finish, tell
from .help import APP, CHECK, DEMO, EXPLORE, REPORT, RESUME, SAMPLE, SELECT, SUMMARY, TUNE
from .options import (
    DISK,
    OTHER,
    OWN,
    RUN,
    SAMPLER,
    Adaptation,
    Length,
    NoProgress,
    Pace,
    Places,
    Question,
    RunPath,
    SamplerOptions,
    Seed,
    Start,
    TargetName,
    flag,
    number,
    option,
)
from .sampler import find_kind
from .target import load_target
from .tuning import check_plot, sample_command, save_plot


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
    sampler: SamplerOptions = SamplerOptions(),
    length: Length = Length(),
    start: Start = Start(),
    pace: Pace = Pace(),
    places: Places,
) -> int:
    """Draw from a target.

    Without --sampler all samplers that apply race, and the fastest is used. A sampler
    given by its name alone is tuned first; with its options it is used as it is.
    """
    from .output import new_output

    out = new_output(places, target)
    asked = length.arguments() | start.arguments() | pace.arguments() | places.arguments()
    store = out.path if out.streamed else None
    chosen = sampler.read()
    result = saltus.sample(load_target(target), chosen, **asked, store=store, adaptation=sampler.adaptation)
    return finish(result, out, target, places.checkpoint)


@app.command(help_epilogue=SELECT, usage="Usage: saltus select FILE.csv --response NAME --out FOLDER [OPTIONS]", sort_key=1.5)
def select(
    path: Annotated[Path, Parameter(help="A CSV file with a header; all columns but the response are candidates.")],
    /,
    *,
    question: Question,
    out: Annotated[Path, option(DISK, "The folder for tables, figures and a page.", "FOLDER", alias="-o")],
    overwrite: Annotated[bool, flag(DISK, "Replace the results in the folder.")] = False,
    no_progress: NoProgress = False,
) -> int:
    """Which columns of a table explain another?

    Bayesian variable selection: the probability of each column, with coefficients, models and pictures.
    """
    from .selecting import check_folder, read_table, write_folder

    folder = check_folder(out, overwrite)
    found = saltus.variable_selection(*read_table(path, question), progress=not no_progress, **question.arguments())
    write_folder(found, folder)
    tell(found.summary(), "", f"written to {folder}: open {folder / 'index.html'}")
    return INCOMPLETE if found.told.get("ended") == "time" else COMPLETE


@app.command(help_epilogue=RESUME, usage="Usage: saltus resume CHECKPOINT TARGET [OPTIONS]", sort_key=3)
def resume(
    checkpoint: Annotated[Path, Parameter(help="The folder given as --checkpoint.")],
    target: TargetName,
    /,
    *,
    num_draws: Annotated[int | None, number(RUN, "More draws than were asked for at first.")] = None,
    sampler: Annotated[
        str | None,
        option(RUN, "file.py:MyKernel, where the run has a sampler of your own that the target does not import.", "NAME"),
    ] = None,
    pace: Pace = Pace(),
    output: Annotated[
        Path | None,
        option(DISK, "run.nc or run.zarr. Not needed where the run streams to a run.zarr of its own.", "PATH", alias="-o"),
    ] = None,
    overwrite: Annotated[bool, flag(DISK, "Replace an existing output; never the checkpoint.")] = False,
) -> int:
    """Go on with a run from its checkpoint, bit for bit as if it had never stopped."""
    from .output import output_of_resumed

    store, out = output_of_resumed(checkpoint, output, overwrite)
    if sampler is not None:
        find_kind(sampler)  # imports it
    result = saltus.resume(checkpoint, load_target(target), num_draws=num_draws, store=store, **pace.arguments())
    return finish(result, out, target, checkpoint)


@app.command(help_epilogue=SUMMARY, usage="Usage: saltus summary PATH [OPTIONS]", sort_key=4)
def summary(path: RunPath, /, *, sites: Annotated[int, number(OTHER, "Sites shown.")] = 10) -> int:
    """Show what a run drew, how well it mixed, and what to doubt."""
    tell(saltus.summary(saltus.open(path), sites=sites))
    return COMPLETE


@app.command(help_epilogue=REPORT, usage="Usage: saltus report PATH [OPTIONS] -o REPORT.html", sort_key=4.05)
def report(
    path: RunPath,
    /,
    *,
    output: Annotated[Path, option(DISK, "The page to write.", "FILE.html", alias="-o")],
    overwrite: Annotated[bool, flag(DISK, "Replace an existing page.")] = False,
) -> int:
    """Show a run as one HTML page: verdict, choice of the sampler, traces, marginals, what to doubt.

    The page needs no network and no other file. A run of more than 10^5 draws is shown by that many, evenly chosen.
    """
    from .output import check_report

    check_report(output, overwrite, shown=f"-o {output}", hint="--overwrite replaces it")
    saltus.report(saltus.open(path), output, overwrite=overwrite)
    tell(f"written to {output}")
    return COMPLETE


@app.command(help_epilogue="", usage="Usage: saltus verify PATH", sort_key=4.2)
def verify(path: Annotated[Path, Parameter(help="A checkpoint, run.zarr, run.nc or a trained model.")], /) -> int:
    """Is a run on the disk whole? All of it is read and held against its checksums."""
    found = saltus.verify(path)
    tell(found)
    return COMPLETE if found.ok else BAD_INPUT


@app.command(help_epilogue="", usage="Usage: saltus status PATH", sort_key=4.1)
def status(path: Annotated[Path, Parameter(help="A checkpoint or run.zarr.")], /) -> int:
    """Is it still running, how far is it, how long will it take?"""
    tell(saltus.status(path))
    return COMPLETE


@app.command(help_epilogue=CHECK, usage="Usage: saltus check TARGET [OPTIONS]", sort_key=5)
def check(
    target: TargetName,
    /,
    *,
    start: Start = Start(),
    small: Annotated[bool, flag(RUN, "A quick look, with far fewer evaluations of log_prob.")] = False,
) -> int:
    """Can the gradient be trusted here?

    Predicted changes of log_prob are held against true ones, and the verdict is printed.
    """
    tell(saltus.check(load_target(target), small=small, **start.arguments()))
    return COMPLETE


@app.command(help_epilogue=TUNE, usage="Usage: saltus tune TARGET --sampler NAME [OPTIONS]", sort_key=6)
def tune(
    target: TargetName,
    /,
    *,
    sampler: Annotated[str, option(SAMPLER, f"{', '.join(samplers())}, {OWN}.", "NAME")],
    adaptation: Adaptation = "default",
    start: Start = Start(),
    plot: Annotated[Path | None, option(DISK, "Save what was measured as a figure.", "FILE.png")] = None,
    overwrite: Annotated[bool, flag(DISK, "Replace an existing figure.")] = False,
) -> int:
    """Tune one sampler: what was measured, what it chose, and the command that uses it."""
    kind = find_kind(sampler)
    check_plot(plot, overwrite)
    tuned = saltus.tune(load_target(target), kind, adaptation=adaptation, **start.arguments())
    tell(tuned.report, f"frozen as {tuned.kernel!r}")
    if plot is not None and save_plot(tuned.report, plot, overwrite):
        tell(f"drawn in {plot}")
    tell("", *sample_command(tuned.kernel, target, **vars(start), adaptation=adaptation, sampler=sampler))
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

    show(output, seed, progress=not no_progress, tell=tell)
    return COMPLETE


@app.command(help_epilogue=EXPLORE, usage="Usage: saltus explore [OPTIONS]", sort_key=1.5)
def explore(
    *,
    output: Annotated[
        Path | None, option(DISK, "Write the page there instead of showing the one that is installed.", "FILE.html", alias="-o")
    ] = None,
    overwrite: Annotated[bool, flag(DISK, "Replace an existing page.")] = False,
    no_browser: Annotated[bool, flag(OTHER, "Say where the page is, and open nothing.")] = False,
) -> int:
    """See how samplers propose, on a lattice of two sites that you can drag.

    Opens a page in the browser: target, proposal, true local distribution, acceptance, and a running chain. It needs no network.
    """
    from ..explorer import explore as show

    tell(show(output, overwrite=overwrite, browser=not no_browser))
    return COMPLETE


Ignored = Annotated[str, Parameter(help="Arguments to repeat in the new command.", allow_leading_hyphen=True)]


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
