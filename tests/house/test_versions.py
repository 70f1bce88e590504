"""The lower bounds of pyproject.toml and the versions of .ci/lowest.txt, with which `make release-check` runs, are the same."""

import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).parents[2]
LOWEST = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / ".ci/lowest.txt").read_text(), re.MULTILINE))
CHECKED = ("cli", "io", "ebm", "plots", "report")  # extras that the check with the lowest versions installs


def bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [line for extra in CHECKED for line in project["optional-dependencies"][extra]]
    return {found[1]: found[2] for line in wanted if (found := re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line))}, len(wanted)


def test_every_requirement_has_a_lower_bound_that_is_tried():
    lower, number = bounds()
    assert len(lower) == number - 1  # matplotlib has two lines, one for each range of Pythons
    for name, version in lower.items():
        assert LOWEST[name] == version or LOWEST[name].startswith(version + "."), (name, version, LOWEST.get(name))


def test_workflows_call_what_the_makefile_has():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {
        word for file in (ROOT / ".github/workflows").glob("*.yml") for word in re.findall(r"run: make ([\w-]+)", file.read_text())
    }
    assert called
    assert called <= targets
