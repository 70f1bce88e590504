"""Runs are read by the ArviZ that is installed, 0.23 or 1.x."""

import arviz as az
import jax.numpy as jnp
import numpy as np
import pytest

import saltus


def test_summary_reads_a_run():
    target = saltus.Target(lambda s: 0.3 * s.sum(), saltus.Binary(3))
    run = saltus.sample(target, saltus.Gibbs("systematic"), num_draws=400, num_warmup=20, thin=1, progress=False)
    data = saltus.to_inference_data(run)
    table = az.summary(data)
    assert len(table) == 3
    np.testing.assert_allclose(table["mean"].astype(float), float(1 / (1 + jnp.exp(-0.3))), atol=0.08)


def test_what_is_no_run_is_refused():
    with pytest.raises(saltus.SaltusError, match="not a run"):
        saltus.to_inference_data(3)
