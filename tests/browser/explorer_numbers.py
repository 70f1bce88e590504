"""What the proposal explorer has to compute, written by the Python kernels in float64: python tests/browser/explorer_numbers.py"""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import saltus

FILE = Path(__file__).parents[2] / "web/explorer/numbers.json"
CASES = [  # of each target and sampler
    {"stepSize": 0.2, "radius": 3, "scale": -2.0, "correlation": -0.9, "from": [20, 17], "normals": [0.4, -1.3]},
    {"stepSize": 1.7, "radius": 11, "scale": 3.0, "correlation": 0.5, "from": [0, 33], "normals": [-2.1, 0.2]},
]
NUM_MOVES = 16


def ring(s):
    return -4 / 3 * (jnp.sum(s**2) - 3) ** 2


def gaussian(s):
    return -0.5 / (1 - 0.9**2) * (s[0] ** 2 - 2 * 0.9 * s[0] * s[1] + s[1] ** 2)


def targets():
    grid = saltus.Ordinal(2, np.linspace(-3, 3, 41))
    mixtures = {f"poly{order}": saltus.targets.polynomial_mixture(order, 2) for order in (2, 4)}
    return mixtures | {f.__name__: saltus.Target(f, grid, structure=None) for f in (gaussian, ring)}


def kernels(case, space):
    S = case["scale"] * np.array([[1, case["correlation"]], [case["correlation"], 1]])
    return {
        "gwg": saltus.GWG(space.num_values - 1),
        "ordinal-gwg": saltus.GWG(case["radius"]),
        "uniform": saltus.UniformMH(case["radius"]),
        "ncg": saltus.NCG(case["stepSize"]),
        "avg": saltus.AVG(case["stepSize"]),
        "pavg": saltus.PAVG(case["stepSize"], S),
    }


def noise_of(name, case):
    """u from two standard normals, as the page makes it: along (1, 1)/√2 and (1, -1)/√2."""
    if name not in ("avg", "pavg"):
        return None
    scale, correlation = (0.0, 0.0) if name == "avg" else (case["scale"], case["correlation"])
    eigenvalues = scale * np.array([1 + correlation, 1 - correlation])
    spectrum = eigenvalues + max(0, -eigenvalues.min()) + 2 / case["stepSize"]
    return np.array([[1, 1], [1, -1]]) / np.sqrt(2) @ (np.sqrt(spectrum) * np.array(case["normals"]))


@functools.partial(jax.jit, static_argnums=0)
def compute(noisy, kernel, target, start, moves, noise):
    noise = noise if noisy else None
    x = kernel.init(target, start)
    forward = kernel.propose(target, x, noise)
    return jax.vmap(lambda to: (forward.log_prob(to), kernel.ratio(target, x, kernel.init(target, to), noise, forward)))(moves)


def moves_of(name, case, k):
    """States that this sampler can propose from case["from"], some of them near."""
    rng = np.random.default_rng([len(name), k])
    start = np.array(case["from"])
    if name in ("gwg", "ordinal-gwg"):
        reach = k - 1 if name == "gwg" else case["radius"]
        moves = [[i, start[1]] for i in range(k)] + [[start[0], j] for j in range(k)]
        allowed = [m for m in moves if 0 < np.abs(m - start).max() <= reach]
    else:
        reach = case["radius"] if name == "uniform" else k - 1
        allowed = [[i, j] for i in range(k) for j in range(k) if np.abs([i, j] - start).max() <= reach]
    near = sorted(allowed, key=lambda m: np.abs(m - start).sum())[: NUM_MOVES // 2]
    far = rng.choice(np.array(allowed), NUM_MOVES - len(near), replace=len(allowed) < NUM_MOVES)
    return np.array([*near, *far])


def numbers(chosen=None):
    """A list of cases; of the targets chosen, or of all."""
    found = []
    with jax.enable_x64(True):
        for which, target in targets().items():
            if chosen and which not in chosen:
                continue
            for case in CASES:
                for name, kernel in kernels(case, target.space).items():
                    moves, u = moves_of(name, case, target.space.num_values), noise_of(name, case)
                    start = jnp.array(case["from"], jnp.int32)
                    given = np.zeros(2) if u is None else u
                    log_q, log_ratio = compute(u is not None, kernel, target, start, jnp.array(moves, jnp.int32), given)
                    told = {"target": which, "sampler": name, **case, "noise": given.tolist(), "moves": moves.tolist()}
                    found.append(told | {"log_q": np.asarray(log_q).tolist(), "log_ratio": np.asarray(log_ratio).tolist()})
    return found


if __name__ == "__main__":
    FILE.write_text("[\n" + ",\n".join(json.dumps(each) for each in numbers()) + "\n]\n")
    print(f"{FILE}: {FILE.stat().st_size} bytes")
