"""`RocDisplay` and `PrecisionRecallDisplay`: the curves of one or several classifiers, for two or more classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from symsvm.inspection.plot.display import Display, final_estimator, line_style, series_colour

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from symsvm._lib.types import Array, Points

__all__ = ["PrecisionRecallDisplay", "RocDisplay", "precision_recall", "roc"]

_GREY = "#888888"
# More curves than this get a legend beside the axes.
_MAX_INSIDE_LEGEND = 6
# If there are more class frequencies than this, the lines of chance are left out.
_MAX_CHANCE_LINES = 3


class _ClassifierCurves(Display):
    """One curve for each name, drawn by a display of scikit-learn."""

    _xlabel: str
    _ylabel: str
    _legend_corner: Literal["lower left", "lower right"]

    def __init__(self, *, scores: Mapping[str, tuple[Array, Array]]) -> None:
        self.scores = scores
        self.curves = {name: self._make_curve(*pair) for name, pair in scores.items()}

    @staticmethod
    def _make_curve(truth: Array, score: Array) -> Any:
        raise NotImplementedError

    def _draw_chance(self, ax: Axes) -> None:
        raise NotImplementedError

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator | Mapping[str, BaseEstimator],
        X: ArrayLike | Points,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of the decision values of one fitted estimator, or of several.

        Parameters
        ----------
        estimator, X, y, ax, **kwargs : object
            As in `roc`.

        Returns
        -------
        Display
            The display.
        """
        several = isinstance(estimator, Mapping)
        if several and not estimator:
            raise ValueError("estimator must hold at least one estimator, got an empty dict.")
        scores = {}
        for name, one in (estimator if isinstance(estimator, Mapping) else {"": estimator}).items():
            for part, pair in _split_scores(one, X, y):
                scores[", ".join(text for text in (str(name), part) if text)] = pair
        if not several and list(scores) == [""]:
            scores = {type(final_estimator(estimator)[0]).__name__: scores[""]}
        return cls(scores=scores).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Line2D.set` for the lines.

        Returns
        -------
        Display
            The display itself.
        """
        ax = self._open_axes(ax, figsize=(4.8, 4.8))
        for i, (name, curve) in enumerate(self.curves.items()):
            curve.plot(ax=ax, name=name)
            style = {"color": series_colour(i + 1), "linestyle": line_style(i), "linewidth": 1.7} | kwargs
            curve.line_.set(**style)
        self._draw_chance(ax)
        ax.set(xlabel=self._xlabel, ylabel=self._ylabel, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        # Replaces the legends of scikit-learn, which have a frame.
        self._finish(legend_outside=len(self.curves) > _MAX_INSIDE_LEGEND)
        if len(self.curves) <= _MAX_INSIDE_LEGEND:
            ax.legend(frameon=False, fontsize="small", loc=self._legend_corner)
        return self


class RocDisplay(_ClassifierCurves):
    """ROC curves: the true positive rate against the false positive rate, over all thresholds of f.

    Parameters
    ----------
    scores : dict of str to (ndarray, ndarray)
        For each name, whether each point is of the class, and its decision value.

    Attributes
    ----------
    curves : dict of str to sklearn.metrics.RocCurveDisplay
        For each name, the display of scikit-learn, with `fpr`, `tpr` and `roc_auc`.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    _xlabel, _ylabel = "false positive rate", "true positive rate"
    _legend_corner = "lower right"

    @staticmethod
    def _make_curve(truth: Array, score: Array) -> Any:
        from sklearn.metrics import RocCurveDisplay, auc, roc_curve

        fpr, tpr, _ = roc_curve(truth, score)
        return RocCurveDisplay(fpr=fpr, tpr=tpr, roc_auc=auc(fpr, tpr))

    def _draw_chance(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=_GREY, linewidth=1.0, linestyle=":", zorder=1)


class PrecisionRecallDisplay(_ClassifierCurves):
    """Precision-recall curves: precision against recall, over all thresholds of f.

    Parameters
    ----------
    scores : dict of str to (ndarray, ndarray)
        For each name, whether each point is of the class, and its decision value.

    Attributes
    ----------
    curves : dict of str to sklearn.metrics.PrecisionRecallDisplay
        For each name, the display of scikit-learn, with `precision`, `recall` and `average_precision`.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    _xlabel, _ylabel = "recall", "precision"
    _legend_corner = "lower left"

    @staticmethod
    def _make_curve(truth: Array, score: Array) -> Any:
        from sklearn.metrics import PrecisionRecallDisplay, average_precision_score, precision_recall_curve

        precision, recall, _ = precision_recall_curve(truth, score)
        return PrecisionRecallDisplay(precision, recall, average_precision=average_precision_score(truth, score))

    def _draw_chance(self, ax: Axes) -> None:
        shares = {float(np.mean(truth)) for truth, _ in self.scores.values()}
        for share in shares if len(shares) <= _MAX_CHANCE_LINES else ():
            ax.axhline(share, color=_GREY, linewidth=1.0, linestyle=":", zorder=1)


def roc(
    estimator: BaseEstimator | Mapping[str, BaseEstimator],
    X: ArrayLike | Points,
    y: ArrayLike,
    *,
    ax: Axes | None = None,
    **kwargs: Any,
) -> RocDisplay:
    """Draw ROC curves of decision values, with the area under each; the dotted line is chance.

    With more than two classes there is a curve for each class of y against the rest.

    Parameters
    ----------
    estimator : estimator or dict of str to estimator
        A fitted classifier, `OneClassSVM`, a pipeline or search of one, or several of them by name.
    X : array-like of shape (m, d)
        The points, preferably not the training points.
    y : array-like of shape (m,)
        Their labels.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Line2D.set` for the lines.

    Returns
    -------
    RocDisplay
        The display.

    Examples
    --------
    >>> from symsvm import SVC
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array(["no", "no", "yes", "yes"])
    >>> float(roc(SVC(kernel="linear").fit(X, y), X, y).curves["SVC"].roc_auc)
    1.0
    """
    return RocDisplay.from_estimator(estimator, X, y, ax=ax, **kwargs)


def precision_recall(
    estimator: BaseEstimator | Mapping[str, BaseEstimator],
    X: ArrayLike | Points,
    y: ArrayLike,
    *,
    ax: Axes | None = None,
    **kwargs: Any,
) -> PrecisionRecallDisplay:
    """Draw precision against recall of decision values, with the average precision; the dotted line is chance.

    It is more informative than a ROC curve if one class is rare. Chance is the frequency of the class; its line is left
    out if it differs between many classes.

    Parameters
    ----------
    estimator, X, y, ax, **kwargs : object
        As in `roc`.

    Returns
    -------
    PrecisionRecallDisplay
        The display.
    """
    return PrecisionRecallDisplay.from_estimator(estimator, X, y, ax=ax, **kwargs)


def _split_scores(estimator: Any, X: Any, y: Any) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """Yield (name of the class, (whether a point is of it, its decision value)); two classes have one curve."""
    final, _ = final_estimator(estimator)
    y = np.asarray(y)
    classes = np.asarray(getattr(estimator, "classes_", np.unique(y)))
    if y.shape != (np.shape(X)[0],) or len(np.unique(y)) < 2:
        raise ValueError(f"y must have a label for each of the {np.shape(X)[0]} points and hold two classes or more.")
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"estimator must have a decision_function, and {type(final).__name__} has none.")
    if len(classes) > 2 and getattr(final, "decision_function_shape", "ovr") == "ovo":
        raise ValueError("one curve per class needs one column per class: set_params(decision_function_shape='ovr').")
    values = np.asarray(estimator.decision_function(X))
    if len(classes) == 2:
        yield "", (y == classes[1], values)
        return
    for c, label in enumerate(classes):
        if 0 < np.count_nonzero(y == label) < len(y):
            yield str(label), (y == label, values[:, c])
