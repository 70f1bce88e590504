"""These tests need numpyro, blackjax and pymc: `make test-bridges` runs them, in venvs of their own, and leaves none out."""

import importlib.util
import os

NEEDED = ("numpyro", "blackjax", "pymc")
missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if missing and os.environ.get("SALTUS_BRIDGES") == "1":
    raise ImportError(f"make test-bridges needs {', '.join(missing)}")
collect_ignore_glob = ["test_*.py"] if missing else []
