"""The scorers of a search: their names, and whether the engine can use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import check_scoring, get_scorer

from symsvm.model_selection.cached_source import RowPoints

__all__ = ["SearchScorers", "own_score"]

# The first words of the scorers by name that take weights.
_WEIGHTED = (
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "explained_variance",
    "f1",
    "jaccard",
    "neg_brier",
    "neg_log_loss",
    "neg_mean",
    "neg_root_mean",
    "precision",
    "r2",
    "recall",
    "roc_auc",
)


def own_score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return an estimator's own score, the accuracy of a classifier for example."""
    if isinstance(X, RowPoints) and type(model).score is ClassifierMixin.score:
        # The accuracy, without the label checks of `accuracy_score`, which take longer than the predictions.
        return float(np.average(model.predict(X) == y, weights=sample_weight))
    return model.score(X, y) if sample_weight is None else model.score(X, y, sample_weight=sample_weight)


class SearchScorers:
    """The scorers that a parameter `scoring` asks for; calling it scores a model by all of them.

    Parameters
    ----------
    estimator : estimator
        The estimator of the search.
    scoring : str, callable, list, tuple, dict or None
        A name, a scorer, several of them, or None for the estimator's own score.

    Attributes
    ----------
    scorers : dict
        The scorers by name; a single one is called "score".
    is_multiple : bool
        Whether `scoring` has names for them.
    """

    def __init__(self, estimator: Any, scoring: Any) -> None:
        self.is_multiple = isinstance(scoring, Iterable) and not isinstance(scoring, str)
        self._scoring: Mapping[str, Any]
        if not self.is_multiple:
            self._scoring = {"score": scoring}
        elif isinstance(scoring, Mapping):
            self._scoring = scoring
        else:
            self._scoring = {name: name for name in scoring}
        self.scorers: dict[str, Any] = {name: check_scoring(estimator, one) for name, one in self._scoring.items()}

    @property
    def public(self) -> Any:
        """`scorer_` of a search: the only scorer, or a dict of several."""
        return self.scorers if self.is_multiple else self.scorers["score"]

    @property
    def is_plain(self) -> bool:
        """Whether the scorers use the points for predictions only."""
        kind = type(get_scorer("accuracy"))
        return all(one is None or isinstance(self.scorers[name], kind) for name, one in self._scoring.items())

    @property
    def takes_weights(self) -> bool:
        """Whether all of them are known to take weights."""
        return all(
            one is None or (isinstance(one, str) and one.startswith(_WEIGHTED)) for one in self._scoring.values()
        )

    def __call__(self, model: Any, X: Any, y: Any, **options: Any) -> dict[str, float]:
        """Return the scores by name."""
        found = {}
        for name, scorer in self.scorers.items():
            if self._scoring[name] is None:
                found[name] = float(own_score(model, X, y, **options))
            else:
                found[name] = float(scorer(model, X, **options) if y is None else scorer(model, X, y, **options))
        return found
