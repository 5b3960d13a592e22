"""What a fit of a search is measured by: its scores, on the points held out and on its own, and the time of both."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Measurement", "Part", "measure"]


class Part(NamedTuple):
    """Points with their targets and their weights, of a fit or of its scores.

    Attributes
    ----------
    X : array-like, sparse matrix or RowPoints
        The points.
    y : array or None
        Their targets.
    weights : array or None
        Their weights; None if there are none.
    """

    X: Any
    y: Any = None
    weights: Any = None

    @property
    def options(self) -> dict[str, Any]:
        """The weights as arguments of a fit or of a scorer."""
        return {} if self.weights is None else {"sample_weight": self.weights}


@dataclass(frozen=True)
class Measurement:
    """The scores of a fit.

    Parameters
    ----------
    test : dict
        The scores on the points held out, by the names of the scorers.
    train : dict
        Those on the points of the fit; empty if they were not asked for.
    fit_seconds, score_seconds : float
        The time of the fit, and that of the scores on the points held out.
    """

    test: Mapping[str, float]
    train: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0

    @property
    def value(self) -> float:
        """The first score on the points held out."""
        return float(next(iter(self.test.values())))


def measure(
    fit: Callable[[], Any], score: Callable[..., Any], train: Part, test: Part, *, with_train: bool = False
) -> tuple[Any, Measurement]:
    """Fit a model and score it.

    Parameters
    ----------
    fit : callable
        A function without arguments that returns the fitted model.
    score : callable
        A function of (model, X, y), and of sample_weight if there are weights, that returns a score or several by name.
    train, test : Part
        The points of the fit, and those held out.
    with_train : bool
        Whether to score on the points of the fit too.

    Returns
    -------
    tuple
        The model and its measurement.
    """
    began = time.perf_counter()
    model = fit()
    fitted = time.perf_counter()
    found = _named(score(model, test.X, test.y, **test.options))
    scored = time.perf_counter()
    own = _named(score(model, train.X, train.y, **train.options)) if with_train else {}
    return model, Measurement(found, own, fitted - began, scored - fitted)


def _named(scores):
    return scores if isinstance(scores, Mapping) else {"score": float(scores)}
