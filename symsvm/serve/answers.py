"""Answers: what a model predicts for some rows, ready to be told as JSON."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Answers", "plain"]


def plain(value):
    """A NumPy label or number as what JSON knows; None for a number that is not finite.

    >>> plain(np.str_("a")), plain(np.int64(3)), plain(np.inf)
    ('a', 3, None)
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float | None) else str(value)


@dataclass(frozen=True)
class Answers:
    """The predictions for n rows.

    Attributes
    ----------
    answer : "class", "value" (a regression) or "side" (a one-class machine).
    labels : a list of n classes, values or sides.
    scores : (n, k) probabilities or decision values of the classes; (n,) values or decision values.
    order : (n, k) the classes by their scores, the best first.
    classes : the k names.
    calibrated : whether scores are probabilities.
    """

    answer: str
    labels: list
    scores: np.ndarray
    order: np.ndarray | None = None
    classes: tuple = ()
    calibrated: bool = False

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, part):
        """The answers of some rows, a slice."""
        order = None if self.order is None else self.order[part]
        return Answers(self.answer, self.labels[part], self.scores[part], order, self.classes, self.calibrated)

    def telling(self, i, top=None):
        """Row i as a dict, with the `top` best classes."""
        if self.answer == "value":
            return {"value": self.labels[i]}
        if self.answer == "side":
            return {"label": self.labels[i], "decision": float(self.scores[i])}
        scores, names = self.scores[i].tolist(), self.classes
        key, other = ("proba", "decision") if self.calibrated else ("decision", "proba")
        ranked = [{"name": names[c], key: scores[c], other: None} for c in self.order[i, :top].tolist()]
        label = self.labels[i]
        return {"label": label, "proba": self._probability(i, label), "classes": ranked}

    def post(self, i):
        """Row i in the shape of `POST /`."""
        key = self.scores[i].tolist() if self.calibrated else [None] * len(self.classes)
        ranked = [{"name": self.classes[c], "proba": key[c]} for c in self.order[i].tolist()]
        label = self.labels[i]
        first = {"name": label, "proba": self._probability(i, label)}
        return {"predicted_newsgroup": first, "labels_with_probas": ranked}

    def _probability(self, i, label):
        return float(self.scores[i, self.classes.index(label)]) if self.calibrated else None
