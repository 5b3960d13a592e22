"""The search for the best parameters, over a grid or by successive halving.

Successive halving fits many cells on few points, and fewer cells on more (Jamieson and Talwalkar, 2016)::

    rounds r = 0 .. R:    m / factor^(R - r) points,    the best 1 / factor of the cells before
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils import check_random_state, indexable
from sklearn.utils.multiclass import type_of_target

from symsvm._lib.validation import choice, count, number
from symsvm.compiler.lifting import MEMORY
from symsvm.model_selection.executor import run_tasks
from symsvm.model_selection.search_plan import SearchPlan, take_points
from symsvm.model_selection.search_scorers import own_score
from symsvm.model_selection.spread_search import SearchRound, engine_of, run_spread
from symsvm.model_selection.tuning_result import Scoreboard, Tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike
    from sklearn.model_selection import BaseCrossValidator

    from symsvm._lib.types import Array, PointsLike
    from symsvm.model_selection.tuning_result import Step

    Grid = Mapping[str, Sequence[Any] | Array]

__all__ = ["make_scorer", "round_rows", "survivors", "tune"]

# The fewest points of a round of successive halving; scores on fewer do not tell cells apart.
_LEAST_POINTS = 200


def tune(
    estimator: Any,
    X: PointsLike,
    y: ArrayLike | None,
    grid: Grid | Sequence[Grid],
    *,
    folds: int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] = 5,
    scoring: str | Callable[..., float] | None = None,
    search: Literal["grid", "halving"] = "grid",
    factor: int = 3,
    random_state: int | np.random.RandomState | None = None,
    progress: Callable[[Step], object] | None = None,
    n_jobs: int | None = None,
    memory: float = MEMORY,
    client: Any = None,
) -> Tuning:
    """Find the best parameters of an estimator by cross-validation.

    Every cell of the grid is fitted in every fold, as by scikit-learn's `GridSearchCV`, in the same folds and with the
    same scores, but kernel estimators share what they can. For each kernel the Gram matrix of all points is computed
    once: folds train and are scored on parts of it. Over it, fits follow a path from the smallest C to the largest,
    each from the solution before. Steps of a pipeline are fitted in each fold to its training points only, once for all
    cells that agree in them. Ctrl-C ends the search, which then returns the results so far.

    Parameters
    ----------
    estimator : estimator
        An estimator, or a pipeline that ends with one. Those of symsvm over a kernel share matrices, linear ones start
        at the weights for the last C, others are fitted one by one.
    X : array-like or sparse matrix of shape (m, d)
        The points.
    y : array-like of shape (m,) or None
        Their labels or targets; None for `OneClassSVM`, which needs a `scoring`.
    grid : dict or list of dict
        Lists of values by names of parameters. A kernel's own parameters have names like `kernel__sigma`, those of a
        pipeline's steps names like `svc__C`.
    folds : int, splitter or iterable, default=5
        The number of folds, a splitter of scikit-learn, or pairs (train, test) of row numbers. A number means
        stratified folds for classifiers, as in scikit-learn; they are shuffled if `random_state` is given.
    scoring : str or callable, optional
        A name such as "f1", or a function of (estimator, X, y); by default the estimator's own score.
    search : {"grid", "halving"}, default="grid"
        "grid" fits all cells on all points. "halving" fits all cells on a part of the points, and in each further round
        the best 1 / `factor` of them on `factor` times as many points, in the last round on all.
    factor : int, default=3
        The factor of successive halving.
    random_state : int or RandomState, optional
        The seed of shuffled folds and of the points of successive halving.
    progress : callable, optional
        A function of a `Step`, called after each fit; a true return value stops the search.
    n_jobs : int, optional
        The number of threads for kernel estimators, all cores by default. It does not change the results.
    memory : float, default=2**30
        The bytes that Gram matrices and working sets may take: 12 for each pair of points and thread, or 4 if values
        are computed as fast as they are read, for many points of few features. For more points
        no matrix is cached, but rows of working sets are, along the path.
    client : distributed.Client, str or Engine, optional
        A Dask client, the address of a scheduler, or an engine of `symsvm.distributed`, whose workers run the fits.
        Each receives the points once, and keeps the matrix that its fits share; `memory` is that of each worker.

    Returns
    -------
    Tuning
        The table of all cells, and the best of them.

    Examples
    --------
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
    if client is not None and n_jobs is not None:
        raise ValueError("n_jobs counts threads of this process, and client has workers: give one of them.")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of a Step, got {progress!r}.")
    cells = _grid_cells(estimator, grid)
    points, targets = _check_data(X, y)
    score, is_plain = make_scorer(estimator, scoring)
    splitter = _splitter(estimator, targets, folds, random_state)
    n_splits, m = splitter.get_n_splits(points, targets), points.shape[0] if hasattr(points, "shape") else len(points)
    tuning = Tuning(estimator, points, targets, cells, n_splits, scoring)
    rounds = [np.arange(m)]
    if search == "halving":
        if not hasattr(splitter, "n_splits"):
            raise ValueError("search='halving' splits parts of the points: give folds as a number or a splitter.")
        classes = targets if is_classifier(estimator) else None
        rounds = round_rows(len(cells), m, classes, n_splits, factor, random_state)
    alive, scores = np.arange(len(cells)), None
    with contextlib.nullcontext() if client is None else engine_of(client) as engine:
        for rows in rounds:
            part = (points, targets) if len(rows) == m else take_points(estimator, points, targets, rows)
            pairs = [(_row_numbers(train), _row_numbers(test)) for train, test in splitter.split(*part)]
            scores = Scoreboard([cells[i] for i in alive], len(pairs), progress)
            if engine is not None:
                run_spread(engine, SearchRound(estimator, *part, scores.cells, pairs, scoring, memory), scores)
            else:
                options = {"is_plain": is_plain, "workers": workers, "memory": memory}
                plan = SearchPlan(estimator, *part, scores.cells, pairs, score, **options)
                run_tasks(plan.tasks, scores, plan.workers, workers)
            tuning.record(alive, scores, len(rows))
            if scores.is_stopped:
                break
            alive = alive[survivors(scores.scores.mean(axis=1), factor)]
    assert scores is not None  # there is at least one round
    tuning.seconds = time.perf_counter() - began
    if scores.errors and not scores.is_stopped and not np.isfinite(tuning.table["mean_score"]).any():
        raise scores.errors[0]  # every cell has failed
    return tuning


