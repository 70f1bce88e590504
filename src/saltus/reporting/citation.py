"""`saltus.citation(run)`: BibTeX of the software and of every sampler that a run used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from ..kernels import Kernel
from ..run.opening import kernel_of
from .summary import check_run

_KEYS = ("type", "title", "author", "journal", "year")
# {key: (type, title, authors, journal or proceedings, year)}; a sampler names its keys in `cites`.
_WORKS = {
    "saltus": ("software", "saltus: gradient-based MCMC in discrete spaces", "{The saltus developers}", "", "2026"),
    "rhodes2022": (
        *("article", "Enhanced gradient-based MCMC in discrete spaces", "Rhodes, Benjamin and Gutmann, Michael U."),
        *("Transactions on Machine Learning Research", "2022"),
    ),
    "zhang2022": (
        *("inproceedings", "A Langevin-like sampler for discrete distributions", "Zhang, Ruqi and Liu, Xingchao and Liu, Qiang"),
        *("International Conference on Machine Learning", "2022"),
    ),
    "grathwohl2021": (
        *("inproceedings", "Oops I took a gradient: Scalable sampling for discrete distributions"),
        "Grathwohl, Will and Swersky, Kevin and Hashemi, Milad and Duvenaud, David and Maddison, Chris",
        *("International Conference on Machine Learning", "2021"),
    ),
    "martens2010": (
        *("inproceedings", "Parallelizable sampling of Markov random fields", "Martens, James and Sutskever, Ilya"),
        *("Artificial Intelligence and Statistics", "2010"),
    ),
    "geman1984": (
        *("article", "Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of images"),
        *("Geman, Stuart and Geman, Donald", "IEEE Transactions on Pattern Analysis and Machine Intelligence", "1984"),
    ),
    "metropolis1953": (
        *("article", "Equation of state calculations by fast computing machines"),
        "Metropolis, Nicholas and Rosenbluth, Arianna W. and Rosenbluth, Marshall N. and Teller, Augusta H. and Teller, Edward",
        *("The Journal of Chemical Physics", "1953"),
    ),
    "syed2022": (
        *("article", "Non-reversible parallel tempering: a scalable highly parallel MCMC scheme"),
        "Syed, Saifuddin and Bouchard-Côté, Alexandre and Deligiannidis, George and Doucet, Arnaud",
        *("Journal of the Royal Statistical Society: Series B", "2022"),
    ),
    "sun2022": (
        *("inproceedings", "Path auxiliary proposal for MCMC in discrete space"),
        "Sun, Haoran and Dai, Hanjun and Xia, Wei and Ramamurthy, Arun",
        *("International Conference on Learning Representations", "2022"),
    ),
    "zanella2019": (
        *("article", "Scalable importance tempering and Bayesian variable selection", "Zanella, Giacomo and Roberts, Gareth"),
        *("Journal of the Royal Statistical Society: Series B", "2019"),
    ),
    "power2019": (
        *("misc", "Accelerated sampling on discrete spaces with non-reversible Markov processes"),
        *("Power, Samuel and Goldman, Jacob Vorstrup", "arXiv:1912.04681", "2019"),
    ),
    "bortz1975": (
        *("article", "A new algorithm for Monte Carlo simulation of Ising spin systems"),
        *("Bortz, A. B. and Kalos, M. H. and Lebowitz, J. L.", "Journal of Computational Physics", "1975"),
    ),
    "kawasaki1966": (
        *("article", "Diffusion constants near the critical point for time-dependent Ising models. I", "Kawasaki, Kyozi"),
        *("Physical Review", "1966"),
    ),
    "swendsen1987": (
        *("article", "Nonuniversal critical dynamics in Monte Carlo simulations", "Swendsen, Robert H. and Wang, Jian-Sheng"),
        *("Physical Review Letters", "1987"),
    ),
}


def citation(run: Any = None) -> str:
    """What to cite, as BibTeX: saltus, and the papers of the samplers that made these draws.

    run: what `saltus.sample` or `saltus.open` returned; None: saltus and the paper that it implements.
    Raises SaltusError where `run` is no run of saltus.

        print(saltus.citation(run))
    """
    if run is None:
        keys = ["saltus", "rhodes2022"]
    else:
        check_run(run)
        keys = ["saltus", *(key for kernel in _within(kernel_of(run)) for key in type(kernel).cites)]
    return "\n\n".join(_entry(key) for key in dict.fromkeys(keys))


def _within(kernel: Any) -> Iterator[Kernel]:
    """The kernel, and those it is made of."""
    if isinstance(kernel, (tuple, list)):
        for part in kernel:
            yield from _within(part)
    elif isinstance(kernel, Kernel):
        yield kernel
        for field in fields(kernel):
            yield from _within(getattr(kernel, field.name))


def _entry(key: str) -> str:
    """A work by its key; what a third party's sampler gives as a whole entry is shown as it is."""
    if key not in _WORKS:
        return key
    told = dict(zip(_KEYS, _WORKS[key], strict=True))
    home = {"article": "journal", "inproceedings": "booktitle"}.get(told["type"], "howpublished")
    lines = {"title": f"{{{told['title']}}}", "author": told["author"], home: told["journal"], "year": told["year"]}
    body = ",\n".join(f"  {name} = {{{value}}}" for name, value in lines.items() if value)
    return f"@{told['type']}{{{key},\n{body}\n}}"
