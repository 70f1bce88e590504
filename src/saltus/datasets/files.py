"""The files `load` knows: their checksums, how they are read, and where the public gets them."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StorageError
from .kinds import Images, MaxCut, Regression, read_genes, read_graph, read_images, read_table


@dataclass(frozen=True)
class _File:
    name: str
    sha256: str
    read: Callable[[Path], Any]
    source: str


def _graph(number: int, sha256: str, best_cut: int | None) -> _File:
    source = "the Gset collection of Helmberg and Rendl (https://web.stanford.edu/~yyye/yyye/Gset)"
    return _File(f"gset/G{number}.txt", sha256, functools.partial(read_graph, best_cut=best_cut), source)


_FILES = {
    "usps": _File(
        "usps_binary.npz",
        "e42de22d0cb9d2132c464a831df718f4a01855c2af2f0a6acd104c8df9894f79",
        functools.partial(read_images, pixels=256),
        "zip.train and zip.test of ElemStatLearn (CRAN): packbits(pixel > 0) of the [-1, 1] images, with labels",
    ),
    "mnist": _File(
        "mnist_static_binary.npz",
        "50de2c8299a5a297789293ab2c30f6fc3cb8c359a15e5e88d5501aa18ebb8fa5",
        functools.partial(read_images, pixels=784),
        "the static binarisation of MNIST by Larochelle and Murray, packed with packbits",
    ),
    "uscrime": _File(
        "UScrime.csv",
        "28a072570c33434212abb9e779736e6e328734bee00bec277982a36c2bebc1e4",
        functools.partial(read_table, response="y"),
        "UScrime of the R package MASS",
    ),
    "growth": _File(
        "datafls.csv",
        "52cae381207eac8497d53ec975094faa48481dd3329d0beb4ea345cd9fc78803",
        functools.partial(read_table, response="y"),
        "datafls of the R package BMS (Fernandez, Ley and Steel 2001)",
    ),
    "diabetes": _File(
        "diabetes64.csv",
        "41fcf2b54064762836ebf9295ef99a6d698d7d7722de281d8b3720cb3649d5ad",
        functools.partial(read_table, response="y"),
        "load_diabetes of scikit-learn, with squares and interactions, standardised",
    ),
    "prostate": _File(
        "prostate.csv",
        "1999f9340d1a456e631bc4b609a939ca05f374f68feca3c786c4f5678fc9ff26",
        functools.partial(read_table, response="lpsa", dropped=("train",)),
        "prostate of the R package ElemStatLearn",
    ),
    "riboflavin": _File(
        "riboflavin.npz",
        "bc9fe36fd118c98f502f647ed32517b71c27224186d66dbca9e33db07f1116a4",
        read_genes,
        "riboflavin of the R package hdi",
    ),
    "G1": _graph(1, "93c892bb40ec560c49a3a019367dfd1d593541ddc979b1a4f966a42a3bbacecb", 11624),
    "G11": _graph(11, "0a43666a1b64f5b0f48f9b0b8d2e450d97ce69173ec0119a7a9ef2a983dadb86", 564),
    "G14": _graph(14, "86eb912316eaf53d0891df905d12a42d5ee1b786df100e391a62190cac5727ab", 3064),
    "G22": _graph(22, "1d18ffb48bf6d39bee00e19daf50f2e4c9ea1b75f8bbdb5699179e35e21b7137", 13359),
    "G43": _graph(43, "042dd841be63cb80cda079a10c3d910850a8c1c6983766a590a2b44f90f6d089", 6660),
    "G81": _graph(81, "a74ca3e9582e597ae6eeaeeac8963ab45e8ccf2d547a7ffc73ff6abee765547d", None),
}
NAMES = tuple(_FILES)


def load(name: str, path: Any = None) -> Images | Regression | MaxCut:
    """A known data set, from its file: "usps", "mnist", "uscrime", "growth", "diabetes", "prostate", "riboflavin", "G1", ...

    path: the file, or the folder it is in; None looks in the folder that the environment variable SALTUS_DATA names.
    The file's checksum must be the known one: results are comparable only on the same data.

    name: of the data set.
    """
    known = {each.lower(): file for each, file in _FILES.items()}
    file = known.get(name.lower()) if isinstance(name, str) else None
    if file is None:
        raise StorageError("This data set is not known.", expected=", ".join(NAMES), found=repr(name))
    place = _find(file, path)
    found = hashlib.sha256(place.read_bytes()).hexdigest()
    if found != file.sha256:
        raise StorageError(
            f"{place} is not the {name!r} this version knows.",
            expected=f"sha256 {file.sha256}",
            found=f"sha256 {found}",
            hint=f"it was changed, cut short, or made otherwise from {file.source}",
        )
    return file.read(place)


def _find(file: _File, path: Any) -> Path:
    given = path if path is not None else os.environ.get("SALTUS_DATA")
    public = f"the public gets it from {file.source}"
    if not given:
        raise StorageError(
            f"Where is {file.name}?",
            expected="path=, or the environment variable SALTUS_DATA, a folder that holds it",
            found="neither",
            hint=f"{public}; saltus.datasets.digits() needs no file",
        )
    folder = Path(given).expanduser()
    place = folder / file.name if folder.is_dir() else folder
    if not place.is_file():
        asked = "path=" if path is not None else "SALTUS_DATA"
        raise StorageError(f"There is no {file.name}.", expected=f"{place}, from {asked}", found="no such file", hint=public)
    return place
