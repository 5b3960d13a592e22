"""The held-out loss of an estimator and its gradient by hyper-parameters.

With the solution z(theta), b(theta) of each fold k, trained without its points V_k, beta = the weights of the points::

    L(theta) = loss of f_i = sum_j beta_j K(x_i, x_j) + b,  i in V_k, over all k

For g = dL/df the gradients by the solution are dL/dz = K(T, V) g at the points of the variables and dL/db = sum g. One
adjoint system for each problem (`symsvm.implicit`) gives u and w, and then::

    dL/dtheta = sum_ij c_i dK_ij/dtheta beta_j - u.dp/dtheta + w.dtotal/dtheta
                + lower'.dlower/dtheta + upper'.dupper/dtheta

with c = g on the points held out and c = -u on those of the problem. The first sum is done once for all problems.
"""

from __future__ import annotations

import itertools
import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from symsvm.estimators import SVR, NuSVC, NuSVR
from symsvm.estimators.multiclass import encode_classes
from symsvm.implicit import solve_adjoint
from symsvm.model_selection.cached_source import CachedKernelSource, RowPoints
from symsvm.model_selection.kernel_slopes import KernelSlopes
from symsvm.model_selection.leave_one_out import LeaveOneOut
from symsvm.model_selection.shared_matrix import BufferPool, CachedGram, UncachedGram
from symsvm.solvers.decomposition.kernel_problem import KernelProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from symsvm._lib.types import Array
    from symsvm.model_selection.cached_source import FoldProblem
    from symsvm.model_selection.criteria import Criterion
    from symsvm.model_selection.fold_threads import FoldThreads
    from symsvm.model_selection.search_space import SearchSpace

__all__ = ["Evaluation", "HeldOutLoss"]

# An adjoint needs the set of free variables, which a larger violation may not have found.
_VIOLATION = 10.0
# A variable is at its bound for `NuSVC` from this part of the width of its box on.
_AT_BOUND = 1 - 1e-9


@dataclass(frozen=True)
class Evaluation:
    """The held-out loss at one choice of parameters.

    Attributes
    ----------
    params : dict
        The parameters.
    loss : float
        The loss; infinite where a fit failed.
    gradient : dict or None
        The gradient by each parameter, where it was asked for.
    seconds : float
        The time that it took.
    status : str
        "done", or why there is no loss.
    """

    params: dict[str, Any]
    loss: float
    gradient: dict[str, Any] | None
    seconds: float
    status: str = "done"


@dataclass
class _Part:
    """A problem of a fold: its points, what is held out from it, and its decision function (K beta + b) / rho."""

    fold: int
    problem: FoldProblem
    key: Any
    test: Array  # rows of the Gram matrix
    y: Array
    rho: float = 1.0
    # b and rho as sums of the multipliers of the equalities.
    by_b: Array = field(default_factory=lambda: np.zeros(0))
    by_rho: Array = field(default_factory=lambda: np.zeros(0))
    f: Array = field(default_factory=lambda: np.zeros(0))
    leave: LeaveOneOut | None = None


