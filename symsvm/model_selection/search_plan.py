"""The plan of a search: it groups fits that share points, Gram matrices and solutions into tasks."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier

# In spite of its underscore, `_safe_indexing` is in scikit-learn's API documentation.
from sklearn.utils import _safe_indexing, get_tags

from symsvm.estimators import LinearSVC, LinearSVR, NuSVC
from symsvm.model_selection.cached_source import CachedKernelSource, RowPoints, can_share
from symsvm.model_selection.measurement import Measurement, Part, measure
from symsvm.model_selection.shared_matrix import BufferPool, SharedKernelMatrix, gram_bytes, is_computed_faster

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array
    from symsvm.kernels import Kernel
    from symsvm.model_selection.tuning_result import Scoreboard

    Fold = tuple[Array, Array]

__all__ = ["SearchPlan", "take_points"]


def take_points(estimator: Any, X: Any, y: Array | None, rows: Array) -> tuple[Any, Array | None]:
    """Return some of the points and their targets; of a precomputed matrix, its rows and columns."""
    if get_tags(estimator).input_tags.pairwise:
        return X[np.ix_(rows, rows)], None if y is None else y[rows]
    return _safe_indexing(X, rows), None if y is None else y[rows]


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def check_points(estimator: Any, X: Any, y: Array | None) -> Any:
    """Return the points as a kernel estimator checks them, in float64."""
    with_targets = y is not None and get_tags(estimator).target_tags.required
    fresh: Any = clone(estimator)
    X = fresh.check_points(X, y)[0] if with_targets else fresh.check_points(X)
    return X if X.dtype == np.float64 else X.astype("float64")


def _clone_with(estimator, params) -> Any:
    """A clone with other parameters."""
    model: Any = clone(estimator)
    return model.set_params(**params)


class SearchPlan:
    """The tasks of a round: cells of a grid, fitted in every fold.

    Cells with the same steps before the last one share the points that these make of a fold. Without such steps all
    folds share the given points. Over the same points, cells with the same kernel share its Gram matrix. Over one
    matrix and fold, fits form a path: each starts at the solution before.

    Parameters
    ----------
    estimator : estimator
        The estimator or pipeline.
    X : array-like or sparse matrix of shape (m, d)
        The points.
    y : array of shape (m,) or None
        Their labels or targets.
    cells : list of dict
        The parameters of each cell.
    folds : list of tuple
        Pairs (train, test) of row numbers.
    score : callable
        The function of (model, X, y) that scores, and of sample_weight if there are weights: a number, or several by
        name.
    is_plain : bool
        Whether `score` uses X only for predictions, so that `RowPoints` can take the place of the points.
    workers : int
        The most threads.
    memory : float
        The most bytes of their matrices together.
    weights : array of shape (m,), optional
        The weights of the points, in fits and in scores; not for pipelines.
    with_train : bool
        Whether to score on the points of each fit too.

    Attributes
    ----------
    tasks : list
        The tasks, with a method `run(scores)` and an attribute `is_parallel`.
    workers : int
        The number of threads that the memory allows.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Array | None,
        cells: list[dict[str, Any]],
        folds: list[Fold],
        score: Callable[..., Any],
        *,
        is_plain: bool,
        workers: int,
        memory: float,
        weights: Array | None = None,
        with_train: bool = False,
    ) -> None:
        self.X, self.y, self.folds, self.score = X, y, folds, score
        self.weights, self._with_train = weights, with_train
        self.models = [_clone_with(estimator, cell) for cell in cells]
        self.shares = [is_plain and can_share(last_step(model)) for model in self.models]
        self._m, self._memory = X.shape[0] if hasattr(X, "shape") else len(X), memory
        self.buffers = BufferPool() if gram_bytes(self._m) <= memory else None
        self._classes = len(np.unique(np.asarray(y))) if is_classifier(estimator) else 1
        self.workers = workers
        keys = [_steps_key(model, cell) if is_plain else None for model, cell in zip(self.models, cells, strict=True)]
        self.tasks = []
        if any(key is not None for key in keys):
            self._limit_workers([gram_bytes(self._m)])
        for key in dict.fromkeys(keys):
            group = [i for i, other in enumerate(keys) if other == key]
            if key is None:
                self.tasks += self._tasks_over_given_points(group)
            else:
                self.tasks += [PipelineFits(self, fold, group) for fold in range(len(folds))]

    def _tasks_over_given_points(self, cells):
        independent, share = ([i for i in cells if self.shares[i] == wanted] for wanted in (False, True))
        matrices, (y, folds, weights) = [], (self.y, self.folds, self.weights)
        if share:
            X = check_points(last_step(self.models[share[0]]), self.X, self.y)
            order, folds = _side_by_side(self.folds, X.shape[0])
            X, y = take_points(self.models[share[0]], X, self.y, order)
            weights = None if weights is None else weights[order]
            trained = {k: train for k, (train, _) in enumerate(folds)}
            matrices, invalid = self.shared_matrices(share, X, trained, weights)
            independent = sorted([*independent, *invalid])
        self._limit_workers([self._bytes(matrix) for matrix in matrices])
        tasks = [IndependentFits(self, fold, independent) for fold in range(len(folds))] if independent else []
        paths = [
            [KernelPath(self, matrix, fold, folds[fold], y, weights) for fold in matrix.folds] for matrix in matrices
        ]
        return tasks + _stagger(paths, self.workers)

    def _limit_workers(self, sizes):
        """Let there be at most as many threads as matrices of these sizes that fit the memory."""
        fitting = [int(self._memory // size) for size in sizes if size <= self._memory]
        self.workers = min([self.workers, *fitting]) if sizes else self.workers

    def _bytes(self, matrix):
        """The bytes of a matrix and a working set."""
        return gram_bytes(self._m, is_cached=not matrix.is_computed)

    def shared_matrices(
        self, cells: list[int], X: Any, folds: dict[int, Array], weights: Array | None = None
    ) -> tuple[list[SharedKernelMatrix], list[int]]:
        """Return the matrices of cells over the same points, and the cells with invalid parameters, which have none.

        `folds` are the training points of each fold, by its number; `weights` those of all points.
        """
        found, invalid = {}, []
        for i in cells:
            try:
                kernels = _kernels_by_fold(last_step(self.models[i]), X, folds, weights)
                for kernel, points, key in kernels.values():
                    if key not in found:
                        found[key] = self._shared_matrix(kernel, points)
            except (TypeError, ValueError):  # its fit will raise the error
                invalid.append(i)
                continue
            for fold, (_, _, key) in kernels.items():
                found[key].folds.setdefault(fold, []).append(i)
        return [matrix for matrix in found.values() if matrix.folds], invalid

    def _shared_matrix(self, kernel, points):
        """A matrix, cached if its values are not computed as fast and if the memory is large enough."""
        is_computed = is_computed_faster(kernel, points, self._classes)
        return SharedKernelMatrix(kernel, points, None if is_computed else self.buffers, is_computed=is_computed)

    def fits(self, matrix: SharedKernelMatrix) -> bool:
        """Whether the memory is large enough for a matrix in a thread; else loops over the points use all cores."""
        return self._bytes(matrix) <= self._memory

    def targets(self, fold: int) -> tuple[Any, Any]:
        """Return the targets of the training points of a fold, and of those held out; None if there are none."""
        if self.y is None:
            return None, None
        train, test = self.folds[fold]
        return _safe_indexing(self.y, train), _safe_indexing(self.y, test)

    def measure(self, fit: Callable[[], Any], train: Part, test: Part) -> tuple[Any, Measurement]:
        """Fit a model and score it; see `symsvm.model_selection.measurement.measure`."""
        return measure(fit, self.score, train, test, with_train=self._with_train)


def _kernels_by_fold(estimator, X, folds, weights):
    """The kernel of an estimator in each fold, with its points and a key; only gamma="scale" depends on the fold."""
    named = isinstance(estimator.kernel, str) and estimator.kernel not in ("linear", "precomputed")
    if named and isinstance(estimator.gamma, str):
        return {fold: _kernel_of(estimator, X, train, weights) for fold, train in folds.items()}
    return dict.fromkeys(folds, _kernel_of(estimator, X, next(iter(folds.values())), weights))


def _kernel_of(estimator, X, train, weights) -> tuple[Kernel, Any, Any]:
    """The kernel of an estimator for these training points, the points that it takes, and a key of its numbers."""
    if estimator.kernel == "precomputed":
        matrix = estimator.kernel_matrix(X)
        return matrix.kernel, matrix.X, "precomputed"
    used = train if weights is None else train[weights[train] > 0]
    kernel, numbers = estimator.kernel_for(X[used], np.ones(len(used)) if weights is None else weights[used]), []
    kernel.lift(lambda name, value: numbers.append(np.asarray(value).tobytes()))
    return kernel, X, (kernel.key, tuple(numbers))


def _stagger(groups, workers):
    """Concatenate groups of tasks, but move the first task of each, which computes its matrix, a little ahead.

    The other workers are then still busy with the group before, and none waits for the matrix.

    >>> _stagger([["a1", "a2", "a3"], ["b1", "b2"]], 2)
    ['a1', 'a2', 'b1', 'a3', 'b2']
    """
    order = []
    for first, *others in groups:
        order.insert(max(0, len(order) - workers + 1), first)
        order += others
    return order


def _steps_key(model, cell):
    """A key of the steps before the last one, equal for cells that share them; None if there are no such steps."""
    if len(getattr(model, "steps", ())) < 2:
        return None
    name = model.steps[-1][0]
    return joblib.hash({key: value for key, value in cell.items() if key.partition("__")[0] != name})


def _side_by_side(folds, m):
    """An order that puts the points of each fold side by side, and the folds in it; no change where they overlap.

    Training points are then two runs of rows of the matrix, which loops read faster than scattered rows.
    """
    order = np.concatenate([test for _, test in folds])
    if not np.array_equal(np.sort(order), np.arange(m)):
        return np.arange(m), folds
    every, ends = np.arange(m), np.cumsum([len(test) for _, test in folds])
    tests = [every[end - len(test) : end] for end, (_, test) in zip(ends, folds, strict=True)]
    if any(not np.array_equal(np.sort(train), np.delete(every, test)) for train, test in folds):
        return every, folds
    return order, [(np.delete(every, test), test) for test in tests]


class KernelPath:
    """The cells of one kernel in one fold: fits over one Gram matrix by increasing C, each from the last solution."""

    def __init__(
        self,
        plan: SearchPlan,
        matrix: SharedKernelMatrix,
        fold: int,
        rows: Fold,
        y: Array | None,
        weights: Array | None = None,
    ) -> None:
        self.is_parallel = plan.fits(matrix)
        self.plan, self.matrix, self.fold, self.rows, self.y, self.weights = plan, matrix, fold, rows, y, weights

    def run(self, scores: Scoreboard) -> None:
        """Fit the cells and record their scores."""
        models = {i: last_step(self.plan.models[i]) for i in self.matrix.folds[self.fold]}
        train, test = (
            Part(RowPoints(rows), *(None if values is None else values[rows] for values in (self.y, self.weights)))
            for rows in self.rows
        )

        @functools.cache  # made in the first fit, whose status then records an error
        def source():
            source = CachedKernelSource(
                self.matrix.gram(), train.X.rows, lambda: scores.is_stopped, self.matrix.buffers
            )
            return stack.enter_context(contextlib.closing(source))

        def fit(i):
            machine = models[i].with_source(source())
            model, found = self.plan.measure(lambda: machine.fit(*train[:2], **train.options), train, test)
            return found, _status(model)

        with contextlib.ExitStack() as stack:
            stack.callback(self.matrix.release)
            for i in sorted(models, key=lambda i: getattr(models[i], "C", 0.0)):
                if not scores.is_stopped:
                    scores.run(i, self.fold, functools.partial(fit, i))


class IndependentFits:
    """Cells that are fitted without sharing, in one fold; linear estimators start at the weights for the last C."""

    is_parallel = False

    def __init__(self, plan: SearchPlan, fold: int, cells: list[int]) -> None:
        self.plan, self.fold, self.cells, self._path = plan, fold, cells, _LinearPath()

    def run(self, scores: Scoreboard) -> None:
        """Fit the cells and record their scores."""
        X, (train, test) = self.plan.X, self.plan.folds[self.fold]
        for i in self.cells:
            if get_tags(self.plan.models[i]).input_tags.pairwise:
                points = X[np.ix_(train, train)], X[np.ix_(test, train)]
            else:
                points = _safe_indexing(X, train), _safe_indexing(X, test)
            self.fit(scores, i, self.plan.models[i], points)

    def fit(self, scores: Scoreboard, i: int, model: Any, points: Any) -> None:
        """Fit one cell to given points (train, test)."""
        model, targets, weights = _clone_with(model, {}), self.plan.targets(self.fold), self.plan.weights
        parts = zip(points, targets, self.plan.folds[self.fold], strict=True)
        train, test = (Part(X, y, None if weights is None else weights[rows]) for X, y, rows in parts)

        def fitted():
            estimator = last_step(model)
            with self._path.along(estimator):
                model.fit(*train[:2], **train.options)
            if any(solution.stopped == "interrupt" for solution in getattr(estimator, "solutions_", ())):
                raise KeyboardInterrupt
            return model

        def fit():
            found = self.plan.measure(fitted, train, test)[1]
            return found, _status(last_step(model))

        if not scores.is_stopped:
            scores.run(i, self.fold, fit)


class _LinearPath:
    """Starts each fit of a linear estimator at the weights of the last one, if both differ in C only."""

    def __init__(self):
        self._key, self._solutions = None, None

    @contextlib.contextmanager
    def along(self, estimator):
        """Start the fit inside a `with` block at the solutions of the last one."""
        if not isinstance(estimator, (LinearSVC, LinearSVR)):
            yield
            return
        key = joblib.hash({name: value for name, value in estimator.get_params().items() if name != "C"})
        if key == self._key and self._solutions is not None:
            estimator.start_from(self._solutions)
        self._key = None
        yield
        self._key, self._solutions = key, estimator.solutions_


class PipelineFits:
    """Cells with the same steps before the last one, in one fold; the steps are fitted to its training points only."""

    def __init__(self, plan: SearchPlan, fold: int, cells: list[int]) -> None:
        self.plan, self.fold, self.cells = plan, fold, cells
        self.is_parallel = plan.buffers is not None and all(plan.shares[i] for i in cells)

    def run(self, scores: Scoreboard) -> None:
        """Fit the steps, then the cells, and record their scores."""
        plan, (train, test) = self.plan, self.plan.folds[self.fold]
        share = [i for i in self.cells if plan.shares[i]]

        def transform():
            inside, outside = _safe_indexing(plan.X, train), _safe_indexing(plan.X, test)
            for _, step in plan.models[self.cells[0]].steps[:-1]:
                if step is not None and step != "passthrough":
                    fresh: Any = clone(step)
                    inside = fresh.fit_transform(inside, plan.targets(self.fold)[0])
                    outside = fresh.transform(outside)
            both = _stack(inside, outside)
            if share:
                both = check_points(last_step(plan.models[share[0]]), both, None)
            return inside, outside, both

        try:
            *points, X = transform()
        except Exception:  # a step fails: record the error for each cell
            for i in self.cells:
                scores.run(i, self.fold, transform)  # pyright: ignore[reportArgumentType] - it raises
            return
        rows = np.arange(len(train)), np.arange(len(train), len(train) + len(test))
        y = None if plan.y is None else plan.y[np.concatenate([train, test])]
        matrices, invalid = plan.shared_matrices(share, X, {self.fold: rows[0]})
        for matrix in matrices:
            KernelPath(plan, matrix, self.fold, rows, y).run(scores)
        independent = IndependentFits(plan, self.fold, [])
        for i in sorted([*invalid, *(i for i in self.cells if not plan.shares[i])]):
            independent.fit(scores, i, last_step(plan.models[i]), points)


def _stack(A, B):
    return sparse.vstack([A, B], format="csr") if sparse.issparse(A) else np.concatenate([A, B])


def _status(estimator):
    """The status of a fit: whether all problems reached their tolerance, and a margin that separates the classes."""
    if any(solution.stopped != "tol" for solution in getattr(estimator, "solutions_", ())):
        return "not converged"
    return "no margin" if isinstance(estimator, NuSVC) and estimator.lacks_margin() else "done"
