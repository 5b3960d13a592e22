"""LinearMachine: what the two linear estimators share."""

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from symsvm._lib.validation import choice, number
from symsvm.estimators.base import CertifiedEstimator
from symsvm.linear import Rows

__all__ = ["LinearMachine"]


class LinearMachine(CertifiedEstimator):
    """A linear machine, after scikit-learn's rules: the problem's options, and values x.w + b; see `LinearSVC`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def check_points(self, *data, **options):
        """X, or X and y, after scikit-learn\'s checks."""
        options |= {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        return validate_data(self, *data, **options)

    def _rows(self, X):
        """The points with the constant feature, made once for all problems over them."""
        scaling = number(self.intercept_scaling, "intercept_scaling", positive=True)
        return Rows(X, scaling if self.fit_intercept else 0.0)

    def _options(self):
        choice(self.dual, "dual", ("auto",)) if isinstance(self.dual, str) else None
        return {
            "tol": self.tol,
            "max_iter": None if self.max_iter == -1 else self.max_iter,
            "time_limit": self.time_limit,
            "seed": int(check_random_state(self.random_state).randint(2**31 - 1))
            if self.random_state is not None
            else 0,
        }

    def _intercept_options(self):
        return {
            "intercept": bool(self.fit_intercept),
            "penalize_intercept": bool(self.penalize_intercept),
            "intercept_scaling": self.intercept_scaling,
        }

    def _keep(self, solutions):
        self._end_fit()
        self.solutions_ = solutions
        self.n_iter_ = int(max(solution.n_iter for solution in solutions))

    def expansion(self, X):
        """x.w + b for each point."""
        values = X @ self.coef_.T.astype(X.dtype, copy=False) + self.intercept_.astype(X.dtype, copy=False)
        return np.asarray(values)