class HeldOutLoss:
    """The held-out loss as a function of hyper-parameters, with its gradient.

    Kernel values are computed once for all folds; each problem starts at its solution for the parameters before.

    Parameters
    ----------
    space : SearchSpace
        The parameters.
    X : array or CSR of shape (m, d)
        The points, in float64.
    y : array of shape (m,)
        Labels or targets.
    weights : array of shape (m,) or None
        The weights of the points.
    folds : list of tuple, or None
        Pairs (train, test) of row numbers; None for leave-one-out by the span.
    criterion : Criterion
        The loss.
    threads : FoldThreads
        Where fits run.
    memory : float
        The bytes that a Gram matrix and its working sets may take.
    tol : float
        The tolerance of the fits.
    """

    def __init__(
        self,
        space: SearchSpace,
        X: Any,
        y: Array,
        weights: Array | None,
        folds: list[tuple[Array, Array]] | None,
        criterion: Criterion,
        threads: FoldThreads,
        *,
        memory: float,
        tol: float,
    ) -> None:
        self.space, self.X, self.y, self.weights = space, X, y, weights
        every = np.arange(X.shape[0])
        self.is_loo = folds is None
        self.folds = [(every, every)] if folds is None else folds
        self.criterion, self.threads, self.tol = criterion, threads, tol
        self._buffers = BufferPool() if _bytes(X.shape[0], len(self.folds)) <= memory else None
        self._gram: Any = None
        self._buffer: Array | None = None
        self._key: Any = None
        self._kernel: Any = None
        self._sources: list[CachedKernelSource] = []
        self._slopes: KernelSlopes | None = None
        self._paths = space.kernel_paths()
        # The weight of each held-out point in the loss, that of its class included, as in the fits.
        self._held = np.ones(X.shape[0]) if weights is None else weights
        if hasattr(space.estimator, "class_weight"):
            encoded = encode_classes(y, weights, space.estimator.class_weight)
            self._held = np.zeros(X.shape[0])
            self._held[encoded.used] = encoded.weights

    def close(self) -> None:
        """Release the matrices."""
        for source in self._sources:
            source.close()
        self._sources, self._gram, self._buffer = [], None, None

    def __call__(self, params: Mapping[str, Any], *, gradient: bool = True, tol: float | None = None) -> Evaluation:
        """Evaluate the loss, and its gradient if asked for, at values of the parameters by name."""
        began = time.perf_counter()
        model = self.space.model(params).set_params(tol=self.tol if tol is None else tol)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                self._bind(model)
                jobs = [(model, k) for k in range(len(self.folds))]
                parts = [part for found in self.threads.map(self._fit, jobs) for part in found]
            loss, by_f = self._score(parts)
            slopes = self._differentiate(model, parts, by_f, model.tol) if gradient else None
        except (_Failure, ValueError) as failure:  # such as a kernel that is not finite, or a nu that is not feasible
            self._key = None
            return Evaluation(dict(params), np.inf, None, time.perf_counter() - began, f"failed: {failure}")
        return Evaluation(dict(params), loss, slopes, time.perf_counter() - began)

    @property
    def weight(self) -> float:
        """The weight of all points together."""
        return float(self._held.sum())

    # ---- the kernel

    def _bind(self, model: Any) -> None:
        """Compute the Gram matrix of the model's kernel, unless it is that of the last evaluation."""
        self._kernel = model.kernel_for(self.X, np.ones(self.X.shape[0]))
        kernel = model.add_intercept(self._kernel)
        numbers: list[bytes] = []
        kernel.lift(lambda name, value: numbers.append(np.asarray(value).tobytes()))
        if self._gram is not None and self._key == (kernel.key, tuple(numbers)):
            self._kernel = self._gram.kernel if kernel is self._kernel else self._kernel
            return
        self._key = None
        if self._buffers is None:
            self._gram = UncachedGram(kernel, self.X)
        else:
            if self._buffer is None:
                self._buffer = self._buffers.take(self.X.shape[0])
            self._gram = CachedGram(kernel, self.X, self._buffer)
        before = self._sources or [None] * len(self.folds)
        self._sources = []
        for (train, _), source in zip(self.folds, before, strict=True):
            solutions = source.solutions if source is not None else ()
            if source is not None:
                source.close()
            fresh = CachedKernelSource(self._gram, train, self.threads.is_stopped, self._buffers, solutions)
            self._sources.append(fresh)
        self._key = kernel.key, tuple(numbers)

    # ---- the fits

    def _fit(self, job: tuple[Any, int]) -> list[_Part]:
        """Fit a fold, and say for each of its problems what is held out from it."""
        model, k = job
        train, test = self.folds[k]
        source = self._sources[k]
        weights = None if self.weights is None else self.weights[train]
        fitted = model.with_source(source).fit(RowPoints(train), self.y[train], sample_weight=weights)
        for problem in source.problems:
            if problem.solution.stopped != "tol":
                raise _Failure(f"a fit stopped before its tolerance ({problem.solution.stopped})")
        test = test[self._held[test] > 0]
        parts = list(self._parts(k, fitted, source.problems, test))
        for part in parts:
            self._decide(fitted, part)
        return parts

    def _parts(self, k: int, fitted: Any, problems: list[FoldProblem], test: Array) -> Iterator[_Part]:
        """The problems of a fit: of a regression or of two classes, of each pair, or of each class against the rest."""
        labels = self.y[test]
        if not hasattr(fitted, "classes_"):
            yield _Part(k, problems[0], None, test, labels.astype("float64"))
            return
        names = fitted.classes_
        if len(names) == 2 or fitted.multi_class == "ovr":
            known = np.isin(labels, names)
            for name, problem in zip(names[1:] if len(names) == 2 else names, problems, strict=True):
                yield _Part(k, problem, name, test[known], np.where(labels[known] == name, 1.0, -1.0))
            return
        for (a, b), problem in zip(itertools.combinations(names.tolist(), 2), problems, strict=True):
            here = (labels == a) | (labels == b)
            yield _Part(k, problem, (a, b), test[here], np.where(labels[here] == b, 1.0, -1.0))

    def _decide(self, fitted: Any, part: _Part) -> None:
        """Compute the decision values of what is held out."""
        program, rows, solution = part.problem
        if self.is_loo:
            part.leave = LeaveOneOut(part.problem, self._gram.submatrix(rows))
            place = np.full(self.X.shape[0], -1)
            place[rows] = np.arange(len(rows))
            part.f = part.leave.f[place[part.test]]
            part.by_b = np.ones(len(program.total))
            return
        beta = program.weights(solution.z)
        support = np.flatnonzero(beta)
        b = np.atleast_1d(np.asarray(0.0 if solution.b is None else solution.b, dtype="float64"))
        part.by_b, part.by_rho = np.ones(len(program.total)), np.zeros(len(program.total))
        if isinstance(fitted, NuSVR):
            part.by_b = np.array([0.5, 0.5])
        elif isinstance(fitted, NuSVC):
            part.by_b, part.by_rho = _margin(program, solution.z, is_weighted=fitted.class_weight is not None)
            part.rho = float(part.by_rho @ b)
            if not part.rho > solution.trace["violation"][-1]:
                raise _Failure("nu is too small for the kernel: the margin is 0")
        offset = float(part.by_b @ b) if len(program.total) else 0.0
        expansion = self._gram.expand(part.test, rows[support], beta[support])
        part.f = (expansion + offset) / part.rho

    # ---- the loss and its gradient

    def _score(self, parts: list[_Part]) -> tuple[float, list[Array]]:
        """Return the loss, and the gradient by the decision values of each part."""
        groups: dict[Any, list[int]] = {}
        for i, part in enumerate(parts):
            if len(part.test):
                groups.setdefault(part.key, []).append(i)
        pooled = []
        for members in groups.values():
            y, f = (np.concatenate([getattr(parts[i], name) for i in members]) for name in ("y", "f"))
            pooled.append((y, f, np.concatenate([self._held[parts[i].test] for i in members])))
        loss, gradients = self.criterion(pooled)
        if not np.isfinite(loss):
            raise _Failure("the loss is not finite")
        by_f = [np.zeros(len(part.test)) for part in parts]
        for members, g in zip(groups.values(), gradients, strict=True):
            ends = np.cumsum([len(parts[i].test) for i in members])[:-1]
            for i, piece in zip(members, np.split(g, ends), strict=True):
                by_f[i] = piece
        return loss, by_f

    def _differentiate(self, model: Any, parts: list[_Part], by_f: list[Array], tol: float) -> dict[str, Any]:
        """Return the gradient by each parameter."""
        found = self.threads.map(
            lambda pair: self._pull_back(model, pair[0], pair[1], tol), list(zip(parts, by_f, strict=True))
        )
        m = self.X.shape[0]
        C, B = np.zeros((m, len(parts))), np.zeros((m, len(parts)))
        D = np.zeros((m, m)) if self.is_loo else None
        totals: dict[str, Any] = dict.fromkeys(("C", "epsilon", "nu"), 0.0)
        for column, (part, (slopes, on_test, on_rows, own)) in enumerate(zip(parts, found, strict=True)):
            program, rows, solution = part.problem
            B[rows, column] = program.weights(solution.z)
            np.add.at(C[:, column], part.test, on_test)
            np.add.at(C[:, column], rows, on_rows)
            if own is not None:
                assert D is not None
                D[np.ix_(rows, rows)] += own
            for name, value in slopes.items():
                totals[name] += value
        if self._slopes is None:
            self._slopes = KernelSlopes(self._kernel, list(self._paths.values()), self.X)
        by_path = self._slopes(self._kernel, self._gram, C, B, D)
        for name, path in self._paths.items():
            totals[name] = by_path[path]
            if name == "gamma" and path == "sigma":  # sigma = (2 gamma)^-1/2
                totals[name] *= -self._kernel.sigma / (2 * model.gamma)
        return totals

    def _pull_back(self, model: Any, part: _Part, g: Array, tol: float) -> tuple[dict[str, float], Array, Array, Any]:
        """The gradients of one problem: by its numbers, and c on what is held out and on its own points."""
        program, rows, solution = part.problem
        z, own, by_p = solution.z, None, np.zeros(program.n)
        if part.leave is not None:
            place = np.full(self.X.shape[0], -1)
            place[rows] = np.arange(len(rows))
            whole = np.zeros(len(rows))
            np.add.at(whole, place[part.test], g)
            g0, by_z, by_p, own = part.leave.pullback(whole)
            g, test = g0, rows
        else:
            g, by_z, test = g / part.rho, np.zeros(program.n), part.test
        used = np.flatnonzero(g)
        by_point = self._gram.expand(rows, test[used], g[used])
        by_b = part.by_b * g.sum()
        if part.rho != 1.0:
            by_b = by_b - part.by_rho * (g @ part.f)
        problem = KernelProblem(program, self._gram.submatrix(rows))
        try:
            by_z = by_point[program.point] + by_z
            adjoint = solve_adjoint(problem, z, by_z, by_b, F=solution.gradient, tol=_VIOLATION * tol)
        except ValueError as error:
            raise _Failure(str(error)) from None
        on_test = np.zeros(len(part.test))
        on_rows = -program.weights(adjoint.u)
        if part.leave is None:
            on_test = g
        else:
            on_rows = on_rows + g
        by_bounds = adjoint.lower @ _finite(program.lower) + adjoint.upper @ _finite(program.upper)
        slopes: dict[str, float] = {}
        if hasattr(model, "C"):  # the bounds and the totals are in proportion to C
            slopes["C"] = float(by_bounds + adjoint.w @ program.total) / model.C
        if isinstance(model, SVR):  # p = epsilon - y for alpha and -epsilon - y for alpha'
            slopes["epsilon"] = float((by_p - adjoint.u) @ np.where(program.upper > 0, 1.0, -1.0))
        if hasattr(model, "nu"):  # the totals are in proportion to nu, where it is feasible
            slopes["nu"] = float(adjoint.w @ program.total) / _feasible_nu(model, program)
        return slopes, on_test, on_rows, own


