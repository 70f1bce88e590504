"""Chains spread over devices and hosts draw what they draw on one device."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spread_out

SCRIPT = Path(spread_out.__file__)


@pytest.fixture(scope="module")
def single():
    longer = spread_out.run(num_draws=55, progress=False).posterior.s.values
    return {"longer": longer, "memory": longer[:, :40], "stored": longer[:, :40], "mean": longer[:, :40].mean(1)}


def start(*arguments, devices=1):
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(path, single, devices):
    found = np.load(path)
    assert found["devices"] == devices
    for name, expected in single.items():
        np.testing.assert_allclose(found[name], expected, atol=1e-12 if name == "mean" else 0, err_msg=name)
    assert found["raced"].shape == (6, 40, 8)


def test_four_devices_draw_what_one_draws(tmp_path, single):
    process = start(tmp_path / "out.npz", tmp_path, devices=4)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
    check(tmp_path / "out.npz", single, devices=4)


def test_two_processes_draw_what_one_draws(tmp_path, single):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    processes = [start(tmp_path / f"out{i}.npz", tmp_path, coordinator, i) for i in range(2)]
    told = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    for i in range(2):
        check(tmp_path / f"out{i}.npz", single, devices=2)
    first, second = (np.load(tmp_path / f"out{i}.npz") for i in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)  # one race, decided by process 0
    assert "saltus: compiling" in told[0]
    assert "saltus:" not in told[1]  # process 0 alone prints
