"""The spectrum of a Gram matrix: is it positive semi-definite, and what is its largest eigenvalue?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from symsvm._lib.validation import points
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.kernels import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array

__all__ = ["Mercer", "lambda_max", "mercer"]


class Mercer(NamedTuple):
    """The ends of the spectrum of (K + K') / 2, and whether K is positive semi-definite up to rounding.

    Parameters
    ----------
    smallest, largest : float
        The eigenvalues at the ends.
    is_symmetric, is_psd : bool
        Whether K is symmetric; and whether it is positive semi-definite as well.
    """

    smallest: float
    largest: float
    is_symmetric: bool
    is_psd: bool


def mercer(kernel: Kernel, X: ArrayLike, *, mode: str | None = None) -> Mercer:
    """Check Mercer's condition on points: the smallest eigenvalue of K(X, X) must be at least 0.

    Rounding moves eigenvalues by about m eps max|eigenvalue|; a smallest one above minus that counts as 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array of shape (m, d)
        The points.
    mode : str or None
        The backend, "NUMBA" by default.

    Returns
    -------
    Mercer
        The ends of the spectrum, and what follows from them.

    Examples
    --------
    >>> from symsvm.kernels import Linear, Sigmoid
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> mercer(Linear(), X, mode="FAST_COMPILE").is_psd, mercer(Sigmoid(), X, mode="FAST_COMPILE").is_psd
    (True, False)
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")
    Z = points(X)
    kernel.check_points(Z)
    K = KernelEvaluator(kernel, mode=mode).block(Z, Z)
    if not np.isfinite(K).all():
        raise ValueError(f"{kernel!r} gives values that are not finite on these points.")
    values = np.linalg.eigvalsh((K + K.T) / 2)
    rounding = len(Z) * np.finfo(K.dtype).eps * float(np.abs(values).max())
    symmetric = bool(np.abs(K - K.T).max() <= rounding)
    return Mercer(float(values[0]), float(values[-1]), symmetric, symmetric and bool(values[0] >= -rounding))


def lambda_max(matvec: Callable[[Array], Array], m: int, *, tol: float = 1e-4) -> float:
    """The largest eigenvalue, in absolute value, of a symmetric matrix from its products, by Lanczos' iteration.

    It needs a fraction of the products of power iteration, and its residual bounds the error, where power iteration can
    stagnate far from the eigenvalue. The start is fixed: the same input gives the same bits.

    >>> A = np.diag([1.0, 2.0, 5.0, 3.0])
    >>> round(lambda_max(lambda v: A @ v, 4), 6)
    5.0
    """
    if m <= 2:  # too small for ARPACK
        return float(np.abs(np.linalg.eigvalsh(np.column_stack([matvec(e) for e in np.eye(m)]))).max())
    from scipy.sparse.linalg import LinearOperator, eigsh

    if not np.isfinite(matvec(np.ones(m))).all():
        return np.nan
    start = 1 + 0.1 * np.random.default_rng(0).standard_normal(m)
    operator = LinearOperator((m, m), matvec=lambda v: matvec(v.ravel()), dtype="float64")  # pyright: ignore[reportCallIssue]
    values = eigsh(operator, k=1, which="LM", tol=tol, v0=start, return_eigenvectors=False)  # pyright: ignore
    return float(np.abs(values[0]))
