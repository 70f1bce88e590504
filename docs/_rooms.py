"""Draws docs/assets/rooms.svg: the rooms of the package, floor by floor, as tests/house/test_rooms.py has them.

python docs/_rooms.py
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.house.test_rooms import FLOORS  # noqa: E402

OUT = Path(__file__).parent / "assets/rooms.svg"
# From the ground up, as FLOORS.
TELLS = [
    "what everything uses",
    "spaces, targets, local models",
    "the method: one sampler a file",
    "ESS, R-hat, errors",
    "what a run's draws are worth, in words",
    "carries any kernel's chains",
    "a class in, a frozen kernel out",
    "which sampler",
    "sample, resume, the result",
    "what is built on runs",
    "summary, report, pictures",
    "doors for people",
]
WIDTH, ROW, LEFT, TALL, GAP, LETTER, MOST = 860, 38, 270, 26, 8, 7.3, 580


def picture():
    """The text of the file: boxes of each floor, wrapped where they do not fit, the ground floor at the bottom."""
    shapes, y = [], 12
    for rooms, tells in zip(reversed(FLOORS), reversed(TELLS), strict=True):
        shapes.append(f'<text class="tells" x="12" y="{y + 17}">{tells}</text>')
        x = LEFT
        for room in rooms.split():
            wide = round(LETTER * len(room) + 18)
            if x + wide > LEFT + MOST:
                x, y = LEFT, y + ROW - 6
            shapes.append(f'<rect x="{x}" y="{y}" width="{wide}" height="{TALL}" rx="4"/>')
            shapes.append(f'<text x="{x + wide / 2}" y="{y + 17}" text-anchor="middle">{room}</text>')
            x += wide + GAP
        y += ROW
    title = "Rooms of saltus: a room imports from its own line and from lines below"
    style = (
        "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1b1f24}"
        "text.tells{font-family:system-ui,sans-serif;fill:#57606a}rect{fill:#eef3f8;stroke:#8c959f}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{title}">'
    paper = f'<rect width="{WIDTH}" height="{y}" style="fill:#fff;stroke:none"/>'
    return "\n".join([head, f"<style>{style}</style>", paper, *shapes, "</svg>", ""])


if __name__ == "__main__":
    OUT.write_text(picture())