def _bytes(m: int, folds: int) -> int:
    """The bytes of the Gram matrix, and of a working set in float32 for each fold."""
    return (8 + 4 * folds) * m * m


class _Failure(Exception):
    """A fit failed: there is no loss for these parameters."""


def _finite(bounds: Array) -> Array:
    return np.where(np.isfinite(bounds), bounds, 0.0)


def _margin(program: Any, z: Array, *, is_weighted: bool) -> tuple[Array, Array]:
    """b and rho of the nu-SVC as sums of the multipliers (b_+, b_-) of the classes.

    Where class weights put all points of one class at their bounds, its multiplier is not unique, and b is that of the
    best of its points; see `NuSVC`.
    """
    if is_weighted:
        reached = np.abs(z) >= (program.upper - program.lower) * _AT_BOUND
        full = [bool(reached[program.group == g].all()) for g in (0, 1)]
        if full[0] != full[1]:
            return np.array([1.0, 0.0] if full[0] else [0.0, 1.0]), np.array([-1.0, 1.0])
    return np.array([0.5, 0.5]), np.array([-0.5, 0.5])


def _feasible_nu(model: Any, program: Any) -> float:
    """The nu that the totals are in proportion to; infinite where class weights hold it at the largest feasible one."""
    if isinstance(model, NuSVC) and model.class_weight is not None:
        sizes = [np.abs(program.upper - program.lower)[program.group == g].sum() for g in (0, 1)]
        if model.nu * sum(sizes) / 2 >= min(sizes):
            return np.inf
    return model.nu
