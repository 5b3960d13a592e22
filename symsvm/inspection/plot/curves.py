"""RocDisplay and PrecisionRecallDisplay: scikit-learn's curves for one or several machines, two classes or more."""

import numpy as np

from symsvm.inspection.plot.canvas import Display, colour, dash, machine_of

__all__ = ["PrecisionRecallDisplay", "RocDisplay", "precision_recall", "roc"]


class _Curves(Display):
    """One curve for each name, each drawn by a display of scikit-learn.

    Attributes
    ----------
    scores : pairs (whether a point is of the class, its decision value) for each name.
    curves : scikit-learn's display of each name, with its data.
    ax_, figure_ : where they were drawn.
    """

    def __init__(self, *, scores):
        self.scores = scores
        self.curves = {name: self._curve(*pair) for name, pair in scores.items()}

    @classmethod
    def from_estimator(cls, estimator, X, y, *, ax=None, **kwargs):
        """Take decision values from one fitted estimator, or a dict of them by name, and draw the curves."""
        several = isinstance(estimator, dict)
        if several and not estimator:
            raise ValueError("estimator must hold at least one estimator, got an empty dict.")
        scores = {}
        for name, one in (estimator if several else {"": estimator}).items():
            for part, pair in _scores(one, X, y):
                scores[", ".join(text for text in (str(name), part) if text)] = pair
        if not several and list(scores) == [""]:
            scores = {type(machine_of(estimator)[0]).__name__: scores[""]}
        return cls(scores=scores).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw on `ax`, or on a figure of its own; `kwargs` are for the lines."""
        ax = self._begin(ax, figsize=(4.8, 4.8))
        for i, (name, curve) in enumerate(self.curves.items()):
            curve.plot(ax=ax, name=name)
            style = {"color": colour(i + 1), "linestyle": dash(i), "linewidth": 1.7} | kwargs
            curve.line_.set(**style)
        self._chance(ax)
        ax.set(xlabel=self._xlabel, ylabel=self._ylabel, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        self._end()  # scikit-learn's legends are framed
        if len(self.curves) <= 6:
            ax.legend(frameon=False, fontsize="small", loc=self._corner)
            return self
        return self._end(beside=True)


class RocDisplay(_Curves):
    """The part of a class that is found against the part of the rest that is taken for it, over all thresholds of f.

    Attributes
    ----------
    scores : pairs (whether a point is of the class, its decision value) for each name.
    curves : scikit-learn's `RocCurveDisplay` for each name, with `fpr`, `tpr` and `roc_auc`.
    ax_, figure_ : where they were drawn.
    """

    _xlabel, _ylabel, _corner = "false positive rate", "true positive rate", "lower right"

    @staticmethod
    def _curve(truth, score):
        from sklearn.metrics import RocCurveDisplay, auc, roc_curve

        fpr, tpr, _ = roc_curve(truth, score)
        return RocCurveDisplay(fpr=fpr, tpr=tpr, roc_auc=auc(fpr, tpr))

    def _chance(self, ax):
        ax.plot([0, 1], [0, 1], color="#888888", linewidth=1.0, linestyle=":", zorder=1)


class PrecisionRecallDisplay(_Curves):
    """The part of what is taken for a class that is of it, against the part of it that is found, over all thresholds.

    Attributes
    ----------
    scores : pairs (whether a point is of the class, its decision value) for each name.
    curves : scikit-learn's `PrecisionRecallDisplay` for each name: `precision`, `recall` and `average_precision`.
    ax_, figure_ : where they were drawn.
    """

    _xlabel, _ylabel, _corner = "recall", "precision", "lower left"

    @staticmethod
    def _curve(truth, score):
        from sklearn.metrics import PrecisionRecallDisplay, average_precision_score, precision_recall_curve

        precision, recall, _ = precision_recall_curve(truth, score)
        return PrecisionRecallDisplay(precision, recall, average_precision=average_precision_score(truth, score))

    def _chance(self, ax):
        shares = {float(np.mean(truth)) for truth, _ in self.scores.values()}
        for share in shares if len(shares) <= 3 else ():
            ax.axhline(share, color="#888888", linewidth=1.0, linestyle=":", zorder=1)


def roc(estimator, X, y, *, ax=None, **kwargs):
    """Draw ROC curves of decision values, with the area under each; chance is the dotted line.

    With more than two classes there is a curve for each class of y against the rest.

    Parameters
    ----------
    estimator : a fitted classifier, or a dict of name -> classifier; pipelines, searches and `OneClassSVM` too.
    X, y : points, best those that were not fitted to, and their labels.
    ax : matplotlib axes, new ones by default.

    Returns
    -------
    a `RocDisplay`.

    >>> from symsvm import SVC
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array(["no", "no", "yes", "yes"])
    >>> float(roc(SVC(kernel="linear").fit(X, y), X, y).curves["SVC"].roc_auc)
    1.0
    """
    return RocDisplay.from_estimator(estimator, X, y, ax=ax, **kwargs)


def precision_recall(estimator, X, y, *, ax=None, **kwargs):
    """Draw precision against recall of decision values, with the average precision; chance is the dotted line.

    The arguments are those of `roc`. It says more than a ROC curve where one class is rare. Chance, the part of the
    class among all points, is left out where it differs between many classes.

    Returns
    -------
    a `PrecisionRecallDisplay`.
    """
    return PrecisionRecallDisplay.from_estimator(estimator, X, y, ax=ax, **kwargs)


def _scores(estimator, X, y):
    """Yield (name of the class, (whether a point is of it, its decision value)): one for two classes, else one each."""
    machine, _ = machine_of(estimator)
    y = np.asarray(y)
    classes = np.asarray(getattr(estimator, "classes_", np.unique(y)))
    if y.shape != (np.shape(X)[0],) or len(np.unique(y)) < 2:
        raise ValueError(f"y must have a label for each of the {np.shape(X)[0]} points and hold two classes or more.")
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"estimator must have a decision_function, which {type(machine).__name__} has not.")
    if len(classes) > 2 and getattr(machine, "decision_function_shape", "ovr") == "ovo":
        raise ValueError("one curve a class needs a column a class: set_params(decision_function_shape='ovr').")
    values = np.asarray(estimator.decision_function(X))
    if len(classes) == 2:
        yield "", (y == classes[1], values)
        return
    for c, label in enumerate(classes):
        if 0 < np.count_nonzero(y == label) < len(y):
            yield str(label), (y == label, values[:, c])
