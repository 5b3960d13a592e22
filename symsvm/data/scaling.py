"""Scaling: statistics from the training set, applied to every set."""

import numpy as np

__all__ = ["standardise"]


def standardise(X, *others):
    """Shift and scale each column to mean 0 and deviation 1 on X; apply the same to the others.

    A constant column goes to 0, the middle.

    >>> standardise([[1.0, 5.0], [3.0, 5.0]], [[5.0, 5.0]])
    [array([[-1.,  0.],
           [ 1.,  0.]]), array([[3., 0.]])]
    """
    X = np.asarray(X, dtype="float64")
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    # A constant column has a deviation of rounding size, not always 0.
    constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    scale = np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviation))
    return [(np.asarray(A, dtype="float64") - mean) * scale for A in (X, *others)]
