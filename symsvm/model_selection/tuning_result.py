"""Results of a search: the scores of its fits while it runs, and the table that it returns."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm._lib.types import Array
    from symsvm.model_selection.measurement import Measurement

__all__ = ["Scoreboard", "Step", "Tuning"]

# Statuses of a fold from the best to the worst; failures, which are not here, are worse than all of them.
_RANK = {"done": 0, "no margin": 1, "not converged": 2, "interrupted": 3, "not run": 4}
_FAILED = 5


@dataclass(frozen=True)
class Step:
    """One fit that has ended; a function given as `progress` receives it.

    Parameters
    ----------
    done : int
        The number of fits that have ended.
    total : int
        The number of fits of this round of the search.
    params : dict
        The parameters of the fit.
    fold : int
        The number of its fold.
    score : float
        The score on the points held out; nan if the fit failed.
    status : str
        "done", "no margin", "not converged", or "failed: ..." with the error.
    """

    done: int
    total: int
    params: dict[str, Any]
    fold: int
    score: float
    status: str


class Scoreboard:
    """Scores, seconds, statuses and measurements of some cells of a grid, (cells, folds); threads write to it."""

    def __init__(
        self, cells: list[dict[str, Any]], folds: int, progress: Callable[[Step], object] | None = None
    ) -> None:
        self.cells, self._progress = cells, progress
        shape = len(cells), folds
        self.scores, self.seconds = np.full(shape, np.nan), np.zeros(shape)
        self.status = np.full(shape, "not run", dtype=object)
        self.measured = np.full(shape, None, dtype=object)
        self.errors, self.is_stopped = [], False
        self._done, self._lock = 0, threading.Lock()

    def run(self, cell: int, fold: int, fit: Callable[[], tuple[Measurement, str]]) -> None:
        """Call `fit()`, which returns a measurement and a status, and record them for a cell and a fold."""
        began, measured, problem = time.perf_counter(), None, None
        try:
            measured, status = fit()
            score = measured.value
        except Exception as error:  # an error of one cell must not lose the others
            score, status, problem = np.nan, f"failed: {error}", error
        except BaseException:  # Ctrl-C, or the search was stopped by another thread
            self.status[cell, fold] = "interrupted"
            raise
        self.record(cell, fold, score, status, time.perf_counter() - began, problem, measured)

    def record(
        self,
        cell: int,
        fold: int,
        score: float,
        status: str,
        seconds: float,
        error: Exception | None = None,
        measured: Measurement | None = None,
    ) -> None:
        """Record what a fit of a cell in a fold has given."""
        with self._lock:
            if error is not None:
                self.errors.append(error)
            self.scores[cell, fold], self.status[cell, fold], self.seconds[cell, fold] = score, status, seconds
            self.measured[cell, fold] = measured
            self._done += 1
            if self._progress is not None:
                step = Step(self._done, self.scores.size, self.cells[cell], fold, float(score), status)
                if self._progress(step):  # not is_stopped |= ..., which would undo a stop that comes meanwhile
                    self.stop()

    def stop(self) -> None:
        """Let no other fit begin, and stop those under way."""
        self.is_stopped = True

    def statuses(self) -> list[str]:
        """Return the status of each cell: that of its worst fold."""
        return [max(row, key=lambda text: _RANK.get(text, _FAILED)) for row in self.status.tolist()]


class Tuning:
    """The cells of a search with their scores, and the best of them.

    Parameters
    ----------
    estimator : estimator
        The estimator that was tuned.
    X : array-like or sparse matrix of shape (m, d)
        The points.
    y : array of shape (m,) or None
        Their labels or targets.
    cells : list of dict
        The parameters of each cell.
    folds : int
        The number of folds.
    scoring : str, callable or None
        The scoring, as given to `tune`.

    Attributes
    ----------
    table : dict
        Arrays with an entry for each cell, which `pandas.DataFrame(tuning.table)` takes: each parameter by its name;
        `mean_score` and `std_score` over the folds, and the score of each fold, `split0_score` ...; `seconds` of all
        fits of the cell; `points`, the number of points that it was scored on; and `status`: "done", "no margin" (nu is
        too small: the score is chance), "not converged" (a fit stopped before its tolerance), "failed: ..." with the
        error, "interrupted" or "not run". Scores of cells that failed or are incomplete are nan.
    fold_scores : array of shape (cells, folds)
        The scores of all folds.
    params : list of dict
        The parameters of each cell.
    estimator : estimator
        The estimator that was tuned.
    scoring : str, callable or None
        The scoring, as given to `tune`.
    seconds : float
        The time of the whole search.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, cells: list[dict[str, Any]], folds: int, scoring: Any) -> None:
        self.estimator, self.scoring, self.params = estimator, scoring, cells
        self._data, self._model = (X, y), None
        n = len(cells)
        names = sorted({name for cell in cells for name in cell})
        self.table: dict[str, Array] = {name: _column([cell.get(name) for cell in cells]) for name in names}
        self.table |= {"mean_score": np.full(n, np.nan), "std_score": np.full(n, np.nan)}
        self.fold_scores = np.full((n, folds), np.nan)
        self.table |= {f"split{k}_score": self.fold_scores[:, k] for k in range(folds)} | {"seconds": np.zeros(n)}
        self.table |= {"points": np.zeros(n, dtype="int64"), "status": np.full(n, "not run", dtype=object)}
        self.seconds = 0.0

    def record(self, cells: Sequence[int] | Array, scores: Scoreboard, points: int) -> None:
        """Enter the results of a round into the table; a cell that did not finish keeps its earlier results.

        Parameters
        ----------
        cells : sequence of int
            The cells of the round.
        scores : Scoreboard
            Their scores, in this order.
        points : int
            The number of points of the round.
        """
        table, statuses = self.table, scores.statuses()
        for row, i in enumerate(cells):
            table["seconds"][i] += scores.seconds[row].sum()
            if statuses[row] in ("interrupted", "not run") and table["points"][i]:
                continue
            self.fold_scores[i], table["status"][i], table["points"][i] = scores.scores[row], statuses[row], points
            table["mean_score"][i], table["std_score"][i] = scores.scores[row].mean(), scores.scores[row].std()

    @property
    def is_complete(self) -> bool:
        """Whether every cell was fitted in all folds; false after Ctrl-C."""
        return not np.isin(self.table["status"].astype(str), ("interrupted", "not run")).any()

    @property
    def best_index(self) -> int:
        """The cell with the best score, the first of several, among those scored on the most points."""
        scores = self.table["mean_score"]
        scored = np.isfinite(scores)
        if not scored.any():
            raise ValueError("no cell of the grid has a score in all folds: see table['status'] for the reasons.")
        scored &= self.table["points"] == self.table["points"][scored].max()
        return int(np.argmax(np.where(scored, scores, -np.inf)))

    @property
    def best_params(self) -> dict[str, Any]:
        """The parameters of the best cell."""
        return self.params[self.best_index]

    @property
    def best_score(self) -> float:
        """The mean score of the best cell."""
        return float(self.table["mean_score"][self.best_index])

    @property
    def best_estimator(self) -> Any:
        """The estimator with the best parameters, fitted to all points on first access."""
        return self.refit() if self._model is None else self._model

    def refit(self) -> Any:
        """Fit the estimator with the best parameters to all points.

        Returns
        -------
        estimator
            The fitted estimator, which `best_estimator` returns from then on.
        """
        X, y = self._data
        model: Any = clone(self.estimator)
        model.set_params(**self.best_params)
        self._model = model.fit(X) if y is None else model.fit(X, y)
        return self._model

    def __repr__(self) -> str:
        n, table = len(self.params), self.table
        text = f"{n} cells in {self.fold_scores.shape[1]} folds, {self.seconds:.2f} s"
        failed = sum(str(status).startswith("failed") for status in table["status"])
        text += f", {failed} failed" if failed else ""
        if np.isfinite(table["mean_score"]).any():
            best = ", ".join(f"{name}={value!r}" for name, value in self.best_params.items())
            text += f"; best: {best}, score {self.best_score:.6g}"
        return f"Tuning({text}{'' if self.is_complete else '; interrupted'})"


def _column(values):
    """Values of a parameter as an array: of numbers if all are numbers, else of objects."""
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
