"""Every Python block of the README, CONTRIBUTING and the pages runs, in order, in a fresh process."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


# Pages whose blocks need packages that `make test` does not install: `make test-bridges` runs them.
ELSEWHERE = {"bridges.md"}
MADE = {"gallery.md"}  # pages that `make docs` makes, and checks the links to
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(p for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in ELSEWHERE),
]


@pytest.mark.parametrize("page", [str(p.relative_to(ROOT)) for p in PAGES if "```python" in p.read_text()])
def test_blocks_run(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True, timeout=600, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))])
def test_links_and_files_exist(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    files = re.findall(r"`((?:src|tests|docs|paper|benchmarks)/[\w/]+\.(?:py|md))", text)
    for link in set(links) - MADE:
        assert ((ROOT / page).parent / link).exists(), link
    for file in files:
        assert (ROOT / file).exists(), file


def test_tests_named_in_deviations_exist():
    named = re.findall(r"`(?:tests/[\w/]+\.py::)?(test_\w+)`", (ROOT / "docs/deviations.md").read_text())
    source = "\n".join(p.read_text() for p in (ROOT / "tests").rglob("*.py"))
    assert named
    for name in named:
        assert f"def {name}(" in source, name
