"""A run survives: real kills at random moments, interrupts, time limits, damaged files; draws stay the same bit for bit."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import killable
import numpy as np
import pytest

import saltus
from saltus.engine import files, recording

SCRIPT = Path(killable.__file__)
TARGET = killable.target()
KERNEL = saltus.UniformMH(2)


def draw(**settings):
    given = dict(num_draws=60, num_warmup=10, num_chains=3, seed=1, progress=False)
    return saltus.sample(TARGET, KERNEL, **{**given, **settings})


def same(a, b):
    return set(a.children) == set(b.children) and all(
        np.array_equal(a[g][n], b[g][n]) for g in a.children if g != "kernel" for n in a[g].data_vars
    )


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(recording, "_MOST_ROWS", 8)


@pytest.fixture(scope="module")
def uninterrupted():
    return killable.run(None)


def kill_until_finished(folder, *arguments, kills):
    """Start the script, kill it at a random moment, again and again; then let it finish. How many kills found it alive."""
    rng = random.Random(0)
    state = folder / "run.ckpt" / "state.npz"
    alive = 0
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    for attempt in range(kills + 1):
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder), *arguments], stdout=subprocess.PIPE, text=True, env=environment
        )
        if attempt < kills:
            before = state.stat().st_mtime_ns if state.exists() else 0
            while attempt % 4 and process.poll() is None and (not state.exists() or state.stat().st_mtime_ns == before):
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.15 if attempt % 4 else 3))  # every fourth at any moment, also while it starts
            alive += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
        else:
            assert process.communicate(timeout=300)[0].strip() == "finished"
    return alive


MANY = [pytest.param("segments", 20, marks=pytest.mark.full), pytest.param("store", 8, marks=pytest.mark.full)]


@pytest.mark.parametrize(("kind", "kills"), [("segments", 3), ("store", 2), *MANY])
def test_killed_runs_end_with_the_same_draws(kind, kills, tmp_path, uninterrupted):
    alive = kill_until_finished(tmp_path, *([kind] if kind == "store" else []), kills=kills)
    assert alive == kills
    store = {"store": tmp_path / "run.zarr"} if kind == "store" else {}
    assert same(killable.run(tmp_path, **store), uninterrupted)  # finished: read, not run again


def test_a_killed_race_goes_on_from_its_freeze(tmp_path):
    """Kills during the race start it anew; once something is frozen, it is what the kernel and the start say."""
    kill_until_finished(tmp_path, "raced", kills=5)
    found = killable.raced(tmp_path)  # finished: read, not run again
    again = dict(initial=found["start"].s.values, thin=found.attrs["thin"])
    assert same(killable.raced(None, sampler=saltus.kernel_of(found), **again), found)


def test_a_run_stopped_in_its_warm_up_can_be_summarised(tmp_path):
    settings = dict(num_warmup=2_000_000_000, thin="auto", checkpoint=tmp_path / "c", store=tmp_path / "run.zarr")
    with pytest.warns(UserWarning, match="repeat the call"):
        draw(time_limit=10, **settings)
    run = saltus.open(tmp_path / "run.zarr")
    assert 0 < run.attrs["num_warmup"] < 2_000_000_000
    told = str(saltus.summary(run))
    assert "INCOMPLETE (time limit)" in told
    assert "1 draw a chain: too few to judge anything" in told


def test_a_run_stopped_by_its_time_limit_goes_on(tmp_path):
    whole = draw(num_draws=200_000, thin=3, keep_warmup=True)
    path = tmp_path / "c"
    part = draw(num_draws=200_000, thin=3, keep_warmup=True, checkpoint=path, time_limit=0.5)
    assert part.attrs["complete"] == 0
    assert part.attrs["incomplete_because"] == "time limit"
    n = part.sizes.get("draw", part.posterior.sizes["draw"])
    assert 0 < n < 200_000
    if part.attrs["cut"]:  # on a busy machine
        steps = part.warmup_posterior.sizes["draw"]
        assert np.array_equal(part.posterior.s, whole.warmup_posterior.s[:, steps - 1 : steps])
    else:
        assert np.array_equal(part.posterior.s, whole.posterior.s[:, :n])
    again = saltus.resume(path, TARGET, progress=False)
    assert same(again, whole)
    assert again.attrs["complete"] == 1


@pytest.mark.parametrize("store", [False, True])
def test_a_time_limit_in_the_warm_up_returns_its_states(tmp_path, store):
    settings = dict(num_warmup=100_000, num_draws=50, thin=1, keep_warmup=True)
    whole = draw(**settings)
    stored = {"store": tmp_path / "s.zarr"} if store else {}
    with pytest.warns(UserWarning, match="no time for all of the warm-up"):
        part = draw(**settings, **stored, checkpoint=tmp_path / "c", time_limit=0.01)
    steps = part.warmup_posterior.sizes["draw"]
    assert 0 < steps < 100_000
    assert "these draws are states of the warm-up, and saltus.resume goes on with it" in part.attrs["cut"]
    assert part.posterior.sizes["draw"] == 1
    assert np.array_equal(part.posterior.s[:, 0], whole.warmup_posterior.s[:, steps - 1])
    assert np.array_equal(part.sample_stats.lp[:, 0], whole.warmup_sample_stats.lp[:, steps - 1])
    again = saltus.resume(tmp_path / "c", TARGET, progress=False)
    assert same(again, whole)
    assert again.attrs["cut"] == ""


def test_resume_makes_a_run_longer(tmp_path, small_blocks):
    for store in ({}, {"store": tmp_path / "s.zarr"}):
        path = tmp_path / f"c{len(store)}"
        draw(checkpoint=path, num_draws=37, **store)
        longer = saltus.resume(path, TARGET, num_draws=61, progress=False)
        assert same(longer, draw(num_draws=61))
        assert same(saltus.resume(path, TARGET, progress=False), longer)  # it is a run of 61 from now on
        with pytest.raises(saltus.StorageError, match="another `num_draws`"):
            draw(checkpoint=path, num_draws=37, **store)
        with pytest.raises(saltus.RunError, match="smaller than it was"):
            saltus.resume(path, TARGET, num_draws=37, progress=False)
        assert same(saltus.resume(path, TARGET, num_draws=90, progress=False), draw(num_draws=90))


def test_a_store_and_its_checkpoint_may_be_moved(tmp_path):
    (tmp_path / "here").mkdir()
    draw(checkpoint=tmp_path / "here" / "c", store=tmp_path / "here" / "s.zarr")
    (tmp_path / "here").rename(tmp_path / "there")
    assert same(saltus.resume(tmp_path / "there" / "c", TARGET, num_draws=80, progress=False), draw(num_draws=80))


@pytest.fixture
def original(tmp_path, small_blocks):
    """A run with checkpoint and store in a folder of its own, and a copy of that folder."""
    (tmp_path / "here").mkdir()
    draw(checkpoint=tmp_path / "here" / "c", store=tmp_path / "here" / "s.zarr")
    shutil.copytree(tmp_path / "here", tmp_path / "copy")
    return tmp_path / "here"


def contents(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_copy_goes_on_by_itself(original):
    before, copy = contents(original), original.with_name("copy")
    assert same(saltus.resume(copy / "c", TARGET, num_draws=80, progress=False), draw(num_draws=80))
    assert contents(original) == before
    again = draw(num_draws=80, checkpoint=copy / "c", store=copy / "s.zarr")  # the same call, in the other folder
    assert same(again, saltus.open(copy / "s.zarr"))
    assert contents(original) == before
    assert same(saltus.resume(original / "c", TARGET, num_draws=90, progress=False), draw(num_draws=90))


def test_a_copied_checkpoint_leaves_the_store_of_another_alone(original):
    copy = original.with_name("copy")
    shutil.rmtree(copy / "s.zarr")
    before = contents(original)
    with pytest.raises(saltus.StorageError, match=r"store of this run is not there(?s:.*)copy/s.zarr"):
        saltus.resume(copy / "c", TARGET, num_draws=80, progress=False)
    with pytest.raises(saltus.StorageError, match="another `store`"):
        draw(checkpoint=copy / "c", store=original / "s.zarr")
    draw(store=copy / "s.zarr", seed=5)  # another run where the copy's store would be
    other = contents(copy)
    with pytest.raises(saltus.StorageError, match="holds another run"):
        saltus.resume(copy / "c", TARGET, num_draws=80, progress=False)
    assert contents(original) == before
    assert contents(copy) == other


def test_a_store_with_fewer_rows_than_the_state_counts_is_refused(original):
    import zarr

    root = zarr.open_group(str(original / "s.zarr"), mode="r+")
    lp = root["sample_stats/lp"]
    lp.resize((lp.shape[0], 9))
    with pytest.raises(saltus.StorageError, match=r"fewer draws than(?s:.*)56(?s:.*)9"):
        saltus.resume(original / "c", TARGET, num_draws=80, progress=False)
    assert zarr.open_group(str(original / "s.zarr"), mode="r")["sample_stats/lp"].shape[1] == 9


def test_a_kill_within_the_first_block_of_a_store_is_survived(tmp_path, small_blocks):
    """The group is there, and does not say yet how many draws count."""
    import zarr

    draw(checkpoint=tmp_path / "c", store=tmp_path / "s.zarr", num_draws=4)
    for group in ("posterior", "sample_stats"):
        del zarr.open_group(str(tmp_path / "s.zarr"), mode="r+")[group].attrs["draws"]
    assert same(saltus.resume(tmp_path / "c", TARGET, num_draws=20, progress=False), draw(num_draws=20))


def test_a_checkpoint_of_saltus_0_1_goes_on(original):
    """Its header does not say where the checkpoint was, nor which run the store is of."""
    for folder in (original, original.with_name("copy")):
        header, arrays = files.read_npz(folder / "c" / "run.npz", "run")
        old = {name: header[name] for name in ("kind", "settings", "kernel", "kernel_repr", "choice", "store", "fingerprint")}
        files.write_npz(folder / "c" / "run.npz", old, arrays)
        mark = json.loads((folder / "s.zarr" / "zarr.json").read_text())
        mark["attributes"].pop("run_id", None)
        mark["attributes"]["saltus_store"] = 3  # without checksums
        (folder / "s.zarr" / "zarr.json").write_text(json.dumps(mark))
    before = contents(original)
    assert same(saltus.resume(original.with_name("copy") / "c", TARGET, num_draws=80, progress=False), draw(num_draws=80))
    assert contents(original) == before
    assert same(saltus.resume(original / "c", TARGET, num_draws=90, progress=False), draw(num_draws=90))


def test_statistics_and_observables_go_on_too(tmp_path, small_blocks):
    magnetisation = {"m": jnp.mean}
    for keep in (("mean", "covariance", "best"), magnetisation):
        path = tmp_path / f"c{len(keep)}"
        draw(checkpoint=path, num_draws=37, keep=keep)
        longer = saltus.resume(path, TARGET, num_draws=61, keep=keep if keep is magnetisation else None, progress=False)
        assert same(longer, draw(num_draws=61, keep=keep))


def test_the_same_call_continues_and_another_is_refused(tmp_path):
    path = tmp_path / "c"
    first = draw(checkpoint=path)
    before = {p.name: p.read_bytes() for p in path.iterdir()}
    assert same(draw(checkpoint=path), first)
    for change, name in (
        ({"seed": 2}, "seed"),
        ({"num_draws": 61}, "num_draws"),
        ({"num_chains": 4}, "num_chains"),
        ({"thin": 2}, "thin"),
        ({"keep": "mean"}, "keep"),
        ({"initial": np.ones(6, int)}, "initial"),
        ({"store": tmp_path / "x.zarr"}, "store"),
    ):
        with pytest.raises(saltus.StorageError, match=f"another `{name}`"):
            draw(checkpoint=path, **change)
    with pytest.raises(saltus.StorageError, match="another `sampler`"):
        saltus.sample(
            TARGET, saltus.UniformMH(1), num_draws=60, num_warmup=10, num_chains=3, seed=1, progress=False, checkpoint=path
        )
    assert {p.name: p.read_bytes() for p in path.iterdir()} == before
    assert not (tmp_path / "x.zarr").exists()
    assert same(draw(checkpoint=path, seed=2, overwrite=True), draw(seed=2))


def test_another_target_is_refused(tmp_path):
    path = tmp_path / "c"
    draw(checkpoint=path)
    others = {
        "space": saltus.Target(lambda s: jnp.sum(s), saltus.Spin(7)),
        "log_prob": saltus.Target(lambda s: 0.5 * jnp.sum(s[1:] * s[:-1]) - 0.2 * jnp.sum(s), saltus.Spin(6)),
        "local model": TARGET.replace(differences="exact"),
    }
    for name, other in others.items():
        with pytest.raises(saltus.StorageError, match=f"another target: the {name}"):
            saltus.resume(path, other, progress=False)


def test_targets_that_differ_little_or_only_where_probes_are_impossible(tmp_path):
    """A large constant hides a small change, and a constraint hides everything: the chains' own states tell."""

    def offset(sign):
        return saltus.Target(lambda s: sign * 0.5 * jnp.sum(s[1:] * s[:-1]) - 2e5, saltus.Spin(6))

    def constrained(weight):
        def log_prob(s):
            return jnp.where(jnp.sum(s) == 30, weight * jnp.sum(s[1:] * s[:-1]), -jnp.inf)

        return saltus.Target(log_prob, saltus.Spin(34), initial=(np.arange(34) < 32).astype(int))

    for make, values in ((offset, (1, -1)), (constrained, (0.3, -0.3))):
        path = tmp_path / make.__name__
        settings = dict(num_draws=10**7, num_warmup=0, num_chains=2, keep="mean", progress=False)
        saltus.sample(make(values[0]), saltus.UniformMH(1), time_limit=3, checkpoint=path, **settings)
        with pytest.raises(saltus.StorageError, match="another target: the log_prob"):
            saltus.resume(path, make(values[1]), progress=False)


