"""Oracle: numbers from a kernel and points, in tiles of bounded memory, and what follows from them."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt

from symsvm.compiler import function
from symsvm.kernels import Kernel
from symsvm.validation import points

__all__ = ["Mercer", "Oracle", "lambda_max", "mercer"]

# Entries of the largest array inside a tile, (rows, n, d) for a kernel that subtracts points: 4 MB of float64.
_TILE = 2**19
# Bytes of a Gram matrix that is kept for many products.
_KEEP = 2**29


class Oracle:
    """Evaluate one kernel on given points: a block of the Gram matrix, or its product with a vector.

    Numbers in the kernel are inputs of the compiled functions, so another sigma compiles nothing anew on Numba, whose
    cache lies on disk.

    >>> from symsvm.kernels import Linear
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> Oracle(Linear(), mode="FAST_COMPILE").block(X, X).tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """

    def __init__(self, kernel, *, dtype="float64", mode=None):
        self._hyper, self._values = [], []
        lifted = kernel.lift(self._input)
        self.kernel, self.dtype, self._mode = kernel, dtype, mode
        A, B = pt.tensor("A", dtype=dtype, shape=(None, None)), pt.tensor("B", dtype=dtype, shape=(None, None))
        self._A, self._B, self._K = A, B, lifted(A, B)
        self._functions = {}

    def _input(self, name, value):
        value = np.asarray(value, dtype="float64")
        variable = pt.tensor(name, dtype="float64", shape=(None,) * value.ndim)
        self._hyper.append(variable)
        self._values.append(value)
        return variable

    def block(self, A, B):
        """The matrix K(a_i, b_j), (n_A, n_B)."""
        return self._tiled("block", lambda K: ([], K), A, B)

    def matvec(self, A, B, q):
        """The vector sum_j K(a_i, b_j) q_j, (n_A,), without the matrix."""
        q_in = pt.tensor("q", dtype=self.dtype, shape=(None,))
        return self._tiled("matvec", lambda K: ([q_in], K @ q_in), A, B, np.asarray(q, dtype=self.dtype))

    def operator(self, X):
        """The function v -> K(X, X) v, for many v: it keeps the matrix where that fits, else computes it each time."""
        if len(X) ** 2 * np.dtype(self.dtype).itemsize > _KEEP:
            return lambda v: self.matvec(X, X, v)
        K = self.block(X, X)
        return lambda v: K @ v

    def _tiled(self, name, build, A, B, *more):
        A, B = np.asarray(A, dtype=self.dtype), np.asarray(B, dtype=self.dtype)
        if name not in self._functions:
            inputs, output = build(self._K)
            self._functions[name] = function([self._A, self._B, *inputs, *self._hyper], output, mode=self._mode)
        compiled, (n, d) = self._functions[name], B.shape
        rows = max(1, _TILE // (n * d))
        tiles = [np.asarray(compiled(A[i : i + rows], B, *more, *self._values)) for i in range(0, len(A), rows)]
        return np.concatenate(tiles)


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
    K = Oracle(kernel, mode=mode).block(X, X)
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
