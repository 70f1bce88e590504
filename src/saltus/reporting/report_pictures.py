"""Small pictures for a report: inline SVG whose colours are the page's own, light or dark, and maps as PNG."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from .._words import escaped, significant

WIDTH, HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 10, 10, 34
_MOST_POINTS = 400  # of a line
NUM_COLOURS = 8
_LOW, _MIDDLE, _HIGH = np.array([[33, 102, 172], [247, 247, 247], [178, 24, 43]])  # of a map


class Frame:
    """A picture with two axes: from numbers to places, and the lines that say which is where."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], width: int = WIDTH, height: int = HEIGHT):
        self.x, self.y, self.width, self.height = _opened(*x), _opened(*y), width, height
        self.parts: list[Markup] = []

    def across(self, x: float) -> float:
        low, high = self.x
        return _LEFT + (x - low) / (high - low) * (self.width - _LEFT - _RIGHT)

    def up(self, y: float) -> float:
        low, high = self.y
        return self.height - _BOTTOM - (y - low) / (high - low) * (self.height - _TOP - _BOTTOM)

    def add(self, markup: str, **values: object) -> None:
        """Markup with values put in, escaped."""
        self.parts.append(Markup(markup).format(**values))

    def axes(self, x_label: str, y_label: str) -> None:
        for y in _ticks(*self.y):
            at = self.up(y)
            self.add('<line class="grid" x1="{a}" x2="{b}" y1="{y:.1f}" y2="{y:.1f}"/>', a=_LEFT, b=self.width - _RIGHT, y=at)
            self.add('<text class="tick" x="{x}" y="{y:.1f}" text-anchor="end">{t}</text>', x=_LEFT - 6, y=at + 4, t=_short(y))
        for x in _ticks(*self.x):
            at = self.across(x)
            self.add(
                '<text class="tick" x="{x:.1f}" y="{y}" text-anchor="middle">{t}</text>',
                x=at,
                y=self.height - _BOTTOM + 14,
                t=_short(x),
            )
        middle = (_LEFT + self.width - _RIGHT) / 2
        self.add('<text class="label" x="{x}" y="{y}" text-anchor="middle">{t}</text>', x=middle, y=self.height - 4, t=x_label)
        turned = f"rotate(-90 12 {(self.height - _BOTTOM) / 2:.0f})"
        self.add(
            '<text class="label" x="12" y="{y:.0f}" transform="{turned}" text-anchor="middle">{t}</text>',
            y=(self.height - _BOTTOM) / 2,
            turned=turned,
            t=y_label,
        )

    def svg(self, title: str) -> Markup:
        head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(self.width, self.height, escaped(title))
        return head + Markup("").join(self.parts) + Markup("</svg>")


def lines(series: Sequence[np.ndarray], names: Sequence[str], every: int, y_label: str, title: str) -> Markup:
    """One line a series, over draws that are `every` apart; long ones by the lowest and highest of neighbours."""
    finite = [s[np.isfinite(s)] for s in series]
    together = np.concatenate(finite) if finite else np.zeros(0)
    if not together.size:
        return Markup("")
    length = max(len(s) for s in series)
    frame = Frame((0, max((length - 1) * every, 1)), (float(together.min()), float(together.max())))
    frame.axes("draw", y_label)
    for i, each in enumerate(series):
        x, y = _thinned(np.asarray(each, np.float64))
        points = " ".join(f"{frame.across(a * every):.1f},{frame.up(b):.1f}" for a, b in zip(x, y, strict=True))
        frame.add(
            '<polyline class="chain c{i}" points="{p}"><title>{t}</title></polyline>',
            i=i % NUM_COLOURS,
            p=points,
            t=escaped(names[i]),
        )
    return frame.svg(title)