def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "c").mkdir()
    assert same(draw(checkpoint=tmp_path / "c"), draw())


@pytest.fixture
def saved(tmp_path, small_blocks):
    draw(checkpoint=tmp_path / "c", num_draws=30)
    return tmp_path / "c"


@pytest.mark.parametrize("name", ["run.npz", "state.npz", "draws-000000000008.npz"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "directory", "foreign", "future", "empty", "pickle"])
def test_damaged_files_are_named_and_left_alone(saved, name, damage):
    file = saved / name
    content = file.read_bytes()
    if damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        middle = content.index(b"header.npy") + 200
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    elif damage == "directory":  # the name of the last array, in the table of contents at the end
        at = content.rindex(b"array.")
        file.write_bytes(content[:at] + b"z" + content[at + 1 :])
    elif damage == "foreign":
        np.savez(file, something=np.arange(3))
    elif damage == "future":
        header, arrays = files.read_npz(file, {"run": "run", "sta": "state", "dra": "segment"}[name[:3]])
        text = np.frombuffer(json.dumps({**header, "format": files.FORMAT + 1}).encode(), np.uint8)
        np.savez(file, header=text, **{f"array.{n}": a for n, a in arrays.items()})
    elif damage == "pickle":
        np.savez(file, header=np.array([{"kind": "run"}], dtype=object))
    else:
        file.write_bytes(b"")
    found = file.read_bytes()
    with pytest.raises(saltus.StorageError, match="newer saltus" if damage == "future" else "cannot be read") as error:
        saltus.resume(saved, TARGET, progress=False)
    assert str(file) in str(error.value)
    assert file.read_bytes() == found


