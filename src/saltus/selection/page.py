"""A folder with everything a `Selection` says: tables, figures, and one page that needs no other file."""

from __future__ import annotations

import base64
import html
import io
import os
from pathlib import Path
from typing import Any

from .._words import escaped
from ..errors import StorageError
from .words import doubts

FILES = ("columns.csv", "models.csv", "size.csv", "summary.txt", "selection.png", "index.html")
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #e3e5e8; }
th:first-child, td:first-child { text-align: left; } img { width: 100%; height: auto; }
.in { font-weight: 600; }
.doubt { background: #fff3e0; padding: .5rem .8rem; } pre { overflow-x: auto; background: #f6f7f8; padding: .8rem; }
"""


def check_folder(folder: Any, overwrite: bool) -> Path:
    """The folder, once none of our files would replace another; it need not exist."""
    path = Path(os.path.abspath(folder))
    try:
        if path.exists() and not path.is_dir():
            raise StorageError("The output is not a folder.", found=str(path))
        there = [name for name in FILES if (path / name).exists()] if path.exists() else []
    except (OSError, ValueError) as cause:
        raise StorageError("The output cannot be used.", found=f"{path}: {cause}") from cause
    if there and not overwrite:
        raise StorageError("The folder already has results.", found=f"{path / there[0]}", hint="--overwrite replaces them")
    return path


def write_folder(found: Any, folder: Path) -> list[str]:
    """Write all of `FILES`; returns their names."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found.to_frame().to_csv(folder / "columns.csv")
        models = found.models.assign(columns=[" + ".join(c) for c in found.models["columns"]])
        models.to_csv(folder / "models.csv", index=False)
        found.size.to_csv(folder / "size.csv")
        (folder / "summary.txt").write_text(found.summary(most=len(found.names)) + "\n", encoding="utf-8")
        image = io.BytesIO()
        found.plot().savefig(image, format="png", dpi=130)
        (folder / "selection.png").write_bytes(image.getvalue())
        (folder / "index.html").write_text(page(found, image.getvalue()), encoding="utf-8")
    except OSError as cause:
        raise StorageError("The results cannot be written.", found=f"{folder}: {cause}") from cause
    return list(FILES)


def page(found: Any, image: bytes) -> str:
    """One self-contained HTML page."""
    data = found._data
    title = html.escape(escaped(f"What explains {data.response_name}?"))
    shown = "".join(f'<p class="doubt">{html.escape(escaped(text))}</p>' for text in doubts(found))
    picture = base64.b64encode(image).decode()
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>"
        f"<h1>{title}</h1>{_lead(found)}{shown}"
        f'<img alt="Inclusion probabilities, coefficients, models, size, convergence" src="data:image/png;base64,{picture}">'
        f"<h2>Columns</h2>{_table(found)}<h2>In full</h2><pre>{html.escape(found.summary(most=20))}</pre></html>"
    )


def _lead(found: Any) -> str:
    likely = [name for name in found.inclusion.sort_values(ascending=False).index if found.inclusion[name] >= 0.5]
    if not likely:
        return "<p>No column has an inclusion probability of one half or more.</p>"
    names = ", ".join(f"<b>{html.escape(escaped(name))}</b> ({found.inclusion[name]:.2f})" for name in likely[:12])
    more = f" and {len(likely) - 12} more" if len(likely) > 12 else ""
    return f"<p>More likely in the model than not: {names}{more}.</p>"


def _table(found: Any) -> str:
    frame = found.to_frame().sort_values("inclusion", ascending=False).head(200)
    heads = ["column", "inclusion", "error", "coefficient", "2.5 %", "97.5 %", "if in", "sign certain"]
    forms = {"inclusion": ".3f", "inclusion_error": ".2g", "mean": ".3g", "lower": ".3g", "upper": ".3g", "mean_if_in": ".3g"}
    forms["sign_probability"] = ".3f"
    rows = []
    for name, row in frame.iterrows():
        cells = "".join(f"<td>{'' if row[k] != row[k] else format(row[k], form)}</td>" for k, form in forms.items())
        rows.append(f"<tr class={'in' if row['inclusion'] >= 0.5 else 'out'}><td>{html.escape(escaped(name))}</td>{cells}</tr>")
    return f"<table><tr>{''.join(f'<th>{h}</th>' for h in heads)}</tr>{''.join(rows)}</table>"