def _thinned(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) of finite points: all, or of every group of neighbours the lowest and the highest, in their order."""
    x = np.flatnonzero(np.isfinite(y))
    y = y[x]
    if len(y) <= _MOST_POINTS:
        return x, y
    groups = np.array_split(np.arange(len(y)), _MOST_POINTS // 2)
    chosen = np.array([sorted((g[np.argmin(y[g])], g[np.argmax(y[g])])) for g in groups]).ravel()
    return x[chosen], y[chosen]


def ranks(x: np.ndarray, names: Sequence[str], num_bins: int, title: str) -> Markup:
    """Where the draws of each chain stand among those of all: level where the chains agree. x: (chains, draws)."""
    order = np.argsort(np.argsort(x.ravel(), kind="stable"), kind="stable").reshape(x.shape)
    counts = np.array([np.histogram(row, bins=num_bins, range=(0, x.size))[0] for row in order])
    level = x.shape[1] / num_bins
    height = 46
    frame = Frame((0, num_bins), (0, 1), height=_TOP + height * len(counts) + _BOTTOM)
    most = max(counts.max(), 1)
    for i, row in enumerate(counts):
        floor = _TOP + height * (i + 1) - 6
        for b, count in enumerate(row):
            tall = (height - 12) * count / most
            frame.add(
                '<rect class="bar c{i}" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"/>',
                **{"i": i % NUM_COLOURS, "x": frame.across(b) + 0.5, "y": floor - tall},
                **{"w": frame.across(1) - frame.across(0) - 1, "h": tall},
            )
        at = floor - (height - 12) * level / most
        frame.add('<line class="mark" x1="{a}" x2="{b}" y1="{y:.1f}" y2="{y:.1f}"/>', a=_LEFT, b=frame.width - _RIGHT, y=at)
        frame.add('<text class="tick" x="{x}" y="{y:.1f}" text-anchor="end">{t}</text>', x=_LEFT - 6, y=floor - 8, t=names[i])
    middle, foot = (_LEFT + frame.width - _RIGHT) / 2, frame.height - 12
    frame.add('<text class="label" x="{x}" y="{y}" text-anchor="middle">rank among all draws</text>', x=middle, y=foot)
    return frame.svg(title)


def bars(
    names: Sequence[str], values: Sequence[float], errors: Sequence[float], most: float, title: str, least: float = 0.0
) -> Markup:
    """One bar a name, from `least` to `most`, with two standard errors on each side."""
    row, left, right = 22, 190, 76
    width, height = WIDTH, row * len(names) + 8
    frame = Frame((least, most), (0, 1), width, height)
    across = lambda x: left + (min(max(x, least), most) - least) / ((most - least) or 1) * (width - left - right)  # noqa: E731
    zero = across(0)
    for i, (name, value, error) in enumerate(zip(names, values, errors, strict=True)):
        y, at = 4 + row * i, across(value)
        frame.add(
            '<text class="tick" x="{x}" y="{y}" text-anchor="end">{t}<title>{full}</title></text>',
            **{"x": left - 8, "y": y + 15, "t": cut(name, 20), "full": cut(name, 200)},
        )
        frame.add(
            '<rect class="bar c0" x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}"/>',
            **{"x": min(zero, at), "y": y + 3, "w": abs(at - zero), "h": row - 7},
        )
        if error > 0 and math.isfinite(error):
            low, high = across(value - 2 * error), across(value + 2 * error)
            frame.add('<line class="error" x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}"/>', a=low, b=high, y=y + row / 2)
        frame.add('<text class="tick" x="{x}" y="{y}">{t}</text>', x=width - right + 8, y=y + 15, t=significant(value))
    return frame.svg(title)


def histogram(draws: np.ndarray, name: str, num_bins: int = 24) -> Markup:
    """Of numbers: a bar a value where there are few, else a bar a range."""
    draws = draws[np.isfinite(draws)] if draws.dtype.kind == "f" else draws
    if not draws.size:
        return Markup("")
    values, counts = np.unique(draws, return_counts=True)
    if len(values) > 2 * num_bins:
        counts, edges = np.histogram(draws.astype(np.float64), bins=num_bins)
        starts, ends = edges[:-1], edges[1:]
    else:
        gap = float(np.diff(values).min()) if len(values) > 1 else 1.0
        starts, ends = values - 0.4 * gap, values + 0.4 * gap
    share = counts / counts.sum()
    frame = Frame((float(starts[0]), float(ends[-1])), (0, float(share.max())), width=300, height=170)
    frame.axes(cut(name, 30), "share")
    for a, b, s in zip(starts, ends, share, strict=True):
        x, y = frame.across(float(a)), frame.up(float(s))
        frame.add(
            '<rect class="bar c0" x="{x:.1f}" y="{y:.1f}" width="{w:.2f}" height="{h:.1f}"/>',
            **{"x": x, "y": y, "w": max(frame.across(float(b)) - x, 0.8), "h": max(frame.up(0) - y, 0)},
        )
    return frame.svg(f"Histogram of {name}")


def shares(names: Sequence[str], labels: Sequence[str], table: np.ndarray, title: str) -> Markup:
    """How often each site has each label: rows that are divided. table: (sites, labels), rows sum to 1."""
    row, left, right = 22, 190, 12
    frame = Frame((0, 1), (0, 1), WIDTH, row * len(names) + 8)
    for i, name in enumerate(names):
        y, x = 4 + row * i, float(left)
        frame.add('<text class="tick" x="{x}" y="{y}" text-anchor="end">{t}</text>', x=left - 8, y=y + 15, t=cut(name, 20))
        for j, share in enumerate(table[i]):
            w = float(share) * (WIDTH - left - right)
            frame.add(
                '<rect class="bar c{j}" x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}"><title>{t}</title></rect>',
                **{"j": j % NUM_COLOURS, "x": x, "y": y + 3, "w": w, "h": row - 7, "t": f"{cut(labels[j], 60)}: {share:.3f}"},
            )
            x += w
    return frame.svg(title)


def site_map(values: np.ndarray, low: float, high: float, title: str, most: int = 256) -> tuple[Markup, int]:
    """One cell a site, row by row, blue at `low` and red at `high`; and how many sites a row has."""
    width = math.ceil(math.sqrt(len(values)))
    grid: np.ndarray = np.full(width * math.ceil(len(values) / width), np.nan)
    grid[: len(values)] = values
    grid = grid.reshape(-1, width)
    block = -(-width // most)
    if block > 1:
        grid = _averaged(grid, block)
    share = np.clip((grid - low) / ((high - low) or 1), 0, 1)[..., None]
    lower, upper = _LOW + (_MIDDLE - _LOW) * 2 * share, _MIDDLE + (_HIGH - _MIDDLE) * (2 * share - 1)
    colours = np.where(share < 0.5, lower, upper)
    rgba = np.concatenate([colours, 255 * np.ones_like(share)], axis=-1)
    rgba[np.isnan(grid)] = 0
    data = base64.b64encode(_png(rgba.round().astype(np.uint8))).decode()
    image = '<img class="map" alt="{}" src="data:image/png;base64,{}">'
    return Markup(image).format(escaped(title), data), width


def _averaged(grid: np.ndarray, block: int) -> np.ndarray:
    """Means of squares of cells."""
    padded = np.pad(grid, [(0, -n % block) for n in grid.shape], constant_values=np.nan)
    rows, columns = padded.shape[0] // block, padded.shape[1] // block
    squares = padded.reshape(rows, block, columns, block)
    known = np.isfinite(squares).sum(axis=(1, 3))
    return np.where(known > 0, np.nansum(squares, axis=(1, 3)) / np.maximum(known, 1), np.nan)


def _png(rgba: np.ndarray) -> bytes:
    """A picture (rows, columns, 4) of bytes."""
    height, width = rgba.shape[:2]

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in rgba)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def cut(text: object, most: int) -> str:
    """As a person may read it: what steers a terminal written out, and no longer than `most`."""
    shown = escaped(" ".join(str(text).split()))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _opened(low: float, high: float) -> tuple[float, float]:
    """With some room where both are the same."""
    if high > low:
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, low + room


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between low and high."""
    raw = (high - low) / about
    if not math.isfinite(raw) or raw <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5, 10) if m * power >= raw), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)][:12]


def _short(x: float) -> str:
    return f"{x:.6g}".replace("e+0", "e").replace("e-0", "e-")
