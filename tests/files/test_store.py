"""`store=`: draws stream to disk, open lazily, and memory stays flat."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.engine import recording

ROOT = Path(__file__).parents[2]
TARGET = saltus.Target(lambda s: jnp.sum(s) * 0.1, saltus.Ordinal(4, [-1.0, 0.5, 2.0]), names=list("abcd"))
KERNEL = saltus.UniformMH(1)


def draw(**settings):
    given = dict(num_draws=30, num_warmup=5, num_chains=3, progress=False)
    return saltus.sample(TARGET, KERNEL, **{**given, **settings})


@pytest.fixture(scope="module")
def reference():
    return draw(keep_warmup=True)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "_MOST_ROWS", 8)
    draw(keep_warmup=True, store=tmp_path / "run.zarr")
    return tmp_path / "run.zarr"


def test_a_store_holds_what_memory_would(stored, reference):
    run = saltus.open(stored)
    assert set(run.children) == set(reference.children)
    for group in reference.children:
        for name, values in reference[group].data_vars.items():
            assert np.array_equal(run[group][name], values), (group, name)
            assert run[group][name].dims == values.dims
            assert run[group][name].dtype == values.dtype
    assert list(run.posterior.site.values) == list("abcd")
    assert run.attrs["complete"] == 1
    assert repr(saltus.kernel_of(run)) == repr(KERNEL)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1, 3, 2],
        np.s_[:, ::-1],
        np.s_[:, 5:25:3, [2, 0]],
        np.s_[[0, 2], -1],
        np.s_[:, -4:, 1:3],
        np.s_[..., 0],
    ],
    ids=str,
)
def test_parts_are_read_as_numpy_would(stored, reference, key):
    assert np.array_equal(saltus.open(stored).posterior.s[key], reference.posterior.s[key])


def test_opening_reads_nothing(stored):
    chunks = [p for p in stored.rglob("c/*") if p.is_file()] or [p for p in stored.rglob("*") if p.is_file() and "/c/" in str(p)]
    assert chunks
    for chunk in chunks:
        chunk.write_bytes(b"not a chunk")
    run = saltus.open(stored)
    assert run.posterior.s.shape == (3, 30, 4)
    with pytest.raises(saltus.StorageError, match=r"posterior/s(?s:.*)damaged or missing"):
        run.posterior.s.values.sum()


def test_codes_are_stored_and_compressed(stored):
    import zarr

    array = zarr.open_group(str(stored), mode="r")["posterior"]["s"]
    assert array.dtype == np.uint8
    assert array.chunks == (3, 8, 4)
    assert array.compressors


def test_a_store_that_exists_is_kept(stored, reference):
    with pytest.raises(saltus.StorageError, match="exists already"):
        draw(store=stored)
    assert np.array_equal(saltus.open(stored).posterior.s, reference.posterior.s)
    again = draw(store=stored, overwrite=True, num_draws=7)
    assert again.posterior.sizes["draw"] == 7


def test_foreign_folders_are_never_overwritten(tmp_path):
    (tmp_path / "run.zarr").mkdir()
    (tmp_path / "run.zarr" / "notes.txt").write_text("mine")
    with pytest.raises(saltus.StorageError, match="is not a store of saltus"):
        draw(store=tmp_path / "run.zarr", overwrite=True)
    with pytest.raises(saltus.StorageError, match="is not a store of saltus"):
        saltus.open(tmp_path / "run.zarr")
    assert (tmp_path / "run.zarr" / "notes.txt").read_text() == "mine"


def test_neighbours_are_left_alone(tmp_path):
    """Whatever lies beside a store or a checkpoint is not ours, also where its name looks temporary."""
    places = {"store": tmp_path / "run.zarr", "checkpoint": tmp_path / "run.ckpt"}
    precious = [tmp_path / f"run.{kind}.{end}" for kind in ("zarr", "ckpt") for end in ("old", "aside")]
    for folder in precious:
        folder.mkdir()
        (folder / "precious.txt").write_text("a year of work")
    for overwrite in (False, True):
        draw(**places, overwrite=overwrite)
        assert all((folder / "precious.txt").read_text() == "a year of work" for folder in precious)
    assert sorted(tmp_path.iterdir()) == sorted([*precious, *places.values()])  # and nothing of ours is left behind


def test_a_store_that_cannot_be_replaced_stays(stored, reference, monkeypatch):
    import zarr

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zarr, "create_group", full)
    with pytest.raises(saltus.StorageError, match="No space left"):
        draw(store=stored, overwrite=True)
    assert np.array_equal(saltus.open(stored).posterior.s, reference.posterior.s)
    assert list(stored.parent.iterdir()) == [stored]


def test_what_is_not_there_cannot_be_opened(tmp_path):
    with pytest.raises(saltus.StorageError, match="There is no run"):
        saltus.open(tmp_path / "none.zarr")
    (tmp_path / "bad.nc").write_text("not netcdf")
    with pytest.raises(saltus.StorageError, match=r"bad\.nc cannot be read"):
        saltus.open(tmp_path / "bad.nc")
    with pytest.raises(saltus.StorageError, match="no kernel"):
        saltus.kernel_of({"a": 1})


def test_statistics_go_to_the_store_too(tmp_path):
    inside = draw(keep=("mean", "best"))
    run = draw(keep=("mean", "best"), store=tmp_path / "run.zarr")
    for name in ("mean", "best"):
        assert np.array_equal(run["statistics"][name], inside["statistics"][name])


def test_too_many_draws_for_memory_are_refused():
    with pytest.raises(saltus.RunError, match=r"of memory(?s:.*)store=\"run.zarr\""):
        draw(num_draws=10**9, num_chains=100)
    wide = saltus.Target(lambda s: jnp.sum(s), saltus.Binary(30_000))
    with pytest.raises(saltus.RunError, match="These statistics would take"):
        saltus.sample(wide, saltus.UniformMH(1), keep="covariance", progress=False)


def test_memory_stays_flat(tmp_path):
    """A tenth of `make bench-memory`: 10^5 draws x 100 chains x 100 sites, a gigabyte of draws, in a process of its own."""
    command = [sys.executable, str(ROOT / "benchmarks" / "memory.py"), "1e5", str(tmp_path)]
    optimised = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}  # its ten million steps take longer than compiling them
    done = subprocess.run(command, env=optimised, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert max(found["growth_MB_second_half"], found["growth_MB_judging"]) < 500
    assert found["growth_MB_second_half"] - found["growth_MB_first_half"] < 50
