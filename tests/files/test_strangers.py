"""Files are data from strangers: bounded, announced, checked like arguments; and what they say is escaped when printed."""

import io
import json
import shutil
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

import saltus
from saltus.engine import files, recording
from saltus.engine.lock import Lock

TARGET = saltus.Target(lambda s: 0.1 * jnp.sum(s), saltus.Spin(4))
KERNEL = saltus.NCG(0.5)


def draw(**settings):
    given = dict(num_draws=30, num_warmup=5, num_chains=2, thin=1, initial=np.ones(4, int), progress=False)
    return saltus.sample(TARGET, KERNEL, **{**given, **settings})


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "_MOST_ROWS", 8)
        home = tmp_path_factory.mktemp("begun")
        draw(checkpoint=home / "c")
        draw(checkpoint=home / "d", store=home / "run.zarr")
    return home


@pytest.fixture
def home(begun, tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "_MOST_ROWS", 8)
    return shutil.copytree(begun, tmp_path / "home")


def rewritten(file, kind, change):
    """The file with `change(header, arrays)` done to it, and right checksums."""
    header, arrays = files.read_npz(file, kind)
    header.pop("arrays")
    change(header, arrays)
    files.write_npz(file, header, arrays)


def go_on(folder):
    return saltus.resume(folder, TARGET, num_draws=40, progress=False)


def set_in(*way, value):
    def change(header, arrays):
        place = header
        for name in way[:-1]:
            place = place[name]
        place[way[-1]] = value

    return change


def of_array(name, value):
    return lambda header, arrays: arrays.update({name: np.asarray(value, arrays[name].dtype).reshape(arrays[name].shape)})


NONSENSE = {
    "step size NaN": ("run.npz", of_array("kernel.step_size", np.nan)),
    "step size -1": ("run.npz", of_array("kernel.step_size", -1.0)),
    "thin -1": ("run.npz", set_in("settings", "thin", value=-1)),
    "chains a word": ("run.npz", set_in("settings", "num_chains", value="x")),
    "draws 0": ("run.npz", set_in("settings", "num_draws", value=0)),
    "no settings": ("run.npz", lambda header, arrays: header.pop("settings")),
    "settings of another kind": ("run.npz", set_in("settings", value=[1])),
    "an unknown setting": ("run.npz", set_in("settings", "more", value=1)),
    "keep nothing": ("run.npz", set_in("settings", "keep", value=None)),
    "another record": ("run.npz", set_in("kernel", "record", value="Kernel")),
    "no kernel": ("run.npz", set_in("kernel", value=3)),
    "a choice of other words": ("run.npz", set_in("choice", value={"x": 1})),
    "a store of another kind": ("run.npz", set_in("store", value=7)),
    "no probes": ("run.npz", lambda header, arrays: arrays.pop("probes")),
    "codes of 9 to start from": ("run.npz", lambda header, arrays: arrays.update(initial=np.full((2, 4), 9, np.int32))),
    "phase 9": ("state.npz", set_in("phase", value=9)),
    "done -5": ("state.npz", set_in("done", value=-5)),
    "done 10**12": ("state.npz", set_in("done", value=10**12)),
    "thin 0": ("state.npz", set_in("thin", value=0)),
    "times NaN": ("state.npz", set_in("times", "sampling", value=float("nan"))),
    "no times": ("state.npz", lambda header, arrays: header.pop("times")),
    "states of 9": ("state.npz", lambda header, arrays: arrays.update({"carry.0": np.full_like(arrays["carry.0"], 9)})),
    "draws of 9": ("draws-000000000008.npz", lambda header, arrays: arrays.update(s=np.full_like(arrays["s"], 9))),
    "rows of another size": ("draws-000000000008.npz", lambda header, arrays: arrays.update(lp=arrays["lp"][:3])),
}
KINDS = {"run.npz": "run", "state.npz": "state", "draws-000000000008.npz": "segment"}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_with_right_checksums_is_refused(home, name):
    file, change = NONSENSE[name]
    rewritten(home / "c" / file, KINDS[file], change)
    with pytest.raises(saltus.StorageError):
        go_on(home / "c")


def test_nothing_is_unpacked(home):
    """2.9 MB that were 6 GB."""
    file = home / "c" / "run.npz"
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(10**7))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**content, "array.probes.npy": buffer.getvalue()}.items():
            archive.writestr(name, data)
    with pytest.raises(saltus.StorageError, match="compressed"):
        go_on(home / "c")


def test_what_was_not_announced_is_not_read(home):
    file = home / "c" / "state.npz"
    header, arrays = files.read_npz(file, "state")
    for told in ([["<f8", [10**13]]] * len(arrays), [["|O", [1]]] * len(arrays), [["<f8", [-1]]] * len(arrays)):
        text = np.frombuffer(json.dumps({**header, "arrays": dict(zip(arrays, told, strict=True))}).encode(), np.uint8)
        np.savez(file, header=text, **{f"array.{n}": a for n, a in arrays.items()})
        with pytest.raises(saltus.StorageError, match="cannot be read"):
            go_on(home / "c")


