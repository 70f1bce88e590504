"""Small regressions, and every quantity of a model computed directly, in float64, sharing nothing with the package."""

import functools

import jax
import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.special import betaln

quick_jit = functools.partial(
    jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}
)  # what runs once


def regression(n=20, p=5, seed=0, collinear=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if collinear:
        X[:, 1] = collinear * X[:, 0] + np.sqrt(1 - collinear**2) * X[:, 1]
    y = X[:, 0] + 0.5 * X[:, min(2, p - 1)] + rng.normal(size=n)
    return pd.DataFrame(X, columns=list("abcdefghijklmnop"[:p])), pd.Series(y, name="y")


def subsets(p):
    return [tuple(j for j in range(p) if code >> j & 1) for code in range(2**p)]


def share_explained(X, y, columns):
    X, y, columns = np.asarray(X), np.asarray(y), list(columns)
    X, y = X - X.mean(axis=0), y - y.mean()
    if not columns:
        return 0.0
    fitted = X[:, columns] @ np.linalg.lstsq(X[:, columns], y, rcond=None)[0]
    return 1 - np.sum((y - fitted) ** 2) / np.sum(y**2)


def log_evidence(name, X, y, columns, g=None, slab=1.0):
    """log p(y | columns) - log p(y | none), each formula as printed."""
    n, k, R2 = len(y), len(columns), share_explained(X, y, columns)
    if name in ("g", "bric"):
        g = g or (n if name == "g" else max(n, np.shape(X)[1] ** 2))
        return 0.5 * (n - 1 - k) * np.log(1 + g) - 0.5 * (n - 1) * np.log(1 + g * (1 - R2))
    if name == "bic":
        return -0.5 * n * np.log(1 - R2) - 0.5 * k * np.log(n)
    if name == "independent":
        Z = np.asarray(X)
        Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)
        Z, c = Z[:, list(columns)], np.asarray(y) - np.mean(y)
        K = np.eye(n) + slab * Z @ Z.T
        return -0.5 * np.linalg.slogdet(K)[1] - 0.5 * (n - 1) * np.log(c @ np.linalg.solve(K, c) / (c @ c))
    if k == 0:
        return 0.0
    if name == "eb-local":
        g = max(R2 / k / ((1 - R2) / (n - 1 - k)) - 1, 0)
        return 0.5 * (n - 1 - k) * np.log(1 + g) - 0.5 * (n - 1) * np.log(1 + g * (1 - R2))
    density = {
        "hyper-g": lambda g: 0.5 * (1 + g) ** -1.5,
        "hyper-g/n": lambda g: 0.5 / n * (1 + g / n) ** -1.5,
        "zellner-siow": lambda g: np.sqrt(n / 2 / np.pi) * g**-1.5 * np.exp(-n / (2 * g)),
    }[name]
    at = lambda x: np.exp(0.5 * (n - 1 - k) * np.log1p(np.exp(x)) - 0.5 * (n - 1) * np.log1p(np.exp(x) * (1 - R2)) + x)  # noqa: E731
    return np.log(quad(lambda x: at(x) * density(np.exp(x)), -30, 40, limit=500, epsabs=0, epsrel=1e-11, points=[0, 3, 6, 10])[0])


def posterior(name, X, y, model_prior="beta-binomial", keep=lambda columns: True, **numbers):
    """(models, probabilities) by going through all of them; keep: which are possible."""
    p = np.shape(X)[1]
    models = [c for c in subsets(p) if len(c) <= len(y) - 2 and keep(c)]
    log_prior = {"uniform": lambda k: 0.0, "beta-binomial": lambda k: betaln(k + 1, p - k + 1)}[model_prior]
    f = np.array([log_evidence(name, X, y, c, **numbers) + log_prior(len(c)) for c in models])
    w = np.exp(f - f.max())
    return models, w / w.sum()


def inclusion(models, probabilities, p):
    return np.array([sum(w for c, w in zip(models, probabilities, strict=True) if j in c) for j in range(p)])
