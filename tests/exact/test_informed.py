"""A kernel with a local model of its own is the kernel on a target with that local model: certified, and bit for bit."""

import jax
import numpy as np
import pytest

import saltus
from saltus.testing import check_kernel, rugged

KERNELS = {
    "NCG": saltus.NCG(1.3),
    "AVG": saltus.AVG(1.3),
    "PAVG": saltus.PAVG(1.3, 0.2 * np.ones((4, 4)) - 0.2 * np.eye(4)),
    "GWG": saltus.GWG(),
}


@pytest.mark.parametrize("name", list(KERNELS))
def test_it_is_certified(name):
    report = check_kernel(saltus.Informed(KERNELS[name], "exact"), rugged(saltus.Binary(4)), battery=False)
    ran = {finding.instrument for finding in report.findings if finding.status == "passed"}
    assert {"definition", "invariance", "coherence"} <= ran


@pytest.mark.parametrize("differences", ["exact", "hessian_diag"])
def test_it_steps_as_on_the_target_it_sees(differences):
    target, kernel = rugged(saltus.Binary(4)), saltus.NCG(2.0)
    informed, seen = saltus.Informed(kernel, differences), target.replace(differences=differences)
    codes = np.array([0, 1, 1, 0])
    x, y = informed.init(target, codes), kernel.init(seen, codes)
    for t in range(20):
        key = jax.random.key(t)
        x, y = informed.step(key, target, x)[0], kernel.step(key, seen, y)[0]
        assert np.array_equal(x.codes, y.codes)
    assert informed.evaluations(target) == kernel.evaluations(seen)


def test_bad_input():
    with pytest.raises(saltus.KernelError, match="`differences` is not known"):
        saltus.Informed(saltus.NCG(1.0), "some")
    with pytest.raises(saltus.KernelError, match="no use for a local model"):
        saltus.Informed(saltus.Gibbs())
    with pytest.raises(saltus.KernelError, match="is not a kernel"):
        saltus.Informed(saltus.NCG)
