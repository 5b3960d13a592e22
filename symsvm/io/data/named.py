"""Named data sets, from a directory of files in their usual formats, downloaded when they are first asked for."""

import os
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symsvm._lib.validation import choice
from symsvm.io.data.downloads import DownloadError, download
from symsvm.io.data.idx import read_idx
from symsvm.io.data.libsvm_text import read_libsvm
from symsvm.io.data.registry import FILES, SETS

__all__ = ["DataSet", "data_home", "load"]


class DataSet(NamedTuple):
    """Training and test points with their labels as the files have them; None where there is no test set."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def data_home():
    """The directory with the data sets: the environment variable SYMSVM_DATA, else one in the user's cache."""
    if home := os.environ.get("SYMSVM_DATA"):
        return Path(home)
    import pooch

    return Path(pooch.os_cache("symsvm"))


def load(name):
    """Load a named data set, such as "svmguide1" (`symsvm.data.SETS` lists them all) from `data_home()`.

    What is not there is downloaded from the set's own site and checked. X is an array, CSR for "a9a", pixels 0 to 255
    for "mnist", a list of texts for "20news".
    """
    entry = SETS[choice(name, "name", tuple(SETS))]
    train = [_locate(file) for file in entry.train]
    test = [_locate(file) for file in entry.test]
    if entry.kind == "posts":
        return _posts(train[0])
    return DataSet(*_points(train, entry), *(_points(test, entry) if test else (None, None)))


def _locate(file):
    """The path of a file, after a download if need be."""
    url, sha256 = FILES[file]
    path = data_home() / file
    if path.is_file():
        return path
    if url is None:
        raise DownloadError(
            f"{path} does not exist, and no site has it: get {file.removesuffix('_scale')}, "
            "which is there unscaled, and write it to that file scaled to [-1, 1]."
        )
    return download(url, sha256, path)


def _points(files, entry):
    if entry.kind == "idx":
        images, labels = map(read_idx, files)
        return images.reshape(len(images), -1), labels
    X, y = read_libsvm(files[0], n_features=entry.n_features)
    return (X if entry.kind == "sparse" else X.toarray()), y


def _posts(path):
    """The texts of both parts, and the newsgroups that they were posted to."""
    parts = {"train": ([], []), "test": ([], [])}
    with tarfile.open(path) as archive:
        for member in archive:
            folder, *rest = member.name.removeprefix("./").split("/")
            texts, groups = parts.get(folder.rpartition("-")[2], (None, None))
            if member.isfile() and groups is not None and len(rest) == 2:
                texts.append(archive.extractfile(member).read().decode("latin-1"))
                groups.append(rest[0])
    (X, y), (X_test, y_test) = parts.values()
    return DataSet(X, np.array(y), X_test, np.array(y_test))
