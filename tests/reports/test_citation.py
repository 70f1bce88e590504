"""What a run used is what it says to cite."""

import pytest

import saltus
from saltus.kernels import samplers
from saltus.reporting.citation import _WORKS


def test_of_a_run_and_of_the_parts_of_its_kernel():
    target = saltus.Target(lambda s: -s.sum(), saltus.Binary(3))
    kernel = saltus.Cycle([saltus.NCG(1.0), saltus.Gibbs()])
    text = saltus.citation(saltus.sample(target, kernel, num_draws=4, num_warmup=0, thin=1, progress=False))
    assert [line.split("{")[1].rstrip(",") for line in text.splitlines() if line.startswith("@")] == [
        *("saltus", "rhodes2022", "zhang2022", "geman1984"),
    ]
    assert text.count("{") == text.count("}")


def test_every_key_of_every_sampler_is_known():
    assert {key for kernel in samplers().values() for key in kernel.cites} <= set(_WORKS)


def test_without_a_run_and_of_nonsense():
    assert "Rhodes" in saltus.citation()
    with pytest.raises(saltus.SaltusError):
        saltus.citation("run.nc")
