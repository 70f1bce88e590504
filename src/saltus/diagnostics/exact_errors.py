r"""How far each chain is from a known answer: the paper's error metrics, from a `Tally`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are imported when first used

from .._pairs import pair_tables
from .._record import as_array, as_choice, shown
from ..errors import SaltusError
from .tally import Tally

_PSEUDOCOUNT = 1e-5


def marginal_kl(tally: Tally, marginals: Any, direction: str = "p||q") -> np.ndarray:
    r"""(chain,) mean over sites of the divergence between the true marginal p_i and the chain's q_i, marginals (site, value).

    $$ KL(p_i \| q_i) = \sum_v p_i(v) \log \frac{p_i(v)}{q_i(v)}, \qquad q_i \propto \text{counts}_i + 10^{-5} $$

    "p||q" is what the authors' code computes: values never visited dominate it. "q||p" is what the paper prints; it is
    infinite where the truth gives some value no probability.

    tally: a `Tally` of the chains. direction: "p||q" or "q||p".
    """
    p = _fitting(marginals, "marginals", _read(tally).counts.shape[1:])
    if p.min() < 0 or not np.allclose(p.sum(axis=-1), 1, atol=1e-5):
        found = f"sums from {p.sum(axis=-1).min():.6g} to {p.sum(axis=-1).max():.6g}, smallest entry {p.min():.3g}"
        raise SaltusError("`marginals` are not probabilities.", expected="rows >= 0 that sum to 1", found=found)
    as_choice(direction, "direction", ("p||q", "q||p"), SaltusError)
    tally.frequencies  # noqa: B018  refuses a tally without draws
    q = tally.counts + _PSEUDOCOUNT
    q = q / q.sum(axis=-1, keepdims=True)
    terms = scipy.special.rel_entr(p, q) if direction == "p||q" else scipy.special.rel_entr(q, p)
    return terms.sum(axis=-1).mean(axis=-1)


def covariance_error(tally: Tally, covariance: Any) -> np.ndarray:
    """(chain,) Frobenius norm of the chain's covariance (1/N, centred at its own mean) less the true one (site, site).

    tally: a `Tally` of the chains. covariance: the true one.
    """
    d = _read(tally).space.num_sites
    return np.linalg.norm(tally.covariances - _fitting(covariance, "covariance", (d, d)), axis=(1, 2))


def marginal_error(tally: Tally, means: Any, sites: Any = None) -> np.ndarray:
    """(chain,) mean over sites of |mean of s_i - true mean|; means (site,) of all sites, `sites` those that count.

    tally: a `Tally` of the chains.
    """
    errors = np.abs(_read(tally).means - _fitting(means, "means", (tally.space.num_sites,)))
    return errors[:, _chosen(tally, sites)].mean(axis=-1)


def pairwise_error(tally: Tally, pair_table: Any, domain: str = "code", sites: Any = None) -> np.ndarray:
    r"""(chain,) error of the tables of two sites, on spaces of two values: e_ij = Σ_kl |p_ij(k, l) - q_ij(k, l)|.

    pair_table: (site, site, 2, 2) true P(code_i = k, code_j = l) of all sites; `sites`: those that count.
    domain: "code", the authors': the mean of e_ij over pairs i <= j, each site with itself included; "paper", as printed:
    (1/d²) Σ_ij e_ij over all ordered pairs. The paper's regression takes sites=range(20), those of its design.

    tally: a `Tally` of the chains.
    """
    d = _read(tally).space.num_sites
    table = _fitting(pair_table, "pair_table", (d, d, 2, 2))
    as_choice(domain, "domain", ("code", "paper"), SaltusError)
    chosen = _chosen(tally, sites)
    found = pair_tables(tally.frequencies[:, chosen, 1], tally.together[:, chosen[:, None], chosen])
    errors = np.abs(found - table[chosen[:, None], chosen]).sum(axis=(-2, -1))
    if domain == "paper":
        return errors.mean(axis=(1, 2))
    i, j = np.triu_indices(len(chosen))
    return errors[:, i, j].mean(axis=-1)


def mean_and_error(per_chain: Any) -> tuple[Any, Any]:
    """Mean over chains, the first axis, and its standard error from how much they differ; NaN for a single chain.

    per_chain: one number, or array, for each chain.
    """
    x = np.asarray(as_array(per_chain, "per_chain", SaltusError, "shape (chain, ...)"), np.float64)
    if x.ndim < 1 or not len(x):
        raise SaltusError("`per_chain` is not one number per chain.", expected="shape (chain, ...)", found=f"shape {x.shape}")
    error = x.std(axis=0, ddof=1) / np.sqrt(len(x)) if len(x) > 1 else np.full(x.shape[1:], np.nan)
    return x.mean(axis=0)[()], error[()]


def _read(tally: Any) -> Tally:
    if not isinstance(tally, Tally):
        raise SaltusError(
            "`tally` is not a tally.", expected="saltus.diagnostics.Tally.empty(space, num_chains)", found=shown(tally)
        )
    return tally


def _fitting(truth: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    truth = np.asarray(as_array(truth, name, SaltusError, f"finite numbers of shape {shape}"), np.float64)
    if truth.shape != shape or not np.isfinite(truth).all():
        found = f"shape {truth.shape}" if truth.shape != shape else f"{(~np.isfinite(truth)).sum()} entries that are not finite"
        raise SaltusError(f"`{name}` does not fit the tally.", expected=f"finite numbers of shape {shape}", found=found)
    return truth


def _chosen(tally: Tally, sites: Any) -> np.ndarray:
    """Numbers of the sites that count, all of them by default."""
    d = tally.space.num_sites
    chosen = np.arange(d) if sites is None else np.asarray(as_array(sites, "sites"))
    usable = chosen.ndim == 1 and chosen.dtype.kind in "iu" and len(set(chosen.tolist())) == chosen.size > 0
    if not usable or chosen.min() < 0 or chosen.max() >= d:
        expected = f"different whole numbers from 0 to {d - 1}"
        raise SaltusError("`sites` are not sites.", expected=expected, found=shown(sites), hint="range(20) takes the first 20")
    return chosen
