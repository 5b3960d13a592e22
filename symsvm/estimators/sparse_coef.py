"""Weights of linear classifiers as a sparse matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.dense import as_dense

if TYPE_CHECKING:
    from typing import Self

__all__ = ["SparseCoef"]


class SparseCoef:
    """A mixin of estimators with `coef_`, which `sparsify` and `densify` convert, as in scikit-learn."""

    coef_: Any

    def densify(self) -> Self:
        """Convert `coef_` to an array, which it is after a fit.

        Returns
        -------
        self
            The estimator.
        """
        check_is_fitted(self)
        self.coef_ = as_dense(self.coef_)
        return self

    def sparsify(self) -> Self:
        """Convert `coef_` to a CSR matrix, which takes less memory if most weights are 0, as those of the l1 penalty.

        `partial_fit` converts it back.

        Returns
        -------
        self
            The estimator.
        """
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self
