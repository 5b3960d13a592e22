"""Perceptrons as functions: `perceptron`, `kernel_perceptron`, and the bound on their mistakes."""

import numpy as np

from symsvm._lib.validation import count, points, signs
from symsvm.objectives import PerceptronRisk
from symsvm.solvers import solve

__all__ = ["kernel_perceptron", "novikoff", "perceptron"]


def perceptron(X, y, *, features=None, start=None, max_passes=1000, mode=None):
    """Separate two classes by a hyperplane; returns a `Separation`. See `symsvm.solvers.Perceptron`.

    Parameters
    ----------
    X, y : the points (m, d) and two labels.
    features : Phi, an expression of one point (a vector graph) that gives its features; the point itself by default.
    start : the first theta, the intercept last; 0 by default.
    max_passes : how many passes over the points to try.
    mode : the backend.

    >>> X, y = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([-1, 1, 1])
    >>> print(perceptron(X, y, mode="FAST_COMPILE"))
    optimal: separated, 2 mistakes in 2 passes
    """
    risk = PerceptronRisk(X, y, features=features)
    n = len(risk.variable.get_value(borrow=True))
    if start is not None and np.shape(start) != (n,):
        raise ValueError(f"start must hold {n} weights, the intercept last, got the shape {np.shape(start)}.")
    most = count(max_passes, "max_passes", least=1) - 1
    return solve(risk, "perceptron", mode=mode, start=start, max_iter=most).certificate


def kernel_perceptron(X, y, kernel, *, max_passes=1000, mode=None):
    """Separate two classes in the feature space of a kernel; returns a `Separation` whose lam is the model.

        f(x) = sum_i lam_i y_i (K(x_i, x) + 1)

    Parameters as those of `perceptron`, which it equals for the linear kernel; see `symsvm.solvers.KernelPerceptron`.
    """
    risk = PerceptronRisk(X, y, kernel=kernel)
    most = count(max_passes, "max_passes", least=1) - 1
    return solve(risk, "kernel-perceptron", mode=mode, max_iter=most).certificate


def novikoff(theta, X, y):
    """(R / gamma)^2 with the gamma of this theta (the intercept last), which must separate; see `Perceptron`."""
    X = points(X)
    y = signs(y, m=len(X))
    X = np.hstack([X, np.ones((len(X), 1))])
    gamma = float((y * (X @ theta)).min() / np.linalg.norm(theta))
    if gamma <= 0:
        raise ValueError("theta must separate the classes, and a point is on the wrong side.")
    return float((X**2).sum(axis=1).max()) / gamma**2
