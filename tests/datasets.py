"""Data sets for the tests: small ones under the names and in the formats of the named sets; the real ones if present.

The small ones are made of what scikit-learn ships. A test of the library runs on them, always, and on the real ones
where `data_home()` has them; only a test of facts about the real files needs these, and skips without them.
"""

import functools

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import MinMaxScaler

from symsvm.data import SETS, DataSet, data_home, write

__all__ = ["files", "missing", "reason", "small", "sources", "use"]

REGRESSION = ("abalone_scale", "cpusmall_scale", "cadata_scale", "housing_scale")
TRAIN, TEST = 120, 40  # rows


def files(*names):
    """The files of named sets."""
    return [file for name in names for file in (*SETS[name].train, *SETS[name].test)]


def missing(*names):
    """Those that are not in `data_home()`."""
    return [file for file in files(*names) if not (data_home() / file).is_file()]


def reason(absent):
    """Why a test is skipped."""
    return f"not in {data_home()}: {', '.join(absent)}; set SYMSVM_DATA to the directory that holds them"


def sources(name):
    """What a test of a named set runs on: "small", and "real" where it is there."""
    return ("small",) if missing(name) else ("small", "real")


def use(source, name, home, monkeypatch):
    """Let `data_home()` be a directory with the set: the small one is written to `home`."""
    if source == "small":
        _write(name, home)
        monkeypatch.setenv("SYMSVM_DATA", str(home))


@functools.cache
def small(name):
    """What `load(name)` has to return where `use` wrote the small set."""
    entry = SETS[name]
    X, y = _rows(name, entry)
    X_test, y_test = (X[TRAIN:][:TEST], y[TRAIN:][:TEST]) if entry.test else (None, None)
    if name == "svmguide3":  # whose test rows are all of one class
        of_one = np.flatnonzero(y[TRAIN:] == 1)[:TEST] + TRAIN
        X_test, y_test = X[of_one], y[of_one]
    return DataSet(X[:TRAIN], y[:TRAIN], X_test, y_test)


def _rows(name, entry):
    """Points and labels with the number of features, the kind of labels and the types of the real set."""
    if name == "mnist":
        digits = load_digits()
        images = np.pad((15 * digits.images).astype("uint8"), ((0, 0), (10, 10), (10, 10)))
        return images.reshape(len(images), -1), digits.target.astype("uint8")
    if name == "a9a":
        X, y = load_digits(return_X_y=True)
        return np.hstack([X > 8, X > 2])[:, : entry.n_features].astype("float64"), np.where(y % 2, 1.0, -1.0)
    if name in REGRESSION:
        X, y = load_diabetes(return_X_y=True)
    elif name == "svmguide2":
        X, y = load_wine(return_X_y=True)
        y = y + 1.0
    else:
        X, y = load_breast_cancer(return_X_y=True)
        y = y.astype("float64") if name == "svmguide1" else np.where(y == 1, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(X))  # wine comes sorted by class
    X, y = MinMaxScaler((-1, 1)).fit_transform(X)[order, : entry.n_features], y[order]
    return np.pad(X, ((0, 0), (0, entry.n_features - X.shape[1]))), y


def _write(name, home):
    entry, data = SETS[name], small(name)
    for names, X, y in ((entry.train, data.X, data.y), (entry.test, data.X_test, data.y_test)):
        paths = [home / file for file in names]
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "idx":
            write(paths[0], X.reshape(-1, 28, 28), format="idx")
            write(paths[1], y, format="idx")
        elif paths:
            write(paths[0], X, y, format="libsvm")