# ---- arguments


def _grid_cells(estimator, grid):
    """The cells of a grid, a dict of parameters each, in the order of scikit-learn's `ParameterGrid`."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must have fit and get_params, got {estimator!r}.")
    try:
        return list(ParameterGrid(grid))
    except (TypeError, ValueError) as error:
        raise type(error)(f"grid must be a dict from names to lists of values, or a list of them: {error}") from None


def _check_data(X, y) -> tuple[Any, Any]:
    """X and y with as many rows each, y as a vector."""
    X, y = indexable(X, None if y is None else np.asarray(y))
    if y is not None and y.ndim != 1:
        raise ValueError(f"y must be a vector, one label or target for each point, got the shape {y.shape}.")
    return X, y


def _row_numbers(rows):
    """Row numbers, or those of a mask, as integers."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype("int64", copy=False)


def make_scorer(estimator: Any, scoring: Any) -> tuple[Callable[[Any, Any, Any], float], bool]:
    """Return the function of (model, X, y) that scores, and whether it uses X for predictions only."""
    if scoring is None and not hasattr(estimator, "score"):
        raise TypeError(f"{type(estimator).__name__} has no score of its own: give scoring, a name or a function.")
    scorer: Any = check_scoring(estimator, scoring)

    def score(model, X, y) -> float:
        if scoring is None:
            return own_score(model, X, y)
        return scorer(model, X) if y is None else scorer(model, X, y)

    return score, scoring is None or isinstance(scorer, type(get_scorer("accuracy")))


def _splitter(estimator, y, folds, random_state) -> Any:
    """The splitter for a number of folds, a splitter or pairs of row numbers, as in scikit-learn."""
    if random_state is not None and isinstance(folds, (int, np.integer)):
        is_stratified = is_classifier(estimator) and type_of_target(y) in ("binary", "multiclass")
        kind = StratifiedKFold if is_stratified else KFold
        return kind(count(folds, "folds", least=2), shuffle=True, random_state=random_state)
    return check_cv(folds, y, classifier=is_classifier(estimator))


# ---- successive halving


def round_rows(cells: int, m: int, y: Array | None, n_splits: int, factor: int, random_state: Any) -> list[Array]:
    """Return the rows of each round, in order; the last round has all of them.

    The rows of a round are among those of the next. With classes (y), each has its share, and at least as many points
    as there are folds.

    >>> [len(rows) for rows in round_rows(25, 3000, None, 5, 3, 0)]
    [334, 1000, 3000]
    """
    most = int(np.log(cells) / np.log(factor) + 1e-9)
    rng = check_random_state(0 if random_state is None else random_state)
    place, rank = np.empty(m), np.empty(m, dtype="int64")
    for members in [np.arange(m)] if y is None else [np.flatnonzero(y == label) for label in np.unique(y)]:
        rank[members] = rng.permutation(len(members))
        place[members] = (rank[members] + 0.5) / len(members)
    sizes = [-(-m // factor**r) for r in range(most, 0, -1)]
    rounds = []
    for size in sizes:
        first = (place * m <= size) | ((rank < n_splits) & (y is not None))
        if _LEAST_POINTS <= first.sum() < m:
            rounds.append(np.flatnonzero(first))
    return [*rounds, np.arange(m)]


def survivors(scores: Array, factor: int) -> Array:
    """Return the indices of the best 1 / factor of the cells, at least one, in their order; failures are the worst.

    >>> survivors(np.array([0.1, np.nan, 0.9, 0.5]), 2).tolist()
    [2, 3]
    """
    order = np.argsort(-np.where(np.isfinite(scores), scores, -np.inf), kind="stable")
    return np.sort(order[: max(1, -(-len(scores) // factor))])