def test_a_missing_segment_is_named(saved):
    (saved / "draws-000000000008.npz").unlink()
    with pytest.raises(saltus.StorageError, match=r"draws-000000000008\.npz"):
        saltus.resume(saved, TARGET, progress=False)


def test_what_is_no_checkpoint_is_left_alone(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(saltus.StorageError, match="is not a checkpoint"):
            draw(checkpoint=folder, overwrite=overwrite)
    assert (folder / "thesis.txt").read_text() == "years of work"
    with pytest.raises(saltus.StorageError, match="There is no checkpoint"):
        saltus.resume(tmp_path / "nothing", TARGET)


def test_a_checkpoint_costs_the_same_late_as_early(tmp_path, small_blocks):
    """Bytes written per state, not seconds: the state holds chains and one block, whatever has been drawn before."""
    sizes = []
    for n in (36, 36 + 8 * 50):
        draw(checkpoint=tmp_path / f"c{n}", num_draws=n)
        sizes.append((tmp_path / f"c{n}" / "state.npz").stat().st_size)
    assert abs(sizes[0] - sizes[1]) < 64


PRESSED = """
import signal, sys
sys.path.insert(0, sys.argv[1])
import killable

run = killable.run(None, num_draws=50_000_000, keep={"m": lambda s: s[0]}, progress=True)
print(run.attrs["complete"], run.attrs["incomplete_because"], run.sample_stats.sizes["draw"])
signal.raise_signal(signal.SIGINT)
"""


def test_ctrl_c_returns_what_was_drawn():
    command = [sys.executable, "-c", PRESSED, str(SCRIPT.parent)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    while "sampling" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=120)
    complete, reason, draws = told.split()
    assert (complete, reason) == ("0", "interrupted")
    assert 0 < int(draws) < 50_000_000
    assert "incomplete (interrupted)" in errors
    assert "KeyboardInterrupt" in errors  # afterwards Ctrl-C is Python's again


FULL_DISK = """
import resource, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import killable, saltus

home = Path(sys.argv[2])
written = home / "run.zarr/posterior/s/c/0"
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def fill_the_disk():
    while not written.exists() or len(list(written.iterdir())) < 4:
        time.sleep(0.001)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

threading.Thread(target=fill_the_disk, daemon=True).start()
try:
    killable.run(None, num_draws=50_000_000, num_warmup=0, keep_warmup=False, store=home / "run.zarr")
except saltus.StorageError as error:
    print(error)
"""


def test_a_disk_that_fills_up_loses_nothing_already_written(tmp_path):
    """A limit on the size of files, set by the kernel in mid-run, stands for the full disk: the next write fails for real."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(SCRIPT.parent), str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert "cannot be written" in done.stdout, done.stderr
    assert "File too large" in done.stdout
    safe = int(done.stdout.split("the first ")[1].split()[0])
    assert safe > 0
    run = saltus.open(tmp_path / "run.zarr")
    assert run.attrs["complete"] == 0
    assert run.posterior.sizes["draw"] == safe
    whole = killable.run(None, num_draws=safe, num_warmup=0, keep_warmup=False)
    assert np.array_equal(run.posterior.s, whole.posterior.s)


def test_unwritable_places_are_refused_before_the_run(tmp_path):
    with pytest.raises(saltus.StorageError, match="no such folder"):
        draw(store=tmp_path / "a" / "b.zarr")
    with pytest.raises(saltus.StorageError, match="no such folder"):
        draw(checkpoint=tmp_path / "a" / "b")
    (tmp_path / "file").write_text("x")
    with pytest.raises(saltus.StorageError):
        draw(store=tmp_path / "file" / "b.zarr")


def test_a_disk_without_room_is_refused_before_the_run(tmp_path, monkeypatch):
    free = shutil.disk_usage(tmp_path).free
    draws = int(free / 3 / 10)  # ten bytes a draw of each of three chains is less than is stored
    if draws > 2**31 - 1:
        monkeypatch.setattr(shutil, "disk_usage", lambda p: shutil._ntuple_diskusage(10**10, 10**10, 10**9))
        draws = 10**8
    with pytest.raises(saltus.StorageError, match="will not fit on the disk"):
        draw(store=tmp_path / "run.zarr", num_draws=draws)
    assert not (tmp_path / "run.zarr").exists()


def test_without_a_terminal_progress_is_a_few_lines(capsys):
    draw(progress=True)
    told = capsys.readouterr().err
    assert "compiling UniformMH(radius=2)" in told
    assert "sampling" in told
    assert "steps/s" in told
    draw(progress=False)
    assert capsys.readouterr().err == ""
