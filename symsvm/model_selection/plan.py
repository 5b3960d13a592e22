"""Plan: which fits of a search share what, and the tasks that this makes."""

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from symsvm.model_selection.arguments import taken
from symsvm.model_selection.held import bytes_of
from symsvm.model_selection.shared import can_share
from symsvm.model_selection.sheet import Rooms, checked
from symsvm.model_selection.tasks import Alone, Path, Prepared, machine_of, sheets

__all__ = ["Plan"]


class Plan:
    """The tasks of a round: cells of a grid, fitted in every fold.

    Fits share the points that the steps before a machine have made of a fold (or the given points, where there are no
    steps: then all folds share them), over these the matrix of a kernel, and over that a path of solutions.

    Parameters
    ----------
    estimator, X, y, cells : what is fitted, to what, and with which parameters.
    folds : pairs (train, test) of indices.
    score : the function of (model, X, y).
    is_plain : whether `score` looks at predictions only, so that indices may stand for the points.
    workers, memory : the most threads, and bytes of their matrices together.
    """

    def __init__(self, estimator, X, y, cells, folds, score, *, is_plain, workers, memory):
        self.X, self.y, self.folds, self.score = X, y, folds, score
        self.models = [clone(estimator).set_params(**cell) for cell in cells]
        self.shares = [is_plain and can_share(machine_of(model)) for model in self.models]
        room = int(memory // bytes_of(X.shape[0] if hasattr(X, "shape") else len(X)))
        self.rooms, self.workers = Rooms() if room else None, max(1, min(workers, room))
        every = range(len(folds))
        keys = [_before(model, cell) if is_plain else None for model, cell in zip(self.models, cells, strict=True)]
        self.tasks = []
        for key in dict.fromkeys(keys):
            group = [i for i, other in enumerate(keys) if other == key]
            if key is None:
                self.tasks += self._over_given_points(group)
            else:
                self.tasks += [Prepared(self, fold, group) for fold in every]

    def _over_given_points(self, cells):
        alone, share = ([i for i in cells if self.shares[i] == wanted] for wanted in (False, True))
        found, (y, folds) = [], (self.y, self.folds)
        if share:
            X = checked(machine_of(self.models[share[0]]), self.X, self.y)
            order, folds = _side_by_side(self.folds, X.shape[0])
            X, y = taken(self.models[share[0]], X, self.y, order)
            found, wrong = sheets(self, share, X, {fold: train for fold, (train, _) in enumerate(folds)})
            alone = sorted([*alone, *wrong])
        tasks = [Alone(self, fold, alone) for fold in range(len(folds))] if alone else []
        paths = [[Path(self, sheet, fold, folds[fold], y) for fold in sheet.folds] for sheet in found]
        return tasks + _staggered(paths, self.workers)

    def targets(self, fold):
        """The targets of the training points of a fold, and of those held out; None where there are none."""
        return (None, None) if self.y is None else tuple(_safe_indexing(self.y, rows) for rows in self.folds[fold])


def _staggered(groups, workers):
    """The tasks of the groups one after another, but the first of each, which makes its matrix, a little earlier:
    the other workers still have tasks of the group before, and none waits for the matrix.

    >>> _staggered([["a1", "a2", "a3"], ["b1", "b2"]], 2)
    ['a1', 'a2', 'b1', 'a3', 'b2']
    """
    order = []
    for first, *others in groups:
        order.insert(max(0, len(order) - workers + 1), first)
        order += others
    return order


def _before(model, cell):
    """What tells the steps before the machine from those of other cells; None if there are none."""
    if len(getattr(model, "steps", ())) < 2:
        return None
    name = model.steps[-1][0]
    return joblib.hash({key: value for key, value in cell.items() if key.partition("__")[0] != name})


def _side_by_side(folds, m):
    """An order that puts the points of each fold side by side, and the folds in it; as it is where they overlap.

    Training points are then two runs of the matrix, which loops read faster than points here and there.
    """
    order = np.concatenate([test for _, test in folds])
    if not np.array_equal(np.sort(order), np.arange(m)):
        return np.arange(m), folds
    every, ends = np.arange(m), np.cumsum([len(test) for _, test in folds])
    tests = [every[end - len(test) : end] for end, (_, test) in zip(ends, folds, strict=True)]
    if any(not np.array_equal(np.sort(train), np.delete(every, test)) for train, test in folds):
        return every, folds
    return order, [(np.delete(every, test), test) for test in tests]
