"""Bayesian variable selection: which columns of a table explain a response?

data.py                what is given -> columns, centred, projected, scaled
coefficient_priors.py  p(y | model) for each prior of the coefficients, as a function of R²
model_priors.py        p(model)
active.py              all additions, deletions and swaps of a model at once; rank-one moves
chain.py               the sampler: weighted tempered Gibbs with swaps
sampling.py            chains in batches until the errors are small; visits.py: what is kept; estimates.py: those errors
kernel.py              the models as a Target, the chain's step as a Kernel; by_kernel.py: any other kernel in its place
enumeration.py         all models, where they can be counted
answer.py              one record of the posterior for both
result.py              Selection; fits.py, words.py, pictures.py, page.py, tree.py: what it computes and shows
regressor.py           scikit-learn's conventions
"""

from .api import variable_selection
from .regressor import SelectionRegressor
from .result import Selection

__all__ = ["Selection", "SelectionRegressor", "variable_selection"]
