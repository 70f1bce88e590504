"""The restricted Boltzmann machine: its hidden units summed out, or sampled beside the visible ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._record import as_choice, as_size, default_float, shown
from ...engine.arguments import read_seed
from ...engine.keys import seed_words
from ...errors import TrainingError
from ...spaces import Binary, Product, Space
from ...structure import Graph
from ...target import Target
from ..codes import read_codes
from .bipartite import Sides, closed_form, draw_side
from .hidden import Hidden, observed_space

_HIDDEN = ("summed", "sampled")


def rbm(space: Any, num_hidden: int, *, hidden: str = "summed", data: Any = None, seed: int = 0) -> Target:
    r"""f(v) = b·v + Σ_j log(1 + exp(c_j + (vᵀW)_j)): minus the free energy of the visible units.

    $$ f(v, h) = b \cdot v + c \cdot h + v^\top W h, \qquad f(v) = \log \sum_h e^{f(v, h)}, \qquad h \in \{0, 1\}^m $$

    space: of the visible units: `saltus.Binary(d)`, `saltus.Spin(d)`, `saltus.Ordinal(d, values)`, or `saltus.Categorical(d, k)`,
        whose states are one-hot, n = d k numbers.
    num_hidden: m.
    hidden: "summed" (default): a target over v. "sampled": a target over `saltus.Product(v=space, h=saltus.Binary(m))` with
        f(v, h), on which `saltus.Gibbs("coloured")` is block Gibbs: all h given v, then all v given h. Data are of v in both.
    data: states of v, where given: b starts where independent sites fit them; else at 0.
    seed: of W, which starts at 0.01 N(0, 1). c starts at 0.
    Returns a `saltus.Target` with params {"weights": W (n, m), "visible": b (n,) or (d, k), "hidden": c (m,)}.
    Raises TrainingError where the space is a product, or an argument is not usable.

    >>> import saltus
    >>> saltus.training.models.rbm(saltus.Binary(6), 3, hidden="sampled").space
    Product(v=Binary(6), h=Binary(3))
    """
    m, hidden = as_size(num_hidden, "num_hidden", TrainingError), as_choice(hidden, "hidden", _HIDDEN, TrainingError)
    space, rng, dtype = _visible_space(space), np.random.default_rng(as_size(seed, "seed", TrainingError, least=0)), default_float()
    visible = np.zeros(space.shape) if data is None else fitted(space, read_codes(space, data, "data"))
    params = {
        "weights": jnp.asarray(0.01 * rng.normal(size=(space.size, m)), dtype),
        "visible": jnp.asarray(visible, dtype),
        "hidden": jnp.zeros(m, dtype),
    }
    if hidden == "summed":
        return Target(free_energy, space, params, structure=None)
    differences, structure = _parts(space, m)
    both = Product(v=space, h=Binary(m))
    return Target(JOINT, both, params, differences=differences, structure=structure, verify=False)  # proved by the tests


def conditional(target: Any, *, v: Any = None, h: Any = None, seed: int = 0) -> np.ndarray:
    r"""Independent exact draws of one side of an RBM given the other: p(h | v) where v is given, p(v | h) where h is.

    target: made by `rbm`, with sampled or summed hidden units; of a trained model, `trained.target`.
    v, h: states of one side, one a row; the other is None.
    seed: an integer, default 0.
    Returns states of the other side, as a person reads them, one for each row.
    Raises TrainingError where the target is no RBM, or both or neither side is given; SpaceError where the states do not fit.
    """
    space, num_hidden = _sides_of(target)
    if (v is None) == (h is None):
        raise TrainingError("One side is drawn given the other.", expected="v or h", found="both" if h is not None else "neither")
    key = jax.random.wrap_key_data(jnp.asarray(seed_words(read_seed(seed))))
    if h is None:
        return Binary(num_hidden).show(draw_side(Sides(space), target.params, key, read_codes(space, v, "v"), None))
    return space.show(draw_side(Sides(space), target.params, key, None, read_codes(Binary(num_hidden), h, "h")))


def _sides_of(target: Any) -> tuple[Space, int]:
    log_prob = getattr(target, "log_prob", None)
    if log_prob is not JOINT and log_prob is not free_energy:
        raise TrainingError("This target is no RBM.", expected="one made by saltus.training.models.rbm", found=shown(target))
    return observed_space(target), len(target.params["hidden"])


def free_energy(params: dict, v: jax.Array) -> jax.Array:
    """Minus the free energy of visible units v."""
    inputs = params["hidden"] + jnp.matmul(v.ravel(), params["weights"])
    return jnp.sum(v * params["visible"]) + jnp.sum(jax.nn.softplus(inputs))


def rbm_joint(params: dict, s: dict) -> jax.Array:
    """f(v, h)."""
    v, h = s["v"], s["h"]
    return jnp.sum(v * params["visible"]) + jnp.sum(h * (params["hidden"] + jnp.matmul(v.ravel(), params["weights"])))


JOINT = Hidden(rbm_joint, free_energy, "v")


@functools.lru_cache(maxsize=16)
def _parts(space: Space, num_hidden: int) -> tuple[Any, Callable]:
    """The closed form and the structure: the same objects for the same sizes, so that nothing recompiles."""
    d = space.num_sites
    edges = np.stack(np.meshgrid(np.arange(d), d + np.arange(num_hidden), indexing="ij"), -1).reshape(-1, 2)
    colours = np.repeat([1, 0], [d, num_hidden])  # h is drawn first: where a chain begins, only its v counts
    graph = Graph.from_edges(edges, d + num_hidden, colours)
    return closed_form(space), lambda params: graph


def _visible_space(space: Any) -> Space:
    if not isinstance(space, Space) or not hasattr(space, "values"):
        expected = "saltus.Binary(d), Spin, Ordinal or Categorical"
        raise TrainingError("`space` is not one of visible units.", expected=expected, found=repr(space))
    return space


def fitted(space: Space, codes: np.ndarray) -> np.ndarray:
    """b of independent sites that fit these codes: log-odds of two values, logarithms of frequencies of categories, else 0."""
    counts = np.stack([(codes == value).sum(axis=0) for value in range(space.num_values)], axis=1) + 0.5
    if space.num_values == 2 and space.numeric:
        return np.asarray(np.log(counts[:, 1] / counts[:, 0]) / np.ptp(space.values))
    return np.log(counts) - np.log(counts).mean(axis=1, keepdims=True) if space.one_hot else np.zeros(space.shape)


def log_odds(space: Any, data: Any) -> np.ndarray:
    """(d,) log of how often a site has its second value over how often its first; half a count is added to both.

    space: of two values. data: states, one a row.
    """
    codes = space.encode(data, "data")
    ones = codes.sum(axis=0)
    return np.log(ones + 0.5) - np.log(len(codes) - ones + 0.5)
