"""Problem: points, labels or targets, a kernel and its numbers; the sets of the seeds and three real ones."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from symsvm.io.data import load, signs, standardise
from symsvm.kernels import RBF, Kernel, Linear

__all__ = ["PROBLEMS", "Problem", "problem"]


@dataclass(frozen=True, eq=False)
class Problem:
    """A machine to train: minimise 1/2 |w|^2 + C sum_i loss(y_i, f(x_i)).

    Attributes
    ----------
    name : how it is called.
    X, y, X_test, y_test : points (m, d) and labels -1, +1 or targets, to train on and to test with.
    kernel, C : of the machine.
    epsilon : half the width of a regression's tube, None for a classifier.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernel: Kernel
    C: float
    epsilon: float | None = None

    @property
    def is_linear(self):
        """Whether it has a primal over as many weights as features."""
        return isinstance(self.kernel, Linear)


def _gaussians(centres, spread, m=100):
    """m points of Gaussians with these centres, of the classes +1 and -1 in turns, and as many to test with."""

    def draw(rng):
        k = np.arange(m) % len(centres)
        return np.asarray(centres)[k] + spread * rng.normal(size=(m, 2)), np.where(k % 2, -1.0, 1.0)

    rng = np.random.default_rng(2)
    return *draw(rng), *draw(rng)


def _separable():
    return Problem("separable", *_gaussians([(1.5, 1.5), (-1.5, -1.5)], 0.6), Linear(), 1.0)


def _overlapping():
    return Problem("overlapping", *_gaussians([(0.8, 0.8), (-0.8, -0.8)], 1.0), Linear(), 1.0)


def _four():
    return Problem("four Gaussians", *_gaussians([(1, 1), (1, -1), (-1, -1), (-1, 1)], 0.45), RBF(1.0), 1.0)


def _sine():
    rng = np.random.default_rng(2)
    x, z = (np.sort(rng.uniform(-np.pi, np.pi, 100))[:, None] for _ in range(2))
    y, t = (np.sin(side[:, 0]) + 0.15 * rng.normal(size=100) for side in (x, z))
    return Problem("sine", x, y, z, t, RBF(1.0), 1.0, epsilon=0.1)


def _iris():
    """Its two kinds that overlap; three quarters to train on, features from 0 to 1."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], np.where(y[y > 0] == 1, -1.0, 1.0)
    X, X_test, y, y_test = train_test_split(X, y, train_size=0.75, random_state=0, stratify=y)
    scaler = MinMaxScaler().fit(X)
    return Problem("iris", scaler.transform(X), y, scaler.transform(X_test), y_test, RBF(0.5), 1.0)


def _housing():
    """Prices of houses, standardised on three quarters."""
    data = load("housing_scale")
    X, X_test, y, y_test = train_test_split(data.X, data.y, train_size=0.75, random_state=0)
    X, X_test = standardise(X, X_test)
    return Problem("housing", X, y, X_test, y_test, RBF(3.0), 10.0, epsilon=0.1)


def _linear_housing():
    """The same with weights, for the algorithms of linear regressions."""
    return replace(_housing(), name="housing, linear", kernel=Linear(), C=0.1)


def _svmguide1():
    """Astroparticles, standardised, as in the paper's Table 2."""
    data = load("svmguide1")
    X, X_test = standardise(data.X, data.X_test)
    y, y_test = signs(data.y), signs(data.y_test)
    return Problem("svmguide1", X, y, X_test, y_test, RBF(0.7), 2.0)


PROBLEMS = {
    "separable": _separable,
    "overlapping": _overlapping,
    "four": _four,
    "sine": _sine,
    "iris": _iris,
    "housing": _housing,
    "housing-linear": _linear_housing,
    "svmguide1": _svmguide1,
}


def problem(name):
    """One of `PROBLEMS` by its name.

    >>> problem("sine").X.shape
    (100, 1)
    """
    if name not in PROBLEMS:
        raise ValueError(f"problem must be one of {', '.join(PROBLEMS)}, got {name!r}.")
    return PROBLEMS[name]()
