"""The options of the commands, in records that commands share; a record makes what was given into arguments of the API."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, dataclass_transform

from cyclopts import Group, Parameter, Token

from .sampler import OPTIONS, load_array, read_samplers

SAMPLER = Group("Sampler", sort_key=1)
RUN = Group("Run", sort_key=2)
DISK = Group("Disk", sort_key=3)
OTHER = Group("Other", sort_key=4)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(kind: Any) -> Any:
    """A record: a command that takes it has all its fields as options."""
    return Parameter(name="*")(dataclass(frozen=True, kw_only=True)(kind))


def option(group: Group, text: str, metavar: str | None = None, **settings: Any) -> Parameter:
    return Parameter(group=group, help=text, metavar=metavar, negative="", **settings)


def flag(group: Group, text: str) -> Parameter:
    return option(group, text, show_default=False)


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
    return [word for token in tokens for word in split(token.value)]


def split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def number(group: Group, text: str, metavar: str = "N") -> Parameter:
    return option(group, text, metavar, converter=whole)


OWN = "or package.module:MyKernel, file.py:MyKernel for one of your own"
TargetName = Annotated[
    str,
    Parameter(
        help="file.py:target or package.module:target: the name of a saltus.Target there, or of a function without arguments "
        "that returns one."
    ),
]
RunPath = Annotated[Path, Parameter(help="run.nc or run.zarr.")]
Adaptation = Annotated[
    str, option(SAMPLER, "How settings are tuned: default; paper, the published schedule of preconditioners; momentum.", "NAME")
]
Seed = Annotated[int, number(RUN, "The same seed gives the same random numbers.")]
TimeLimit = Annotated[float | None, option(RUN, "End after so many seconds, with the draws so far.", "SECONDS")]
NoProgress = Annotated[bool, flag(OTHER, "Show no progress.")]


@options
class SamplerOptions:
    """Which sampler, and its settings."""

    sampler: Annotated[
        list[str],
        option(
            SAMPLER,
            f"A name of the list below, {OWN}. Several, joined by commas or one --sampler each, race. "
            "auto: all that apply race on this target.",
            "NAME",
            converter=words,
            consume_multiple=False,
        ),
    ] = "auto"  # type: ignore[assignment]
    step_size: Annotated[
        float | None, option(SAMPLER, "A larger one moves more sites in a step; in squared units of the values.", "EPS")
    ] = None
    radius: Annotated[int | None, number(SAMPLER, "Hops a site may move, or sites that move in a step.", "HOPS")] = None
    scan: Annotated[str | None, option(SAMPLER, "random, systematic or coloured.", "ORDER")] = None
    preconditioner: Annotated[Path | None, option(SAMPLER, "A symmetric matrix with a row for every entry of s.", "FILE.npy")] = (
        None
    )
    scale: Annotated[float | None, option(SAMPLER, "A factor of the preconditioner; 1 unless given.", "GAMMA")] = None
    shift: Annotated[float | None, option(SAMPLER, "A number added to the diagonal; the least that works unless given.", "D")] = (
        None
    )
    adaptation: Adaptation = "default"

    def read(self) -> Any:
        """What `saltus.sample` takes as a sampler."""
        settings = {name: getattr(self, name) for name in OPTIONS}
        return read_samplers(self.sampler, **settings | {"preconditioner": load_array(self.preconditioner, "--preconditioner")})


@options
class Length:
    """How many chains, and how long."""

    num_draws: Annotated[int, number(RUN, "Draws kept of each chain.")] = 1000
    num_warmup: Annotated[int, number(RUN, "Steps of each chain before its first draw.")] = 1000
    num_chains: Annotated[int, number(RUN, "Chains, side by side.")] = 4
    thin: Annotated[str, option(RUN, "Steps from one kept draw to the next. auto: chosen from what the warm-up shows.", "N")] = (
        "auto"
    )

    def arguments(self) -> dict[str, Any]:
        return vars(self) | {"thin": int(self.thin) if self.thin.isdecimal() else self.thin}


@options
class Start:
    """Where chains begin."""

    seed: Seed = 0
    initial: Annotated[
        Path | None, option(RUN, "States to start from: one for all chains, or one each. Random ones unless given.", "FILE.npy")
    ] = None

    def arguments(self) -> dict[str, Any]:
        return {"seed": self.seed, "initial": load_array(self.initial, "--initial")}


@options
class Pace:
    """When a run ends and saves itself, and what it shows meanwhile."""

    time_limit: TimeLimit = None
    checkpoint_every: Annotated[float, option(DISK, "How often the checkpoint is brought up to date.", "SECONDS")] = 10.0
    no_progress: NoProgress = False

    def arguments(self) -> dict[str, Any]:
        return {"time_limit": self.time_limit, "checkpoint_every": self.checkpoint_every, "progress": not self.no_progress}


@options
class Places:
    """What is kept of a new run, and where."""

    output: Annotated[
        Path,
        option(
            DISK,
            "run.nc: one file, written when the run is over. run.zarr: a folder, written while it goes on; memory stays flat.",
            "PATH",
            alias="-o",
        ),
    ]
    keep: Annotated[
        str, option(DISK, "draws; or statistics only, some of mean, covariance, pairs, best, joined by commas.", "WHAT")
    ] = "draws"
    keep_warmup: Annotated[bool, flag(DISK, "Keep the warm-up steps too, in groups of their own.")] = False
    checkpoint: Annotated[
        Path | None, option(DISK, "A folder from which saltus resume goes on after a time limit or a kill.", "PATH")
    ] = None
    overwrite: Annotated[bool, flag(DISK, "Replace an existing output and checkpoint.")] = False

    def arguments(self) -> dict[str, Any]:
        """All but the output."""
        keep = tuple(self.keep.split(",")) if "," in self.keep else self.keep
        return dict(keep=keep, keep_warmup=self.keep_warmup, checkpoint=self.checkpoint, overwrite=self.overwrite)


@options
class Question:
    """What `saltus select` asks of a table."""

    response: Annotated[str, option(RUN, "The column to explain.", "NAME")]
    prior: Annotated[
        str,
        option(RUN, "Of the coefficients: g, bric, hyper-g, hyper-g/n, zellner-siow, independent, bic, eb-local.", "NAME"),
    ] = "g"
    model_prior: Annotated[str, option(RUN, "Of the models: beta-binomial, uniform, bernoulli.", "NAME")] = "beta-binomial"
    expected_size: Annotated[float | None, option(RUN, "Number of columns the prior expects.", "K")] = None
    forced: Annotated[str | None, option(RUN, "Columns that are in every model, joined by commas.", "NAMES")] = None
    ignore: Annotated[str | None, option(RUN, "Columns to leave out, joined by commas.", "NAMES")] = None
    method: Annotated[str, option(RUN, "auto, enumerate, sample, or a sampler such as ncg.", "NAME")] = "auto"
    error: Annotated[float, option(RUN, "Sample until every inclusion probability has at most this error.", "E")] = 0.005
    seed: Seed = 0
    time_limit: TimeLimit = None

    def arguments(self) -> dict[str, Any]:
        """All that is not about the columns of the file."""
        told = {name: value for name, value in vars(self).items() if name not in ("response", "ignore")}
        return told | {"forced": split(self.forced) if self.forced else None}
