"""saltus in other people's tools: `saltus.mixed` for models with continuous parts, and NumPyro, PyMC and BlackJAX.

    saltus.bridges.numpyro.sample(model, *args)
    saltus.bridges.pymc.sample(model)
    saltus.bridges.blackjax.as_sampling_algorithm(kernel, target)

Each is imported when it is first used, and needs the package of its name (`pip install saltus[numpyro]`).
"""

import importlib as _importlib
from typing import Any as _Any

_MODULES = ("blackjax", "numpyro", "pymc")


def __getattr__(name: str) -> _Any:
    """Import it when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


__all__ = ["blackjax", "numpyro", "pymc"]
