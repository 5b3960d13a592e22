"""The spectrum of a Gram matrix: is it positive semi-definite, and what is its largest eigenvalue?"""

from typing import NamedTuple

import numpy as np

from symsvm._lib.validation import points
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.kernels import Kernel

__all__ = ["Mercer", "lambda_max", "mercer"]


class Mercer(NamedTuple):
    """Ends of the spectrum of (K + K') / 2, and whether K is symmetric and positive semi-definite up to rounding."""

    smallest: float
    largest: float
    is_symmetric: bool
    is_psd: bool


def mercer(kernel, X, *, mode=None):
    """Check Mercer's condition on points: is the smallest eigenvalue of K(X, X) at least 0?

    Rounding moves eigenvalues by about m eps max|eigenvalue|; a smallest one above minus that counts as 0.

    >>> from symsvm.kernels import Linear, Sigmoid
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> mercer(Linear(), X, mode="FAST_COMPILE").is_psd, mercer(Sigmoid(), X, mode="FAST_COMPILE").is_psd
    (True, False)
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")
    X = points(X)
    kernel.check_points(X)
    K = KernelEvaluator(kernel, mode=mode).block(X, X)
    if not np.isfinite(K).all():
        raise ValueError(f"{kernel!r} gives values that are not finite on these points.")
    values = np.linalg.eigvalsh((K + K.T) / 2)
    rounding = len(X) * np.finfo(K.dtype).eps * float(np.abs(values).max())
    symmetric = bool(np.abs(K - K.T).max() <= rounding)
    return Mercer(float(values[0]), float(values[-1]), symmetric, symmetric and bool(values[0] >= -rounding))


def lambda_max(matvec, m, *, tol=1e-4):
    """The largest eigenvalue, in absolute value, of a symmetric matrix from its products, by Lanczos' iteration.

    Power iteration with memory: it needs a fraction of the products, and its residual bounds the error, where a plain
    power iteration can stand still far from the eigenvalue. The start is fixed, so that the same input gives the same
    bits.

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
    operator = LinearOperator((m, m), matvec=lambda v: matvec(v.ravel()), dtype="float64")
    return float(np.abs(eigsh(operator, k=1, which="LM", tol=tol, v0=start, return_eigenvectors=False)[0]))
