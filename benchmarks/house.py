"""The state of the house: python benchmarks/house.py SRC, where SRC is a checkout's src/ folder. One JSON object.

Files that `saltus.sample(target, seed=0)` passes through, lines by room, branches on the kind of variable, of sampler and of
local model, imports inside functions, the longest file and function.
"""

import ast
import collections
import inspect
import json
import pathlib
import re
import sys

KINDS = r"isinstance\([^)]*(Binary|Spin|Ordinal|Categorical|Clock)|var_type"
_NAMES = "AVG|GWG|NCG|PAVG|BlockGibbs|Gibbs|UniformMH"
SAMPLERS = rf"\b(is|is not|==|in) \(?({_NAMES})\b|(isinstance|issubclass)\([^)]*({_NAMES})"
MODELS = r"isinstance\([^)]*(Gradient|HessianDiag|ExactDifferences|Differences|ClosedForm)"


def rooms(src: pathlib.Path) -> dict[str, int]:
    lines: dict[str, int] = collections.Counter()
    for path in src.rglob("*.py"):
        parts = path.relative_to(src).parts
        lines[parts[0] if len(parts) > 1 else "the nouns (files of their own)"] += path.read_text().count("\n")
    return dict(sorted(lines.items(), key=lambda item: -item[1]))


def matches(src: pathlib.Path, pattern: str, outside: tuple[str, ...]) -> int:
    files = [p for p in src.rglob("*.py") if not p.relative_to(src).as_posix().startswith(outside)]
    return sum(len(re.findall(pattern, path.read_text())) for path in files)


def functions(src: pathlib.Path) -> tuple[int, list, list]:
    """(imports inside functions, the longest function, the longest file)."""
    inside, longest, files = 0, [0, ""], [0, ""]
    for path in src.rglob("*.py"):
        name, text = path.relative_to(src).as_posix(), path.read_text()
        files = max(files, [text.count("\n"), name])
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside += sum(isinstance(n, ast.ImportFrom) and n.level > 0 for n in ast.walk(node))
                longest = max(longest, [node.end_lineno - node.lineno + 1, f"{name}: {node.name}"])
    return inside, longest, files


def passed(src: pathlib.Path) -> tuple[int, int]:
    """Files of ours in the first call a person makes: (of which anything ran, loading included; of which a function ran)."""
    import saltus

    target, loaded, ran = saltus.targets.ising((10, 10), 0.4), set(), set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(src)):
            is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.endswith(("comp>", "expr>"))
            (ran if is_function else loaded).add(code.co_filename)

    sys.setprofile(note)
    saltus.sample(target, seed=0, progress=False)
    sys.setprofile(None)
    return len(loaded | ran), len(ran)


if __name__ == "__main__":
    home = pathlib.Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(home))
    src = home / "saltus"
    (any_code, a_function), (inside, longest, files) = passed(src), functions(src)
    told = {
        "files passed by sample(target, seed=0)": any_code,
        "of them, files of which a function ran (the others were only loaded)": a_function,
        "files": len(list(src.rglob("*.py"))),
        "lines": sum(rooms(src).values()),
        "lines by room": rooms(src),
        "branches on the kind of variable, outside spaces and moves": matches(src, KINDS, ("spaces", "moves")),
        "branches on a sampler, outside kernels": matches(src, SAMPLERS, ("kernels",)),
        "branches on a local model, outside local": matches(src, MODELS, ("local",)),
        "imports inside functions": inside,
        "longest function": longest,
        "longest file": files,
    }
    print(json.dumps(told, indent=1))
