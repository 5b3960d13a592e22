"""Watching: the problems of a fit one after the other, who looks on, and what ends them early."""

import contextlib
import dataclasses
import warnings

from sklearn.exceptions import ConvergenceWarning

__all__ = ["FitMonitor"]


class FitMonitor:
    """The fits of one machine, seen from outside; `machine.watching(callback)` gives it.

    Attributes
    ----------
    problem : the number of the problem under way in its fit, from 0; -1 before the first.
    is_solving : whether a solver runs. A KeyboardInterrupt that the handler of a signal raises then ends the fit with a
        feasible model; one that is raised elsewhere leaves `fit`.
    """

    def __init__(self, callback=None):
        self._callback = callback
        self.begin()

    def begin(self):
        """A fit begins."""
        self.problem, self.is_solving, self._ended = -1, False, None

    @property
    def is_watched(self):
        """Whether somebody looks on."""
        return self._callback is not None

    def solve(self, solve, *, alone=False):
        """The solution of the next problem of the fit, by `solve(callback=)`; without a callback where it goes alone.

        What ended one problem, a true value of the callback or Ctrl-C, ends those after it where they begin. The first
        of them has warned; the others do not.
        """
        self.problem += 1
        with warnings.catch_warnings() if self._ended is not None else contextlib.nullcontext():
            if self._ended is not None:
                warnings.simplefilter("ignore", ConvergenceWarning)
            solution = self._solved(solve, alone)
        if solution.stopped == "interrupt":
            self._ended = "interrupt"
        return solution

    def _solved(self, solve, alone):
        looks = not alone and (self.is_watched or self._ended is not None)
        try:
            self.is_solving = True
            return solve(**{"callback": self._look} if looks else {})
        except KeyboardInterrupt:
            if alone or not self.is_watched or self._ended is not None:
                raise
            self._ended = "interrupt"  # there was no point yet: the one that a run begins with is the result
        finally:
            self.is_solving = False
        try:
            return solve(callback=self._look)
        except Exception as error:  # what was cut off cannot begin again, such as the import of a module
            raise KeyboardInterrupt from error

    def _look(self, info):
        """Show an iteration; a true value ends the problem, and so does what has ended one before."""
        if self._ended == "interrupt":
            raise KeyboardInterrupt  # which all solvers know how to end at
        if self._ended is None and self._callback(dataclasses.replace(info, problem=self.problem)):
            self._ended = "callback"
        return self._ended is not None
