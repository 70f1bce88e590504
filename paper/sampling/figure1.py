"""Figure 1: where GWG, NCG and PAVG propose to go from one state of a correlated lattice."""

from __future__ import annotations

import numpy as np

import saltus

from ..samplers import LOOKS
from .plane import ProposalPicture


class Figure1(ProposalPicture):
    name = "figure1"
    title = "Figure 1: proposals around a state"
    about = (
        "Two ordinal sites of correlation 0.9. GWG moves one site by one step; NCG moves both at once, each on its own; "
        "PAVG's noise has the correlation of the target, and goes along the ridge. PAVG is averaged over its auxiliary variable."
    )
    labels = {name: LOOKS[name].label for name in ("gwg", "ncg", "pavg")}

    def kernels(self, target: saltus.Target) -> dict[str, saltus.Kernel]:
        """NCG as saltus.tune has it, to a digit. PAVG with Σ the Hessian of this quadratic f: it accepts every move."""
        hessian = -np.asarray(target.params)
        return {"gwg": saltus.GWG(1), "ncg": saltus.NCG(3.5), "pavg": saltus.PAVG(1000.0, hessian)}
