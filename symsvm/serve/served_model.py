"""A loaded model behind one interface: texts or rows in, predictions and explanations for JSON out."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.pipeline import Pipeline

from symsvm.inspection.contributions import contributions
from symsvm.io.text import is_text

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.inspection.contributions import Contributions

__all__ = ["NonFiniteDecision", "Predictions", "ServedModel", "to_json_value"]

# A tile has so many rows that its kernel values take about this many multiplications, less than a millisecond of one
# core, within these bounds.
_TILE_WORK, _TILE_LEAST, _TILE_MOST = 2**22, 8, 128
_WARM_UP_TEXT = "a text to try the model with"


class NonFiniteDecision(ValueError):
    """The model has no finite decision value for row `index`."""

    def __init__(self, index: int) -> None:
        super().__init__(f"no finite decision value for row {index}")
        self.index = index


def to_json_value(value: Any) -> str | bool | int | float | None:
    """A NumPy label or number as a JSON value; None for a number that is not finite.

    >>> to_json_value(np.str_("a")), to_json_value(np.int64(3)), to_json_value(np.inf)
    ('a', 3, None)
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float | None) else str(value)


@dataclass(frozen=True)
class Predictions:
    """The predictions for n rows.

    Attributes
    ----------
    answer : str
        "class" (classification), "value" (regression) or "side" (one-class SVM).
    labels : list
        n classes, values or sides.
    scores : array
        (n, k) probabilities or decision values of the classes, or (n,) values or decision values.
    order : array or None
        (n, k) indices of the classes by decreasing score.
    classes : tuple
        The names of the k classes.
    calibrated : bool
        Whether the scores are probabilities.
    """

    answer: str
    labels: list[Any]
    scores: Array
    order: Array | None = None
    classes: tuple[Any, ...] = ()
    calibrated: bool = False

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice) -> Predictions:
        """The predictions for a slice of the rows."""
        order = None if self.order is None else self.order[rows]
        return replace(self, labels=self.labels[rows], scores=self.scores[rows], order=order)

    @classmethod
    def concatenate(cls, parts: list[Predictions]) -> Predictions:
        """The predictions of several lists of rows as one."""
        if len(parts) == 1:
            return parts[0]
        orders = [part.order for part in parts if part.order is not None]
        return replace(
            parts[0],
            labels=[label for part in parts for label in part.labels],
            scores=np.concatenate([part.scores for part in parts]),
            order=np.concatenate(orders) if orders else None,
        )

    def to_dict(self, i: int, top: int | None = None) -> dict[str, Any]:
        """The prediction for row i as JSON, with the `top` best classes."""
        if self.answer == "value":
            return {"value": self.labels[i]}
        if self.answer == "side":
            return {"label": self.labels[i], "decision": float(self.scores[i])}
        scores = self.scores[i].tolist()
        key, other = ("proba", "decision") if self.calibrated else ("decision", "proba")
        ranked = [{"name": self.classes[c], key: scores[c], other: None} for c in self._ranking(i)[:top]]
        return {"label": self.labels[i], "proba": self._probability(i), "classes": ranked}

    def to_post_dict(self, i: int) -> dict[str, Any]:
        """The prediction for row i as the JSON of `POST /`."""
        probabilities = self.scores[i].tolist() if self.calibrated else [None] * len(self.classes)
        ranked = [{"name": self.classes[c], "proba": probabilities[c]} for c in self._ranking(i)]
        best = {"name": self.labels[i], "proba": self._probability(i)}
        return {"predicted_newsgroup": best, "labels_with_probas": ranked}

    def _ranking(self, i: int) -> list[int]:
        assert self.order is not None
        return self.order[i].tolist()

    def _probability(self, i: int) -> float | None:
        return float(self.scores[i, self.classes.index(self.labels[i])]) if self.calibrated else None


