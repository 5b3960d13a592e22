"""The problems of a comparison: synthetic sets and three real data sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from symsvm.io.data import load, signs, standardise
from symsvm.kernels import RBF, Kernel, Linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array

__all__ = ["PROBLEMS", "Problem", "problem"]

_SEED = 2
_M = 100  # points of a synthetic set


@dataclass(frozen=True, eq=False)
class Problem:
    """A training problem: minimise 1/2 \\|w\\|^2 + C sum_i loss(y_i, f(x_i)).

    Parameters
    ----------
    name : str
        Its name.
    X, y : ndarray of shape (m, d) and (m,)
        The training points, and their labels -1, +1 or targets.
    X_test, y_test : ndarray of shape (n, d) and (n,)
        The test points, and their labels or targets.
    kernel : Kernel
        The kernel.
    C : float
        The weight of the loss.
    epsilon : float or None
        Half the width of the tube of a regression; None for a classifier.
    """

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    kernel: Kernel
    C: float
    epsilon: float | None = None

    @property
    def is_linear(self) -> bool:
        """Whether the kernel is linear, so that there is a primal with one weight for each feature."""
        return isinstance(self.kernel, Linear)


def _gaussians(centres: Sequence[tuple[float, float]], spread: float) -> tuple[Array, Array, Array, Array]:
    """Return training and test points of Gaussians with these centres, alternately of the classes +1 and -1."""

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        k = np.arange(_M) % len(centres)
        return np.asarray(centres)[k] + spread * rng.normal(size=(_M, 2)), np.where(k % 2, -1.0, 1.0)

    rng = np.random.default_rng(_SEED)
    return *draw(rng), *draw(rng)


def _separable() -> Problem:
    return Problem("separable", *_gaussians([(1.5, 1.5), (-1.5, -1.5)], 0.6), Linear(), 1.0)


def _overlapping() -> Problem:
    return Problem("overlapping", *_gaussians([(0.8, 0.8), (-0.8, -0.8)], 1.0), Linear(), 1.0)


def _four_gaussians() -> Problem:
    return Problem("four Gaussians", *_gaussians([(1, 1), (1, -1), (-1, -1), (-1, 1)], 0.45), RBF(1.0), 1.0)


def _sine() -> Problem:
    rng = np.random.default_rng(_SEED)
    x, z = (np.sort(rng.uniform(-np.pi, np.pi, _M))[:, None] for _ in range(2))
    y, t = (np.sin(side[:, 0]) + 0.15 * rng.normal(size=_M) for side in (x, z))
    return Problem("sine", x, y, z, t, RBF(1.0), 1.0, epsilon=0.1)


def _split(X: Array, y: Array, stratify: Array | None = None) -> Any:
    return train_test_split(X, y, train_size=0.75, random_state=0, stratify=stratify)


def _iris() -> Problem:
    """Return the two classes of iris that overlap, 75 % for training, with features scaled to [0, 1]."""
    iris: Any = load_iris()
    X, y = iris.data, iris.target
    X, y = X[y > 0], np.where(y[y > 0] == 1, -1.0, 1.0)
    X, X_test, y, y_test = _split(X, y, stratify=y)
    scaler: Any = MinMaxScaler().fit(X)
    return Problem("iris", scaler.transform(X), y, scaler.transform(X_test), y_test, RBF(0.5), 1.0)


def _housing() -> Problem:
    """Return the prices of houses, 75 % for training, with standardised features."""
    data: Any = load("housing_scale")
    X, X_test, y, y_test = _split(data.X, data.y)
    X, X_test = standardise(X, X_test)
    return Problem("housing", X, y, X_test, y_test, RBF(3.0), 10.0, epsilon=0.1)


def _linear_housing() -> Problem:
    """Return the same with a linear kernel."""
    return replace(_housing(), name="housing, linear", kernel=Linear(), C=0.1)


def _svmguide1() -> Problem:
    """Return the astroparticle data, standardised, as in Table 2 of the paper."""
    data: Any = load("svmguide1")
    X, X_test = standardise(data.X, data.X_test)
    y, y_test = signs(data.y), signs(data.y_test)
    return Problem("svmguide1", X, y, X_test, y_test, RBF(0.7), 2.0)


PROBLEMS = {
    "separable": _separable,
    "overlapping": _overlapping,
    "four": _four_gaussians,
    "sine": _sine,
    "iris": _iris,
    "housing": _housing,
    "housing-linear": _linear_housing,
    "svmguide1": _svmguide1,
}


def problem(name: str) -> Problem:
    """Return one of `PROBLEMS` by its name.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    Problem
        The problem; its data set is downloaded if necessary.

    Examples
    --------
    >>> problem("sine").X.shape
    (100, 1)
    """
    if name not in PROBLEMS:
        raise ValueError(f"problem must be one of {', '.join(PROBLEMS)}, got {name!r}.")
    return PROBLEMS[name]()
