"""Served: a loaded model as the service uses it: rows in, answers out, whatever the estimator."""

import copy

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.pipeline import Pipeline

from symsvm.inspection.contributions import contributions
from symsvm.io.text import is_text
from symsvm.serve.answers import Answers, plain

__all__ = ["Served", "Unanswerable"]

# Multiplications of a tile of rows: less than a millisecond of one core.
_WORK, _LEAST, _MOST = 2**22, 8, 128
_TRIAL = "a text to try the model with"


class Unanswerable(ValueError):
    """Numbers that a model has no finite decision for; `index` is the row."""

    def __init__(self, index):
        super().__init__(f"no finite decision for row {index}")
        self.index = index


class Served:
    """A model with what is known of it.

    Rows of numbers are predicted in tiles of one shape, filled up with copies of a row: the same row gives the same
    bits whatever is predicted beside it. Vectors of texts are sparse, and their products go row by row anyway.

    Attributes
    ----------
    kind : "text" or "numbers".
    answer : "class", "value" or "side": see `Answers`.
    n_features : of a row; None for texts.
    names : of the features, where the model was fitted to a table; else None.
    tile : the number of rows that are predicted together.
    """

    def __init__(self, model):
        self.model = model
        *before, self.machine = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
        self._before, self.names = before, self._named([*before, self.machine])
        self.kind = "text" if is_text(model) else "numbers"
        self.answer = _answer(self.machine)
        self.n_features = None if self.kind == "text" else int(model.n_features_in_)
        self.classes = tuple(map(plain, self.machine.classes_)) if self.answer == "class" else ()
        self.calibrated = self.answer == "class" and hasattr(model, "predict_proba")
        self._ranking = self.machine
        if getattr(self.machine, "decision_function_shape", "ovr") != "ovr":
            self._ranking = copy.copy(self.machine)  # with a value for each class, which classes are ranked by
            self._ranking.decision_function_shape = "ovr"
        self.tile = self._tile()

    @staticmethod
    def _named(steps):
        """Take the names of features out of the steps, which would warn of every row that comes without them."""
        names = getattr(steps[0], "feature_names_in_", None)
        for step in steps:
            if hasattr(step, "feature_names_in_"):
                del step.feature_names_in_
        return None if names is None else [str(name) for name in names]

    def _tile(self):
        if self.kind == "text":
            return None
        rows = len(self.machine.support_) if hasattr(self.machine, "support_") else len(self.classes) or 1
        rows = _WORK // max(1, rows * self.n_features)
        return 2 ** int(np.log2(min(_MOST, max(_LEAST, rows))))

    # ---- predictions

    def predict(self, inputs):
        """The `Answers` for a list of texts or of rows."""
        if self.kind == "text":
            return self._answers(inputs)
        X = np.array(inputs, dtype="float64")
        with np.errstate(all="ignore"):  # what is not finite is refused below
            return _joined([self._tiled(X[i : i + self.tile], i) for i in range(0, len(X), self.tile)])

    def _tiled(self, X, start):
        """The answers for at most a tile of rows, that are predicted in a whole one."""
        tile = np.concatenate([X, np.broadcast_to(X[:1], (self.tile - len(X), X.shape[1]))])
        try:
            answers = self._answers(tile)[: len(X)]
            _finite(answers.scores)
        except Unanswerable as error:
            raise Unanswerable(start + error.index) from None
        return answers

    def _answers(self, X):
        machine = self._ranking
        for step in self._before:  # as the pipeline does, whose own checks take longer than a short text
            X = step.transform(X)
        if self.kind == "numbers":
            _finite(X)
        if self.answer == "value":
            values = machine.predict(X)
            return Answers("value", values.tolist(), values)
        if self.answer == "side":
            decisions = machine.decision_function(X)
            return Answers("side", np.where(decisions >= 0, 1, -1).tolist(), decisions)
        scores = machine.predict_proba(X) if self.calibrated else machine.decision_function(X)
        best = (scores > 0).astype("int64") if scores.ndim == 1 else np.argmax(scores, axis=1)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        labels = [self.classes[c] for c in best.tolist()]
        if not self.calibrated and getattr(machine, "multi_class", None) == "dag":
            labels = [plain(label) for label in machine.predict(X)]  # by its own way, not by the votes
        order = np.argsort(-scores, axis=1, kind="stable")
        return Answers("class", labels, scores, order, self.classes, self.calibrated)

    def explain(self, entry, terms):
        """The prediction for one text or row, and the terms of its decisions, as dicts."""
        told = self.predict([entry]).telling(0)
        label = told.get("label") if self.answer == "class" else None
        if self.classes and label is not None:
            label = self.machine.classes_[self.classes.index(label)]
        with np.errstate(all="ignore"):
            found = contributions(self.model, entry, label=label)
        return told, [self._told(decision, terms, label) for decision in found]

    def _told(self, found, terms, label):
        """A decision of two classes, turned round where that makes it speak for the class that was predicted."""
        turned = label is not None and found.against == label
        sign = -1.0 if turned else 1.0
        shown = [
            {"name": self._name(t.name, found.by), "label": self._side(t.name, found.by)}
            | {"weight": sign * t.weight, "value": t.value, "contribution": sign * t.contribution}
            for t in found.top(terms)
        ]
        sides = (found.against, found.label) if turned else (found.label, found.against)
        if not np.isfinite([found.decision, found.remainder(0)]).all():
            raise Unanswerable(0)
        return {
            "label": plain(sides[0]),
            "against": plain(sides[1]),
            "decision": sign * found.decision,
            "intercept": sign * found.intercept,
            "rest": sign * found.remainder(terms),
            "by": found.by,
            "terms": shown,
            "count": len(found),
        }

    def _name(self, name, by):
        """The name of a term; features without one are x0, x1, and so on."""
        return self.names[int(name[1:])] if self.names and by == "features" else plain(name)

    def _side(self, row, by):
        """The class of a support vector, which are kept class by class."""
        if by != "support vectors" or not self.classes:
            return None
        place = int(np.flatnonzero(self.machine.support_ == row)[0])
        return self.classes[int(np.searchsorted(np.cumsum(self.machine.n_support_), place, side="right"))]

    # ---- a trial

    def try_out(self):
        """Predict and explain a text or a row of zeros, which compiles what predictions need; raise if that fails."""
        entry = _TRIAL if self.kind == "text" else [0.0] * self.n_features
        told, _ = self.explain(entry, 1)
        return told

    def replaces(self, other):
        """Say whether clients of the other model can go on with this one."""
        return (self.kind, self.answer, self.n_features) == (other.kind, other.answer, other.n_features)


def _finite(numbers):
    """Raise for the first row whose numbers are not finite."""
    finite = np.isfinite(numbers).reshape(len(numbers), -1).all(axis=1)
    if not finite.all():
        raise Unanswerable(int(np.argmin(finite)))


def _answer(machine):
    if is_classifier(machine):
        return "class"
    if is_outlier_detector(machine):
        return "side"
    if is_regressor(machine):
        return "value"
    raise TypeError(f"a {type(machine).__name__} cannot be served: it has to classify, regress or find outliers.")


def _joined(parts):
    """The answers of tiles as one."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    labels = [label for part in parts for label in part.labels]
    order = None if first.order is None else np.concatenate([part.order for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    return Answers(first.answer, labels, scores, order, first.classes, first.calibrated)
