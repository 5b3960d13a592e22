"""Oracle: numbers from a kernel and points, in tiles of bounded memory, and what follows from them."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt

from symsvm.compiler import function
from symsvm.validation import points

__all__ = ["Mercer", "Oracle", "lambda_max", "mercer"]

# Entries of the largest array inside a tile, (rows, n, d) for a kernel that subtracts points: 16 MB of float64.
_TILE = 2**21


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
    """The ends of the spectrum of a Gram matrix, and whether it is positive semi-definite up to rounding."""

    smallest: float
    largest: float
    is_psd: bool


def mercer(kernel, X, *, mode=None):
    """Check Mercer's condition on points: is the smallest eigenvalue of K(X, X) at least 0?

    Rounding moves eigenvalues by about m eps max|eigenvalue|; a smallest one above minus that counts as 0.

    >>> from symsvm.kernels import Linear, Sigmoid
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> mercer(Linear(), X, mode="FAST_COMPILE").is_psd, mercer(Sigmoid(), X, mode="FAST_COMPILE").is_psd
    (True, False)
    """
    X = points(X)
    kernel.check_points(X)
    K = Oracle(kernel, mode=mode).block(X, X)
    values = np.linalg.eigvalsh((K + K.T) / 2)
    largest = float(np.abs(values).max())
    return Mercer(float(values[0]), float(values[-1]), bool(values[0] >= -len(X) * np.finfo(K.dtype).eps * largest))


def lambda_max(matvec, m, *, tol=1e-4, max_iter=200):
    """The largest eigenvalue, in absolute value, of a symmetric matrix by power iteration.

    v <- A v / |A v| until |A v| moves by less than `tol` relative, which leaves it below the eigenvalue by some ten
    times that at the most seen. The start is fixed (ones, with a small fixed disturbance so that no eigenvector is
    missed), so that the same input gives the same bits.

    >>> A = np.diag([1.0, 2.0, 5.0])
    >>> round(lambda_max(lambda v: A @ v, 3), 2)
    5.0
    """
    v = 1 + 0.1 * np.random.default_rng(0).standard_normal(m)
    v /= np.linalg.norm(v)
    estimate = 0.0
    for _ in range(max_iter):
        Av = matvec(v)
        norm = float(np.linalg.norm(Av))
        if norm == 0.0:
            return 0.0
        settled = abs(norm - estimate) <= tol * norm
        estimate, v = norm, Av / norm
        if settled:
            break
    return estimate
