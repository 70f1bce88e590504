"""`make release-check`: sdist and wheel build, and the README's first example runs from the wheel in empty venvs.

none and all extras on every Python that is here, each extra alone on the first; and the lowest versions of .ci/lowest.txt.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.13")
ALL = "cli,io,ebm,plots,report"
ALONE = ("cli", "io", "ebm", "plots", "report")


def main():
    dist = build()
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    pythons = [path for path in map(find, PYTHONS) if path]
    wanted = [(python, extras, None) for python in pythons for extras in ("", ALL)]
    wanted += [(pythons[0], extra, None) for extra in ALONE]
    wanted += [(pythons[0], "io", ROOT / ".ci/lowest.txt")]
    for python, extras, limits in wanted:
        check(dist, python, extras, limits, example)
    print(f"release-check: {len(wanted)} installations run the README's first example")


def build():
    """The wheel, from a clean folder."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)])
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    return next(dist.glob(f"{version}-*.whl"))


def find(name):
    """An interpreter that runs; one that pyenv has but does not show counts too."""
    for path in (shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))):
        if path and subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return str(path)
    print(f"release-check: {name} is not here, and is left out")
    return None


def check(wheel, python, extras, limits, example):
    with tempfile.TemporaryDirectory() as folder:
        run([python, "-m", "venv", f"{folder}/venv"])
        own = f"{folder}/venv/bin/python"
        what = f"{wheel}[{extras}]" if extras else str(wheel)
        run([own, "-m", "pip", "install", "-q", "--disable-pip-version-check", *(["-c", str(limits)] if limits else []), what])
        run([own, "-W", "error::DeprecationWarning:__main__", "-c", example], cwd=folder)
        told = f"{Path(python).name}, {extras or 'no extras'}{', lowest versions' if limits else ''}"
        print(f"release-check: {told}: the first example runs", flush=True)


def run(command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    if done.returncode:
        sys.exit(f"release-check: {' '.join(command[:6])} failed\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


if __name__ == "__main__":
    main()
