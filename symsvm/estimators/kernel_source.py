"""The source of an estimator's kernel values: it reads points, binds a kernel matrix, solves, and expands."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils.validation import validate_data

from symsvm._lib.blas import row_products
from symsvm._lib.validation import refuse_masked
from symsvm.estimators.containers import from_dlpack
from symsvm.estimators.function_kernels import check_objects, function_values, holds_objects
from symsvm.estimators.multiclass import EncodedClasses, encode_classes
from symsvm.evaluation.expansion import Expansion
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.evaluation.symmetry import check_symmetric
from symsvm.kernels import Kernel, Precomputed
from symsvm.objectives import KernelDual, QuadraticProgram
from symsvm.solvers import Decomposition, QuadraticProgramming, Solution, compile
from symsvm.solvers.decomposition.solve_problem import solve_dual
from symsvm.solvers.registry import choose_solver

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.estimators.base import FitMonitor
    from symsvm.estimators.kernel_estimator import KernelEstimator
    from symsvm.solvers.checkpoint import Checkpoint
    from symsvm.solvers.decomposition.working_set import WorkingSetReuse

__all__ = ["KernelSource"]

# The expansion over the support vectors of each model that has predicted; not a part of the model.
_EXPANSIONS: WeakKeyDictionary[Any, Expansion] = WeakKeyDictionary()
# The most iterations of a solver other than the decomposition, where the estimator has no limit.
_MAX_ITER = 100_000


class KernelSource:
    """Computes kernel values from the points themselves: the source of every estimator, unless it is given another.

    An estimator asks its source for everything that depends on where kernel values come from; the rest (labels, pairs
    of classes, intercepts, votes) is its own. `symsvm.model_selection` has a source that reads the rows of a cached
    Gram matrix and starts each problem at the last solution; `KernelEstimator.with_source` installs it. Methods read
    the parameters of the estimator that they are given and change nothing of it, but for the attributes that
    scikit-learn's `validate_data` sets.
    """

    def check_points(self, estimator: KernelEstimator, X: Any, *y: Any, **options: Any) -> Any:
        """Check X, or X and y, by scikit-learn's rules; return points in float64 or float32, dense or CSR."""
        fitting = options.get("reset", True)
        if _is_valid(estimator, X, fitting, *y):
            if fitting:
                estimator.n_features_in_ = X.shape[1]
            return (X, *y) if y else X
        if holds_objects(estimator.kernel, X):
            return check_objects(X, *y, y_numeric=options.get("y_numeric", False))
        options |= {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        X, y = from_dlpack(X), tuple(from_dlpack(value) for value in y)
        if estimator.kernel == "precomputed" and hasattr(X, "tocsr"):
            raise TypeError("Sparse precomputed kernels are not supported: give the matrix as X.toarray().")
        for name, value in zip(("X", "y"), (X, *y), strict=False):
            refuse_masked(value, name)
        checked: Any = validate_data(estimator, X, *y, **options)
        X = checked[0] if y else checked
        if estimator.kernel == "precomputed" and fitting and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix between the points, got {X.shape}.")
        return checked

    def encode_classes(self, estimator: Any, y: Array, sample_weight: ArrayLike | None) -> EncodedClasses:
        """Encode the labels of a classifier; see `symsvm.estimators.multiclass.encode_classes`."""
        return encode_classes(y, sample_weight, estimator.class_weight, estimator.single_class_note)

    def take(self, estimator: KernelEstimator, X: Any, rows: Array) -> Any:
        """Return some of the training points; of a precomputed matrix, its rows and columns."""
        return X[np.ix_(rows, rows)] if estimator.kernel == "precomputed" else X[rows]

    def bind(self, estimator: KernelEstimator, X: Any, weights: Array) -> tuple[Kernel | None, Any]:
        """Return the kernel with its numbers, None for a matrix or a function, and the kernel matrix of the points."""
        kernel = estimator.kernel_for(X, weights)
        if kernel is not None:
            points = X.astype("float64") if X.dtype != np.float64 else X
            kernel.check_points(points)
            check_symmetric(kernel, points, mode=estimator.mode)
            return kernel, LocalKernelMatrix(estimator.add_intercept(kernel), points, mode=estimator.mode)
        K: Any = function_values(estimator.kernel, X, X) if callable(estimator.kernel) else X
        K = np.asarray(K.toarray() if hasattr(K, "tocsr") else K, dtype="float64")
        if not np.allclose(K, K.T, rtol=1e-6, atol=1e-8 * np.abs(K).max(initial=0.0)):
            raise ValueError("the precomputed matrix must be symmetric: K(x, z) = K(z, x).")
        matrix = estimator.add_intercept(Precomputed(K))
        return None, LocalKernelMatrix(matrix, Precomputed.points(len(K)), mode=estimator.mode)

    def solve(
        self,
        estimator: KernelEstimator,
        program: QuadraticProgram,
        matrix: Any,
        monitor: FitMonitor,
        reuse: WorkingSetReuse | None = None,
    ) -> Solution:
        """Solve one program over a kernel matrix that `bind` returned, with the solver of the estimator.

        `reuse` hands the working set of the decomposition on to the next program over the same points.
        """
        solver = choose_solver(estimator.solver, KernelDual.problem)
        max_iter = None if estimator.max_iter == -1 else estimator.max_iter
        limits = {"tol": estimator.tol, "max_iter": max_iter, "time_limit": estimator.time_limit}
        if isinstance(solver, Decomposition):
            limits |= {"is_psd": matrix.kernel.is_psd, "verbose": int(estimator.verbose), "reuse": reuse}
            checkpoint: Checkpoint | None = vars(estimator).get("_checkpoint")
            if checkpoint is None:
                return monitor.solve(functools.partial(solve_dual, program, matrix, **limits, **solver.options))
            limits |= {"start": checkpoint.start(monitor.problem + 1, program), "checkpoint": checkpoint}
            solution = monitor.solve(functools.partial(solve_dual, program, matrix, **limits, **solver.options))
            checkpoint.note(solution.z, solution.n_iter, is_end=True)
            return solution
        limits["max_iter"] = _MAX_ITER if max_iter is None else max_iter
        X = matrix.X.toarray() if hasattr(matrix.X, "tocsr") else matrix.X
        compiled = compile(KernelDual(program, X, matrix.kernel), solver, mode=estimator.mode)
        takes_callback = not isinstance(solver, QuadraticProgramming)
        return monitor.solve(functools.partial(compiled.run, **limits), takes_callback=takes_callback)

    def expand(self, estimator: KernelEstimator, X: Any, coef: Array) -> Array:
        """Return sum_j K(x_i, v_j) coef_j over the support vectors, (n,) or one column for each of coef's."""
        if estimator.kernel_ is not None:
            if not len(coef):
                return np.zeros((X.shape[0], *coef.shape[1:]))
            given = estimator.kernel_, estimator.support_vectors_, estimator.mode
            expansion = _EXPANSIONS.get(estimator)
            if expansion is None or not expansion.is_of(*given):
                expansion = _EXPANSIONS[estimator] = Expansion(*given[:2], mode=given[2])
            return expansion(X, coef)
        if not callable(estimator.kernel):
            if X.shape[1] != estimator.shape_fit_[0]:
                raise ValueError(f"X must have a column for each of the {estimator.shape_fit_[0]} training points.")
            return row_products(X[:, estimator.support_], coef)
        return row_products(function_values(estimator.kernel, X, estimator.X_fit_)[:, estimator.support_], coef)


def _is_valid(estimator: Any, X: Any, fitting: bool, *given: Any) -> bool:
    """Whether points and labels are what `validate_data` would return, in a tenth of its time; False if in doubt."""
    if type(X) is not np.ndarray or X.dtype not in (np.float64, np.float32) or not X.flags.c_contiguous:
        return False
    if X.ndim != 2 or not X.size or estimator.kernel == "precomputed" or "feature_names_in_" in vars(estimator):
        return False
    for y in given:
        if type(y) is not np.ndarray or y.dtype.kind not in "iu" or y.shape != (len(X),):
            return False
    if not fitting and X.shape[1] != vars(estimator).get("n_features_in_"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))
