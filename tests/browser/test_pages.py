"""Report and explorer in a real browser: no console error, no request, accessible, nothing too wide, and everything reacts.

Screenshots go to $SALTUS_SHOTS, where it names a folder. Needs Debian's chromium, node and `npm ci` in web.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import jax.numpy as jnp
import pytest

import saltus
from saltus.explorer import PAGE

HERE = Path(__file__).parent
MODULES = HERE.parents[1] / "web/node_modules"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
MISSING = [
    *(["node"] if shutil.which("node") is None else []),
    *([CHROMIUM] if not Path(CHROMIUM).exists() else []),
    *(["npm ci in web"] if not (MODULES / "playwright-core").exists() else []),
]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not there: {', '.join(MISSING)}"),
    pytest.mark.filterwarnings("ignore::saltus.ConvergenceWarning"),
]
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(2)>",
    "\"a\" 'b' & <b>",
    "\u202eback",
    "\x1b[31mred",
    "x" * 3000,
]


def visit(script, page):
    shots = [os.environ["SALTUS_SHOTS"]] if "SALTUS_SHOTS" in os.environ else []
    done = subprocess.run(["node", HERE / script, page, *shots], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sound(told):
    assert set(told) == {"desktop", "phone"}
    for found in told.values():
        assert found["errors"] == []
        assert found["requests"] == []
        assert found["wrong"] == []  # axe-core: contrast, names, landmarks
        assert found["wide"] == []


def test_report(tmp_path):
    target = saltus.Target(lambda s: 0.4 * jnp.sum(s[1:] * s[:-1]), saltus.Binary(6), names=HOSTILE)
    run = saltus.sample(target, saltus.GWG(), num_draws=200, num_warmup=20, thin=1, seed=0, progress=False)
    told = visit("report.mjs", saltus.report(run, tmp_path / "report.html"))
    sound(told)
    for found in told.values():
        assert len(found["all"]) == 6
        assert any("<script>alert(1)</script>" in name for name in found["all"])
        assert found["executed"] == 0
        assert 1 <= len(found["filtered"]) < 6
        assert found["count"] == f"{len(found['filtered'])} shown"
        assert found["up"] == found["down"][::-1]
        assert found["up"] != found["down"]
        assert found["scrolled"] > 0
        assert found["printed"] == "none"  # links are not printed


def test_explorer():
    told = visit("explorer.mjs", PAGE)
    sound(told)
    for found in told.values():
        changed = {what: set(parts) for what, *parts in found["steps"]}
        assert changed.pop("drag") == {"state", "proposal", "accepted"}
        assert {"state", "proposal"} <= changed.pop("keyboard")
        assert {"state", "proposal"} <= changed.pop("target")
        assert all(parts in ({"proposal"}, {"proposal", "accepted"}) for parts in changed.values()), changed
        assert float(found["hessian"].removesuffix(" %")) > 99  # Σ is the Hessian, but for the slider's last digit
        assert found["once"] == "1"
        assert found["ran"] > 60
        assert 0 < float(found["distance"]) < 0.95
        assert found["reset"] == "0"
