"""tune: the search for the best parameters, over a grid or by successive halving."""

import time

import joblib
import numpy as np
from sklearn.base import is_classifier

from symsvm._lib.validation import choice, count, number
from symsvm.compiler.lifting import MEMORY
from symsvm.model_selection.arguments import cells_of, data_of, score_of, splitter_of, taken
from symsvm.model_selection.board import Board
from symsvm.model_selection.crew import work
from symsvm.model_selection.halving import rounds_of, survivors
from symsvm.model_selection.plan import Plan
from symsvm.model_selection.result import Tuning

__all__ = ["tune"]


def tune(
    estimator,
    X,
    y,
    grid,
    *,
    folds=5,
    scoring=None,
    search="grid",
    factor=3,
    random_state=None,
    progress=None,
    n_jobs=None,
    memory=MEMORY,
):
    """Find the best parameters of an estimator by cross-validation; return a `Tuning`.

    Every cell of the grid is fitted in every fold, as by scikit-learn's `GridSearchCV`, in the same folds and with the
    same scores, but kernel machines share what they can. For each kernel the Gram matrix of all points is computed
    once: folds train and are judged on parts of it. Over it, fits follow a path from the smallest C to the largest,
    each from the solution before. Steps of a pipeline are fitted in each fold to its training points only, once for all
    cells that agree in them.

    Parameters
    ----------
    estimator : an estimator, or a pipeline that ends with one. Those of symsvm over a kernel share matrices, linear
        ones go on from the weights for the last C, others are fitted one by one.
    X, y : the points, dense or CSR, and their labels or targets (None for `OneClassSVM`, which needs a `scoring`).
    grid : a dict from names of parameters to lists of values, or a list of such dicts. A kernel's own parameters have
        names like `kernel__sigma`, those of a pipeline's steps names like `svc__C`.
    folds : their number, a splitter of scikit-learn, or pairs (train, test) of indices. A number means stratified folds
        for classifiers, as in scikit-learn; they are shuffled if `random_state` is given.
    scoring : None for the estimator's own score, a name such as "f1", or a function of (estimator, X, y).
    search : "grid", all cells on all points; or "halving", all cells on a part of the points, and then in each round
        the best of them, one of `factor`, on `factor` times as many points, in the last round on all.
    random_state : of shuffled folds, and of the points of halving.
    progress : a function of a `Step`, called after each fit; a true return value stops the search.
    n_jobs : threads for kernel machines, all cores by default. What is computed does not depend on it.
    memory : bytes that Gram matrices and working sets may take: 12 for each pair of points and thread. For more points
        than that no matrix is held, but rows of working sets are, along the path.

    Ctrl-C ends the search; what was found by then is returned, and says which cells are missing.

    >>> from symsvm.estimators import SVC
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> tuning = tune(SVC(), X, np.abs(X[:, 0]) > 0.5, {"C": [1.0, 10.0], "gamma": [0.01, 1.0]}, random_state=0)
    >>> tuning.best_params, tuning.best_score
    ({'C': 1.0, 'gamma': 1.0}, 1.0)
    """
    began = time.perf_counter()
    choice(search, "search", ("grid", "halving"))
    factor = count(factor, "factor", least=2)
    workers = joblib.cpu_count() if n_jobs is None else count(n_jobs, "n_jobs", least=1)
    memory = number(memory, "memory")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of a Step, got {progress!r}.")
    cells = cells_of(estimator, grid)
    X, y = data_of(X, y)
    score, is_plain = score_of(estimator, scoring)
    splitter = splitter_of(estimator, y, folds, random_state)
    n_splits, m = splitter.get_n_splits(X, y), X.shape[0] if hasattr(X, "shape") else len(X)
    tuning = Tuning(estimator, X, y, cells, n_splits, scoring)
    rounds = [np.arange(m)]
    if search == "halving":
        if not hasattr(splitter, "n_splits"):
            raise ValueError("search='halving' splits parts of the points: give folds as a number or a splitter.")
        classes = y if is_classifier(estimator) else None
        rounds = rounds_of(len(cells), m, classes, n_splits, factor, random_state)
    alive = np.arange(len(cells))
    for rows in rounds:
        part = (X, y) if len(rows) == m else taken(estimator, X, y, rows)
        pairs = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(*part)]
        board = Board([cells[i] for i in alive], len(pairs), progress)
        plan = Plan(estimator, *part, board.cells, pairs, score, is_plain=is_plain, workers=workers, memory=memory)
        work(plan.tasks, board, plan.workers)
        tuning.record(alive, board, len(rows))
        if board.is_stopped:
            break
        alive = alive[survivors(board.scores.mean(axis=1), factor)]
    tuning.seconds = time.perf_counter() - began
    if board.errors and not board.is_stopped and not np.isfinite(tuning.table["mean_score"]).any():
        raise board.errors[0]  # nothing is left that could be the best
    return tuning
