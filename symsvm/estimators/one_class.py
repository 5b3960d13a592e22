"""The one-class estimator OneClassSVM, with scikit-learn's parameters and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from symsvm.estimators.base import changes_model
from symsvm.estimators.containers import answers_in_kind
from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.estimators.spread_source import fits_collections, maps_collections
from symsvm.objectives import QuadraticProgram
from symsvm.objectives.machine_duals import one_class_dual

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike
    from pytensor.compile.mode import Mode

    from symsvm._lib.types import Array, PointsLike
    from symsvm.estimators.kernel_estimator import KernelLike

__all__ = ["OneClassSVM"]

# The share of |rho| by which the boundary is moved outwards: free support vectors lie on it, and rounding must not put
# some of them outside.
_OUTWARDS = 1e-10


class OneClassSVM(OutlierMixin, KernelEstimator):
    """Detection of outliers: a function that is positive where points are, and negative for at most a share nu of them.

    The problem is::

        minimise 1/2 |w|^2 + sum_i weight_i max(0, rho - w.Phi(x_i)) - nu (sum of weights) rho

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name ("linear", "poly", "rbf", "sigmoid", "laplacian" or "precomputed"), a symsvm kernel such as
        `RBF(0.5) + 0.1 * Linear()`, whose parameters are `kernel__k1__sigma` and so on, or a function K(X, Z)
        that returns a matrix.
    degree : int, default=3
        The degree of the kernel "poly".
    gamma : float or {"scale", "auto"}, default="scale"
        The factor in the kernels "rbf", "poly", "sigmoid" and "laplacian"; "scale" is 1 / (d var X), "auto" is
        1 / d.
    coef0 : float, default=0.0
        The constant in the kernels "poly" and "sigmoid".
    tol : float, default=1e-3
        The largest KKT violation to accept, as LIBSVM defines it, in float64.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of outliers and a lower bound on that of support vectors.
    shrinking : bool, default=True
        Accepted as in scikit-learn, without effect: the solver always shrinks where it helps.
    cache_size : float, default=200
        Accepted as in scikit-learn, without effect: there is no kernel cache.
    verbose : bool or int, default=False
        Whether to draw a progress bar on a terminal, and to print a line for each problem elsewhere.
    max_iter : int, default=-1
        The most outer iterations of the solver for each problem; -1 for no limit.
    time_limit : float, optional
        The most seconds for each problem.
    solver : str or solver, default="auto"
        A name from `symsvm.list_solvers("dual")`, "auto" for "decomposition", or a solver object.
    mode : str or Mode, optional
        The backend: "NUMBA" (the default), "JAX" or another PyTensor mode.

    Attributes
    ----------
    support_ : array of shape (n_SV,)
        The indices of the support vectors.
    support_vectors_ : array or CSR of shape (n_SV, d)
        The support vectors; empty for a precomputed kernel and for functions.
    n_support_ : array of shape (1,)
        The number of support vectors.
    dual_coef_ : array of shape (1, n_SV)
        lam at the support vectors.
    intercept_ : array of shape (1,)
        -rho.
    offset_ : array of shape (1,)
        rho: `decision_function` is `score_samples` minus it.
    n_iter_ : int
        The number of outer iterations.
    fit_status_ : int
        0 if the violation is at most `tol`, 1 if the fit stopped before.
    shape_fit_ : tuple
        The shape of the training points.
    certificate_ : Certificate
        The optimality of the fit in float64: primal, dual, gap, violation and status.
    trace_ : dict
        Arrays of the fields of `Info`, an entry for each iteration.
    """

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        time_limit: float | None = None,
        solver: Any = "auto",
        mode: str | Mode | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.solver = solver
        self.mode = mode

    @changes_model
    @fits_collections
    def fit(self, X: PointsLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The training points.
        y : object, optional
            Not used; it is here for scikit-learn's interface.
        sample_weight : array-like of shape (m,), optional
            The weights of the points. A point of weight 0 is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        solution = self._fit_one(self.check_points(X), None, sample_weight)
        b: Any = solution.b  # one number: the problem has one equality
        self.intercept_ = np.array([b + _OUTWARDS * abs(b)])
        self.offset_ = -self.intercept_
        return self

    def _dual(self, kernel):
        return one_class_dual(kernel)

    def _program(self, y, weights):
        return QuadraticProgram.one_class(weights, self.nu)

    @maps_collections
    @answers_in_kind
    def score_samples(self, X: PointsLike) -> Array:
        """Evaluate the kernel expansion, sum_j lam_j K(x_j, x), at each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,)
            The values.
        """
        check_is_fitted(self)
        Z = self.check_points(X, reset=False)
        return self.expansion(Z, self._dual_coef[0]).astype(Z.dtype, copy=False)

    @maps_collections
    @answers_in_kind
    def decision_function(self, X: PointsLike) -> Array:
        """Evaluate `score_samples` minus `offset_` at each point: positive for inliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,)
            The decision values.
        """
        check_is_fitted(self)
        # In float64 also for points of float32: near the boundary a rounded score would have few digits left.
        return self.expansion(self.check_points(X, reset=False), self._dual_coef[0]) - self.offset_

    @maps_collections
    @answers_in_kind
    def predict(self, X: PointsLike) -> Array:
        """Predict whether points are inliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,)
            1 for inliers, -1 for outliers.
        """
        check_is_fitted(self)
        return np.where(self.decision_function(X) >= 0, 1, -1)
