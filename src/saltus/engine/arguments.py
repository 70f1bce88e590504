"""The arguments of `sample`, seen to be usable before anything is computed."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._record import as_choice, as_flag, as_size, default_float
from ..errors import RunError, SpaceError, TargetError
from ..spaces import Space
from ..target import Target
from .recording import STATS, Recording, label_dtype, rows_per_block, stats_bytes
from .samplers import nearest

ADAPTATIONS = ("default", "paper", "momentum")
STATISTICS = ("mean", "covariance", "pairs", "best")
_MOST_STEPS = 2**31 - 1


@dataclass(frozen=True)
class Settings:
    """What a run was asked to do; a resumed run must have been asked the same."""

    num_draws: int
    num_warmup: int
    num_chains: int
    seed: int
    thin: int | str  # or "auto"
    keep: tuple[str, ...]  # ("draws",), or names of statistics, or names of observables
    keep_kind: str  # "draws", "statistics" or "observables"
    keep_warmup: bool

    @property
    def statistics(self) -> tuple[str, ...]:
        return self.keep if self.keep_kind == "statistics" else ()


@dataclass(frozen=True)
class Options:
    """How to run, which does not change what is drawn."""

    progress: bool
    time_limit: float | None
    checkpoint_every: float
    began: float  # of time.monotonic: when the call was made

    @staticmethod
    def read(progress: Any, time_limit: Any, checkpoint_every: Any, began: float) -> Options:
        every = read_seconds(checkpoint_every, "checkpoint_every")
        return Options(read_flag(progress, "progress"), read_seconds(time_limit, "time_limit"), every if every else 10.0, began)

    @property
    def deadline(self) -> float:
        """Of time.monotonic; the time limit counts from the call."""
        return self.began + (self.time_limit or float("inf"))


def read_settings(
    space: Space, *, num_draws: Any, num_warmup: Any, num_chains: Any, seed: Any, thin: Any, keep: Any, keep_warmup: Any
) -> tuple[Settings, Recording]:
    """Settings and what they record, or RunError."""
    settings = Settings(
        num_draws=as_size(num_draws, "num_draws", RunError),
        num_warmup=as_size(num_warmup, "num_warmup", RunError, least=0),
        num_chains=as_size(num_chains, "num_chains", RunError),
        seed=read_seed(seed),
        thin=_read_thin(thin),
        keep=(keep_names := _read_keep(keep)),
        keep_kind=_keep_kind(keep),
        keep_warmup=read_flag(keep_warmup, "keep_warmup"),
    )
    steps = max(settings.num_draws * (settings.thin if isinstance(settings.thin, int) else 1), settings.num_warmup)
    if steps > _MOST_STEPS:
        raise RunError("The run is too long.", expected=f"at most {_MOST_STEPS} steps", found=f"{steps}")
    if settings.num_chains * space.size > _MOST_STEPS:
        raise RunError(
            "So many chains do not fit one array.",
            expected=f"num_chains * {space.size} <= {_MOST_STEPS}",
            found=f"num_chains = {settings.num_chains}",
        )
    taken = [piece.name for piece in space.pieces if piece.name in ("chain", "draw", "site", *STATS)]
    if taken:
        raise RunError(
            f"A part of the space is called {taken[0]!r}, which a run needs for itself.",
            expected="another name",
            found=str(space),
        )
    observables = tuple((name, keep[name]) for name in keep_names) if isinstance(keep, Mapping) else ()
    return settings, Recording(observables)


def _read_thin(thin: Any) -> int | str:
    if isinstance(thin, str) and thin == "auto":
        return thin
    try:
        return as_size(thin, "thin", RunError)
    except RunError:
        raise RunError("`thin` is not usable.", expected='an integer >= 1, or "auto"', found=repr(thin)) from None


def read_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        hint = "pass a whole number, not a key: saltus makes the keys" if hasattr(seed, "dtype") else ""
        raise RunError("`seed` is not usable.", expected="an integer from 0 to 2**64 - 1", found=repr(seed), hint=hint)
    return int(seed)


def read_adaptation(adaptation: Any) -> str:
    return as_choice(adaptation, "adaptation", ADAPTATIONS, RunError)


def read_flag(value: Any, name: str) -> bool:
    """True or False, nothing else."""
    return as_flag(value, name, RunError)


def read_seconds(value: Any, name: str) -> float | None:
    """A positive number of seconds, or None."""
    if value is None:
        return None
    usable = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not usable or not value > 0:
        raise RunError(f"`{name}` is not usable.", expected="a positive number of seconds, or None", found=repr(value))
    return float(value)


def read_path(value: Any, name: str) -> Path | None:
    """A path, or None."""
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value) or "\0" in str(os.fspath(value)):
        raise RunError(f"`{name}` is not a path.", expected="a string or pathlib.Path", found=repr(value))
    return Path(os.path.abspath(os.fspath(value)))


def _read_keep(keep: Any) -> tuple[str, ...]:
    expected = f'"draws", one or several of {", ".join(map(repr, STATISTICS))}, or {{name: function of s}}, names as in Python'
    if isinstance(keep, Mapping):
        reserved = {"s", "chain", "draw", "site", *STATS}
        usable = {n for n in keep if isinstance(n, str) and n.isidentifier() and n not in reserved}
        wrong = [name for name, fn in keep.items() if name not in usable or not callable(fn)]
        if not keep or wrong:
            found = f"{wrong[0]!r}: {keep[wrong[0]]!r}" if wrong else "an empty dict"
            hint = "this name has a meaning of its own: take another" if wrong and wrong[0] in reserved else ""
            raise RunError("`keep` is not a dict of observables.", expected=expected, found=found, hint=hint)
        return tuple(keep)
    names = (keep,) if isinstance(keep, str) else tuple(keep) if isinstance(keep, (tuple, list)) else None
    if names == ("draws",):
        return names
    if not names or len(set(map(str, names))) < len(names) or any(name not in STATISTICS for name in names):
        raise RunError("`keep` is not known.", expected=expected, found=repr(keep), hint=nearest(keep, ("draws", *STATISTICS)))
    return names


def _keep_kind(keep: Any) -> str:
    if isinstance(keep, Mapping):
        return "observables"
    return "draws" if keep == "draws" or tuple(keep) == ("draws",) else "statistics"


def read_target(target: Any) -> Target:
    if not isinstance(target, Target):
        hint = "a function alone does not say which states there are" if callable(target) else ""
        raise TargetError("`target` is not a target.", expected="saltus.Target(log_prob, space)", found=repr(target), hint=hint)
    return target


def read_space(space: Any) -> Space:
    if not isinstance(space, Space):
        hint = "this is a target: pass target.space" if isinstance(space, Target) else ""
        raise SpaceError("`space` is not a space.", expected="a space, such as saltus.Binary(4)", found=repr(space), hint=hint)
    return space


def check_observables(recording: Recording, target: Target) -> None:
    """That every observable is a function of one state with an array for a result."""
    s = target.space.abstract()
    for name, fn in recording.observables:
        try:
            jax.eval_shape(lambda s, fn=fn: jnp.asarray(fn(s)), s)
        except Exception as cause:
            raise RunError(
                f"The observable {name!r} fails on a state of {target.space}.",
                expected=f"a JAX function of one float state of shape {target.space.shape}, with an array for a result",
                found=f"{type(cause).__name__}: {str(cause).splitlines()[0] if str(cause) else ''}",
            ) from cause


def draw_bytes(recording: Recording, target: Target, settings: Settings) -> int:
    """Bytes of one draw of one chain, as kept."""
    stats = stats_bytes(target.space, np.dtype(default_float()).itemsize)
    if settings.statistics:
        return stats
    if recording.observables:
        shapes = [jax.eval_shape(fn, target.space.abstract()) for _, fn in recording.observables]
        return stats + sum(math.prod(jnp.shape(x)) * jnp.result_type(x).itemsize for x in jax.tree.leaves(shapes))
    return stats + target.space.shown_bytes


def block_rows(recording: Recording, target: Target, settings: Settings) -> int:
    """Rows of a block of draws of all chains."""
    per_chain = draw_bytes(recording, target, settings) + target.space.num_sites
    return rows_per_block(settings.num_chains * per_chain)


def packed_bytes(recording: Recording, target: Target, settings: Settings) -> float:
    """About the bytes of one draw of one chain on disk, where codes are compressed to the bits they carry."""
    whole = draw_bytes(recording, target, settings)
    if settings.statistics or recording.observables:
        return whole
    bits = math.log2(target.space.num_values)
    space = target.space
    return whole - space.shown_bytes + space.num_sites * min(bits / 8, label_dtype(space.num_values).itemsize)


def check_memory(bytes_needed: float, what: str) -> None:
    """Refuse what would fill more than a quarter of the machine's memory."""
    memory = memory_bytes()
    if bytes_needed > memory / 4:
        raise RunError(
            f"{what} would take {readable(bytes_needed)} of memory.",
            expected=f"at most a quarter of this machine's {readable(memory)}",
            found=readable(bytes_needed),
            hint='store="run.zarr" streams draws to disk; keep="mean" or keep={name: function of s} keeps less; thin= keeps fewer',
        )


def memory_bytes() -> int:
    """Memory of this machine, or of the container it is."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            physical = min(physical, int(Path(name).read_text()))
        except (OSError, ValueError):
            continue
    return physical


def readable(num_bytes: float) -> str:
    """1234567890 -> '1.2 GB'."""
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.3g} TB"
