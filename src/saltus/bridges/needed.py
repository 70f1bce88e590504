"""Packages that a bridge needs: found, or an error that says how to install them."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import SaltusError


def needed(name: str, what: str) -> Any:
    """The package `name`, which `what` needs."""
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise SaltusError(
            f"{what} needs {name}, which cannot be imported.",
            expected=f"pip install 'saltus[{name.partition('.')[0]}]'",
            found=f"{type(cause).__name__}: {cause}",
        ) from cause
