"""Rows: the points of a linear model, dense or sparse, with a constant feature s for the intercept.

    f = X w + s b,     v = (X'z, s sum z),     M = [X s]' Psi [X s]

u = (w, b) has d + 1 entries, also without an intercept (s = 0). A sparse X is read as it is, row by row; products with
float32 points are summed in float64.
"""

import functools

import numpy as np
import scipy.sparse
from numba import njit, types
from numba.extending import overload

__all__ = ["FAST", "Rows", "add", "dot", "inner"]

# Sums may be reordered by the compiler, always in the same way.
FAST = {"fastmath": {"reassoc", "contract", "nsz"}, "error_model": "numpy"}
_LOOP = {"cache": True, "nogil": True, **FAST}
_CHUNK = 2**20  # numbers that a product of matrices is worth its while for
_FEW = 64  # dense features up to which loops beat it
_LOOPS = 2**25  # products of two numbers of a row up to which loops beat it, whatever else the threads do
_SMALL = 20_000  # numbers up to which a problem is solved to the last digit, in milliseconds


def inner(a, b):
    """a.b by one thread: BLAS wakes others for vectors that are not worth it."""
    return float(np.einsum("i,i->", a, b))


def dot(parts, i, u):
    """x_i.u over the features of the row i; in compiled loops only."""
    raise NotImplementedError


def add(parts, i, a, u):
    """u += a x_i; in compiled loops only."""
    raise NotImplementedError


@overload(dot, jit_options=FAST)
def _dot(parts, i, u):
    if isinstance(parts, types.Array):

        def dense(parts, i, u):
            total, row = 0.0, parts[i]
            for j in range(row.shape[0]):
                total += row[j] * u[j]
            return total

        return dense

    def sparse(parts, i, u):
        data, indices, indptr = parts
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * u[indices[k]]
        return total

    return sparse


@overload(add, jit_options=FAST)
def _add(parts, i, a, u):
    if isinstance(parts, types.Array):

        def dense(parts, i, a, u):
            row = parts[i]
            for j in range(row.shape[0]):
                u[j] += a * row[j]

        return dense

    def sparse(parts, i, a, u):
        data, indices, indptr = parts
        for k in range(indptr[i], indptr[i + 1]):
            u[indices[k]] += a * data[k]

    return sparse


@njit(**_LOOP)
def _product(parts, s, u, f):
    constant = s * u[len(u) - 1]
    for i in range(len(f)):
        f[i] = dot(parts, i, u) + constant


@njit(**_LOOP)
def _transposed(parts, s, z, v):
    total = 0.0
    for i in range(len(z)):
        if z[i] != 0:
            add(parts, i, z[i], v)
            total += z[i]
    v[len(v) - 1] = s * total


