"""Kernel matrices between two sets of points, K(x_i, z_j): any block, any product, by four ways of evaluation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytensor.tensor as pt

from symsvm._lib.blas import row_products
from symsvm.compiler.ops.kernel_ops import KernelGram, KernelMatvec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.compiler.ops import KernelForm

__all__ = ["GivenCrossMatrix", "GraphCrossMatrix", "NumpyCrossMatrix", "RowwiseCrossMatrix", "TiledCrossMatrix"]

# Entries of the largest array inside a tile of a compiled graph, (rows, n, d) for a kernel that subtracts points.
_TILE = 2**19
# Features from which products take less time than differences.
_LONG = 192
# Rows of a tile of predictions.
_ROWS = 64


def _of_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """The array, if it has this shape: the compiled loops do not check."""
    if array.shape != shape:
        raise ValueError(f"expected an array of shape {shape}, got {array.shape}.")
    return array


class TiledCrossMatrix:
    """A kernel matrix by the loops that the compiler generates from the kernel's `KernelForm`.

    `rows` and `columns` choose points by index, all of them by default; points that are not chosen cost nothing.
    """

    def __init__(
        self,
        form: KernelForm,
        storage: tuple[tuple[str, str], ...],
        data: Sequence[Any],
        m: int,
        n: int,
        *,
        dtype: str,
    ):
        self.form, self.storage, self.data, self.shape, self.dtype = form, storage, data, (m, n), dtype
        self.loops, self._kept = {}, {}

    def with_rows(self, X: Array) -> Self:
        """The matrix with other points x_i, where they are all that dense channels have of them."""
        data, i = list(self.data), 0
        for channel in self.form.channels:
            data[i] = X
            i += 2 + len(channel.weights)
        pairs = type(self)(self.form, self.storage, data, len(X), self.shape[1], dtype=self.dtype)
        self._kept["columns stay"] = True
        pairs.loops, pairs._kept = self.loops, self._kept
        return pairs

    def across(self, columns: TiledCrossMatrix) -> TiledCrossMatrix:
        """The matrix between the rows of this one and the columns of another of the same kernel.

        Both are of points and themselves, made by `KernelEvaluator.square`: a value has the bits that it would have in
        one matrix of all these points.
        """
        if self.storage != columns.storage:
            raise ValueError("both must be stored alike, dense or CSR.")
        data, mine, theirs = [], iter(self.data), iter(columns.data)
        for channel, kinds in zip(self.form.channels, self.storage, strict=True):
            sizes = [1 if kind == "dense" else 3 for kind in kinds]
            a, b = ([next(side) for _ in range(sum(sizes))] for side in (mine, theirs))
            data += a[: sizes[0]] + b[sizes[0] :]
            for _ in range(("csr" in kinds) + len(channel.weights)):
                data.append(next(mine))
                next(theirs)
        for side, other, count in (
            (mine, theirs, len(self.form.rows)),
            (theirs, mine, len(self.form.columns)),
            (mine, theirs, len(self.form.numbers)),
        ):
            for _ in range(count):
                data.append(next(side))
                next(other)
        pairs = type(self)(self.form, self.storage, data, self.shape[0], columns.shape[1], dtype=self.dtype)
        pairs.loops = self.loops
        return pairs

    def block(self, rows: ArrayLike | None = None, columns: ArrayLike | None = None, out: Array | None = None) -> Array:
        """K(x_i, z_j) for the chosen i and j, in the first columns of `out` if it is given."""
        i, j = self._chosen(rows, 0), self._chosen(columns, 1)
        out = np.empty((len(i), len(j)), self.dtype) if out is None else out
        if out.ndim != 2 or len(out) != len(i) or out.shape[1] < len(j):  # the compiled loops do not check
            raise ValueError(f"expected room for {len(i)} x {len(j)} numbers, got {out.shape}.")
        self._run("block", i, j, np.empty((0, 0), self.dtype), out)
        return out

    def matvec(
        self,
        q: ArrayLike,
        rows: ArrayLike | None = None,
        columns: ArrayLike | None = None,
        out: Array | None = None,
    ) -> Array:
        """sum_j K(x_i, z_j) q_j over the chosen j, added to `out` (float64) if it is given."""
        i, j = self._chosen(rows, 0), self._chosen(columns, 1)
        q = _of_shape(np.asarray(q), (len(j), *np.shape(q)[1:]))
        right = np.require(np.atleast_2d(q.T), dtype=self.dtype, requirements=["C", "W"])
        total = np.zeros((len(i), *q.shape[1:])) if out is None else _of_shape(out, (len(i), *q.shape[1:]))
        self._run("matvec", i, j, right, total[:, None] if q.ndim == 1 else total)
        return total

    def _chosen(self, index: ArrayLike | None, axis: int) -> Array:
        if index is None:
            return np.arange(self.shape[axis])
        chosen: Any = index
        if type(chosen) is not np.ndarray or chosen.dtype != np.int64 or not chosen.flags.carray:
            chosen = np.require(index, dtype="int64", requirements=["C", "W"])
        if chosen.size and chosen.view("uint64").max() >= self.shape[axis]:  # a negative number is a large one there
            least, most = chosen.min(), chosen.max()
            raise IndexError(f"indices must be from 0 to {self.shape[axis] - 1}, got {least} to {most}.")
        return chosen

    def _run(self, want: Literal["block", "matvec"], rows: Array, columns: Array, q: Array, out: Array) -> None:
        from symsvm.compiler.ops.tile_loops import compile_tiles  # Numba is loaded when it is first needed

        key = "tiles", self._multiplied
        if key not in self.loops:
            form = self.form
            counts = len(form.rows), len(form.columns), len(form.numbers)
            hs = [channel.h for channel in form.channels]
            self.loops[key] = compile_tiles(form.epilogue, hs, *counts, self.storage, multiplied=self._multiplied)
        if want == "block":
            self.loops[key].block(rows, columns, self.data, out, self._kept)
        else:
            self.loops[key].matvec(rows, columns, self.data, q, out, self._kept)

    @functools.cached_property
    def _multiplied(self) -> tuple[int, ...]:
        """The channels whose distances are computed from products: those of long rows, in float32.

        Distances in float64 confirm a result, and keep more digits as sums of squared differences.
        """
        found, i = [], 0
        for c, (channel, kinds) in enumerate(zip(self.form.channels, self.storage, strict=True)):
            is_dense = kinds == ("dense", "dense") and not channel.weights
            if is_dense and channel.h.is_squared_difference and self.data[i].shape[1] >= _LONG:
                found.append(c)
            i += sum(1 if kind == "dense" else 3 for kind in kinds) + ("csr" in kinds) + len(channel.weights)
        return tuple(found) if self.dtype == "float32" else ()


class NumpyCrossMatrix(TiledCrossMatrix):
    """The same in NumPy, without compiled loops: for a few points."""

    by_rows = False

    def _run(self, want: Literal["block", "matvec"], rows: Array, columns: Array, q: Array, out: Array) -> None:
        form = self.form
        op = self.loops.get(want)
        if op is None:
            kind, hs = KernelGram if want == "block" else KernelMatvec, [channel.h for channel in form.channels]
            op = self.loops[want] = kind(form.epilogue, hs, len(form.rows), len(form.columns), len(form.numbers))
        channels, u, v, theta, _ = op.split(self.data)
        inputs = [x for A, B, weights in channels for x in (A[rows], B[columns], *weights)]
        inputs += [*(x[rows] for x in u), *(x[columns] for x in v), *theta]
        result = op.evaluate([*inputs, q.T] if want == "matvec" else inputs, by_rows=self.by_rows)
        if want == "matvec":
            out += result
        else:
            out[:, : len(columns)] = result


class RowwiseCrossMatrix(NumpyCrossMatrix):
    """The same, one row at a time: for predictions, which must not depend on what is predicted beside a row."""

    by_rows = True


class GivenCrossMatrix:
    """A part of a given matrix: points are the numbers of its rows and columns."""

    def __init__(self, gram: Array, A: Array, B: Array, dtype: str):
        self.gram, self.A, self.B, self.shape, self.dtype = gram, A, B, (len(A), len(B)), dtype

    def block(self, rows: Array | None = None, columns: Array | None = None, out: Array | None = None) -> Array:
        """K_ij for the chosen i and j, in the first columns of `out` if it is given."""
        A, B = (side if i is None else side[i] for side, i in ((self.A, rows), (self.B, columns)))
        K = self.gram[np.ix_(A, B)].astype(self.dtype)
        if out is None:
            return K
        out[:, : K.shape[1]] = K
        return out

    def matvec(
        self, q: ArrayLike, rows: Array | None = None, columns: Array | None = None, out: Array | None = None
    ) -> Array:
        """sum_j K_ij q_j over the chosen j, added to `out` if it is given."""
        total = row_products(self.block(rows, columns), np.asarray(q, dtype=self.dtype))
        if out is None:
            return total
        out += total
        return out


class GraphCrossMatrix:
    """A matrix of pairs from its compiled graph, a tile of rows at a time; values are cast to the type asked for.

    `compiled(name, build)` is the function of (rows, columns, further inputs) of a graph over the matrix: `build(K)`
    returns the further inputs and the graph.
    """

    def __init__(
        self, compiled: Callable[..., Callable[..., Array]], A: tuple[Any, ...], B: tuple[Any, ...], dtype: str
    ):
        self.compiled, self.A, self.B, self.dtype = compiled, A, B, dtype
        self.shape = len(A[0]), len(B[0])

    def block(self, rows: Array | None = None, columns: Array | None = None, out: Array | None = None) -> Array:
        """K_ij for the chosen i and j, in the first columns of `out` if it is given."""
        K = self._tiled("block", lambda K: ([], K), rows, columns).astype(self.dtype, copy=False)
        if out is None:
            return K
        out[:, : K.shape[1]] = K
        return out

    def matvec(
        self, q: ArrayLike, rows: Array | None = None, columns: Array | None = None, out: Array | None = None
    ) -> Array:
        """sum_j K_ij q_j over the chosen j, added to `out` if it is given."""
        q = np.asarray(q, dtype="float64")
        if self.A is self.B:
            given = pt.tensor("q", dtype=q.dtype, shape=(None,) * q.ndim)
            total = self._tiled(f"matvec{q.ndim}", lambda K: ([given], K @ given), rows, columns, q)
        else:
            total = self._tiled("block", lambda K: ([], K), rows, columns, reduce=lambda K: row_products(K, q))
        if out is None:
            return total
        out += total
        return out

    def _tiled(
        self,
        name: str,
        build: Callable,
        rows: Array | None,
        columns: Array | None,
        *more: Array,
        reduce: Callable[[Array], Array] = lambda tile: tile,
    ) -> Array:
        A, B = (
            side if i is None else tuple(array[i] for array in side) for side, i in ((self.A, rows), (self.B, columns))
        )
        f, step, m = self.compiled(name, build), _TILE // max(1, sum(array.size for array in B)), len(A[0])
        step = max(1, step if self.A is self.B else min(step, _ROWS))
        starts = range(0, max(1, m), step)  # at least one, for the shape
        if self.A is not self.B and m % step and m:
            # Tiles of one shape, with copies of a row at the end: a row gives the same bits beside any other.
            A = tuple(np.concatenate([array, np.repeat(array[-1:], step - m % step, axis=0)]) for array in A)
        tiles = [reduce(f(*(array[i : i + step] for array in A), *B, *more)) for i in starts]
        return (tiles[0] if len(tiles) == 1 else np.concatenate(tiles))[:m]
