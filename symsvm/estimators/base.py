"""CertifiedEstimator: what every estimator reports about its fit; and the votes of pairs of classes."""

import contextlib
import dataclasses
import functools
import itertools

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from symsvm.estimators.callbacks import FitMonitor

__all__ = ["CertifiedEstimator", "votes"]


class CertifiedEstimator(BaseEstimator):
    """An estimator that keeps the solutions of its problems in `solutions_`."""

    @property
    def certificate_(self):
        """The `Certificate` of the fit in float64, a list of them for several problems, made when it is first read."""
        return self._each("certificate")

    @property
    def trace_(self):
        """The trace of the fit (see `Info`), a list of them for several problems."""
        return self._each("trace")

    def _each(self, name):
        check_is_fitted(self)
        if not self.solutions_:
            raise AttributeError(f"{name}_ is not there after partial_fit: nobody has seen all points; use fit.")
        values = [getattr(solution, name) for solution in self.solutions_]
        return values[0] if len(values) == 1 else values

    @contextlib.contextmanager
    def watching(self, callback):
        """Have the fits inside a `with` tell a function how far they are; gives a `FitMonitor`.

        The function gets an `Info` each iteration of each problem. A true value ends the fit: the problem under way
        where it is, and those after it where they begin, feasible all the same, with a ConvergenceWarning. It is no
        parameter: neither clones (such as those that a search or a calibration fits) nor files have it. The solver "qp"
        goes alone, and tells nobody.

        >>> from symsvm import SVC
        >>> machine, seen = SVC(), []
        >>> with machine.watching(seen.append):
        ...     _ = machine.fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
        >>> sorted({info.problem for info in seen})
        [0, 1, 2]
        """
        if not callable(callback):
            raise TypeError(f"callback must be a function of an Info, got {callback!r}.")
        before = vars(self).get("_watching")
        self._watching = FitMonitor(callback)
        try:
            yield self._watching
        finally:
            vars(self).pop("_watching")
            if before is not None:
                self._watching = before

    def _begin_fit(self):
        """A fit begins: what it keeps between its problems is new."""
        if vars(self).get("_watching") is None or not self._watching.is_watched:
            self._watching = FitMonitor()
        self._watching.begin()

    def _end_fit(self):
        if "_watching" in vars(self) and not self._watching.is_watched:
            del self._watching

    def __getstate__(self):
        """Certificates are made before the training points, which they are made from, are left behind."""
        state = dict(super().__getstate__())
        state.pop("_watching", None)
        if "solutions_" in state:
            state["solutions_"] = [_settled(solution) for solution in state["solutions_"]]
        return state


def _settled(solution):
    """The same with its certificate made, and without the data that it is made from."""
    return dataclasses.replace(solution, certify=functools.partial(_same, solution.certificate))


def _same(value):
    return value


def votes(values, k):
    """Votes of the pairs of k classes, (n, k), and a part below 1/3 from their values.

    The columns are the pairs (0, 1), (0, 2), ..., positive where the first class wins.

    >>> votes(np.array([[1.0, 2.0, -1.0]]), 3).round(2).tolist()
    [[2.25, -0.22, 0.83]]
    """
    count, sums = np.zeros((len(values), k)), np.zeros((len(values), k))
    for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
        value = values[:, column]
        count[:, a] += value >= 0
        count[:, b] += value < 0
        sums[:, a] += value
        sums[:, b] -= value
    return count + sums / (3 * (np.abs(sums) + 1))
