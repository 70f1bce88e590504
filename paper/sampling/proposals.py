"""Where the baselines propose to go: GWG, ordinal GWG of radius 3, uniform MH of radius 2."""

from __future__ import annotations

import saltus

from .plane import ProposalPicture


class Proposals(ProposalPicture):
    name = "proposals"
    title = "The baselines' proposals"
    about = (
        "The same lattice and state as in figure 1. GWG moves one site by one step, ordinal GWG one site by up to three, "
        "both preferring what the gradient promises; uniform MH moves both sites by up to two steps, blindly."
    )
    labels = {
        "gwg": "GWG (radius 1)",
        "gwg-ordinal": "ordinal GWG, radius 3",
        "uniform-mh": "uniform MH, radius 2",
    }

    def kernels(self, target: saltus.Target) -> dict[str, saltus.Kernel]:
        return {"gwg": saltus.GWG(1), "gwg-ordinal": saltus.GWG(3), "uniform-mh": saltus.UniformMH(2)}
