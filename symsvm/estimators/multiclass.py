"""Classes of a classification problem: encoded labels, class weights, and votes of one-vs-one decisions."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from symsvm.estimators.base import sample_weights
from symsvm.estimators.parameter_checks import check_class_weight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array

__all__ = ["EncodedClasses", "class_weights", "encode_classes", "majority", "votes"]


# Decision values of which all votes are counted at once.
_FEW_VALUES = 2**12


class EncodedClasses(NamedTuple):
    """The labels and weights of a classification problem, without the points of weight 0.

    Attributes
    ----------
    classes : array of shape (k,)
        The classes of the points with a positive weight.
    used : array of shape (n,)
        The rows of these points.
    labels : array of shape (n,)
        The index of each one's class.
    class_weight : array of shape (k,)
        The weight of each class.
    weights : array of shape (n,)
        The weight of each point, its class weight included.
    """

    classes: Array
    used: Array
    labels: Array
    class_weight: Array
    weights: Array


def encode_classes(y: Array, sample_weight: ArrayLike | None, class_weight: Any, note: str = "") -> EncodedClasses:
    """Check labels and weights, and encode the labels as class indices; `note` begins the error of a single class."""
    is_integer = y.dtype.kind in "iu"
    if not is_integer:
        check_classification_targets(y)
    weights = sample_weights(sample_weight, len(y))
    used = np.flatnonzero(weights)
    classes = np.unique(y[used])
    if is_integer and 2 * len(classes) > len(y):  # fewer integers are classes
        check_classification_targets(y)
    if len(classes) < 2 and len(used) < len(y) and len(np.unique(y)) > 1:
        only = classes.tolist()[0]
        raise ValueError(
            f"{note}Invalid input - all samples with positive weights belong to the same class, "
            f"{only!r}: sample_weight leaves no other."
        )
    if len(classes) < 2:
        raise ValueError(
            f"The number of classes has to be greater than one; got {len(classes)} class: y must hold at least two."
        )
    labels = np.searchsorted(classes, y[used])
    factors = class_weights(class_weight, classes, labels, weights[used])
    return EncodedClasses(classes, used, labels, factors, weights[used] * factors[labels])


def class_weights(
    class_weight: Mapping[Any, float] | Literal["balanced"] | None, classes: Array, labels: Array, weights: Array
) -> Array:
    """Return the weight of each class: 1, that of a dict, or "balanced": the total weight / (k times the class's).

    >>> class_weights("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1]), np.ones(4)).round(3).tolist()
    [0.667, 2.0]
    """
    k = len(classes)
    check_class_weight(class_weight)
    if class_weight is None:
        return np.ones(k)
    if isinstance(class_weight, str):
        return weights.sum() / (k * np.bincount(labels, weights, k))
    unknown = [name for name in class_weight if name not in classes]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not one of {classes.tolist()}.")
    return np.array([float(class_weight.get(name, 1.0)) for name in classes.tolist()])


def majority(values: Array, k: int) -> Array:
    """Return the index of the class with the most votes, the first of several, as LIBSVM counts them.

    The columns of `values` are those of `votes`. A value of exactly 0 is a vote for the second class of its pair.

    >>> majority(np.array([[1.0, -2.0, 1.0], [1.0, 2.0, -1.0]]), 3).tolist()
    [0, 0]
    """
    # A win of the first class instead of the second one adds a vote and takes one: sums of integers, without rounding.
    changes, losses = _vote_changes(k)
    return np.argmax((values > 0) @ changes + losses, axis=1)


@functools.cache
def _vote_changes(k: int) -> tuple[Array, Array]:
    """What a win of the first class of each pair adds to the votes, (pairs, k); the votes if all second ones win."""
    first, second = np.triu_indices(k, 1)
    changes = np.zeros((len(first), k), dtype="float32")
    changes[np.arange(len(first)), first], changes[np.arange(len(first)), second] = 1.0, -1.0
    return changes, np.arange(k, dtype="float32")


def votes(values: Array, k: int) -> Array:
    """Return the votes of one-vs-one decisions for k classes, (n, k), plus a tie breaker below 1/3 from the values.

    The columns of `values` are the pairs (0, 1), (0, 2), ...; a value is positive where the first class wins.

    >>> votes(np.array([[1.0, 2.0, -1.0]]), 3).round(2).tolist()
    [[2.25, -0.22, 0.83]]
    """
    count, sums = np.zeros((len(values), k)), np.zeros((len(values), k))
    if k > 3 and values.size <= _FEW_VALUES:  # the same sums, of all classes at once
        a, b = np.triu_indices(k, 1)
        of_pairs = np.zeros((2, len(values), k, k))
        of_pairs[:, :, a, b] = values, values >= 0
        of_pairs[:, :, b, a] = -values, values < 0
        for other in range(k):
            sums += of_pairs[0, :, :, other]
        count = of_pairs[1].sum(axis=2)
        return count + sums / (3 * (np.abs(sums) + 1))
    for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
        value = values[:, column]
        count[:, a] += value >= 0
        count[:, b] += value < 0
        sums[:, a] += value
        sums[:, b] -= value
    return count + sums / (3 * (np.abs(sums) + 1))