class ServedModel:
    """A model, and the kind of its inputs and predictions.

    Many rows are predicted a part at a time. What a row gives does not depend on the rows beside it, bit for bit: the
    estimators promise that.

    Attributes
    ----------
    model : estimator or Pipeline
        The model, without the names of features.
    estimator : estimator
        The last step of the model.
    transformers : list
        The steps before it.
    kind : str
        "text" or "numbers".
    answer : str
        "class", "value" or "side": see `Predictions`.
    n_features : int or None
        The length of a row; None for texts.
    feature_names : list of str or None
        The columns of the table that the model was fitted to; None if it was no table.
    classes : tuple
        The labels of a classifier.
    calibrated : bool
        Whether the model has probabilities.
    tile : int
        The number of rows that are predicted together; 0 for texts.
    """

    def __init__(self, model: Any) -> None:
        steps = model.steps if isinstance(model, Pipeline) else [("", model)]
        names = getattr(steps[0][1], "feature_names_in_", None)
        self.feature_names = None if names is None else [str(name) for name in names]
        if any(hasattr(step, "feature_names_in_") for _, step in steps):  # they would warn of rows without names
            steps = [(name, _without_feature_names(step)) for name, step in steps]
            model = Pipeline(steps) if isinstance(model, Pipeline) else steps[0][1]
        self.model = model
        *self.transformers, self.estimator = [step for _, step in steps]
        self.kind = "text" if is_text(model) else "numbers"
        self.answer = _answer(self.estimator)
        self.n_features = None if self.kind == "text" else int(model.n_features_in_)
        self.classes = tuple(map(to_json_value, self.estimator.classes_)) if self.answer == "class" else ()
        self.calibrated = self.answer == "class" and hasattr(model, "predict_proba")
        self._scorer = self.estimator  # whose decision values rank the classes: one a class
        if getattr(self.estimator, "decision_function_shape", "ovr") != "ovr":
            self._scorer = copy.copy(self.estimator).set_params(decision_function_shape="ovr")
        self.tile = 0 if self.n_features is None else self._tile_rows(self.n_features)

    def _tile_rows(self, n_features: int) -> int:
        """The number of rows of a tile, a power of 2."""
        vectors = len(self.estimator.support_) if hasattr(self.estimator, "support_") else len(self.classes) or 1
        rows = _TILE_WORK // max(1, vectors * n_features)
        return 2 ** int(np.log2(min(_TILE_MOST, max(_TILE_LEAST, rows))))

    # ---- predictions

    def predict(self, inputs: list[Any]) -> Predictions:
        """The predictions for a list of texts or of rows."""
        if self.kind == "text":
            return self._predict(inputs)
        X = np.array(inputs, dtype="float64")
        with np.errstate(all="ignore"):  # values that are not finite are refused below
            return Predictions.concatenate(
                [self._predict_tile(X[start : start + self.tile], start) for start in range(0, len(X), self.tile)]
            )

    def _predict_tile(self, X: Array, start: int) -> Predictions:
        """The predictions for rows from `start` on, at most a tile."""
        try:
            predictions = self._predict(X)
            _check_finite(predictions.scores)
        except NonFiniteDecision as error:
            raise NonFiniteDecision(start + error.index) from None
        return predictions

    def _predict(self, X: Any) -> Predictions:
        scorer = self._scorer
        for step in self.transformers:  # the pipeline's own checks would take longer than a short text
            X = step.transform(X)
        if self.kind == "numbers":
            _check_finite(X)
        if self.answer == "value":
            values = scorer.predict(X)
            return Predictions("value", values.tolist(), values)
        if self.answer == "side":
            decisions = scorer.decision_function(X)
            return Predictions("side", np.where(decisions >= 0, 1, -1).tolist(), decisions)
        if not self.calibrated and hasattr(scorer, "decide"):
            scores, best = scorer.decide(scorer.check_points(X, reset=False))
        else:
            scores = scorer.predict_proba(X) if self.calibrated else scorer.decision_function(X)
            best = (scores > 0).astype("int64") if scores.ndim == 1 else np.argmax(scores, axis=1)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        labels = [self.classes[c] for c in best.tolist()]
        if self.calibrated and getattr(scorer, "calibration", "none") is None:
            labels = [to_json_value(label) for label in scorer.predict(X)]  # `probability` does not change predictions
        order = np.argsort(-scores, axis=1, kind="stable")
        return Predictions("class", labels, scores, order, self.classes, self.calibrated)

    # ---- explanations

    def explain(self, entry: Any, terms: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The prediction for one text or row, and its decisions with their largest terms, as JSON."""
        prediction = self.predict([entry]).to_dict(0)
        label = None
        if self.answer == "class":
            label = self.estimator.classes_[self.classes.index(prediction["label"])]
        with np.errstate(all="ignore"):
            decisions = contributions(self.model, entry, label=label)
        return prediction, [self._decision_dict(decision, terms, label) for decision in decisions]

    def _decision_dict(self, decision: Contributions, terms: int, label: Any) -> dict[str, Any]:
        """A decision as JSON; its sign is flipped where a positive value would stand against the predicted class."""
        flipped = label is not None and decision.against == label
        sign = -1.0 if flipped else 1.0
        sides = (decision.against, decision.label) if flipped else (decision.label, decision.against)
        if not np.isfinite([decision.decision, decision.remainder(0)]).all():
            raise NonFiniteDecision(0)
        largest = [
            {"name": self._term_name(t.name, decision.by), "label": self._term_label(t.name, decision.by)}
            | {"weight": sign * t.weight, "value": t.value, "contribution": sign * t.contribution}
            for t in decision.top(terms)
        ]
        return {
            "label": to_json_value(sides[0]),
            "against": to_json_value(sides[1]),
            "decision": sign * decision.decision,
            "intercept": sign * decision.intercept,
            "rest": sign * decision.remainder(terms),
            "by": decision.by,
            "terms": largest,
            "count": len(decision),
        }

    def _term_name(self, name: Any, by: str) -> Any:
        """The name of a term; features without names are x0, x1, and so on."""
        return self.feature_names[int(name[1:])] if self.feature_names and by == "features" else to_json_value(name)

    def _term_label(self, row: Any, by: str) -> Any:
        """The class of a support vector; support vectors are sorted by class."""
        if by != "support vectors" or not self.classes:
            return None
        place = int(np.flatnonzero(self.estimator.support_ == row)[0])
        return self.classes[int(np.searchsorted(np.cumsum(self.estimator.n_support_), place, side="right"))]

    # ---- replacement

    def warm_up(self) -> None:
        """Predict and explain a text or a row of zeros, which compiles what predictions need; raise if that fails."""
        self.explain(_WARM_UP_TEXT if self.n_features is None else [0.0] * self.n_features, 1)

    def accepts_requests_of(self, other: ServedModel) -> bool:
        """Whether requests to the other model, and the form of its predictions, suit this one."""
        return (self.kind, self.answer, self.n_features) == (other.kind, other.answer, other.n_features)


def _without_feature_names(step: Any) -> Any:
    """A shallow copy of a fitted step that does not expect named columns; the step itself stays as it is."""
    duplicate = copy.copy(step)
    vars(duplicate).pop("feature_names_in_", None)
    return duplicate


def _check_finite(numbers: Any) -> None:
    """Raise for the first row with a number that is not finite."""
    finite = np.isfinite(numbers).reshape(len(numbers), -1).all(axis=1)
    if not finite.all():
        raise NonFiniteDecision(int(np.argmin(finite)))


def _answer(estimator: Any) -> str:
    if is_classifier(estimator):
        return "class"
    if is_outlier_detector(estimator):
        return "side"
    if is_regressor(estimator):
        return "value"
    name = type(estimator).__name__
    raise TypeError(f"{name} cannot be served: it must be a classifier, a regressor or an outlier detector.")
