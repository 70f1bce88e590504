"""Data as it comes: arrays, files, loaders, functions; checked once and cheaply, and errors that name the update."""

import time

import numpy as np
import optax
import pytest

import saltus
from saltus import training
from saltus.spaces import Product
from saltus.training.buffer import Visits
from saltus.training.codes import read_codes

SPACE = saltus.Spin(5)
DATA = np.random.default_rng(3).choice([-1, 1], size=(40, 5))
ADAM = optax.adam(3e-2)


def train(data, target=None, **settings):
    given = dict(optimiser=ADAM, num_updates=30, num_steps=3, batch_size=8, buffer_size=24, seed=0, progress=False)
    return training.pcd(target or training.models.ising(SPACE), data, saltus.NCG(1.0), **{**given, **settings})


def batch(update):
    return DATA[Visits("slices", 40, 8, 0, 0).at(update)]


class Loader:
    """Like those of PyTorch: it can be gone through again and again."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@pytest.fixture(scope="module")
def from_array():
    return train(DATA)


def streams(tmp_path):
    mapped = np.memmap(tmp_path / "data.bin", np.int8, "w+", shape=DATA.shape)
    mapped[:] = DATA
    return {
        "memmap": mapped,
        "function": batch,
        "iterator": (batch(update) for update in range(1000)),
        "loader": Loader([batch(update) for update in range(30)]),
        "list": [batch(update).astype(float) for update in range(30)],
    }


@pytest.mark.parametrize("name", ["memmap", "function", "iterator", "loader", "list"])
def test_the_same_batches_give_the_same_model(name, tmp_path, from_array):
    found = train(streams(tmp_path)[name])
    np.testing.assert_array_equal(found.params["coupling"], from_array.params["coupling"])
    np.testing.assert_array_equal(found.buffer, from_array.buffer)


def test_a_loader_is_gone_through_again():
    five = Loader([batch(update) for update in range(5)])
    many = train(lambda update: batch(update % 5))
    np.testing.assert_array_equal(train(five).params["coupling"], many.params["coupling"])


@pytest.mark.parametrize("name", ["function", "iterator", "loader"])
def test_training_goes_on_where_the_data_stood(name, tmp_path, from_array):
    train(streams(tmp_path)[name], num_updates=13, checkpoint=tmp_path / "c")
    found = train(streams(tmp_path)[name], checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(found.params["coupling"], from_array.params["coupling"])


def late(bad, at=17):
    return lambda update: bad if update == at else batch(update)


LATE = {
    "nan": ("NaN", np.where(np.arange(5) == 2, np.nan, batch(0))),
    "shape": ("shape", batch(0)[:, :4]),
    "size": ("another size", batch(0)[:5]),
    "space": ("bits", (batch(0) + 1) // 2),
    "pair": ("label", (batch(0), np.zeros(8))),
    "nothing": ("batch of update 18", None),
    "word": ("batch of update 18", "digits"),
}


@pytest.mark.parametrize("name", LATE)
def test_a_late_batch_that_cannot_be_used_is_named_and_all_before_it_is_saved(name, tmp_path):
    words, bad = LATE[name]
    with pytest.raises(saltus.TrainingError, match=f"(?s)update 18.*{words}|{words}") as failed:
        train(late(bad), checkpoint=tmp_path / "c")
    assert failed.value.trained.num_updates == 17
    assert len(training.history(tmp_path / "c")["loss"]) == 17


def test_a_loader_that_ends_early_or_fails_is_named(tmp_path, from_array):
    with pytest.raises(saltus.TrainingError, match=r"(?s)ended before update 18.*found +17 batches") as failed:
        train((batch(update) for update in range(17)), checkpoint=tmp_path / "c")
    assert failed.value.trained.num_updates == 17
    found = train((batch(update) for update in range(30)), checkpoint=tmp_path / "c")  # and goes on with more
    np.testing.assert_array_equal(found.params["coupling"], from_array.params["coupling"])
    with pytest.raises(saltus.TrainingError, match=r"(?s)failed at update 4.*ZeroDivisionError"):
        train(lambda update: 1 / (3 - update) and batch(update))
    with pytest.raises(saltus.TrainingError, match="ended before update 1"):
        train(iter([]))
    with pytest.raises(saltus.TrainingError, match="batch_size=5"):
        train(lambda update: DATA[:5])


def test_whole_numbers_are_read_quickly():
    """0/1 data of the size of MNIST: today's budget is a fifth of a second; it took three."""
    bits = np.random.default_rng(0).integers(2, size=(60000, 784), dtype=np.uint8)
    began = time.process_time()
    codes = read_codes(saltus.Binary(784), bits, "data")
    assert time.process_time() - began < 0.3
    assert codes is bits
    with pytest.raises(saltus.SpaceError, match="2"):
        read_codes(saltus.Binary(784), bits[:10] + 1, "data")


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.float32, np.float64, bool, np.uint16])
@pytest.mark.parametrize(
    ("space", "start", "step"),
    [
        (saltus.Binary(4), 0, 1),
        (saltus.Spin(4), -1, 2),
        (saltus.Categorical(4, 3), 0, 1),
        (saltus.Ordinal(4, [2.0, 5.0, 8.0]), 2, 3),
    ],
    ids=str,
)
def test_the_quick_way_reads_what_the_space_reads(space, start, step, kind):
    rng = np.random.default_rng(0)
    values = (start + step * rng.integers(space.num_values, size=(50, 4))).astype(kind)
    try:
        expected = space.encode(values)
    except saltus.SpaceError:
        with pytest.raises(saltus.SpaceError):
            read_codes(space, values, "data")
        return
    np.testing.assert_array_equal(read_codes(space, values, "data"), expected)
    for bad in (np.nan, 1e9, -7, 0.5):
        wrong = values.astype(float)
        wrong[7, 2] = bad
        with pytest.raises(saltus.SpaceError):
            read_codes(space, wrong, "data")


def test_products_are_given_by_parts(tmp_path):
    space = Product(x=saltus.Binary(3), k=saltus.Categorical(2, 3))

    def f(params, s):
        return (s["x"] @ params["w"] @ s["k"].sum(0)) + (s["k"] * params["b"]).sum()

    rng = np.random.default_rng(0)
    data = {"x": rng.integers(2, size=(40, 3)), "k": rng.integers(3, size=(40, 2))}
    target = saltus.Target(f, space, {"w": np.zeros((3, 3), np.float32), "b": np.zeros((2, 3), np.float32)}, structure=None)
    found = train(data, target, checkpoint=tmp_path / "c")
    assert found.complete
    assert set(found.buffer) == {"x", "k"}
    assert found.buffer["k"].max() == 2
    ordinal = saltus.Target(lambda p, s: (s * p).sum(), saltus.Ordinal(5, [0.0, 1.0, 4.0]), np.zeros(5, np.float32), structure=None)
    assert train(rng.choice([0.0, 1.0, 4.0], size=(40, 5)), ordinal).complete
    with pytest.raises(saltus.SpaceError, match="dict"):
        train(DATA, target)
