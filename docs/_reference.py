"""The API reference: every public name with its signature and docstring, made from the code itself."""

import inspect
import re
import textwrap

import saltus

MODULES = ("testing", "diagnostics", "targets", "training", "training.models", "datasets", "plot")
MODULES += ("bridges", "bridges.numpyro", "bridges.pymc", "bridges.blackjax", "random", "extending")
_FIELD = re.compile(r"^    (\w+): [^#\n]*  # (.+)$", re.MULTILINE)  # `    name: type  # what it is`
_ARGUMENT = re.compile(r"^([A-Za-z_][\w.]*(?:, \w+)*): (.*)$")

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
    parts = [f"### {name}", f"```python\n{signature(name, found)}\n```" if callable(found) else "", prose(inspect.getdoc(found))]
    if inspect.isclass(found):
        parts += ["\n".join(f"- **{field}**: {what}" for field, what in fields(found).items())]
        parts += [f"**`{own}`** {brief(method)}" for own, method in methods(found)]
    return "\n\n".join(filter(None, parts))


def signature(name, found):
    try:
        text = str(inspect.signature(found))
    except (TypeError, ValueError):
        text = "(...)"
    text = name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    return text if len(text) <= 100 else re.sub(r", (?=[\w*]+[:=,])", ",\n    ", text.replace("(", "(\n    ", 1))


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


def prose(text):
    """A docstring as Markdown: lines 'argument: what it is' become a list, indented blocks become code."""
    blocks = []
    for block in (text or "").split("\n\n"):
        lines = block.splitlines()
        if lines and all(line.startswith("    ") for line in lines) and not block.lstrip().startswith("$"):
            blocks.append(f"```\n{textwrap.dedent(block)}\n```")
        else:
            blocks.append("\n".join(listed(lines)).replace(" $$\n$$ ", " $$\n\n$$ "))
    return "\n\n".join(blocks)


def listed(lines):
    inside, full = False, False  # within the list; the line before was a full one, so that this one goes on with it
    for line in lines:
        argument = _ARGUMENT.match(line)
        if argument and not line.startswith(("Raises", "Returns")):
            yield ("" if inside else "\n") + f"- **{argument[1]}**: {argument[2]}"
            inside = True
        elif inside and not line.startswith(" ") and not full:
            yield "\n" + line
            inside = False
        else:
            yield f"    {line.strip()}" if inside else line
        full = len(line) > _FULL
