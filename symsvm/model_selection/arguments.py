"""The arguments of a search, checked before any work."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.multiclass import type_of_target

from symsvm._lib.validation import count

__all__ = ["cells_of", "data_of", "score_of", "splitter_of", "taken"]


def cells_of(estimator, grid):
    """The cells of a grid, a dict of parameters each, in the order of scikit-learn's `ParameterGrid`."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must have fit and get_params, got {estimator!r}.")
    try:
        return list(ParameterGrid(grid))
    except (TypeError, ValueError) as error:
        raise type(error)(f"grid must be a dict from names to lists of values, or a list of them: {error}") from None


def data_of(X, y):
    """X and y with as many rows each, y as a vector."""
    X, y = indexable(X, None if y is None else np.asarray(y))
    if y is not None and y.ndim != 1:
        raise ValueError(f"y must be a vector, one label or target a point, got the shape {y.shape}.")
    return X, y


def score_of(estimator, scoring):
    """The function of (model, X, y) that scores, and whether all it does with X is to have it predicted."""
    if scoring is None and not hasattr(estimator, "score"):
        raise TypeError(f"{type(estimator).__name__} has no score of its own: give scoring, a name or a function.")
    scorer = check_scoring(estimator, scoring)

    def score(model, X, y):
        if scoring is None:
            return model.score(X, y)
        return scorer(model, X) if y is None else scorer(model, X, y)

    return score, scoring is None or isinstance(scorer, type(get_scorer("accuracy")))


def splitter_of(estimator, y, folds, random_state):
    """The splitter that a number of folds, a splitter or pairs of indices mean, as in scikit-learn."""
    if random_state is not None and isinstance(folds, (int, np.integer)):
        of_classes = is_classifier(estimator) and type_of_target(y) in ("binary", "multiclass")
        kind = StratifiedKFold if of_classes else KFold
        return kind(count(folds, "folds", least=2), shuffle=True, random_state=random_state)
    return check_cv(folds, y, classifier=is_classifier(estimator))


def taken(estimator, X, y, rows):
    """Some of the points, in their order."""
    if get_tags(estimator).input_tags.pairwise:
        return X[np.ix_(rows, rows)], None if y is None else y[rows]
    return _safe_indexing(X, rows), None if y is None else y[rows]
