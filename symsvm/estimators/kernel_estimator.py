"""The base class of the five kernel estimators: the kernel with its numbers, one-problem fits, fitted attributes."""

from __future__ import annotations

import contextlib
import copy
import difflib
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from symsvm._lib.validation import choice, number
from symsvm.distributed.point_blocks import row_squares, row_sums
from symsvm.estimators.base import BaseSVM, sample_weights
from symsvm.estimators.kernel_source import KernelSource
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.kernels import RBF, Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from symsvm.solvers.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self, TypeAlias

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Path, Points
    from symsvm.objectives import Objective, QuadraticProgram
    from symsvm.solvers import Solution
    from symsvm.solvers.decomposition.working_set import WorkingSetReuse

    # What estimators take as their kernel: a name, a kernel object, or a function K(X, Z) that returns a matrix.
    KernelName: TypeAlias = Literal["linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"]
    KernelLike: TypeAlias = KernelName | Kernel | Callable[..., ArrayLike]

__all__ = ["KernelEstimator"]

_KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed")


class KernelEstimator(BaseSVM):
    """A support vector machine over a kernel, with scikit-learn's interface; see `SVC` for the parameters."""

    kernel: Any
    degree: Any
    gamma: Any
    coef0: Any
    intercept_scaling: Any
    tol: float
    max_iter: int
    time_limit: float | None
    verbose: bool | int
    solver: Any
    mode: Any
    kernel_: Kernel | None
    support_: Array
    support_vectors_: Any
    dual_coef_: Array
    intercept_: Array
    n_iter_: Any
    shape_fit_: tuple[int, ...]
    n_features_in_: int
    X_fit_: Points | None

    # Where kernel values come from; `with_source` replaces it in a copy.
    _source: KernelSource = KernelSource()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def with_source(self, source: KernelSource) -> Self:
        """Return a copy with the same parameters that takes kernel values and solutions from `source`."""
        other = copy.copy(self)
        other._source = source
        return other

    @contextlib.contextmanager
    def checkpointing(self, path: Path, every: float = 60.0) -> Iterator[None]:
        """Write the points of the fits inside a `with` block to a file from time to time, and go on from it.

        A fit that ends early, or a process that dies, leaves the last file behind: the same fit, in another process
        too, then begins at its points. The file has numbers only, and is replaced in one step.

        Parameters
        ----------
        path : str or path-like
            The file, which ends in .npz.
        every : float
            Seconds between two of them.

        Examples
        --------
        >>> import os, tempfile
        >>> from symsvm import SVC
        >>> model, path = SVC(), os.path.join(tempfile.mkdtemp(), "run.npz")
        >>> with model.checkpointing(path):
        ...     _ = model.fit([[0.0], [1.0]], [0, 1])
        >>> os.path.exists(path)
        True
        """
        self._checkpoint = Checkpoint(path, every)
        try:
            yield
        finally:
            vars(self).pop("_checkpoint", None)

    # ---- the kernel

    def kernel_for(self, X: Points, weights: Array | None) -> Kernel | None:
        """Return the kernel with its numbers for these points; None for "precomputed" and for functions."""
        kernel = self.kernel
        if isinstance(kernel, Kernel):
            defaults = {"degree": 3, "gamma": "scale", "coef0": 0.0}
            changed = [name for name, value in defaults.items() if getattr(self, name, value) != value]
            if changed:
                raise ValueError(f"{changed[0]} belongs to kernels named by a string; {kernel!r} has its own.")
            return kernel
        if callable(kernel) or kernel == "precomputed":
            return None
        if kernel not in _KERNELS:
            near = difflib.get_close_matches(str(kernel), _KERNELS, 1, 0.0)[0]
            raise ValueError(
                f"kernel must be a Kernel, a function or one of {', '.join(_KERNELS)}, got {kernel!r}; {near!r}?"
            )
        if kernel == "linear":
            return Linear()
        gamma = self._gamma_for(X, weights)
        if kernel == "rbf":
            return RBF.from_gamma(gamma)
        if kernel == "laplacian":
            return Laplacian(gamma=gamma)
        if kernel == "poly":
            return Polynomial(degree=self.degree, gamma=gamma, coef0=self.coef0)
        return Sigmoid(gamma=gamma, coef0=self.coef0)

    def _gamma_for(self, X, weights):
        """gamma: a number, "auto" for 1 / d, or "scale" for 1 / (d var X) over all entries, with rows weighted."""
        if not isinstance(self.gamma, str):
            return number(self.gamma, "gamma", positive=True)
        choice(self.gamma, "gamma", ("scale", "auto"))
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        variance = _variance(X, weights)
        if not np.isfinite(variance) or (variance == 0 and X.max() != X.min()):
            raise ValueError("gamma='scale' is beyond float64 on these points: scale X, or give gamma as a number.")
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    # ---- the intercept

    @property
    def intercept_mode(self) -> Literal["free", "embedded", "none"]:
        """How the intercept enters: "free" (an equality of the dual), "embedded" (in the kernel) or "none"."""
        if not getattr(self, "fit_intercept", True):
            return "none"
        return "embedded" if getattr(self, "penalize_intercept", False) else "free"

    def add_intercept(self, kernel: Kernel) -> Kernel:
        """Return the kernel, plus the constant feature whose weight a penalised intercept is."""
        if self.intercept_mode != "embedded":
            return kernel
        constant = number(self.intercept_scaling, "intercept_scaling", positive=True) ** 2
        if isinstance(kernel, Precomputed):
            gram: Any = kernel.gram
            return Precomputed(gram + constant)
        return kernel + constant

    def _intercept_of(self, solution):
        """b, the multiplier of the equality or the weight of the constant feature."""
        if self.intercept_mode == "embedded":
            return number(self.intercept_scaling, "intercept_scaling") ** 2 * float(solution.z.sum())
        return 0.0 if solution.b is None else solution.b

    # ---- the fit

    def check_points(self, X: Any, *y: Any, **options: Any) -> Any:
        """Check X, or X and y, by scikit-learn's rules; `reset=False` compares with the points of the fit."""
        return self._source.check_points(self, X, *y, **options)

    def kernel_matrix(self, X: Any) -> Any:
        """Return the kernel matrix of checked points, all of weight 1; it changes nothing of the estimator."""
        return self._source.bind(self, X, np.ones(X.shape[0]))[1]

    def _bind(self, X, weights):
        """Begin a fit: determine the kernel and return the kernel matrix of the points."""
        self._begin_fit()
        self.kernel_, matrix = self._source.bind(self, X, weights)
        return matrix

    def _solve(self, program: QuadraticProgram, matrix: Any, reuse: WorkingSetReuse | None = None) -> Solution:
        """Solve the next program of the fit; `reuse` hands its working set on to the next one."""
        return self._source.solve(self, program, matrix, self._monitor, reuse)

    def _fit_one(self, X, y, sample_weight):
        """Fit an estimator of one problem, `_program(y, weights)`, to checked points; return its solution."""
        weights = sample_weights(sample_weight, X.shape[0])
        used = np.flatnonzero(weights)
        points = X if len(used) == len(weights) else self._source.take(self, X, used)
        matrix = self._bind(points, weights[used])
        program = self._program(None if y is None else y[used].astype("float64"), weights[used])
        solution = self._solve(program, matrix)
        beta = program.weights(solution.z)
        support = np.flatnonzero(beta)
        self._store(X, used[support], [solution])
        self.n_iter_ = int(self.n_iter_[0])
        self.n_support_ = np.array([len(support)], dtype="int32")
        self.dual_coef_ = beta[None, support]
        return solution

    def _program(self, y: Any, weights: Array) -> QuadraticProgram:
        """The dual problem of these labels or targets, without its kernel matrix: what reading `_dual` gives."""
        raise NotImplementedError

    def _dual(self, kernel: Kernel) -> Objective:
        """The dual problem in symbols."""
        raise NotImplementedError

    def _store(self, X, support, solutions):
        """End a fit: set the attributes that all kernel estimators have."""
        self._end_fit()
        self.support_ = support.astype("int32")
        self.support_vectors_ = X[support] if self.kernel_ is not None else np.empty((0, 0))
        # A copy: the caller may change X, and a function may round differently for the same array twice (A A').
        self.X_fit_ = X.copy() if callable(self.kernel) and self.kernel_ is None else None
        self.solutions_ = solutions
        self.fit_status_ = int(any(s.stopped != "tol" for s in solutions))
        self.n_iter_ = np.array([s.n_iter for s in solutions], dtype="int32")
        self.shape_fit_ = X.shape

    # ---- the decision values

    def expansion(self, X: Any, coef: Array) -> Array:
        """Return sum_j K(x_i, v_j) coef_j over the support vectors for checked points, a column for each of coef's."""
        return self._source.expand(self, X, coef)

    def support_kernel(self, X: Any) -> Array:
        """Return K(x_i, v_j) between checked points and the support vectors, (n, n_SV)."""
        if self.kernel_ is None:
            K = np.asarray(self.kernel(X, self.X_fit_)) if callable(self.kernel) else X
            return K[:, self.support_]
        if not len(self.support_):
            return np.empty((X.shape[0], 0))
        V = self.support_vectors_.astype("float64", copy=False)
        return KernelEvaluator(self.kernel_, mode=self.mode).block(X.astype("float64", copy=False), V)

    @property
    def decision_coef_(self) -> Array:
        """The coefficients of the support vectors, one column for each problem, in the signs of `intercept_`."""
        return self.dual_coef_.T

    @property
    def coef_(self) -> Array:
        """The weights w of a linear kernel, (problems, d)."""
        if self.kernel != "linear" and not isinstance(self.kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self.decision_coef_.T @ self.support_vectors_

    @property
    def objective_(self) -> Objective:
        """The dual problem in symbols, over lam, X and y, for points of weight 1."""
        kernel = self.kernel_ if getattr(self, "kernel_", None) is not None else self.kernel
        if not isinstance(kernel, Kernel):
            raise AttributeError("objective_ needs a kernel with an expression: fit first, or give a Kernel object.")
        return self._dual(self.add_intercept(kernel))

    def explain(self, format: Literal["text", "svg", "html"] = "text") -> str:
        """Explain the dual problem and what the compiler makes of it: see `symsvm.explain`."""
        from symsvm.explanation import explain

        return explain(self, format=format)


@np.errstate(over="ignore", invalid="ignore")
def _variance(X: Any, weights: Array) -> float:
    """Return the variance of all entries of points, with rows weighted."""
    total = weights.sum() * X.shape[1]
    mean = weights @ row_sums(X) / total
    return weights @ row_squares(X, mean) / total
