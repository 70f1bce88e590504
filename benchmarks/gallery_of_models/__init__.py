"""Models with discrete latent variables, after the example galleries of NumPyro and PyMC, sampled by the bridges.

`python -m benchmarks.gallery_of_models` samples each with `saltus.bridges` and compares it with a reference: exact where states
can be enumerated, else NumPyro's NUTS on the model with its discrete sites summed out by hand. The table is in
tests/full_output/models.txt. Data are simulated; models are written by hand after the source that is named.
"""
