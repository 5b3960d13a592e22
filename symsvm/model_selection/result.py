"""Tuning: what a search has found."""

import numpy as np
from sklearn.base import clone

__all__ = ["Tuning"]


class Tuning:
    """The cells of a search with their scores, and the best of them.

    Attributes
    ----------
    table : a dict of arrays, an entry a cell: each parameter by its name; `mean_score` and `std_score` over the folds,
        and `fold_scores` (cells, folds); `seconds` of all fits of the cell; `points`, how many it was judged on; and
        `status`: "done", "no margin" (nu is too small: the score is chance), "not converged" (a fit ended short of its
        tolerance), "failed: ..." with what went wrong, "interrupted" or "not run". Scores of cells that failed or are
        incomplete are nan.
    params : the parameters of each cell, a list of dicts.
    seconds : the time of the whole search.
    is_complete : whether every cell was judged; not after Ctrl-C.
    """

    def __init__(self, estimator, X, y, cells, folds, scoring):
        self.estimator, self.scoring, self.params = estimator, scoring, cells
        self._data, self._model = (X, y), None
        n = len(cells)
        names = sorted({name for cell in cells for name in cell})
        self.table = {name: _column([cell.get(name) for cell in cells]) for name in names}
        self.table |= {"mean_score": np.full(n, np.nan), "std_score": np.full(n, np.nan)}
        self.table |= {"fold_scores": np.full((n, folds), np.nan), "seconds": np.zeros(n)}
        self.table |= {"points": np.zeros(n, dtype="int64"), "status": np.full(n, "not run", dtype=object)}
        self.seconds = 0.0

    def record(self, cells, board, points):
        """Take what a round has found of these cells; one that did not finish keeps what it had."""
        table, statuses = self.table, board.statuses()
        for row, i in enumerate(cells):
            table["seconds"][i] += board.seconds[row].sum()
            if statuses[row] in ("interrupted", "not run") and table["points"][i]:
                continue
            table["fold_scores"][i], table["status"][i], table["points"][i] = board.scores[row], statuses[row], points
            table["mean_score"][i], table["std_score"][i] = board.scores[row].mean(), board.scores[row].std()

    @property
    def is_complete(self):
        """Whether every cell was judged."""
        return not np.isin(self.table["status"].astype(str), ("interrupted", "not run")).any()

    @property
    def best_index(self):
        """The cell with the best score, the first of several, among those that were judged on the most points."""
        scores = self.table["mean_score"]
        judged = np.isfinite(scores)
        if not judged.any():
            raise ValueError("no cell of the grid was judged in all folds; table['status'] says why.")
        judged &= self.table["points"] == self.table["points"][judged].max()
        return int(np.argmax(np.where(judged, scores, -np.inf)))

    @property
    def best_params(self):
        """The parameters of the best cell."""
        return self.params[self.best_index]

    @property
    def best_score(self):
        """The mean score of the best cell."""
        return float(self.table["mean_score"][self.best_index])

    @property
    def best_estimator(self):
        """The estimator with the best parameters, fitted to all points when it is first asked for."""
        return self.refit() if self._model is None else self._model

    def refit(self):
        """Fit the estimator with the best parameters to all points, and return it."""
        X, y = self._data
        model = clone(self.estimator).set_params(**self.best_params)
        self._model = model.fit(X) if y is None else model.fit(X, y)
        return self._model

    def __repr__(self):
        n, table = len(self.params), self.table
        text = f"{n} cells in {table['fold_scores'].shape[1]} folds, {self.seconds:.2f} s"
        failed = sum(str(status).startswith("failed") for status in table["status"])
        text += f", {failed} failed" if failed else ""
        if np.isfinite(table["mean_score"]).any():
            best = ", ".join(f"{name}={value!r}" for name, value in self.best_params.items())
            text += f"; best: {best}, score {self.best_score:.6g}"
        return f"Tuning({text}{'' if self.is_complete else '; interrupted'})"


def _column(values):
    """Values of a parameter as an array: numbers and names as such, anything else as objects."""
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
