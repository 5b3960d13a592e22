"""Sheet: one kernel between all points of a search, and the cells and folds that need it."""

import threading

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from symsvm.model_selection.held import HeldMatrix, HeldPoints

__all__ = ["Rooms", "Sheet", "checked", "kernel_of"]


class Rooms:
    """Arrays for matrices, handed from one to the next: fresh memory is dear."""

    def __init__(self):
        self._free, self._lock = [], threading.Lock()

    def take(self, n, dtype="float64"):
        """Room for a matrix of n rows and columns."""
        with self._lock:
            for k, room in enumerate(self._free):
                if room.dtype == dtype and len(room) >= n * n:
                    return self._free.pop(k)
        return np.empty(n * n, dtype)

    def leave(self, room):
        """Give the room of a matrix back that nobody needs any more."""
        with self._lock:
            self._free.append(room)


class Sheet:
    """The matrix of one kernel between all points: made when the first fold asks for it, given up after the last.

    Parameters
    ----------
    kernel, X : the kernel and the points.
    rooms : where the matrix gets its room from; None where the points are too many for one.

    Attributes
    ----------
    folds : the cells that need it, by fold.
    """

    def __init__(self, kernel, X, rooms):
        self.kernel, self.X, self.rooms = kernel, X, rooms
        self.folds, self._done = {}, 0
        self._held, self._room, self._lock = None, None, threading.Lock()

    def held(self):
        """The matrix, or the points."""
        with self._lock:
            if self._held is None and self.rooms is None:
                self._held = HeldPoints(self.kernel, self.X)
            elif self._held is None:
                self._room = self.rooms.take(self.X.shape[0])
                self._held = HeldMatrix(self.kernel, self.X, self._room)
            return self._held

    def leave(self):
        """Say that a fold is done with it."""
        with self._lock:
            self._done += 1
            if self._done == len(self.folds):
                self._held = None
                if self._room is not None:
                    self.rooms.leave(self._room)


def checked(machine, X, y):
    """The points as a kernel machine takes them, in float64."""
    with_targets = y is not None and get_tags(machine).target_tags.required
    X = clone(machine).check_points(X, y)[0] if with_targets else clone(machine).check_points(X)
    return X if X.dtype == np.float64 else X.astype("float64")


def kernel_of(machine, X, train):
    """The kernel of a machine for these training points, the points that it takes, and what tells it from others."""
    if machine.kernel == "precomputed":
        gram = clone(machine).bind(X, np.ones(X.shape[0]))
        return gram.kernel, gram.X, "precomputed"
    kernel, numbers = machine.kernel_for(X[train], np.ones(len(train))), []
    kernel.lift(lambda name, value: numbers.append(np.asarray(value).tobytes()))
    return kernel, X, (kernel.key, tuple(numbers))
