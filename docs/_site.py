"""What mkdocs does beyond its own: pages from the repository's root, equations as MathML, the gallery and the reference."""

import html
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
from _reference import reference

ROOT = Path(__file__).parents[1]
# Pages that live elsewhere in the repository: {page of the site: file}.
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "results.md": "results/results.md"}
FIGURES = {"results/figures": "figures", "results-full/figures": "figures-full"}  # {folder of the repository: folder of the site}
_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_SEARCH = '<div class="md-search" data-md-component="search" role="dialog" aria-label="Search">'
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?!https?:|#|mailto:)([^)]+)\)")


def on_files(files, config):
    """Pages and figures from the root; the reference and the gallery, made from what there is."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for folder, shown in FIGURES.items():
        for figure in sorted((ROOT / folder).glob("*.svg")):
            files.append(File.generated(config, f"{shown}/{figure.name}", abs_src_path=str(figure)))
    files.append(File.generated(config, "explorer/explorer.html", abs_src_path=str(ROOT / "src/saltus/explorer/explorer.html")))
    files.append(File.generated(config, "reference/index.md", content=reference()))
    files.append(File.generated(config, "gallery.md", content=gallery()))
    for example in examples():
        files.append(File.generated(config, f"gallery/{example.stem}.md", content=example_page(example)))
        picture = ROOT / "build/gallery" / f"{example.stem}.svg"
        if picture.exists():
            files.append(File.generated(config, f"gallery/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links from pages of the repository to what the site has, or to nothing."""
    known = {file.src_uri for file in files}
    home = Path(page.file.src_uri).parent

    def mended(found):
        text, link = found[1], found[2]
        bare, _, anchor = link.partition("#")
        if (home / bare).as_posix() in known:
            return found[0]
        named = {source: target for target, source in PAGES.items()}
        inside = bare.removeprefix("../").removeprefix("docs/")
        other = named.get(inside) or (inside if inside in known else None)
        other = other or (f"explorer/{Path(bare).name}" if bare.endswith("explorer.html") else None)
        shown = f"{FIGURES.get(inside.rpartition('/')[0], 'figures')}/{Path(bare).name}"
        other = other or (shown if shown in known else None)
        if other:
            return f"[{text}]({'../' * len(home.parts)}{other}{'#' + anchor if anchor else ''})"
        return text

    return _OUTSIDE.sub(mended, markdown)


def on_page_content(content, page, config, files):
    """TeX as MathML: browsers draw it by themselves."""

    def as_mathml(found):
        block = found[2] == "["
        drawn = convert(html.unescape(found[3]), display="block" if block else "inline")
        return drawn.replace("<math ", '<math tabindex="0" ', 1) if block else drawn  # so that a wide one scrolls by keyboard

    return _EQUATION.sub(as_mathml, content)


def on_post_page(output, page, config):
    """The theme's search box is a dialog without a name; a reader's software should say what it is."""
    return output.replace('<div class="md-search" data-md-component="search" role="dialog">', _SEARCH)


def examples():
    return sorted((ROOT / "examples").glob("*.py"))


def gallery():
    """Thumbnails, each with its page."""
    cards = []
    for example in examples():
        title = _title(example)
        cards.append(f'<a href="gallery/{example.stem}.html"><img src="gallery/{example.stem}.svg" alt=""><br>{title}</a>')
    head = "---\nhide: [toc]\n---\n# Gallery\n\nEvery picture is made by the script behind it.\n\n"
    return f'{head}<div class="gallery">{"".join(cards)}</div>\n'


def example_page(example):
    source = example.read_text()
    return f"# {_title(example)}\n\n![{_title(example)}]({example.stem}.svg)\n\n```python\n{source}```\n"


def _title(example):
    return html.escape(example.read_text().split('"""')[1].strip().splitlines()[0].rstrip("."))
