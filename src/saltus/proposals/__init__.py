"""How a step proposes: all sites at once, one site, or uniformly within some hops. Each offers sample(key) and log_prob(codes)."""

from .factorised import Factorised
from .hop_ball import SiteBall, hop_ball
from .over_relaxed import OverRelaxed
from .single_site import SingleSite, SiteBlock

__all__ = ["Factorised", "OverRelaxed", "SingleSite", "SiteBall", "SiteBlock", "hop_ball"]
