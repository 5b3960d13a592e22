"""The points of a linear model, dense or sparse, with a constant feature s for the intercept.

::

    f = X w + s b,     v = (X'z, s sum z),     M = [X s]' Psi [X s]

u = (w, b) has d + 1 entries, also without an intercept (s = 0). A sparse X is not copied; products with float32 points
are summed in float64. Compiled loops get the points as `arrays`, the dense matrix or the three arrays of CSR, and
access a row with `dot`, `add` and `prefetch`.
"""

# pyright: reportCallIssue=false
# (pyright takes the signatures of Numba's intrinsics and of calls with unpacked arrays for others than they are.)

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from symsvm._lib.code_cache import njit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array

__all__ = ["LOOP", "Rows", "add", "dot", "inner", "prefetch", "prefetch_pointer"]

# Options of compiled functions. The compiler may reorder sums, always in the same way.
_FAST: Any = {"fastmath": {"reassoc", "contract", "nsz"}, "error_model": "numpy"}
LOOP: Any = {"cache": True, "nogil": True, **_FAST}

# Where `Rows.normal` uses BLAS and where loops, which are faster for:
_FEW_FEATURES = 64  # dense points with at most this many features
_FEW_PRODUCTS = 2**25  # sparse points with at most this many products of two entries of a row
_CHUNK = 2**20  # the number of entries that one product of matrices handles

_SMALL = 20_000  # entries up to which a problem is solved to machine precision, which then takes milliseconds


def inner(a: Array, b: Array) -> float:
    """Return a.b, by one thread: BLAS starts several, which costs more than such vectors do."""
    return float(np.einsum("i,i->", a, b))


def dot(arrays: Any, i: Any, u: Any) -> Any:
    """Return x_i.u over the features of row i; in compiled loops only."""
    raise NotImplementedError


def add(arrays: Any, i: Any, a: Any, u: Any) -> None:
    """Add a x_i to u; in compiled loops only."""
    raise NotImplementedError


def prefetch(arrays: Any, i: Any) -> None:
    """Start to load row i into the cache; in compiled loops only.

    Passes in random order wait for memory more than they compute. The order is known in advance, so a loop can prefetch
    the rows that come soon. It changes the time and nothing else.
    """
    raise NotImplementedError


def prefetch_pointer(arrays: Any, i: Any) -> None:
    """Start to load the pointer to a sparse row i, which `prefetch` reads; in compiled loops only."""
    raise NotImplementedError


@overload(dot, jit_options=_FAST)
def _dot(arrays, i, u):
    if isinstance(arrays, types.Array):

        def dense(arrays, i, u):
            total, row = 0.0, arrays[i]
            for j in range(row.shape[0]):
                total += row[j] * u[j]
            return total

        return dense

    def sparse(arrays, i, u):
        data, indices, indptr = arrays
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * u[indices[k]]
        return total

    return sparse


@overload(add, jit_options=_FAST)
def _add(arrays, i, a, u):
    if isinstance(arrays, types.Array):

        def dense(arrays, i, a, u):
            row = arrays[i]
            for j in range(row.shape[0]):
                u[j] += a * row[j]

        return dense

    def sparse(arrays, i, a, u):
        data, indices, indptr = arrays
        for k in range(indptr[i], indptr[i + 1]):
            u[indices[k]] += a * data[k]

    return sparse


