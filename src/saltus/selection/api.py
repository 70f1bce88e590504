"""`variable_selection`: the question, asked in one line."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._record import as_flag, as_real, as_size
from ..engine.arguments import read_seconds, read_seed
from ..engine.samplers import read_samplers
from ..errors import KernelError, SelectionError
from ..kernels import samplers
from .answer import answer_by_enumeration, answer_by_sampling
from .by_kernel import sample_by
from .coefficient_priors import read_prior
from .data import read_data
from .model_priors import read_model_prior
from .problem import Question
from .progress import Progress
from .result import Selection
from .sampling import Goal, sample_models

METHODS = ("auto", "enumerate", "sample")
MOST_ENUMERATED = 20  # columns


def variable_selection(
    X: Any,
    y: Any,
    prior: Any = "g",
    model_prior: Any = "beta-binomial",
    names: Any = None,
    seed: int = 0,
    progress: bool = True,
    method: Any = "auto",
    *,
    prior_value: float | None = None,
    expected_size: float | None = None,
    max_size: int | None = None,
    forced: Any = None,
    intercept: bool = True,
    error: float = 0.005,
    num_chains: int = 8,
    max_steps: int | None = None,
    time_limit: float | None = None,
) -> Selection:
    """Which columns of X explain y? Bayesian linear regression over all subsets of the columns.

    X: DataFrame, or array of shape (n, p). Columns are centred and scaled; constant ones cannot enter.
    y: (n,) the response.
    prior: of the coefficients. "g" (Zellner's, g = n; or a number for g), "bric" (g = max(n, p²)), "hyper-g", "hyper-g/n",
    "zellner-siow",
        "independent" (slabs), "bic", "eb-local".
    model_prior: "uniform"; "beta-binomial" or ("beta-binomial", a, b); "bernoulli" with expected_size; a probability; one
    for each column.
    names: of the columns, if X is an array.
    seed: the same seed gives the same numbers.
    progress: show a line while sampling, on a terminal.
    method: "enumerate" all models (up to 20 columns), "sample", or "auto": enumerate where that is possible. Or what
        `saltus.sample` takes as its sampler, such as "ncg", "pavg", "tempered" or a kernel: it then goes through the models,
        guided by the same exact differences, for `max_steps` draws of each chain (default 2000).
    prior_value: g, a of "hyper-g" and "hyper-g/n" (3), or the slab's variance over σ² of "independent" (1, for columns of sd 1).
    expected_size: number of columns that the prior expects, for "beta-binomial" and "bernoulli".
    max_size: the most columns a model may have.
    forced: names or numbers of columns that are in every model, with a flat prior like the intercept.
    intercept: whether every model has one (default).
    error: sampling ends when every inclusion probability has at most this Monte-Carlo error and R-hat is below 1.01 (default
    0.005).
    num_chains: chains, from different models (default 8).
    max_steps: the most steps of each chain; by default what 1.5·10^12 operations allow, at most a million.
    time_limit: seconds after which to end all the same. With it, draws depend on the machine's speed.

    Returns a `Selection`. Raises SelectionError, which says what is wrong with the data and in which columns.

    >>> import numpy as np, saltus
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> found = saltus.variable_selection(X, X[:, 0] + 0.1 * X[:, 3] ** 2, names=["a", "b", "c", "d"])
    >>> found.inclusion.idxmax()
    'a'
    """
    progress, seed = as_flag(progress, "progress", SelectionError), read_seed(seed)
    own = isinstance(method, str) and method in METHODS
    if not own:
        method = _read_sampler(method)
    chosen = read_prior(prior, prior_value)
    goal = Goal(_read_error(error), _read_steps(max_steps), read_seconds(time_limit, "time_limit"))
    num_chains = as_size(num_chains, "num_chains", SelectionError, least=2, most=1000)
    data = read_data(X, y, names, forced, as_flag(intercept, "intercept", SelectionError))
    models = read_model_prior(model_prior, data.p, expected_size, max_size, _which(model_prior, data))
    question = Question(data, chosen, models)
    told: dict[str, Any] = {
        "prior": chosen.told(data.n, data.p),
        "model_prior": models.told,
        "seed": seed,
        "notes": list(data.notes),
    }
    if method == "enumerate" and data.p > MOST_ENUMERATED:
        raise SelectionError(
            "There are too many models to enumerate.",
            expected=f"at most {MOST_ENUMERATED} columns that can enter",
            found=f"{data.p}",
            hint='method="sample"',
        )
    if method == "enumerate" or data.p == 0 or (method == "auto" and data.p <= MOST_ENUMERATED):
        return Selection(answer_by_enumeration(question), {**told, "method": "enumerate"})
    with jax.enable_x64(True):
        if own:
            sampled, kernel = sample_models(question, seed, num_chains, goal, Progress(progress)), ""
        else:
            sampled, kernel = sample_by(question, method, seed, num_chains, goal, progress)
    told |= dict(method="sample", kernel=kernel, steps=sampled.steps, num_chains=num_chains, seconds=sampled.seconds)
    told |= dict(ended=sampled.ended, goal=goal.error, first_seconds=sampled.first_seconds)
    return Selection(answer_by_sampling(question, sampled), told)


def _read_sampler(method: Any) -> Any:
    """A sampler of `saltus.sample`, once it is seen to be one."""
    try:
        read_samplers(method if isinstance(method, (list, tuple)) else [method])
    except KernelError as cause:
        expected = f"one of {', '.join(map(repr, METHODS))}, or a sampler: {', '.join(map(repr, samplers()))}, or a kernel"
        raise SelectionError("`method` is not known.", expected=expected, found=repr(method)[:80]) from cause
    return method


def _which(model_prior: Any, data: Any) -> Any:
    """Of a probability for each column of X, those of the columns that can enter."""
    one_each = (
        np.ndim(model_prior) == 1
        if isinstance(model_prior, np.ndarray)
        else isinstance(model_prior, list) or hasattr(model_prior, "to_numpy")
    )
    if not one_each or len(model_prior) != len(data.names):
        return None
    mask = np.zeros(len(data.names), bool)
    mask[data.entering] = True
    return mask


def _read_error(error: Any) -> float:
    value = as_real(error, "error", SelectionError, "a number above 0")
    if not value > 0:
        raise SelectionError("`error` is out of range.", expected="a number above 0, such as 0.005", found=repr(error))
    return value


def _read_steps(max_steps: Any) -> int | None:
    return None if max_steps is None else as_size(max_steps, "max_steps", SelectionError, least=1, most=2**31 - 1)
