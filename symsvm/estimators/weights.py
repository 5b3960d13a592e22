"""Weights of samples and of classes."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from symsvm._lib.validation import choice

__all__ = ["class_weights", "sample_weights", "weighted_classes"]


def sample_weights(sample_weight, X):
    """The weights of the points, checked; points of weight 0 have no part in anything."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError("sample_weight must not be negative.")
    if not (weights > 0).any():
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    return weights


def class_weights(class_weight, classes, labels, weights):
    """A factor for each class: 1, as a dict says, or "balanced": the total weight over k times that of the class.

    >>> class_weights("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1]), np.ones(4)).round(3).tolist()
    [0.667, 2.0]
    """
    k = len(classes)
    if class_weight is None:
        return np.ones(k)
    if isinstance(class_weight, str):
        choice(class_weight, "class_weight", ("balanced",))
        return weights.sum() / (k * np.bincount(labels, weights, k))
    unknown = [name for name in class_weight if name not in classes]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is no class: {classes.tolist()}.")
    return np.array([float(class_weight.get(name, 1.0)) for name in classes.tolist()])


def weighted_classes(X, y, sample_weight, class_weight):
    """What a classifier makes of its labels and weights.

    Returns
    -------
    the classes of points with a positive weight; the rows of these points, and the index of each one's class; the
    factor of each class; and the weights of the points, that factor included.
    """
    check_classification_targets(y)
    weights = sample_weights(sample_weight, X)
    used = np.flatnonzero(weights)
    classes = np.unique(y[used])
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes with a positive weight, got {len(classes)} class.")
    labels = np.searchsorted(classes, y[used])
    factors = class_weights(class_weight, classes, labels, weights[used])
    return classes, used, labels, factors, weights[used] * factors[labels]
