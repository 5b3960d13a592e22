"""OneClassSVM: where most of the points are, with scikit-learn's parameters and attributes."""

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.estimators.weights import sample_weights
from symsvm.objectives import QuadraticProgram
from symsvm.objectives.machine_dual import MachineDual

__all__ = ["OneClassSVM"]


class OneClassSVM(OutlierMixin, KernelEstimator):
    """The one-class machine: a function that is positive where points are, of which nu bounds the part outside.

        minimise 1/2 |w|^2 + sum_i weight_i max(0, rho - w.Phi(x_i)) - nu (sum of weights) rho

    Parameters
    ----------
    nu : in (0, 1], an upper bound on the part of outliers and a lower bound on that of support vectors.
    The others are those of `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, offset_, n_iter_, fit_status_, shape_fit_ : as in
    scikit-learn; offset_ is rho, intercept_ is -rho.
    certificate_, trace_ : how good the fit is, in float64, and how it came about.
    """

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        nu=0.5,
        shrinking=True,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        time_limit=None,
        solver="auto",
        mode=None,
    ):
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

    def fit(self, X, y=None, sample_weight=None):
        """Fit the machine to points (m, d), dense or CSR; y is not used."""
        X = self.check_points(X)
        weights = sample_weights(sample_weight, X)
        used = np.flatnonzero(weights)
        points = X
        if len(used) < len(weights):
            points = X[np.ix_(used, used)] if self.kernel == "precomputed" else X[used]
        solution = self._solve(QuadraticProgram.one_class(weights[used], self.nu), self.bind(points, weights[used]))
        support = np.flatnonzero(solution.lam)
        self._keep(X, used[support], [solution])
        self.n_iter_ = int(self.n_iter_[0])
        self.n_support_ = np.array([len(support)], dtype="int32")
        self.dual_coef_ = solution.lam[None, support]
        # Free support vectors are on the border, which rounding must not divide: it is moved out by a hair.
        self.intercept_ = np.array([solution.b + 1e-10 * abs(solution.b)])
        self.offset_ = -self.intercept_
        return self

    def _dual(self, kernel):
        return MachineDual.one_class(kernel, self.nu)

    @property
    def decision_coef_(self):
        return self.dual_coef_.T

    def score_samples(self, X):
        """sum_j lam_j K(x_j, x) for each point."""
        check_is_fitted(self)
        X = self.check_points(X, reset=False)
        return self.expansion(X, self.dual_coef_[0]).astype(X.dtype, copy=False)

    def decision_function(self, X):
        """`score_samples` minus `offset_`: positive for inliers."""
        return self.score_samples(X) - self.offset_.astype(np.float64)

    def predict(self, X):
        """+1 for inliers, -1 for outliers."""
        check_is_fitted(self)
        return np.where(self.decision_function(X) >= 0, 1, -1)
