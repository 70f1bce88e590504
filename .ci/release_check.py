"""`make release-check`: sdist and wheel build, and from the wheel, in empty venvs, the README's first example and walks run.

No extras and all extras on every Python that is here, each extra alone on the first, the lowest versions of .ci/lowest.txt.
`make release-check ONLY=3.13` checks the installations whose description contains these letters. What passed is kept in
build/release-check, so that an interrupted check goes on; a changed wheel begins anew.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.13")
ALONE = ("cli", "io", "ebm", "plots", "report", "numpyro", "blackjax", "pymc", "sweep")
ALL = "cli,io,ebm,plots,report,numpyro,blackjax"  # pymc and sweep bring hundreds of megabytes that nothing here uses
OWN, KERNEL, NUMPYRO = (ROOT / "tests/walks" / f"{name}.py" for name in ("own_posterior", "own_kernel", "numpyro_model"))


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    wheel = build()
    first, *others = [path for path in map(find, PYTHONS) if path]
    wanted = [(first, "", None, []), (first, ALL, None, [OWN, KERNEL, NUMPYRO])]
    wanted += [job for python in others for job in ((python, "", None, []), (python, ALL, None, [OWN, NUMPYRO]))]
    wanted += [(first, "cli,io,plots,report,ebm", ROOT / ".ci/lowest.txt", [OWN])]
    wanted += [(first, extra, None, []) for extra in ALONE]
    chosen = [job for job in wanted if only in told(*job[:3])]
    for job in chosen:
        check(wheel, *job)
    print(f"release-check: {len(chosen)} of {len(wanted)} installations were checked, none failed")


def build():
    """The wheel, in a folder of its own, so that two checks may run at once; it and the sdist are also put into dist."""
    made = tempfile.mkdtemp()
    run([sys.executable, "-m", "build", "--outdir", made, str(ROOT)])
    shutil.copytree(made, ROOT / "dist", dirs_exist_ok=True)
    return next(Path(made).glob("saltus-*.whl"))


def find(name):
    """An interpreter that runs; one that pyenv has but does not show counts too."""
    for path in (shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))):
        if path and subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return str(path)
    print(f"release-check: {name} is not here, and is left out")
    return None


def told(python, extras, limits):
    return f"{Path(python).name}, {extras or 'no extras'}{', lowest versions' if limits else ''}"


def check(wheel, python, extras, limits, walks):
    what = told(python, extras, limits)
    kept = ROOT / "build/release-check" / re.sub(r"\W+", "-", what)
    state = hashlib.sha256(b"".join(path.read_bytes() for path in (wheel, *walks, *([limits] if limits else [])))).hexdigest()
    if kept.exists() and kept.read_text().startswith(state):
        return print(f"release-check: {what}: passed before")
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    began, lines = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as folder:
        run([python, "-m", "venv", f"{folder}/venv"])
        own = f"{folder}/venv/bin/python"
        bounds = ["-c", str(limits)] if limits else []
        wanted = f"{wheel}[{extras}]" if extras else str(wheel)
        run([own, "-m", "pip", "install", "-q", "--disable-pip-version-check", *bounds, wanted])
        lines.append(f"installed after {time.perf_counter() - began:.0f} s")
        run([own, "-W", "error::DeprecationWarning:__main__", "-c", example], cwd=folder)
        lines.append(f"the first example of the README has run after {time.perf_counter() - began:.0f} s")
        for walk in walks:
            shutil.copy(walk, folder)
            steps = run([own, walk.name], cwd=folder).splitlines()
            lines += [f"{walk.stem}: {line.strip()}" for line in steps if re.match(r" *\d+\.\d s  ", line)]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("\n".join([state, *lines]) + "\n")
    print(f"release-check: {what}:", *lines, sep="\n    ", flush=True)


def run(command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    if done.returncode:
        sys.exit(f"release-check: {' '.join(command[:6])} failed\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