def test_a_header_has_a_bounded_size(home):
    rewritten(home / "c" / "run.npz", "run", set_in("kernel_repr", value="x" * 2**25))
    with pytest.raises(saltus.StorageError, match="a header of"):
        go_on(home / "c")


def test_a_path_in_a_file_is_not_followed(home, tmp_path):
    """A stranger's checkpoint that names a store of mine, by its id even."""
    (tmp_path / "mine").mkdir()
    shutil.copytree(home / "run.zarr", tmp_path / "mine" / "run.zarr")
    before = {p: p.read_bytes() for p in (tmp_path / "mine").rglob("*") if p.is_file()}
    shutil.rmtree(home / "run.zarr")
    for way in ("../mine/run.zarr", str(tmp_path / "mine" / "run.zarr")):
        rewritten(home / "d" / "run.npz", "run", set_in("store", value=way))
        with pytest.raises(saltus.StorageError):
            go_on(home / "d")
    assert {p: p.read_bytes() for p in (tmp_path / "mine").rglob("*") if p.is_file()} == before


STEERING = "\x1b[31mred\x07\u202etxt\r"


def test_what_a_file_says_is_escaped(home):
    rewritten(home / "c" / "run.npz", "run", set_in("kernel_repr", value=STEERING))
    with pytest.raises(saltus.StorageError, match="another `sampler`") as error:
        saltus.sample(TARGET, saltus.NCG(0.7), num_draws=30, num_warmup=5, num_chains=2, thin=1, initial=np.ones(4, int),
                      progress=False, checkpoint=home / "c")  # fmt: skip
    assert not set(str(error.value)) & set("\x1b\x07\u202e\r")
    assert r"\x1b[31mred\x07\u202etxt\r" in str(error.value)


def test_what_a_model_says_is_escaped():
    def log_prob(s):
        raise ValueError(STEERING)

    with pytest.raises(saltus.SaltusError) as error:
        saltus.Target(log_prob, saltus.Spin(3))
    assert not set(str(error.value)) & set("\x1b\x07\u202e")


def test_names_of_sites_are_escaped():
    """In summaries, warnings, checks and observables: whoever named the sites does not steer the reader's terminal."""
    names = [STEERING, "a", "b", "c"]
    target = saltus.Target(lambda s: 0.1 * jnp.sum(s), saltus.Spin(4), names=names)
    with pytest.warns(saltus.ConvergenceWarning) as warned:
        run = saltus.sample(target, saltus.NCG(0.01), num_draws=30, num_warmup=5, num_chains=2, thin=1, seed=1, progress=False)
    found = saltus.observables(run, {STEERING: jnp.sum})
    said = [
        str(saltus.summary(run)),
        *saltus.summary(run).doubts,
        *(str(w.message) for w in warned),
        repr(found),
        repr(found[STEERING]),
    ]
    for text in (*said, repr(saltus.Space(3, [0.0, 1.0], [0, 1], STEERING))):
        assert not set(text) & set("\x1b\x07\u202e\r")
    assert r"\x1b[31mred\x07\u202etxt\r" in said[0]
    assert list(run.posterior.site.values) == names  # as data they are what they were


# ---- verify and status -------------------------------------------------------------------------------------------


def test_verify_says_that_all_is_well(home):
    for place in ("c", "d", "run.zarr"):
        found = saltus.verify(home / place)
        assert found.ok, str(found)
        assert "is whole: every checksum is right" in str(found)
        assert found.safe == 30


def test_verify_names_what_is_damaged_and_what_is_safe(home):
    chunk = home / "run.zarr" / "posterior" / "s" / "c" / "0" / "1" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    for place in ("run.zarr", "d"):
        found = saltus.verify(home / place)
        assert not found.ok
        assert "posterior/s: draws 8 to 15 are damaged or missing" in str(found)
        assert "the first 8 draws of each chain" in str(found)
    (home / "c" / "draws-000000000008.npz").unlink()
    assert "draws from 8 is missing" in str(saltus.verify(home / "c"))
    shutil.rmtree(home / "run.zarr")
    assert "not there" in str(saltus.verify(home / "d"))
    with pytest.raises(saltus.StorageError, match="nothing at"):
        saltus.verify(home / "nowhere")


def test_status_tells_whether_and_how_far(home, capsys):
    from saltus.cli import main

    assert main(["status", str(home / "c")]) == 0
    told = capsys.readouterr().out
    assert "is not running: last written by process" in told
    assert "30 of 30 draws of 2 chains, 100 %" in told
    assert "it is complete" in told
    assert "last checkpoint" in told
    rewritten(
        home / "c" / "state.npz",
        "state",
        lambda header, arrays: header.update(done=10, times={**header["times"], "sampling": 60.0}),
    )
    lock = Lock(home / "c" / "lock", home)
    lock.take(dict)
    told = saltus.status(home / "c")
    lock.free()
    assert "is running" in told
    assert "10 of 30 draws" in told
    assert "about 2 min left" in told
    assert "30 of 30 draws" in saltus.status(home / "run.zarr")
    assert main(["verify", str(home / "run.zarr")]) == 0
