"""Shared: kernel machines that are fitted to rows of a held matrix, one after another, each from the last solution.

A shared machine is the estimator itself (its labels, weights, pairs of classes, intercepts, votes) with another way to
the kernel: its points are indices, one a row, and what it would compute is read off.
"""

import dataclasses
import functools

import numpy as np
from sklearn.base import is_classifier

from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.kernels import Kernel
from symsvm.objectives import KernelDual
from symsvm.solvers import Decomposition
from symsvm.solvers.decomposition.dual_program import solve_dual
from symsvm.solvers.decomposition.parameters import DEFAULTS
from symsvm.solvers.decomposition.working_set import WorkingSet, WorkingSetReuse, padded
from symsvm.solvers.registry import choose_solver

__all__ = ["Session", "Stopped", "can_share", "shared"]


def can_share(machine):
    """Whether a machine is one whose fits can share a matrix; others are fitted alone.

    Not those that fit others inside (calibration), evaluate kernels on their own (functions, an intercept inside the
    kernel, another backend) or solve otherwise.
    """
    if not isinstance(machine, KernelEstimator) or getattr(machine, "calibration", None) is not None:
        return False
    if machine.intercept_mode == "embedded" or machine.mode is not None or machine.verbose:
        return False
    if not isinstance(machine.kernel, (str, Kernel)):
        return False
    try:
        return isinstance(choose_solver(machine.solver, KernelDual.problem), Decomposition)
    except (TypeError, ValueError):  # its fit will say so
        return False


class Stopped(BaseException):
    """The search was stopped while a fit was under way; no error of the fit."""


class Session:
    """Fits of one fold over one held matrix; each problem of a fit begins at its solution of the last one.

    Parameters
    ----------
    held : a `HeldMatrix` or `HeldPoints`.
    rows : the training points.
    is_stopped : a function that says whether to stop.
    rooms : where a working set of all variables gets its room from, which `close` gives back; or None.
    """

    def __init__(self, held, rows, is_stopped, rooms=None):
        self.held, self.is_stopped, self._rooms, self._room = held, is_stopped, rooms, None
        self._part = held.part(rows)
        self._reuse = WorkingSetReuse()
        self._rows, self._last, self._next, self._labels = rows, [], 0, None

    def close(self):
        """Give back what others can use."""
        self._reuse.working = None
        if self._room is not None:
            self._rooms.leave(self._room)

    def _prepare(self, program):
        """Let the first problem find a working set of all variables, in the room of another fold's."""
        part = self._part
        if (
            self._rooms is None
            or self._room is not None
            or part.is_exact
            or program.m < program.n
            or part.m > DEFAULTS.whole
        ):
            return
        size = padded(part.m + 1)
        self._room = self._rooms.take(size, "float32")
        K = self._room[: size * size].reshape(size, size)
        part.whole(K)
        self._reuse.working = WorkingSet.of_all(program, part, K)

    def bind(self, rows):
        """Begin a fit to these points."""
        self._next = 0
        return _Bound(self.held.kernel, rows)

    def labelled(self, class_weight, work):
        """What the labels of the fold come to, worked out once for the same weights of classes."""
        if self._labels is None or self._labels[0] is not class_weight:
            self._labels = class_weight, work()
        return self._labels[1]

    def solve(self, program, bound, **options):
        """Solve the next problem of a fit, and return its `Solution`."""
        slot, self._next = self._next, self._next + 1
        alone = bound.is_whole and np.array_equal(bound.rows, self._rows)
        part = self._part if alone else self.held.part(bound.rows)
        if alone:
            self._prepare(program)
        last = self._last[slot] if slot < len(self._last) else None
        if last is not None and (last.stopped != "tol" or last.program.n != program.n):
            last = None
        options |= {
            "reuse": self._reuse if alone else None,
            "start": last,
            "is_psd": self.held.kernel.is_psd,
            "callback": self._look_up,
        }
        solution = solve_dual(program, part, **options)
        if solution.stopped == "interrupt":
            raise KeyboardInterrupt
        # Nobody asks for certificates here, and what they are made from is not kept alive.
        solution = dataclasses.replace(solution, certify=None)
        self._last[slot : slot + 1] = [solution]
        return solution

    def _look_up(self, info):
        if self.is_stopped():
            raise Stopped


class _Bound:
    """Some of the points, in the order of a fit; pairs of classes are parts of them."""

    def __init__(self, kernel, rows, *, is_whole=True):
        self.kernel, self.rows, self.is_whole = kernel, rows, is_whole

    def cache_blocks(self, starts, memory=None):
        """All is held already."""

    def submatrix(self, points):
        """Some of these points."""
        return _Bound(self.kernel, self.rows[points], is_whole=False)


class _Shared:
    """What a shared machine does otherwise than its estimator."""

    _session = None

    def check_points(self, *data, **options):
        return data if len(data) > 1 else data[0]  # the search has checked the points

    def _labelled(self, X, y, sample_weight):
        return self._session.labelled(self.class_weight, lambda: super(_Shared, self)._labelled(X, y, sample_weight))

    def bind(self, X, weights):
        self.kernel_ = self._session.held.kernel
        return self._session.bind(_rows(X))

    def _solve(self, program, gram, reuse=None):
        max_iter = None if self.max_iter == -1 else self.max_iter
        options = choose_solver(self.solver, KernelDual.problem).options
        return self._session.solve(
            program, gram, tol=self.tol, max_iter=max_iter, time_limit=self.time_limit, **options
        )

    def expansion(self, X, coef):
        if not len(coef):
            return np.zeros((len(X), *coef.shape[1:]))
        return self._session.held.values(_rows(X), _rows(self.support_vectors_), coef)

    def score(self, X, y, sample_weight=None):
        """The estimator's own score; that of a classifier without the checks of its labels."""
        if is_classifier(self) and sample_weight is None:
            return float(np.mean(self.predict(X) == y))
        return super().score(X, y, sample_weight)


def _rows(X):
    """The indices that points (m, 1) stand for; they are floats as points are, whose type decision values take."""
    return X[:, 0].astype("int64")


@functools.cache
def _shared_class(cls):
    return type(cls.__name__, (_Shared, cls), {})


def shared(machine, session):
    """A machine with the same parameters whose points are indices (m, 1) into the matrix of a session."""
    cls = _shared_class(type(machine))
    other = cls.__new__(cls)
    vars(other).update(vars(machine))  # the parameters: it is not fitted yet
    other.kernel, other._session = session.held.kernel, session
    return other
