"""Named data sets, from a directory of files in their usual formats."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symsvm.validation import choice

__all__ = ["DataSet", "data_home", "load"]

# name -> number of features; a file may leave out its last ones where they are zero.
_SETS = {"svmguide1": 4, "svmguide3": 22}
_HOME = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"


class DataSet(NamedTuple):
    """Training and test points with their labels as the files have them."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def data_home():
    """The directory with the data sets: the environment variable SYMSVM_DATA, else ~/.cache/symsvm."""
    return Path(os.environ.get("SYMSVM_DATA") or Path.home() / ".cache" / "symsvm")


def load(name):
    """Load a named data set: "svmguide1" (astroparticle) or "svmguide3" (vehicle), as the paper uses them."""
    from sklearn.datasets import load_svmlight_files

    choice(name, "name", tuple(_SETS))
    files = [data_home() / name, data_home() / f"{name}.t"]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{missing[0]} does not exist: download {name} and {name}.t from {_HOME} into that directory, "
            "or set SYMSVM_DATA to the directory that holds them."
        )
    X, y, X_test, y_test = load_svmlight_files([str(file) for file in files], n_features=_SETS[name])
    return DataSet(X.toarray(), y, X_test.toarray(), y_test)
