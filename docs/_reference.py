"""The API reference: every public name with its signature and docstring, made from the code itself."""

import inspect
import re
import textwrap

import saltus

MODULES = ("testing", "diagnostics", "targets", "training", "training.models", "datasets", "plot")
MODULES += ("bridges", "bridges.numpyro", "bridges.pymc", "bridges.blackjax", "random", "extending")
_FIELD = re.compile(r"^    (\w+): [^#\n]*  # (.+)$", re.MULTILINE)  # `    name: type  # what it is`
_ENDS = re.compile("Returns |Raises ")
_WIDEST = 84  # characters of a signature in one line
_FULL = 90  # characters: a shorter line ends its paragraph


def reference(modules=MODULES):
    """One page: `saltus` itself, then its modules, each in alphabetical order."""
    told = [
        "# Reference",
        "Every public name. `saltus.name` is imported when it is first used.",
        "## saltus",
        *entries("saltus", saltus),
    ]
    for name in modules:
        module = module_of(name)
        told += [f"## saltus.{name}", first_sentence(module), *entries(f"saltus.{name}", module)]
    return "\n\n".join(filter(None, told)) + "\n"


def module_of(name):
    found = saltus
    for part in name.split("."):
        found = getattr(found, part)
    return found


def public_names(module):
    """What a module offers; what it imports from elsewhere is not its own."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n, x in vars(module).items() if not n.startswith("_") and getattr(x, "__module__", "") == module.__name__]
    return sorted(names, key=str.lower)


def entries(home, module):
    for name in public_names(module):
        if f"{home}.{name}".removeprefix("saltus.") in MODULES:
            continue
        found = getattr(module, name)
        if not inspect.ismodule(found):
            yield entry(f"{home}.{name}", found)


def entry(name, found):
    parts = [
        f"### {name}",
        f"```python\n{signature(name, found)}\n```" if callable(found) else "",
        prose(inspect.getdoc(found), arguments(found)),
    ]
    if inspect.isclass(found):
        parts += ["\n".join(f"- **{field}**: {what}" for field, what in fields(found).items())]
        parts += ["\n".join(f"- **`{own}`** {brief(method)}" for own, method in methods(found))]
    return "\n\n".join(filter(None, parts))


def signature(name, found):
    try:
        text = str(inspect.signature(found))
    except (TypeError, ValueError):
        text = "(...)"
    text = name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", text).removesuffix(" -> None")
    if len(text) <= _WIDEST:
        return text
    lines = re.sub(r", (?=[\w*]+[:=,])", ",\n    ", text.replace("(", "(\n    ", 1))
    return re.sub(r"\)( -> [^()]*)?$", r"\n)\1", lines)


def arguments(found):
    """Names of what it takes, of its fields and properties; None where they cannot be known."""
    try:
        takes = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return set()
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in takes.values()):
        return None
    properties = [n for n, x in vars(found).items() if isinstance(x, property)] if inspect.isclass(found) else []
    return {*takes, *getattr(found, "__annotations__", ()), *properties}


def fields(found):
    """Fields of a record that a comment beside them explains: {name: comment}."""
    try:
        return dict(_FIELD.findall(inspect.getsource(found)))
    except (OSError, TypeError):
        return {}


def methods(found):
    """Public methods and properties that the class itself defines and explains."""
    protocol = set(vars(saltus.Kernel)) if found is not saltus.Kernel and issubclass(found, saltus.Kernel) else set()
    for name, member in vars(found).items():
        if (
            not name.startswith("_")
            and name not in protocol
            and (callable(member) or isinstance(member, (property, classmethod)))
            and inspect.getdoc(member)
        ):
            yield name, member


def brief(member):
    return inspect.getdoc(member).split("\n\n")[0].replace("\n", " ")


def first_sentence(module):
    return (inspect.getdoc(module) or "").split("\n")[0]


def prose(text, names):
    """A docstring as Markdown: what it says of arguments ('name: what it is') becomes a list, indented blocks become code."""
    blocks = []
    for block in (text or "").split("\n\n"):
        lines = block.splitlines()
        if lines and all(line.startswith("    ") for line in lines) and not block.lstrip().startswith("$"):
            blocks.append(f"```\n{textwrap.dedent(block)}\n```")
        else:
            blocks.append("\n".join(listed(lines, names)).replace(" $$\n$$ ", " $$\n\n$$ "))
    return "\n\n".join(blocks)


def listed(lines, names):
    """One item for each argument, also where several stand in one line. names: None: any word that begins a line."""
    name = r"[a-z]\w*" if names is None else "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    argument = re.compile(rf"(?:^{'' if names is None else '|(?<=[.] )'})((?:{name})(?:, (?:{name}))*): ")
    inside, full = False, False  # within the list; the line before was a full one, so that this one goes on with it
    for line in lines:
        for number, piece in enumerate(_pieces(line, argument, inside)):
            found = argument.match(piece)
            if found:
                yield ("" if inside else "\n") + f"- **{found[1]}**: {piece[found.end() :].strip()}"
                inside = True
            elif inside and (_ENDS.match(piece.strip()) or not (number or line.startswith(" ") or full)):
                yield "\n" + piece.strip()
                inside = False
            else:
                yield f"    {piece.strip()}" if inside else piece
        full = len(line) > _FULL


def _pieces(line, argument, inside):
    """A line, cut where an argument begins and, within the list, where it is told what is returned or raised."""
    line = argument.sub(r"\n\1: ", line).lstrip("\n")
    if inside or "\n" in line:
        line = re.sub(r"\. (?=(?:Returns|Raises) )", ".\n", line)
    return [piece.rstrip() for piece in line.split("\n")]
