"""SVR and NuSVR: regression over a kernel, with scikit-learn's parameters and attributes."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.validation import number
from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.estimators.weights import sample_weights
from symsvm.objectives import QuadraticProgram
from symsvm.objectives.machine_dual import MachineDual

__all__ = ["SVR", "NuSVR"]


class _Regressor(RegressorMixin, KernelEstimator):
    """What both regressors do: one problem, two variables a point."""

    def fit(self, X, y, sample_weight=None):
        """Fit the machine to points (m, d), dense or CSR, and their targets; C_i = C weight_i."""
        X, y = self.check_points(X, y, y_numeric=True)
        weights = sample_weights(sample_weight, X)
        used = np.flatnonzero(weights)
        points = X
        if len(used) < len(y):
            points = X[np.ix_(used, used)] if self.kernel == "precomputed" else X[used]
        gram = self.bind(points, weights[used])
        program = self._program(y[used].astype("float64"), weights[used])
        solution = self._solve(program, gram)
        beta = program.weights(solution.lam)
        support = np.flatnonzero(beta)
        self._keep(X, used[support], [solution])
        self.n_iter_ = int(self.n_iter_[0])
        self.n_support_ = np.array([len(support)], dtype="int32")
        self.dual_coef_ = beta[None, support]
        self.intercept_ = np.array([self._offset(solution)])
        return self

    def _offset(self, solution):
        return self._intercept_of(solution)

    @property
    def decision_coef_(self):
        return self.dual_coef_.T

    def predict(self, X):
        """sum_j beta_j K(x_j, x) + b for each point (Eq. 002:2.16)."""
        check_is_fitted(self)
        X = self.check_points(X, reset=False)
        return (self.expansion(X, self.dual_coef_[0]) + self.intercept_[0]).astype(X.dtype, copy=False)


class SVR(_Regressor):
    """Epsilon-support vector regression, with scikit-learn's interface and a certificate.

        minimise 1/2 |w|^2 + sum_i C_i max(0, |y_i - w.Phi(x_i) - b| - epsilon)

    Parameters
    ----------
    epsilon : half the width of the tube inside which an error costs nothing.
    The others are those of `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, n_iter_, fit_status_, shape_fit_ : as in
    scikit-learn. dual_coef_ is alpha - alpha' at the support vectors.
    certificate_, trace_ : how good the fit is, in float64, and how it came about.

    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> SVR(kernel="linear", C=10.0, epsilon=0.1).fit(X, y).predict([[4.0]]).round(3).tolist()
    [3.7]
    """

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        C=1.0,
        epsilon=0.1,
        shrinking=True,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        fit_intercept=True,
        penalize_intercept=False,
        intercept_scaling=1.0,
        time_limit=None,
        solver="auto",
        mode=None,
    ):
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

    def _program(self, y, weights):
        C = number(self.C, "C", positive=True) * weights
        return QuadraticProgram.svr(y, C, self.epsilon, intercept=self.intercept_mode == "free")

    def _dual(self, kernel):
        return MachineDual.svr(kernel, self.C, self.epsilon, intercept=self.intercept_mode == "free")


class NuSVR(_Regressor):
    """nu-support vector regression: epsilon is found, nu bounds the part of points outside the tube from above.

    Parameters
    ----------
    nu : in (0, 1].
    The others are those of `SVC`.

    Attributes
    ----------
    As of `SVR`, and epsilon_, half the width of the tube.
    """

    def __init__(
        self,
        *,
        nu=0.5,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        time_limit=None,
        solver="auto",
        mode=None,
    ):
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

    def _program(self, y, weights):
        return QuadraticProgram.nu_svr(y, self.C, self.nu, weights)

    def _dual(self, kernel):
        return MachineDual.nu_svr(kernel, self.C, self.nu)

    def _offset(self, solution):
        """With the multipliers of alpha and alpha', b + epsilon and b - epsilon."""
        above, below = solution.b
        self.epsilon_ = (above - below) / 2
        return (above + below) / 2
