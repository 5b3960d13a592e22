"""LinearSVR: regression by a linear machine, for many points or features, with scikit-learn's interface."""

import functools

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.validation import choice, number
from symsvm.estimators.linear_machine import LinearMachine
from symsvm.estimators.weights import sample_weights
from symsvm.linear import solve_linear

__all__ = ["LinearSVR"]


class LinearSVR(RegressorMixin, LinearMachine):
    """Linear support vector regression for large problems, with liblinear's problem and a certificate.

        minimise R(w, b) + sum_i C_i loss(|y_i - x_i.w - b| - epsilon),    loss(t) = max(0, t) or max(0, t)^2

    Parameters
    ----------
    epsilon : half the width of the tube inside which an error costs nothing.
    loss : "epsilon_insensitive" or "squared_epsilon_insensitive".
    The others are those of `LinearSVC`.

    Attributes
    ----------
    coef_ (d,), intercept_ (1,), n_iter_ : as in scikit-learn.
    certificate_, trace_ : how good the fit is, in float64, and how it came about.
    """

    def __init__(
        self,
        *,
        epsilon=0.0,
        tol=1e-4,
        C=1.0,
        loss="epsilon_insensitive",
        penalty="l2",
        fit_intercept=True,
        intercept_scaling=1.0,
        penalize_intercept=True,
        dual="auto",
        verbose=0,
        random_state=None,
        max_iter=1000,
        time_limit=None,
        warm_start=False,
    ):
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.penalize_intercept = penalize_intercept
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start

    def fit(self, X, y, sample_weight=None):
        """Fit the machine to points (m, d), dense or CSR, and their targets."""
        X, y = self.check_points(X, y, y_numeric=True)
        weights = sample_weights(sample_weight, X)
        choice(self.loss, "loss", ("epsilon_insensitive", "squared_epsilon_insensitive"))
        used = np.flatnonzero(weights)
        points, targets = (X[used], y[used]) if len(used) < len(y) else (X, y)
        C = number(self.C, "C", positive=True) * weights[used]
        self._begin_fit()
        options = self._options() | self._intercept_options() | {"epsilon": self.epsilon}
        options |= {"loss": self.loss, "penalty": self.penalty}
        if self.warm_start and hasattr(self, "solutions_"):
            options["start"] = self.solutions_[0]
        rows, targets = self._rows(points), targets.astype("float64")
        solution = self._watching.solve(functools.partial(solve_linear, rows, targets, C, **options))
        self.coef_, self.intercept_ = solution.w, np.array([solution.intercept], dtype="float64")
        self._keep([solution])
        return self

    def predict(self, X):
        """x.w + b for each point."""
        check_is_fitted(self)
        X = self.check_points(X, reset=False)
        return np.asarray(X @ self.coef_.astype(X.dtype, copy=False) + X.dtype.type(self.intercept_[0]))
