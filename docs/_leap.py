"""Draws docs/assets/leap.svg: two real chains on a lattice, one site at a time (GWG) and all sites at once (NCG).

python docs/_leap.py
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

import saltus

STEPS, SECONDS, CELL, LEFT, TOP = 48, 24.0, 13, 14, 34
GRID = np.arange(-10.0, 11.0)
PRECISION = np.linalg.inv(np.array([[16.0, 12.8], [12.8, 16.0]]))
OUT = Path(__file__).parent / "assets/leap.svg"


def chain(kernel, seed):
    """(STEPS, 2) states of one chain that begins in a corner."""
    target = saltus.Target(lambda s: -0.5 * s @ jnp.asarray(PRECISION) @ s, saltus.Ordinal(2, GRID))
    start = np.array([[-8.0, -8.0]])
    settings = dict(num_draws=STEPS - 1, num_warmup=0, num_chains=1, thin=1, initial=start, seed=seed, progress=False)
    draws = saltus.sample(target, kernel, **settings).posterior["s"].values[0]
    return np.concatenate([start, draws])


def place(state):
    """Where a state is in its panel, y upwards."""
    return CELL * (state[0] + 10.5), CELL * (10.5 - state[1])


def cells():
    """The target as shading."""
    x, y = np.meshgrid(GRID, GRID)
    s = np.stack([x, y], -1)
    p = np.exp(-0.5 * np.einsum("...i,ij,...j", s, PRECISION, s))
    for i, j in zip(*np.nonzero(p > 0.02), strict=True):
        left, top = place((x[i, j], y[i, j]))
        half = CELL / 2 - 0.5
        corner = f'x="{left - half:.1f}" y="{top - half:.1f}"'
        yield f'<rect {corner} width="{2 * half}" height="{2 * half}" opacity="{0.5 * p[i, j]:.2f}"/>'


def panel(title, states, colour, left):
    points = [place(s) for s in states]
    xs, ys = (";".join(f"{p[axis]:.1f}" for p in points) for axis in (0, 1))
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    trail = "M" + " L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    offsets = ";".join(f"{length[-1] - x:.1f}" for x in length)
    told = f"{length[-1] / CELL:.0f} cells in {STEPS} steps"
    move = f'dur="{SECONDS}s" repeatCount="indefinite" calcMode="discrete"'
    return f"""<g transform="translate({left},{TOP})">
<text x="0" y="-14" class="title">{title}</text><text x="273" y="-14" class="note">{told}</text>
<g fill="#7a8b99">{"".join(cells())}</g><rect width="273" height="273" fill="none" stroke="#9aa7b1"/>
<path d="{trail}" class="trail" stroke="{colour}" stroke-dasharray="{length[-1]:.1f}">
<animate attributeName="stroke-dashoffset" values="{offsets}" {move}/></path>
<circle r="5" fill="{colour}" cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}"><animate attributeName="cx" values="{xs}" {move}/>
<animate attributeName="cy" values="{ys}" {move}/></circle></g>"""


def main():
    left = panel("GWG: one site a step", chain(saltus.GWG(1), 3), "#0072B2", LEFT)
    right = panel("NCG: all sites at once", chain(saltus.NCG(12.0), 3), "#D55E00", LEFT + 273 + 30)
    trail = ".trail{fill:none;stroke-width:1.4;opacity:.6;stroke-linejoin:round}"
    style = trail + "text{font:13px sans-serif;fill:#5b6770}.title{font-weight:600}.note{text-anchor:end}"
    width, height = 2 * 273 + 30 + 2 * LEFT, 273 + TOP + 14
    OUT.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="two chains on a lattice: GWG moves one site a step, NCG all sites"><style>{style}</style>'
        f"{left}{right}</svg>\n"
    )


if __name__ == "__main__":
    main()