@intrinsic
def _prefetch(typingctx, array, index):
    """Start to load entry `index` of a contiguous array, and its cache line."""

    def code(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(function, [address, number(0), number(3), number(1)])  # for reading, with high locality, as data
        return context.get_dummy_value()

    return types.void(array, types.int64), code


@overload(prefetch)
def _prefetch_row(arrays, i):
    if isinstance(arrays, types.Array):  # the hardware prefetches the rest of a dense row
        return lambda arrays, i: _prefetch(arrays, i * arrays.shape[1])

    def sparse(arrays, i):
        data, indices, indptr = arrays
        begin = indptr[i]
        _prefetch(data, begin)
        _prefetch(data, begin + 8)
        _prefetch(indices, begin)

    return sparse


@overload(prefetch_pointer)
def _prefetch_pointer(arrays, i):
    if isinstance(arrays, types.Array):
        return lambda arrays, i: None
    return lambda arrays, i: _prefetch(arrays[2], i)


@njit(**LOOP)
def _product(arrays, s, u, f):
    constant = s * u[len(u) - 1]
    for i in range(len(f)):
        f[i] = dot(arrays, i, u) + constant


@njit(**LOOP)
def _transposed(arrays, s, z, v):
    total = 0.0
    for i in range(len(z)):
        if z[i] != 0:
            add(arrays, i, z[i], v)
            total += z[i]
    v[len(v) - 1] = s * total


@njit(**LOOP)
def _squares(data, indptr, out):
    for i in range(len(out)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += float(data[k]) * float(data[k])
        out[i] = total


@njit(**LOOP)
def _diagonal(data, indices, indptr, psi, out):
    for i in range(len(psi)):
        if psi[i] != 0:
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += psi[i] * data[k] * data[k]


@njit(**LOOP)
def _repeats(indices, indptr, d):
    """Whether a row contains a feature twice."""
    seen = np.full(d, -1)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if seen[indices[k]] == i:
                return True
            seen[indices[k]] = i
    return False


@njit(**LOOP)
def _transpose(data, indices, indptr, n, d, s):
    """The columns of [X s] in CSC, from the rows in CSR."""
    begins = np.zeros(d + 2, dtype=np.uint64)
    for k in range(len(indices)):
        begins[indices[k] + 1] += np.uint64(1)
    for j in range(d):
        begins[j + 1] += begins[j]
    begins[d + 1] = begins[d] + np.uint64(n)
    place = begins[: d + 1].copy()
    values, points = np.empty(len(data) + n, dtype=data.dtype), np.empty(len(data) + n, dtype=np.uint32)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            values[place[j]], points[place[j]] = data[k], i
            place[j] += np.uint64(1)
    for i in range(n):
        values[begins[d] + np.uint64(i)], points[begins[d] + np.uint64(i)] = s, i
    return values, points, begins


@njit(**LOOP)
def _add_sparse_normal(data, indices, indptr, s, psi, M):
    """The upper triangle of M += [X s]' Psi [X s], of rows with sorted indices."""
    d = M.shape[0] - 1
    for i in range(len(psi)):
        if psi[i] != 0:
            for k in range(indptr[i], indptr[i + 1]):
                a, row = psi[i] * data[k], M[indices[k]]
                for l in range(k, indptr[i + 1]):
                    row[indices[l]] += a * data[l]
                row[d] += a * s
            M[d, d] += psi[i] * s * s


@njit(**LOOP)
def _add_dense_normal(X, s, psi, M):
    """The upper triangle of M += [X s]' Psi [X s], four rows at a time, of dense points with few features."""
    n, d = X.shape
    block, filled = np.zeros((4, d + 1)), 0
    weights = np.zeros(4)
    for i in range(n + 1):
        if i < n and psi[i] != 0:
            row = block[filled]
            for j in range(d):
                row[j] = X[i, j]
            row[d] = s
            weights[filled] = psi[i]
            filled += 1
        if filled == 4 or (i == n and filled):
            for k in range(filled, 4):
                weights[k] = 0.0
            x0, x1, x2, x3 = block[0], block[1], block[2], block[3]
            for j in range(d + 1):
                a0, a1, a2, a3 = weights[0] * x0[j], weights[1] * x1[j], weights[2] * x2[j], weights[3] * x3[j]
                out = M[j]
                for k in range(j, d + 1):
                    out[k] += a0 * x0[k] + a1 * x1[k] + a2 * x2[k] + a3 * x3[k]
            filled = 0


class Rows:
    """The points X (n, d), dense or sparse, and the constant feature s.

    Parameters
    ----------
    X : array_like or sparse matrix
        The points, one per row. CSR with float32 or float64 is not copied.
    s : float
        The constant feature of the intercept; 0 for none.

    Attributes
    ----------
    n, d : int
        The number of points and of features.
    sparse : bool
        Whether X is sparse.
    arrays : ndarray or tuple of ndarray
        The points as compiled loops take them.

    Examples
    --------
    >>> rows = Rows(np.array([[1.0, 2.0], [3.0, 4.0]]), s=1.0)
    >>> rows.product(np.array([1.0, 0.0, 0.5])).tolist(), rows.transposed(np.array([1.0, -1.0])).tolist()
    ([1.5, 3.5], [-2.0, -2.0, 0.0])
    """

    def __init__(self, X: ArrayLike | scipy.sparse.sparray | scipy.sparse.spmatrix, s: float = 0.0) -> None:
        self.s = float(s)
        self.sparse = scipy.sparse.issparse(X)
        points: Any = X
        if self.sparse:
            points = points.tocsr()
            if points.dtype not in ("float32", "float64"):
                points = points.astype("float64")
            if _repeats(*_unsigned(points)[1:], points.shape[1]):
                points = points.copy()
                points.sum_duplicates()
            self.arrays: Any = _unsigned(points)
            values = points.data
        else:
            points = np.asarray(points)
            points = np.ascontiguousarray(points, dtype=None if points.dtype in ("float32", "float64") else "float64")
            self.arrays = values = points
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(f"X must be (points, features) with at least one of each, got the shape {points.shape}.")
        self.X = points
        self.n, self.d = points.shape
        low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))  # NaN if there is one
        if not np.isfinite([low, high]).all():
            raise ValueError("X must be finite, got an entry that is infinite or not a number.")
        most = max(-low, high)
        if most > np.sqrt(np.finfo("float64").max / (self.d + 1)):
            raise ValueError(
                f"X has entries of up to {most:.3g}, whose squares exceed the range of float64. Scale the features."
            )

    @property
    def is_small(self) -> bool:
        """Whether a problem with these points is solved to machine precision, which takes milliseconds."""
        return self.n * self.d <= _SMALL

    def product(self, u: Array) -> Array:
        """Return f = X w + s b.

        Parameters
        ----------
        u : ndarray
            The weights (w, b), (d + 1,).

        Returns
        -------
        ndarray
            The values f (n,).
        """
        f = np.empty(self.n)
        _product(self.arrays, self.s, u, f)
        return f

    def transposed(self, z: Array) -> Array:
        """Return v = (X'z, s sum z).

        Parameters
        ----------
        z : ndarray
            The coefficients (n,).

        Returns
        -------
        ndarray
            The vector v (d + 1,).
        """
        v = np.zeros(self.d + 1)
        _transposed(self.arrays, self.s, z, v)
        return v

    @functools.cached_property
    def squares(self) -> Array:
        """The squared norms of (x_i, s)."""
        if not self.sparse:
            return np.einsum("ij,ij->i", self.X, self.X, dtype="float64") + self.s**2
        squares = np.empty(self.n)
        _squares(self.arrays[0], self.arrays[2], squares)
        return squares + self.s**2

    @functools.cached_property
    def _sorted_arrays(self) -> tuple[Array, Array, Array]:
        X = self.X
        return self.arrays if X.has_sorted_indices else _unsigned(X.sorted_indices())

    def normal(self, psi: Array) -> Array:
        """Return M = [X s]' Psi [X s], from the rows with psi_i > 0.

        Parameters
        ----------
        psi : ndarray
            The diagonal of Psi (n,).

        Returns
        -------
        ndarray
            The matrix M (d + 1, d + 1).
        """
        d = self.d
        M = np.zeros((d + 1, d + 1))
        few = not self.sparse and d <= _FEW_FEATURES
        numbers = len(self.arrays[0]) if self.sparse else self.n * d
        if few or (self.sparse and (8 * numbers < self.n * d or numbers**2 < _FEW_PRODUCTS * self.n)):
            if few:
                _add_dense_normal(self.arrays, self.s, psi, M)
            else:
                _add_sparse_normal(*self._sorted_arrays, self.s, psi, M)
            M[np.tril_indices(d + 1, -1)] = M.T[np.tril_indices(d + 1, -1)]
            return M
        used = np.flatnonzero(psi)
        chunk = max(1024, _CHUNK // (d + 1))
        for k in range(0, len(used), chunk):
            part = used[k : k + chunk]
            X = self.X[part].toarray() if self.sparse else self.X[part]
            scaled = np.empty((len(part), d + 1))
            np.multiply(X, np.sqrt(psi[part])[:, None], out=scaled[:, :d])
            scaled[:, d] = self.s * np.sqrt(psi[part])
            M += scaled.T @ scaled
        return M

    def curvature(self, psi: Array) -> Array:
        """Return the diagonal of M: sum_i psi_i x_ij^2, and s^2 sum psi.

        Parameters
        ----------
        psi : ndarray
            The diagonal of Psi (n,).

        Returns
        -------
        ndarray
            The diagonal (d + 1,).
        """
        out = np.zeros(self.d + 1)
        if self.sparse:
            _diagonal(*self.arrays, psi, out)
        else:
            for k in range(0, self.n, 2048):
                out[:-1] += psi[k : k + 2048] @ np.square(self.X[k : k + 2048], dtype="float64")
        out[-1] = self.s**2 * psi.sum()
        return out

    @functools.cached_property
    def flat(self) -> tuple[Array, Array, Array]:
        """The values, their features and where each row begins; if X is dense, one list of features for all rows."""
        if self.sparse:
            return self.arrays
        begins = np.arange(self.n + 1, dtype="uint64") * np.uint64(self.d)
        return self.X.ravel(), np.arange(self.d, dtype="uint32"), begins

    @functools.cached_property
    def columns(self) -> tuple[Array, Array, Array]:
        """The columns of [X s]: values, points and where each begins; if X is dense, one list of points for all."""
        if not self.sparse:
            XT = np.empty((self.d + 1, self.n), dtype=self.X.dtype)
            XT[: self.d], XT[self.d] = self.X.T, self.s
            begins = np.arange(self.d + 2, dtype="uint64") * np.uint64(self.n)
            return XT.ravel(), np.arange(self.n, dtype="uint32"), begins
        return _transpose(*self.arrays, self.n, self.d, self.s)


def _unsigned(X: Any) -> tuple[Array, Array, Array]:
    """The arrays of a CSR matrix with unsigned indices: compiled loops then omit the test for negative ones."""
    indices = X.indices.view("uint32") if X.indices.dtype == "int32" else X.indices.astype("uint32")
    return X.data, indices, X.indptr.astype("uint64")
