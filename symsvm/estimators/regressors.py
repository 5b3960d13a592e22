"""The kernel regressors SVR and NuSVR, with scikit-learn's parameters and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from symsvm.estimators.base import changes_model
from symsvm.estimators.containers import answers_in_kind
from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.estimators.spread_source import fits_collections, maps_collections, score_collection
from symsvm.objectives import QuadraticProgram
from symsvm.objectives.machine_duals import nu_svr_dual, svr_dual

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike
    from pytensor.compile.mode import Mode

    from symsvm._lib.types import Array, PointsLike
    from symsvm.estimators.kernel_estimator import KernelLike

__all__ = ["SVR", "NuSVR"]

# Of a target: sums with other terms are finite.
_LARGEST = 1e300


class _KernelRegressor(RegressorMixin, KernelEstimator):
    """A regressor: one problem, with two variables for each point."""

    @changes_model
    @fits_collections
    def fit(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to points and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The training points.
        y : array-like of shape (m,)
            Their targets.
        sample_weight : array-like of shape (m,), optional
            The weights of the points, C_i = C weight_i. A point of weight 0 is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        points, targets = self.check_points(X, y, y_numeric=True)
        if not np.isfinite(targets.astype("float64")).all():  # None is NaN now
            raise ValueError("y must be finite, got a target that is infinite or not a number.")
        largest = float(np.abs(targets.astype("float64")).max(initial=0.0))
        if largest > _LARGEST:
            raise ValueError(
                f"y must be at most {_LARGEST:g} in size, got {largest:g}: divide the targets by a number."
            )
        solution = self._fit_one(points, targets, sample_weight)
        self.intercept_ = np.array([self._offset(solution)])
        return self

    def score(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            The weights of the points.

        Returns
        -------
        float
            R^2.
        """
        return score_collection(self, X, y, sample_weight, super().score)

    def _offset(self, solution):
        return self._intercept_of(solution)

    @maps_collections
    @answers_in_kind
    def predict(self, X: PointsLike) -> Array:
        """Predict the target of each point, sum_j beta_j K(x_j, x) + b (Eq. 002:2.16).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,)
            The predictions.
        """
        check_is_fitted(self)
        Z = self.check_points(X, reset=False)
        return (self.expansion(Z, self._dual_coef[0]) + self.intercept_[0]).astype(Z.dtype, copy=False)


class SVR(_KernelRegressor):
    """Epsilon-support vector regression, with scikit-learn's interface and a certificate.

    The problem is::

        minimise 1/2 |w|^2 + sum_i C_i max(0, |y_i - w.Phi(x_i) - b| - epsilon)

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
    C : float, default=1.0
        The penalty; C_i = C times sample weight. `np.inf` allows no error above epsilon.
    epsilon : float, default=0.1
        Half the width of the tube inside which an error costs nothing.
    shrinking : bool, default=True
        Accepted as in scikit-learn, without effect: the solver always shrinks where it helps.
    cache_size : float, default=200
        Accepted as in scikit-learn, without effect: there is no kernel cache.
    verbose : bool or int, default=False
        Whether to draw a progress bar on a terminal, and to print a line for each problem elsewhere.
    max_iter : int, default=-1
        The most outer iterations of the solver for each problem; -1 for no limit.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    penalize_intercept : bool, default=False
        Whether b is the weight of a constant feature, penalised like w; otherwise it is free.
    intercept_scaling : float, default=1.0
        The constant feature of a penalised intercept.
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
        alpha - alpha' at the support vectors.
    intercept_ : array of shape (1,)
        The intercept b.
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

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> SVR(kernel="linear", C=10.0, epsilon=0.1).fit(X, y).predict([[4.0]]).round(3).tolist()
    [3.7]
    """

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        time_limit: float | None = None,
        solver: Any = "auto",
        mode: str | Mode | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.time_limit = time_limit
        self.solver = solver
        self.mode = mode

    _has_hard_margin = True

    def _dual(self, kernel):
        return svr_dual(kernel, intercept=self.intercept_mode == "free")

    def _program(self, y, weights):
        C = self.finite_C * weights
        return QuadraticProgram.svr(y, C, self.epsilon, intercept=self.intercept_mode == "free")


class NuSVR(_KernelRegressor):
    """Nu-support vector regression: `SVR` whose epsilon is found by the fit.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the share of points outside the tube.
    C : float, default=1.0
        The penalty; C_i = C times sample weight.
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
    shrinking : bool, default=True
        Accepted as in scikit-learn, without effect: the solver always shrinks where it helps.
    tol : float, default=1e-3
        The largest KKT violation to accept, as LIBSVM defines it, in float64.
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
        alpha - alpha' at the support vectors.
    intercept_ : array of shape (1,)
        The intercept b.
    epsilon_ : float
        Half the width of the tube.
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
        nu: float = 0.5,
        C: float = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        time_limit: float | None = None,
        solver: Any = "auto",
        mode: str | Mode | None = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.solver = solver
        self.mode = mode

    def _dual(self, kernel):
        return nu_svr_dual(kernel)

    def _program(self, y, weights):
        return QuadraticProgram.nu_svr(y, self.C, self.nu, weights)

    def _offset(self, solution):
        """b; the multipliers of alpha and alpha' are b + epsilon and b - epsilon."""
        above, below = solution.b
        self.epsilon_ = (above - below) / 2
        return (above + below) / 2