@njit(**_LOOP)
def _squares(data, indptr, out):
    for i in range(len(out)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += float(data[k]) * float(data[k])
        out[i] = total


@njit(**_LOOP)
def _diagonal(data, indices, indptr, psi, out):
    for i in range(len(psi)):
        if psi[i] != 0:
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += psi[i] * data[k] * data[k]


@njit(**_LOOP)
def _repeats(indices, indptr, d):
    """Whether a row has a feature twice."""
    seen = np.full(d, -1)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if seen[indices[k]] == i:
                return True
            seen[indices[k]] = i
    return False


@njit(**_LOOP)
def _turned(data, indices, indptr, n, d, s):
    """The columns of [X s]."""
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


@njit(**_LOOP)
def _pairs(data, indices, indptr, s, psi, M):
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


@njit(**_LOOP)
def _squared(X, s, psi, M):
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
    """The points X (n, d), dense or CSR, and the constant feature s, 0 for none.

    >>> rows = Rows(np.array([[1.0, 2.0], [3.0, 4.0]]), s=1.0)
    >>> rows.product(np.array([1.0, 0.0, 0.5])).tolist(), rows.transposed(np.array([1.0, -1.0])).tolist()
    ([1.5, 3.5], [-2.0, -2.0, 0.0])
    """

    def __init__(self, X, s=0.0):
        self.s = float(s)
        self.sparse = scipy.sparse.issparse(X)
        if self.sparse:
            X = X.tocsr()
            if X.dtype not in ("float32", "float64"):
                X = X.astype("float64")
            if _repeats(*_unsigned(X)[1:], X.shape[1]):
                X = X.copy()
                X.sum_duplicates()
            self.parts = _unsigned(X)
            values = X.data
        else:
            X = np.asarray(X)
            X = np.ascontiguousarray(X, dtype=None if X.dtype in ("float32", "float64") else "float64")
            self.parts = values = X
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"X must be (points, features) with at least one of each, got the shape {X.shape}.")
        if not np.isfinite(values.sum(dtype="float64")) and not np.isfinite(values).all():
            raise ValueError("X must be finite, got an entry that is infinite or not a number.")
        self.X = X
        self.n, self.d = X.shape

    @property
    def small(self):
        """Whether solving to the last digit takes no longer than it takes to notice."""
        return self.n * self.d <= _SMALL

    def product(self, u):
        """f = X w + s b."""
        f = np.empty(self.n)
        _product(self.parts, self.s, u, f)
        return f

    def transposed(self, z):
        """(X'z, s sum z)."""
        v = np.zeros(self.d + 1)
        _transposed(self.parts, self.s, z, v)
        return v

    @functools.cached_property
    def squares(self):
        """|x_i|^2 + s^2."""
        if not self.sparse:
            return np.einsum("ij,ij->i", self.X, self.X, dtype="float64") + self.s**2
        squares = np.empty(self.n)
        _squares(self.parts[0], self.parts[2], squares)
        return squares + self.s**2

    @functools.cached_property
    def _sorted(self):
        X = self.X
        return self.parts if X.has_sorted_indices else _unsigned(X.sorted_indices())

    def normal(self, psi):
        """M = [X s]' Psi [X s] (d + 1, d + 1), from the rows with psi_i > 0."""
        d = self.d
        M = np.zeros((d + 1, d + 1))
        few = not self.sparse and d <= _FEW
        numbers = len(self.parts[0]) if self.sparse else self.n * d
        if few or (self.sparse and (8 * numbers < self.n * d or numbers**2 < _LOOPS * self.n)):
            if few:
                _squared(self.parts, self.s, psi, M)
            else:
                _pairs(*self._sorted, self.s, psi, M)
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

    def curvature(self, psi):
        """The diagonal of M: sum_i psi_i x_ij^2, and s^2 sum psi."""
        out = np.zeros(self.d + 1)
        if self.sparse:
            _diagonal(*self.parts, psi, out)
        else:
            for k in range(0, self.n, 2048):
                out[:-1] += psi[k : k + 2048] @ np.square(self.X[k : k + 2048], dtype="float64")
        out[-1] = self.s**2 * psi.sum()
        return out

    @functools.cached_property
    def flat(self):
        """Values, features and where each row begins; all features if X is dense."""
        if self.sparse:
            return self.parts
        begins = np.arange(self.n + 1, dtype="uint64") * np.uint64(self.d)
        return self.X.ravel(), np.arange(self.d, dtype="uint32"), begins

    @functools.cached_property
    def columns(self):
        """[X s]' (d + 1, n), a feature a row: values, points and where each row begins; all points if X is dense."""
        if not self.sparse:
            XT = np.empty((self.d + 1, self.n), dtype=self.X.dtype)
            XT[: self.d], XT[self.d] = self.X.T, self.s
            begins = np.arange(self.d + 2, dtype="uint64") * np.uint64(self.n)
            return XT.ravel(), np.arange(self.n, dtype="uint32"), begins
        return _turned(*self.parts, self.n, self.d, self.s)


def _unsigned(X):
    """The arrays of a CSR or CSC matrix, with indices that cannot count from the end: loops need not ask."""
    indices = X.indices.view("uint32") if X.indices.dtype == "int32" else X.indices.astype("uint32")
    return X.data, indices, X.indptr.astype("uint64")
