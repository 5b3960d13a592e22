"""TiledCrossMatrix: all pairs of two sets of points, for blocks of a kernel's matrix and products with it."""

import contextlib
import functools

import numpy as np
import pytensor.tensor as pt

from symsvm.compiler.ops.kernel_ops import KernelGram, KernelMatvec

__all__ = ["GivenCrossMatrix", "GraphCrossMatrix", "NumpyCrossMatrix", "TiledCrossMatrix"]

# Entries of the largest array inside a tile of a compiled graph, (rows, n, d) for a kernel that subtracts points.
_TILE = 2**19
# Multiplications that are not worth another core.
_SHORT = 2**24


def _fits(array, shape):
    """The array, if it has this shape: the loops do not look."""
    if array.shape != shape:
        raise ValueError(f"expected an array of shape {shape}, got {array.shape}.")
    return array


class TiledCrossMatrix:
    """All pairs of two sets of points, ready for the loops: any block of K, any product with its columns.

    `rows` and `columns` choose points by index, all of them by default; what is not chosen costs nothing.
    """

    def __init__(self, form, kinds, data, m, n, *, dtype, is_centred):
        self.form, self.kinds, self.data, self.shape, self.dtype = form, kinds, data, (m, n), dtype
        self.is_centred, self.loops = is_centred, {}

    def block(self, rows=None, columns=None, out=None):
        """K(x_i, z_j) for the chosen i and j, in the first columns of `out` if it is given."""
        rows, columns = self._chosen(rows, 0), self._chosen(columns, 1)
        out = np.empty((len(rows), len(columns)), self.dtype) if out is None else out
        if out.ndim != 2 or len(out) != len(rows) or out.shape[1] < len(columns):  # the loops do not look
            raise ValueError(f"expected room for {len(rows)} x {len(columns)} numbers, got {out.shape}.")
        self._run("block", rows, columns, np.empty((0, 0), self.dtype), out)
        return out

    def matvec(self, q, rows=None, columns=None, out=None):
        """sum_j K(x_i, z_j) q_j over the chosen j, added to `out` (float64) if it is given."""
        rows, columns = self._chosen(rows, 0), self._chosen(columns, 1)
        q = _fits(np.asarray(q), (len(columns), *np.shape(q)[1:]))
        right = np.require(np.atleast_2d(q.T), dtype=self.dtype, requirements=["C", "W"])
        total = np.zeros((len(rows), *q.shape[1:])) if out is None else _fits(out, (len(rows), *q.shape[1:]))
        self._run("matvec", rows, columns, right, total[:, None] if q.ndim == 1 else total)
        return total

    def _chosen(self, index, axis):
        if index is None:
            return np.arange(self.shape[axis])
        index = np.require(index, dtype="int64", requirements=["C", "W"])
        if index.size and not 0 <= index.min() <= index.max() < self.shape[axis]:
            raise IndexError(f"indices must be from 0 to {self.shape[axis] - 1}, got {index.min()} to {index.max()}.")
        return index

    def _run(self, want, rows, columns, q, out):
        from symsvm._lib.threads import exclusive, single_core  # Numba is loaded when it is first needed
        from symsvm.compiler.ops.tiles import compile_tiles

        if want not in self.loops:
            form = self.form
            counts = len(form.rows), len(form.columns), len(form.numbers)
            hs = [channel.h for channel in form.channels]
            tiles, _ = compile_tiles(form.epilogue, hs, *counts, want, self.kinds)
            self.loops[want] = exclusive(tiles)
        with single_core() if len(rows) * len(columns) * self._cost < _SHORT else contextlib.nullcontext():
            self.loops[want](rows, columns, *self.data, q, out)

    @functools.cached_property
    def _cost(self):
        """About how many multiplications an entry costs: its features, and as much as ten for the rest."""
        entries = sum(np.size(array) for array in self.data if np.ndim(array))
        return 10 + entries / (2 * max(1, *self.shape))


class NumpyCrossMatrix(TiledCrossMatrix):
    """The same in NumPy, without compiled loops."""

    def _run(self, want, rows, columns, q, out):
        form = self.form
        op = KernelGram if want == "block" else KernelMatvec
        hs = [channel.h for channel in form.channels]
        op = op(form.epilogue, hs, len(form.rows), len(form.columns), len(form.numbers))
        channels, u, v, theta, _ = op.split(self.data)
        inputs = [x for A, B, weights in channels for x in (A[rows], B[columns], *weights)]
        inputs += [*(x[rows] for x in u), *(x[columns] for x in v), *theta]
        storage = [None]
        op.perform(None, [*inputs, q.T] if want == "matvec" else inputs, [storage])
        if want == "matvec":
            out += storage[0]
        else:
            out[:, : len(columns)] = storage[0]


class GivenCrossMatrix:
    """All pairs of points that stand for rows of a given matrix."""

    def __init__(self, gram, A, B, dtype):
        self.gram, self.A, self.B, self.shape, self.dtype = gram, A, B, (len(A), len(B)), dtype

    def block(self, rows=None, columns=None, out=None):
        """K_ij for the chosen i and j, in the first columns of `out` if it is given."""
        A, B = (side if i is None else side[i] for side, i in ((self.A, rows), (self.B, columns)))
        K = self.gram[np.ix_(A, B)].astype(self.dtype)
        if out is None:
            return K
        out[:, : K.shape[1]] = K
        return out

    def matvec(self, q, rows=None, columns=None, out=None):
        """sum_j K_ij q_j over the chosen j, added to `out` if it is given."""
        total = self.block(rows, columns) @ np.asarray(q, dtype=self.dtype)
        if out is None:
            return total
        out += total
        return out


class GraphCrossMatrix:
    """All pairs of two sets of points, from the compiled graph of the kernel, a tile of rows at a time.

    `compiled(name, build)` is the function of (A, B, further inputs) of a graph over the matrix of pairs: `build(K)`
    returns the further inputs and the graph.
    """

    def __init__(self, compiled, A, B, dtype):
        self.compiled, self.shape, self.dtype = compiled, (len(A), len(B)), dtype
        self.A, self.B = (np.asarray(side, dtype=dtype) for side in (A, B))

    def block(self, rows=None, columns=None, out=None):
        """K(x_i, z_j) for the chosen i and j, in the first columns of `out` if it is given."""
        K = self._tiled("block", lambda K: ([], K), rows, columns)
        if out is None:
            return K
        out[:, : K.shape[1]] = K
        return out

    def matvec(self, q, rows=None, columns=None, out=None):
        """sum_j K(x_i, z_j) q_j over the chosen j, added to `out` if it is given."""
        q = np.asarray(q, dtype=self.dtype)
        given = pt.tensor("q", dtype=q.dtype, shape=(None,) * q.ndim)
        total = self._tiled(f"matvec{q.ndim}", lambda K: ([given], K @ given), rows, columns, q)
        if out is None:
            return total
        out += total
        return out

    def _tiled(self, name, build, rows, columns, *more):
        A, B = (side if i is None else side[i] for side, i in ((self.A, rows), (self.B, columns)))
        f, step = self.compiled(name, build), max(1, _TILE // max(1, B.size))
        starts = range(0, max(1, len(A)), step)  # one at least, for the shape
        return np.concatenate([f(A[i : i + step], B, *more) for i in starts])
