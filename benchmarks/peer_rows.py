"""The data sets of the comparison with other libraries, and its rows: points, labels, C and gamma."""

import gzip
from collections import namedtuple

import numpy as np
from sklearn.datasets import load_svmlight_file, make_classification, make_moons

from symsvm.data import data_home

__all__ = ["Row", "digits", "read", "rows", "standardised", "synthetic", "two", "untuned_rows"]

Row = namedtuple("Row", "name kind X y C gamma")


def read(name):
    """Return a data set in LIBSVM format as a dense matrix."""
    X, y = load_svmlight_file(str(data_home() / name))
    return X.toarray(), y


def standardised(X):
    """Return X with columns of zero mean and unit variance; constant columns are only centred."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def synthetic(m):
    """Return a hard set of two classes with 20 features."""
    X, y = make_classification(m, 20, n_informative=10, flip_y=0.05, random_state=0)
    return standardised(X), 2.0 * y - 1


def digits(part="train"):
    """Return the images of MNIST, scaled to [0, 1], and their labels."""

    def numbers(name, offset):
        with gzip.open(data_home() / "mnist" / f"{part}-{name}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset)

    images, labels = numbers("images-idx3", 16), numbers("labels-idx1", 8)
    return images.reshape(-1, 784) / 255.0, labels.astype("int64")


def two(name, C):
    """Return a row with a data set of two classes, standardised, and gamma = 1 / d."""
    X, y = read(name)
    X = standardised(X)
    return Row(f"{name}, C = {C:g}", "svc", X, np.where(y == y.max(), 1.0, -1.0), C, 1 / X.shape[1])


def rows():
    """Return the functions that make the rows of the table, by name."""

    def a9a():
        X, y = load_svmlight_file(str(data_home() / "a9a"))
        return Row("a9a, C = 1", "svc", X.tocsr(), y, 1.0, 1 / X.shape[1])

    def cadata():
        X, y = read("cadata_scale")
        return Row("cadata (epsilon-SVR), C = 1", "svr", standardised(X), standardised(y[:, None])[:, 0], 1.0, 1 / 8)

    def mnist():
        X, y = digits()
        return Row("MNIST 10 000 (45 pairs), C = 5", "ovo", X[:10_000], y[:10_000], 5.0, 0.02)

    def synth(m, C):
        return lambda: Row(f"synthetic {m} x 20, C = {C:g}", "svc", *synthetic(m), C, 1 / 20)

    main = {
        "svmguide1": lambda: two("svmguide1", 2.0),
        "svmguide3": lambda: two("svmguide3", 128.0),
        "a9a": a9a,
        "cadata": cadata,
        "mnist": mnist,
        **{f"synth-{C}": synth(10_000, float(C)) for C in (1, 100, 1000)},
        "synth-30000": synth(30_000, 10.0),
    }
    large = {
        "svmguide1-1e4": lambda: two("svmguide1", 1e4),
        "svmguide3-1e4": lambda: two("svmguide3", 1e4),
        "synth-1e4": synth(10_000, 1e4),
    }
    return main, large


def untuned_rows():
    """Return such functions for data that nothing in symsvm was tuned for; standardised columns, and gamma = 1 / d."""

    def row(name, X, y, C):
        return Row(f"{name}, C = {C:g}", "svc", standardised(X), np.where(y == y.max(), 1.0, -1.0), C, 1 / X.shape[1])

    def wide():
        X, y = make_classification(4000, 2000, n_informative=50, n_redundant=50, flip_y=0.02, random_state=1)
        return row("wide", X, y, 1.0)

    def narrow():
        return row("narrow", *make_moons(20_000, noise=0.2, random_state=1), 10.0)

    def heavy_tails():
        rng = np.random.default_rng(1)
        X = rng.standard_t(2, (10_000, 15))
        signal = np.tanh(X[:, :5]) @ [1.0, -1.0, 1.0, -1.0, 1.0] + 0.5 * rng.normal(size=len(X))
        return row("heavy tails", X, signal > 0, 10.0)

    def unbalanced():
        options = {"n_informative": 8, "weights": [50 / 51], "flip_y": 0.005, "random_state": 1}
        return row("unbalanced, 1 : 50", *make_classification(20_000, 12, **options), 10.0)

    def noisy():
        X, y = make_classification(6000, 12, n_informative=8, flip_y=0.2, random_state=1)
        return row("noisy labels", X, y, 1000.0)

    return {"wide": wide, "narrow": narrow, "heavy-tails": heavy_tails, "unbalanced": unbalanced, "noisy": noisy}
