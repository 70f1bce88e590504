"""The command line as data, read from its own help, and what a newer one no longer keeps of a recorded one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

_SHOW = "import sys; from saltus.cli import main; [print(end='\\f') or main([*word.split(), '--help']) for word in sys.argv[1:]]"


def show_help(*commands: str) -> list[str]:
    """What `saltus COMMAND --help` prints, on lines so long that none is broken; a process of its own remembers no other width."""
    wide = {**os.environ, "COLUMNS": "500", "NO_COLOR": "1", "TERM": "dumb"}
    told = subprocess.run([sys.executable, "-c", _SHOW, *commands], env=wide, capture_output=True, text=True, check=True).stdout
    return told.split("\f")[1:]


def panels(text: str) -> dict[str, list[str]]:
    """{title: lines} of the boxes of a help page."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if top := re.match(r"╭─ ([\w ]+?) ─", line):
            found[title := top[1]] = []
        elif line.startswith("│") and title:
            found[title].append(line.strip("│ "))
    return found


def read_commands(only_named: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """{"saltus sample --seed": {...}}, sorted; of commands in `only_named` that they exist, and no more."""
    names = [line.split()[0] for line in panels(*show_help("")).get("Commands", [])]
    found: dict[str, dict[str, Any]] = {f"saltus {name}": {} for name in names}
    read = [name for name in names if name not in only_named]
    for name, text in zip(read, show_help(*read), strict=True):
        found |= {f"saltus {name}{key}": value for key, value in read_help(text).items()}
    return dict(sorted(found.items()))


def read_help(text: str) -> dict[str, dict[str, Any]]:
    """{"": its arguments, " --seed": whether a value follows, whether it is required, its default}."""
    boxes = panels(text)
    found: dict[str, dict[str, Any]] = {"": {"arguments": [a.strip("* ").split()[0] for a in boxes.pop("Arguments", [])]}}
    for line in (line for box in boxes.values() for line in box):
        words = re.split(r"\s{2,}", line.strip("* "))[0].split()
        default = re.search(r"\[default: (.*?)\]", line)
        option = {"value": not words[-1].startswith("-"), "required": "[required]" in line, "default": default and default[1]}
        found |= {f" {word}": option for word in words if word.startswith("-")}
    return found


def broken_commands(recorded: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]]) -> list[str]:
    """One line for every command line that was right and no longer is."""
    lines = [f"{key}: gone" for key in recorded if key not in now]
    for key, was in recorded.items():
        for what, old in was.items():
            new = now.get(key, was)[what]
            if new != old and not (what == "required" and old):
                lines.append(f"{key}: {what} was {old}, is {new}")
    full = {key for key, was in recorded.items() if "arguments" in was}
    added = [key for key, option in now.items() if key not in recorded and option.get("required")]
    return lines + [f"{key}: is new and required" for key in added if " ".join(key.split()[:2]) in full]
