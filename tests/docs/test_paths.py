"""Files and tests that the pages name are there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
HOMES = [ROOT, ROOT / "src", ROOT / "src/saltus", ROOT / "docs"]
TESTS = set(re.findall(r"def (test_\w+)", "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py")))))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page):
    text = page.read_text()
    named = {path for path in re.findall(r"`([\w./]+/[\w./]+\.(?:py|md|ts|txt))(?:::\w+)?`", text)}
    assert [path for path in sorted(named) if not any((home / path).exists() for home in HOMES)] == []
    assert sorted(set(re.findall(r"`(?:[\w./]+::)?(test_\w+)`", text)) - TESTS) == []
