"""The gradient of a sum over pairs of points by the numbers of a kernel.

    s(theta) = sum_ij W_ij K(x_i, x_j; theta),    W = C B' + D

The columns of C and B are those of the problems of a search: its folds and pairs of classes share one pass over the
pairs. D is a further matrix, of leave-one-out. For the RBF kernel with widths sigma_k, dK_ij / d log sigma_k =
K_ij (a_ik - a_jk)^2 with a_ik = x_ik / sigma_k. With the cached matrix K and M = K * W these are matrix products:

    ds / d log sigma_k = sum_i (r_i + c_i) a_ik^2 - 2 sum_i a_ik (M a)_ik,    r and c the sums of rows and columns of M

Other kernels are differentiated as graphs, by the tiled loops of `symsvm.compiler.ops`.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import grad
from sklearn.base import clone

from symsvm._lib.blas import SingleThreadedBlas
from symsvm.compiler.functions import COMPILING, function
from symsvm.compiler.lifting import tile
from symsvm.kernels import RBF
from symsvm.model_selection.shared_matrix import CachedGram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array, Points
    from symsvm.kernels import Kernel
    from symsvm.model_selection.shared_matrix import UncachedGram

__all__ = ["KernelSlopes"]

# Rows of M that are computed together.
_ROWS = 256


class KernelSlopes:
    """Differentiates sums over pairs by chosen numbers of a kernel.

    Parameters
    ----------
    kernel : Kernel
        A kernel with the numbers of any step of the search; the others are the same in all steps.
    names : sequence of str
        The names of the numbers in it, such as "sigma" or "k1__sigma"; vectors are differentiated entry by entry.
    X : array or CSR of shape (m, d)
        All points.
    """

    def __init__(self, kernel: Kernel, names: Sequence[str], X: Points) -> None:
        self._names, self._X, self._compiled = list(names), X, None
        self._is_rbf = type(kernel) is RBF
        if hasattr(X, "tocsr") and not self._is_rbf and names:
            raise TypeError(
                f"a search by gradient over sparse points takes the RBF kernel, got {kernel!r}: give dense arrays."
            )

    def __call__(
        self, kernel: Kernel, gram: CachedGram | UncachedGram, C: Array, B: Array, D: Array | None = None
    ) -> dict[str, Any]:
        """Return the gradient by each number of the kernel, a float or a vector.

        `gram` is its matrix; that of another kernel, such as the same with a constant for the intercept, is not used.
        """
        if not self._names:
            return {}
        if self._is_rbf and isinstance(gram, CachedGram) and gram.kernel is kernel:
            return {"sigma": self._by_widths(gram, C, B, D)}
        if hasattr(self._X, "tocsr"):
            raise TypeError(
                "a search by gradient over sparse points needs their kernel matrix in memory, and an intercept that is "
                "not penalised: raise `memory`, or give dense arrays."
            )
        return self._by_graph(kernel, C, B, D)

    def _by_widths(self, gram: CachedGram, C: Array, B: Array, D: Array | None) -> Any:
        sigma = np.asarray(gram.kernel.sigma, dtype="float64")
        rows, columns = _used(C, B, D)
        A: Any = self._X.multiply(1 / sigma).tocsr() if hasattr(self._X, "tocsr") else self._X / sigma
        left, right = A[rows], A[columns]
        squares = left.multiply(left) if hasattr(left, "tocsr") else left * left
        c, total = np.zeros(len(columns)), np.zeros(A.shape[1])
        right_T = right.T.tocsr() if hasattr(right, "tocsr") else None
        B_columns = np.ascontiguousarray(B[columns].T)
        with SingleThreadedBlas():
            for low in range(0, len(rows), _ROWS):
                part = slice(low, min(len(rows), low + _ROWS))
                M = C[rows[part]] @ B_columns
                if D is not None:
                    M += D[np.ix_(rows[part], columns)]
                M *= gram.K[np.ix_(rows[part], columns)] if len(columns) < gram.K.shape[1] else gram.K[rows[part]]
                c += M.sum(axis=0)
                MA = M @ right if right_T is None else (right_T @ M.T).T
                a: Any = left[part]
                both = a.multiply(MA).sum(axis=0) if right_T is not None else np.einsum("ik,ik->k", a, MA)
                total += squares[part].T @ M.sum(axis=1) - 2 * np.asarray(both).ravel()
        own = right.multiply(right) if right_T is not None else right * right
        total += own.T @ c
        return total / sigma if sigma.ndim else float(total.sum() / sigma)

    def _by_graph(self, kernel: Kernel, C: Array, B: Array, D: Array | None) -> dict[str, Any]:
        rows, columns = _used(C, B, D)
        X: Any = self._X
        if D is not None:  # D = D I
            C, B = np.hstack([C[rows], D[np.ix_(rows, columns)]]), np.hstack([B[columns], np.eye(len(columns))])
        else:
            C, B = C[rows], B[columns]
        values = [np.asarray(kernel.get_params()[name], dtype="float64") for name in self._names]
        if self._compiled is None:
            self._compiled = self._compile(kernel, [value.ndim for value in values])
        found = self._compiled(X[rows], X[columns], np.ascontiguousarray(C), np.ascontiguousarray(B), *values)
        return {name: np.asarray(g) if np.ndim(g) else float(g) for name, g in zip(self._names, found, strict=True)}

    def _compile(self, kernel: Kernel, dimensions: list[int]) -> Any:
        """The gradient as a function of points, C, B and the numbers."""
        with COMPILING:
            X, Z, C, B = pt.dmatrices("X", "Z", "C", "B")
            kinds = [pt.dvector if n else pt.dscalar for n in dimensions]
            numbers: list[Any] = [kind(name) for kind, name in zip(kinds, self._names, strict=True)]
            symbolic: Any = clone(kernel)
            symbolic.set_params(**dict(zip(self._names, numbers, strict=True)))
            (total,) = tile([(C * pt.dot(symbolic(X, Z), B)).sum()])
            return function([X, Z, C, B, *numbers], grad(total, numbers, disconnected_inputs="ignore"))


def _used(C: Array, B: Array, D: Array | None) -> tuple[Array, Array]:
    """The rows and the columns where W is not 0."""
    rows, columns = np.any(C != 0, axis=1), np.any(B != 0, axis=1)
    if D is not None:
        rows, columns = rows | np.any(D != 0, axis=1), columns | np.any(D != 0, axis=0)
    return np.flatnonzero(rows), np.flatnonzero(columns)
