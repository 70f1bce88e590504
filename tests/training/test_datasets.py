"""Data sets: found, checksummed, and an error that says what to do where they are not."""

import os
from pathlib import Path

import numpy as np
import pytest

import saltus
from saltus import datasets

HERE = os.environ.get("SALTUS_DATA", "")
SHAPES = {"usps": (7291, 256), "mnist": (50000, 784), "uscrime": (47, 15), "growth": (72, 41), "diabetes": (442, 64)}
SHAPES |= {"prostate": (97, 8), "riboflavin": (71, 4088), "G1": (19176, 2), "G81": (40000, 2)}


@pytest.mark.parametrize("name", SHAPES)
def test_known_files(name):
    if not HERE or not Path(HERE).is_dir():
        pytest.skip("SALTUS_DATA does not name a folder: see saltus.datasets.load")
    found = datasets.load(name)
    table = next(getattr(found, part) for part in ("train", "X", "edges") if hasattr(found, part))
    assert table.shape == SHAPES[name]
    if name == "usps":
        assert set(np.unique(found.train)) == {0, 1}
        assert abs(found.train.mean() - 0.256) < 5e-4
        assert found.test.shape == (2007, 256)
        assert len(found.train_labels) == 7291


def test_a_missing_file_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("SALTUS_DATA", raising=False)
    with pytest.raises(saltus.StorageError, match=r"usps_binary\.npz.*\n.*SALTUS_DATA(.*\n)*.*ElemStatLearn"):
        datasets.load("usps")
    with pytest.raises(saltus.StorageError, match=rf"no usps_binary\.npz.*\n.*{tmp_path}.*path="):
        datasets.load("usps", path=tmp_path)
    monkeypatch.setenv("SALTUS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(saltus.StorageError, match="nowhere"):
        datasets.load("mnist")


def test_another_file_is_refused(tmp_path):
    (tmp_path / "prostate.csv").write_text("lcavol,lpsa,train\n1,2,True\n")
    with pytest.raises(saltus.StorageError, match="sha256"):
        datasets.load("prostate", path=tmp_path)
    with pytest.raises(saltus.StorageError, match="sha256"):
        datasets.load("prostate", path=tmp_path / "prostate.csv")


def test_an_unknown_name_lists_the_known_ones():
    for name in ("cifar", 3):
        with pytest.raises(saltus.StorageError, match="usps, mnist"):
            datasets.load(name)


def test_digits_are_binary_the_same_for_the_same_seed_and_tell_digits_apart():
    data = datasets.digits(400, 200, seed=1)
    assert data.train.shape == (400, 256)
    assert set(np.unique(data.train)) == {0, 1}
    assert 0.15 < data.train.mean() < 0.35
    again = datasets.digits(400, 200, seed=1)
    assert np.array_equal(again.test, data.test)
    assert not np.array_equal(datasets.digits(400, 200, seed=2).test, data.test)
    means = np.array([data.train[data.train_labels == label].mean(0) for label in range(10)])
    nearest = np.argmin(((data.test[:, None] - means) ** 2).sum(-1), axis=1)
    assert (nearest == data.test_labels).mean() > 0.8
