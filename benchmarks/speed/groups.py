"""The groups of figures, and what measures them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import saltus

from . import choices, cores, figures, learning, plain, profile, scale, user_network, versus
from .lines import HEADER, Line, load, save

GROUPS: dict[str, Callable[[], list[Line]]] = {
    "steps": figures.steps,
    "network": figures.network,
    "textbook": figures.textbook,
    "regression": figures.regression,
    "thrml": versus.thrml,
    "peers": versus.peers,
    "compile": figures.compiling,
    "import": figures.imports,
    "chains": scale.chains,
    "lattices": scale.lattices,
    "graphs": scale.graphs,
    "low-rank": scale.low_rank,
    "values": scale.values,
    "differences": scale.differences,
    "devices": scale.devices,
    "cores": cores.cores,
    "plain": plain.plain,
    "user-network": user_network.user_network,
    "retuning": learning.retuning,
    "profile": profile.profile,
    "choices": choices.choices,
}


def machine() -> dict[str, str]:
    """What a figure depends on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("saltus", "jax", "jaxlib", "numpy"))
    return {"versions": f"{packages}, Python {platform.python_version()}", "machine": f"{os.cpu_count()} cores, {_processor()}"}


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    named = [line for line in told.read_text().splitlines() if line.startswith("model name")] if told.exists() else []
    return named[0].split(":", 1)[1].strip() if named else platform.processor() or platform.machine()


def bench(groups: Sequence[str], folder: Path | None, *, again: bool, tell: Callable[..., None]) -> bool:
    """Measure these groups, or all; print every line; whether all passed. Groups measured in `folder` are not repeated."""
    unknown = [name for name in groups if name not in GROUPS]
    if unknown:
        raise saltus.RunError(f"There is no group {', '.join(unknown)}.", expected=", ".join(GROUPS), found=" ".join(groups))
    about = machine()
    tell(f"{about['versions']}; {about['machine']}", HEADER)
    lines: list[Line] = []
    absent: list[str] = []
    for name in groups or GROUPS:
        known = load(folder, name) if folder and not again else []
        try:
            measured = known or GROUPS[name]()
        except ModuleNotFoundError as missing:
            absent.append(name)
            tell(f"{name}: not measured, {missing.name} is not installed. pip install 'saltus[bench]'")
            continue
        if folder and not known:
            save(folder, name, measured, about)
        tell(*map(str, measured))
        lines += measured
    missed = [line for line in lines if not line.passed]
    asked = [line for line in lines if line.goal is not None]
    told = f"{len(asked) - len(missed)} of {len(asked)} goals are met." if asked else ""
    left = f"Not measured: {', '.join(absent)}." if absent else ""
    if told or left:
        tell("", f"{told} {left}".strip())
    return not missed and not absent
