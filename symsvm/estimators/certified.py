"""Certified: what every estimator says about its fit, what Ctrl-C does to it, and the votes of pairs of classes."""

import contextlib
import dataclasses
import functools
import itertools
import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

__all__ = ["Certified", "after_interrupt", "votes"]


class Certified(BaseEstimator):
    """An estimator that keeps the solutions of its problems in `_solutions`."""

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
        if not self._solutions:
            raise AttributeError(f"{name}_ is not there after partial_fit: nobody has seen all points; use fit.")
        values = [getattr(solution, name) for solution in self._solutions]
        return values[0] if len(values) == 1 else values

    def __getstate__(self):
        """Certificates are made before the training points, which they are made from, are left behind."""
        state = dict(super().__getstate__())
        if "_solutions" in state:
            state["_solutions"] = [_settled(solution) for solution in state["_solutions"]]
        return state


@contextlib.contextmanager
def after_interrupt(is_interrupted):
    """The further options of the next problem of a fit: after Ctrl-C in one before, it ends where it begins.

    What was interrupted has warned; those after it do not.
    """
    if not is_interrupted:
        yield {}
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield {"callback": _interrupt}


def _interrupt(info):
    raise KeyboardInterrupt


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
