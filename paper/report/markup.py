"""A page of headings, paragraphs, tables and figures, written as Markdown or HTML; figures are files of the folder beside it."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from string import Template

_HTML = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1100px; margin: 2rem auto; padding: 0 1rem }
h1, h2, h3 { line-height: 1.2 } h2 { margin-top: 3rem; border-bottom: 1px solid #ddd; padding-bottom: .3rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: 14px; margin: 1rem 0 }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #eee; vertical-align: top }
th { border-bottom: 2px solid #999 } figure { margin: 1.5rem 0 } figure img { max-width: 100%; height: auto }
figcaption { font-size: 14px; color: #555 } code { background: #f4f4f4; padding: .1rem .3rem }
.good { color: #00664b; font-weight: 600 } .bad { color: #b03a00; font-weight: 600 } .open { color: #666; font-weight: 600 }
</style></head><body>
$body
</body></html>
""")


@dataclass
class Page:
    """Text may have `code` and **strong** words; a table cell that begins with a verdict is coloured."""

    title: str
    marks: dict[str, str] = field(default_factory=dict)  # how a cell begins -> good, bad or open
    parts: list[tuple] = field(default_factory=list)

    def heading(self, text: str, level: int = 2) -> None:
        self.parts.append(("heading", text, level))

    def say(self, text: str) -> None:
        self.parts.append(("text", text))

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        self.parts.append(("table", head, rows))

    def figure(self, name: str, caption: str) -> None:
        """A figure of the folder `figures`."""
        self.parts.append(("figure", name, caption))

    def markdown(self) -> str:
        write = {"heading": _md_heading, "text": lambda text: text, "table": _md_table, "figure": _md_figure}
        return "\n\n".join([f"# {self.title}", *(write[kind](*rest) for kind, *rest in self.parts)]) + "\n"

    def html(self) -> str:
        write = {
            "heading": lambda text, level: f"<h{level}>{_inline(text)}</h{level}>",
            "text": lambda text: f"<p>{_inline(text)}</p>",
            "table": self._html_table,
            "figure": lambda name, caption: _html_figure(name, caption),
        }
        body = [f"<h1>{_inline(self.title)}</h1>", *(write[kind](*rest) for kind, *rest in self.parts)]
        return _HTML.substitute(title=html.escape(self.title), body="\n".join(body))

    def _html_table(self, head: list[str], rows: list[list[str]]) -> str:
        top = "".join(f"<th>{_inline(cell)}</th>" for cell in head)
        body = "".join(f"<tr>{''.join(f'<td>{self._marked(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
        return f'<div class="scroll"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'

    def _marked(self, cell: str) -> str:
        for word, kind in self.marks.items():
            if cell.startswith(word):
                return f'<span class="{kind}">{_inline(word)}</span>{_inline(cell[len(word) :])}'
        return _inline(cell)


def _inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)


def _md_heading(text: str, level: int) -> str:
    return f"{'#' * level} {text}"


def _md_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _md_figure(name: str, caption: str) -> str:
    return f"![{name}](figures/{name}.svg)\n\n*{caption}*"


def _html_figure(name: str, caption: str) -> str:
    return f'<figure><img src="figures/{name}.svg" alt="{name}"><figcaption>{_inline(caption)}</figcaption></figure>'
