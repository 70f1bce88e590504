"""Nothing of others is touched, one process writes at a time, and what lies on the disk is what was written."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.engine import disk, recording
from saltus.engine.lock import Lock

TARGET = saltus.Target(lambda s: 0.1 * jnp.sum(s), saltus.Spin(4))
KERNEL = saltus.UniformMH(1)


def draw(**settings):
    given = dict(num_draws=30, num_warmup=5, num_chains=2, thin=1, progress=False)
    return saltus.sample(TARGET, KERNEL, **{**given, **settings})


@pytest.fixture(scope="module")
def whole():
    return draw()


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A checkpoint with a store, one without, and a saved run; for copies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "_MOST_ROWS", 8)
        home = tmp_path_factory.mktemp("begun")
        draw(checkpoint=home / "c", store=home / "run.zarr")
        saltus.save(draw(checkpoint=home / "alone"), home / "run.nc")
    return home


@pytest.fixture
def home(begun, tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "_MOST_ROWS", 8)
    return Path(shutil.copytree(begun, tmp_path / "home"))


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---- ours only if marked -----------------------------------------------------------------------------------------


def test_a_checkpoint_with_something_else_in_it_is_not_replaced(home):
    (home / "c" / "thesis.txt").write_text("years of work")
    before = contents(home)
    with pytest.raises(saltus.StorageError, match=r"thesis\.txt"):
        draw(checkpoint=home / "c", store=home / "run.zarr", overwrite=True)
    assert contents(home) == before


def test_a_folder_with_a_foreign_run_npz_is_not_replaced(tmp_path):
    (tmp_path / "c").mkdir()
    np.savez(tmp_path / "c" / "run.npz", years=np.arange(3))
    before = contents(tmp_path)
    with pytest.raises(saltus.StorageError, match="not ours"):
        draw(checkpoint=tmp_path / "c", overwrite=True)
    assert contents(tmp_path) == before


def test_a_store_with_something_else_in_it_is_not_replaced(home):
    (home / "run.zarr" / "notes.txt").write_text("mine")
    before = contents(home)
    with pytest.raises(saltus.StorageError, match=r"notes\.txt"):
        draw(store=home / "run.zarr", overwrite=True)
    assert contents(home) == before


def test_a_foreign_zarr_is_not_replaced_by_a_saved_run(tmp_path, whole):
    import zarr

    zarr.create_group(str(tmp_path / "data.zarr"))
    with pytest.raises(saltus.StorageError, match="is not a run"):
        saltus.save(whole, tmp_path / "data.zarr", overwrite=True)
    saltus.save(whole, tmp_path / "own.zarr")
    saltus.save(whole, tmp_path / "own.zarr", overwrite=True)
    assert saltus.open(tmp_path / "own.zarr").posterior.s.equals(whole.posterior.s)


def test_a_saved_run_is_replaced_only_with_overwrite_and_whole(tmp_path, whole, monkeypatch):
    saltus.save(whole, tmp_path / "run.nc")
    before = contents(tmp_path)
    with pytest.raises(saltus.StorageError, match="exists already"):
        saltus.save(whole, tmp_path / "run.nc")

    def full(paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "sync", full)
    with pytest.raises(saltus.StorageError, match="No space left"):
        saltus.save(whole, tmp_path / "run.nc", overwrite=True)
    assert contents(tmp_path) == before


def test_a_link_to_an_empty_folder_stays_a_link(tmp_path, whole):
    (tmp_path / "big disk").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "big disk")
    draw(checkpoint=tmp_path / "c")
    assert (tmp_path / "c").is_symlink()
    assert (tmp_path / "big disk" / "run.npz").exists()
    (tmp_path / "later").symlink_to(tmp_path / "not there yet")  # dangling
    assert draw(checkpoint=tmp_path / "later").posterior.s.equals(whole.posterior.s)
    assert (tmp_path / "not there yet" / "run.npz").exists()


@pytest.mark.parametrize("name", ["a b", "new\nline", "n" * 250, "é" * 120, "-o"])
def test_any_name_will_do(tmp_path, name, whole):
    draw(checkpoint=tmp_path / name, store=tmp_path / (name[:240] + ".zarr"))
    again = saltus.resume(tmp_path / name, TARGET, progress=False)
    assert np.array_equal(again.posterior.s, whole.posterior.s)


def test_a_name_that_is_too_long_is_refused(tmp_path):
    for settings in ({"store": tmp_path / ("n" * 256)}, {"checkpoint": tmp_path / ("n" * 256)}):
        with pytest.raises(saltus.StorageError, match="too long"):
            draw(**settings)


# ---- one writer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["c/lock", "run.zarr/kernel/zarr.json"])
def test_a_second_writer_is_told_who_the_first_is(home, place, monkeypatch):
    monkeypatch.setattr("saltus.engine.lock._PATIENCE", 0.05)
    lock = Lock(home / place, home)
    lock.take(dict)
    before = contents(home)
    with pytest.raises(saltus.StorageError, match=rf"another process(?s:.*)process {os.getpid()} on \S+, since 20"):
        saltus.resume(home / "c", TARGET, num_draws=50, progress=False)
    with pytest.raises(saltus.StorageError, match="another process"):
        draw(store=home / "run.zarr", checkpoint=home / "c", overwrite=True)
    assert set(contents(home)) == set(before)
    lock.free()
    assert saltus.resume(home / "c", TARGET, num_draws=50, progress=False).posterior.sizes["draw"] == 50


HOLD = """
import sys, time
from pathlib import Path
from saltus.engine.lock import Lock
Lock(Path(sys.argv[1]), Path(sys.argv[1])).take(dict)
print("held", flush=True)
time.sleep(60)
"""


def test_a_killed_process_holds_nothing(home):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(home / "c" / "lock")], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    checkpoint = saltus.engine.checkpoint.Checkpoint(home / "c")
    assert checkpoint.writer()[0] is True
    process.kill()
    process.wait()
    assert checkpoint.writer()[0] is False


def test_a_file_system_without_locks_is_told_of(home, monkeypatch):
    def flock(handle, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.warns(UserWarning, match="cannot be locked"):
        saltus.resume(home / "c", TARGET, num_draws=31, progress=False)


def test_what_was_opened_does_not_change_under_its_reader(home, whole):
    run = saltus.open(home / "run.zarr")
    saltus.resume(home / "c", TARGET, num_draws=70, progress=False)
    assert np.array_equal(run.posterior.s, whole.posterior.s)
    again = saltus.open(home / "run.zarr")
    draw(store=home / "run.zarr", checkpoint=home / "c", seed=3, overwrite=True)
    with pytest.raises(saltus.StorageError, match="has changed since it was opened"):
        again.posterior.s.values.sum()
    shutil.rmtree(home / "run.zarr")
    with pytest.raises(saltus.StorageError, match="no longer there"):
        again.sample_stats.lp.values.sum()


def test_a_store_that_is_deleted_while_it_is_written_to_is_said_to_be_gone(tmp_path, monkeypatch):
    from saltus.engine.store import StoreSink

    monkeypatch.setattr(recording, "_MOST_ROWS", 8)
    write, written = StoreSink.write, []

    def delete_first(self, start, block):
        written.append(start)
        if len(written) == 2:
            shutil.rmtree(tmp_path / "run.zarr")
        write(self, start, block)

    monkeypatch.setattr(StoreSink, "write", delete_first)
    with pytest.raises(saltus.StorageError, match="moved or deleted while the run wrote to it"):
        draw(store=tmp_path / "run.zarr")


def test_the_states_of_a_warm_up_do_not_change_under_their_reader(tmp_path):
    settings = dict(num_warmup=100_000, checkpoint=tmp_path / "c", store=tmp_path / "s.zarr")
    with pytest.warns(UserWarning, match="no time for all of the warm-up"):
        part = draw(**settings, time_limit=0.01)
    seen = saltus.open(tmp_path / "s.zarr")
    saltus.resume(tmp_path / "c", TARGET, progress=False)
    assert np.array_equal(seen.posterior.s, part.posterior.s)


# ---- integrity ---------------------------------------------------------------------------------------------------


def chunks(store):
    return sorted(p for p in store.rglob("*") if p.is_file() and "c" in p.relative_to(store).parts)


def test_a_missing_chunk_is_an_error_that_says_what_is_safe(home):
    (home / "run.zarr" / "posterior" / "s" / "c" / "0" / "2" / "0").unlink()
    with pytest.raises(saltus.StorageError, match="first 16 draws are safe"):
        saltus.open(home / "run.zarr").posterior.s.values.sum()
    with pytest.raises(saltus.StorageError, match="first 16 draws are safe"):
        saltus.resume(home / "c", TARGET, num_draws=40, progress=False)


def test_every_chunk_and_every_metadata_file_has_a_checksum(home):
    store = home / "run.zarr"
    assert len(chunks(store)) > 20
    for file in (*chunks(store), *store.rglob("zarr.json")):
        before = file.read_bytes()
        file.write_bytes(before[:-9] + bytes([before[-9] ^ 4]) + before[-8:])
        with pytest.raises(saltus.StorageError):
            saltus.open(store).load()
        file.write_bytes(before)
    saltus.open(store).load()


def test_a_store_is_plain_zarr(home, whole):
    import xarray as xr

    plain = xr.open_datatree(home / "run.zarr", engine="zarr", consolidated=False)
    assert np.array_equal(plain["posterior"].s.astype(int) * 2 - 1, whole.posterior.s)
    assert np.array_equal(plain["sample_stats"].lp, whole.sample_stats.lp)


def test_a_netcdf_file_is_held_against_its_checksum(home):
    import h5py

    with h5py.File(home / "run.nc") as file:
        assert file["posterior/s"].fletcher32
    content = bytearray((home / "run.nc").read_bytes())
    content[len(content) // 2] ^= 1
    (home / "run.nc").write_bytes(content)
    with pytest.raises(saltus.StorageError, match=r"run\.nc is damaged"):
        saltus.open(home / "run.nc")


def test_files_of_two_checkpoints_are_not_mixed(home, tmp_path):
    draw(checkpoint=tmp_path / "other", seed=3)
    for name in ("state.npz", "draws-000000000008.npz"):
        copy = shutil.copytree(home / "alone", tmp_path / name)
        shutil.copy(tmp_path / "other" / name, copy / name)
        with pytest.raises(saltus.StorageError, match="mixed up"):
            saltus.resume(copy, TARGET, num_draws=40, progress=False)


def test_a_store_elsewhere_is_named_by_the_caller(tmp_path):
    """A path in a file is not followed out of its folder."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    places = dict(checkpoint=tmp_path / "here" / "c", store=tmp_path / "there" / "run.zarr")
    draw(**places)
    before = contents(tmp_path / "there")
    with pytest.raises(saltus.StorageError, match="not beside its checkpoint"):
        saltus.resume(places["checkpoint"], TARGET, num_draws=40, progress=False)
    assert contents(tmp_path / "there") == before
    run = saltus.resume(places["checkpoint"], TARGET, num_draws=40, progress=False, store=places["store"])
    assert run.posterior.sizes["draw"] == 40
    assert draw(num_draws=40, **places).posterior.s.equals(run.posterior.s)


def test_data_is_synced_before_what_counts_it(tmp_path, monkeypatch):
    """Of every write that replaces the state: all blocks before it were synced."""
    monkeypatch.setattr(recording, "_MOST_ROWS", 8)
    done = []
    for name in ("create", "move", "sync"):
        before = getattr(disk, name)
        monkeypatch.setattr(disk, name, lambda first, *rest, n=name, f=before: (done.append((n, first, *rest)), f(first, *rest))[1])
    draw(checkpoint=tmp_path / "c", checkpoint_every=1e-9)
    unsynced = set()
    for name, first, *rest in done:
        if name == "move" and rest[0].name.startswith("draws-"):
            unsynced.add(rest[0])
        elif name == "sync":
            unsynced -= set(first)
        elif name == "move" and rest[0].name == "state.npz":
            assert not unsynced
    assert any(name == "move" and rest[0].name.startswith("draws-") for name, _, *rest in done)
    assert json.loads((tmp_path / "c" / "lock").read_text())["pid"] == os.getpid()
    assert zipfile.is_zipfile(tmp_path / "c" / "run.npz")
