"""Board: what the fits of a search have come to, written by all of its threads."""

import threading
import time
from dataclasses import dataclass

import numpy as np

__all__ = ["Board", "Step"]

# The failures, which are not here, come first.
_RANK = {"done": 0, "no margin": 1, "not converged": 2, "interrupted": 3, "not run": 4}


@dataclass(frozen=True)
class Step:
    """One fit that is done: what a function given as `progress` sees.

    Attributes
    ----------
    done, total : fits so far, and of this round of the search.
    params : the parameters of the fit.
    fold : its number.
    score : of the points held out; nan if the fit failed.
    status : "done", "no margin", "not converged", or what went wrong.
    """

    done: int
    total: int
    params: dict
    fold: int
    score: float
    status: str


class Board:
    """Scores, seconds and statuses of some cells of a grid, (cells, folds)."""

    def __init__(self, cells, folds, progress=None):
        self.cells, self._progress = cells, progress
        shape = len(cells), folds
        self.scores, self.seconds = np.full(shape, np.nan), np.zeros(shape)
        self.status = np.full(shape, "not run", dtype=object)
        self.errors, self.is_stopped = [], False
        self._done, self._lock = 0, threading.Lock()

    def fit(self, cell, fold, work):
        """Let `work()`, which returns a score and a status, be the fit of a cell in a fold."""
        began = time.perf_counter()
        try:
            score, status = work()
        except Exception as error:  # whatever is wrong with one cell is no reason to lose the others
            score, status = np.nan, f"failed: {error}"
            self.errors.append(error)
        except BaseException:  # Ctrl-C, or the end of the search in another thread
            self.status[cell, fold] = "interrupted"
            raise
        with self._lock:
            self.scores[cell, fold], self.status[cell, fold] = score, status
            self.seconds[cell, fold] = time.perf_counter() - began
            self._done += 1
            if self._progress is not None:
                step = Step(self._done, self.scores.size, self.cells[cell], fold, float(score), status)
                if self._progress(step):  # no |=, which would undo a stop that comes while it runs
                    self.stop()

    def stop(self):
        """Let no other fit begin, and those under way end."""
        self.is_stopped = True

    def statuses(self):
        """One word or sentence a cell: that of its worst fold."""
        return [max(row, key=lambda text: _RANK.get(text, 5)) for row in self.status.tolist()]
