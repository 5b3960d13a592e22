"""The evaluation of one pair expression, or of one kernel, on given rows, in tiles of bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.mode import get_mode
from pytensor.graph.traversal import ancestors

from symsvm._lib.validation import is_symbolic
from symsvm.compiler.functions import resolve_mode
from symsvm.compiler.ops.squared_distances import centre
from symsvm.compiler.reading.pair_expression import PairExpression
from symsvm.compiler.rewrites.products import SMALL_MATRIX
from symsvm.evaluation.cross_matrix import (
    GivenCrossMatrix,
    GraphCrossMatrix,
    NumpyCrossMatrix,
    RowwiseCrossMatrix,
    TiledCrossMatrix,
)
from symsvm.evaluation.sparse_parts import drop_unused_features, evaluate_sparse_rows
from symsvm.evaluation.thin_points import centred
from symsvm.kernels import Precomputed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.compile.mode import Mode as PyTensorMode

    from symsvm._lib.types import Array, Points
    from symsvm.compiler.ops import KernelForm
    from symsvm.kernels import Kernel

    CrossMatrix = TiledCrossMatrix | GivenCrossMatrix | GraphCrossMatrix
    # One array for each row input of an expression: all have the same number of rows.
    Rows = tuple[Any, ...]

__all__ = ["KernelEvaluator", "PairEvaluator"]

# Entries of a matrix between the same points that NumPy computes.
_SMALL_GRAM = 2**15
# A model is small if its points times their features, and some for the rest of an entry, are fewer: one row takes
# NumPy some microseconds.
_SMALL_MODEL, _ENTRY_COST = 2**15, 16
# Features up to which any number of sparse rows is made dense.
_DENSE_FEATURES = 64
# Bytes of a Gram matrix that is held for many products.
_OPERATOR_BYTES = 2**29


class PairEvaluator:
    """Evaluate one `PairExpression` on given rows: a block of the matrix of pairs, or its product with vectors.

    On Numba the expression's `KernelForm` runs in the generated loops, a vectorised epilogue on tiles of sums over
    features; an expression without a form, and every other backend, evaluates its graph a tile of rows at a time.
    Numbers are inputs of what is compiled: other values compile nothing again.

    Parameters
    ----------
    expression : PairExpression
        The expression.
    values : sequence of array
        The values of its numbers.
    dtype : {"float64", "float32"}
        The type to compute in.
    mode : str, pytensor Mode or None
        The backend; see `resolve_mode`.
    """

    def __init__(
        self,
        expression: PairExpression,
        values: Sequence[Array],
        *,
        dtype: str = "float64",
        mode: str | PyTensorMode | None = None,
    ):
        self.expression, self.dtype, self._mode = expression, dtype, resolve_mode(mode)
        self._values = [np.asarray(x, dtype=v.dtype) for v, x in zip(expression.numbers, values, strict=True)]

    def between(self, A: Rows, B: Rows) -> CrossMatrix:
        """The matrix between two sets of rows, for many blocks and products; points may be CSR."""
        form = self.expression.form() if self._mode is get_mode("NUMBA") else None
        if form is None:
            return GraphCrossMatrix(self._compiled, *_both(_dense, A, B), self.dtype)
        kind = _kind(A, B)
        if kind is not TiledCrossMatrix:
            A, B = _both(_dense, A, B)
        elif _is_sparse(A) != _is_sparse(B):
            A, B = _sparse(A), _sparse(B)
        return self._tiled(kind, *self._bind(form, A, B), _count(A), _count(B))

    def _tiled(self, kind: type[TiledCrossMatrix], *bound: Any) -> TiledCrossMatrix:
        """A matrix with the loops that others of the same form and storage have compiled."""
        form, storage = self.expression.form(self.dtype), bound[0]
        assert form is not None
        pairs = kind(form.without_weights(_scaled(form, storage, self.dtype)), *bound, dtype=self.dtype)
        pairs.loops = self.expression.loops.setdefault((pairs.storage, self.dtype), {})
        return pairs

    def square(self, A: Rows) -> TiledCrossMatrix:
        """The matrix between rows and themselves whose halves go with those of others, by `TiledCrossMatrix.across`.

        Nothing in it depends on how many rows there are, nor on which others.
        """
        form = self.expression.form() if self._mode is get_mode("NUMBA") else None
        if form is None:
            raise ValueError(
                "this kernel, or this mode, has no loops for rows that live elsewhere: use a kernel of sums over "
                "features, such as RBF, with the mode NUMBA."
            )
        return self._tiled(TiledCrossMatrix, *self._bind(form, A, A, narrow=False), _count(A), _count(A))

    def centres(self, pairs: TiledCrossMatrix) -> dict[int, Array]:
        """What float32 subtracts from the points in each channel of squared differences, by its index."""
        found, i = {}, 0
        for index, (channel, kinds) in enumerate(zip(pairs.form.channels, pairs.storage, strict=True)):
            if channel.h.is_squared_difference and kinds == ("dense", "dense"):
                found[index] = centre(pairs.data[i + 1])
            i += sum(1 if kind == "dense" else 3 for kind in kinds) + ("csr" in kinds) + len(channel.weights)
        return found

    def like(self, pairs: CrossMatrix, centres: dict[int, Array] | None = None) -> CrossMatrix:
        """The same matrix in the type of this evaluator, from that of another evaluator of the same expression.

        `centres` are those of `centres` for more points, of which the matrix has some.
        """
        if isinstance(pairs, TiledCrossMatrix):
            data = _cast(pairs.form, pairs.storage, pairs.data, self.dtype, centres)
            return self._tiled(type(pairs), pairs.storage, data, *pairs.shape)
        if isinstance(pairs, GraphCrossMatrix):
            return GraphCrossMatrix(self._compiled, pairs.A, pairs.B, self.dtype)
        return GivenCrossMatrix(pairs.gram, pairs.A, pairs.B, self.dtype)

    def _compiled(self, name: str, build: Callable) -> Callable[..., Array]:
        """The function of (rows, columns, further inputs) of a graph over the matrix, cached under this name."""
        inputs, output = build(self.expression.matrix)
        compiled = self.expression.function(name, output, self._mode, inputs)
        return lambda *given: np.asarray(compiled(*given, *self._values))

    def _bind(self, form: KernelForm, A: Rows, B: Rows, *, narrow: bool = True) -> tuple[tuple, list[Any]]:
        """The storage of a form's channels, and its numbers for these rows; `narrow` drops features that are 0."""
        A, B = _both(lambda side: _stored(side, self.expression.rows), A, B)
        for a, b in zip(A, B, strict=True):
            if a.shape[1:] != b.shape[1:]:
                raise ValueError(f"points must have the same features, got {a.shape[1]} and {b.shape[1]}.")
        self.expression.check_lengths(A, self._values)
        values = iter(self._evaluate(form, A, B))
        storage, data = [], []
        for channel in form.channels:
            kind, width = [], None
            pair, weights = (next(values), next(values)), [next(values) for _ in channel.weights]
            if narrow:
                pair, weights = drop_unused_features(channel.h, *pair, weights)
            for value in pair:
                is_sparse = hasattr(value, "tocsr")
                data += [value.data, value.indices, value.indptr] if is_sparse else [value]
                kind.append("csr" if is_sparse else "dense")
                width = value.shape[1]
            data += [width] if "csr" in kind else []
            data += weights
            storage.append(tuple(kind))
        data += [value if value.ndim else np.float64(value) for value in values]
        return tuple(storage), data if self.dtype == "float64" else _cast(form, storage, data, self.dtype)

    def _evaluate(self, form: KernelForm, A: Rows, B: Rows) -> list[Any]:
        """The values of the parts of a form, in float64."""
        parts, where, compiled = self.expression.parts(form, A is B)
        if any(hasattr(side, "tocsr") for side in (*A, *B)):
            of_features = {w for channel in form.channels for w in channel.weights}
            sources = self._sources([None if v in of_features else v for v in parts], where, A is B)
            results = evaluate_sparse_rows(compiled, A, B, self._values, sources)
        else:
            results = compiled(*A, *B, *self._values)
        results = [np.require(v, dtype="float64", requirements=["C", "W"]) for v in results]
        given = dict(zip((*self.expression.rows, *self.expression.columns), (*A, *B), strict=True))
        return [given[v] if v in given else results[i] for v, i in zip(parts, where, strict=True)]

    def _sources(self, parts: Sequence[Any], where: Sequence[Any], same: bool) -> list[int | None]:
        """For each result of the parts: whether it depends on the rows (0), on the columns (1) or on neither (None)."""
        rows, columns, sources = set(self.expression.rows), set(self.expression.columns), {}
        for part, i in zip(parts, where, strict=True):
            if i is not None:
                above = set() if part is None else set(ancestors([part]))
                sources[i] = 0 if above & rows else None if not above & columns else 0 if same else 1
        return [sources[i] for i in range(len(sources))]


class KernelEvaluator(PairEvaluator):
    """Evaluate one kernel on given points: a `PairEvaluator` of its expression.

    >>> from symsvm.kernels import Linear
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> KernelEvaluator(Linear(), mode="FAST_COMPILE").block(X, X).tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """

    def __init__(self, kernel: Kernel, *, dtype: str = "float64", mode: str | PyTensorMode | None = None):
        self.kernel = kernel
        values = []
        kernel.lift(lambda name, value: values.append(np.asarray(value, dtype="float64")))
        super().__init__(PairExpression.of_kernel(kernel), values, dtype=dtype, mode=mode)

    def block(self, A: Points, B: Points) -> Array:
        """The matrix K(a_i, b_j), (n_A, n_B)."""
        return self.between(A, B).block()

    def matvec(self, A: Points, B: Points, q: Array) -> Array:
        """The vector sum_j K(a_i, b_j) q_j, (n_A,), or one column for each of q (n_B, p), without the matrix."""
        return self.between(A, B).matvec(q)

    def operator(self, X: Points) -> Callable[[Array], Array]:
        """The function v -> K(X, X) v for many v; the matrix is held where it fits, else computed each time."""
        pairs = self.between(X, X)
        if _count((X,)) ** 2 * np.dtype(self.dtype).itemsize > _OPERATOR_BYTES:
            return pairs.matvec
        K = pairs.block()
        return lambda v: K @ v

    def square(self, A: Any) -> TiledCrossMatrix:
        """The kernel matrix of points, dense or CSR, whose halves go with those of others."""
        return super().square((A,))

    def between(self, A: Any, B: Any) -> CrossMatrix:
        """The kernel matrix between two sets of points, dense or CSR, for many blocks and products."""
        if isinstance(self.kernel, Precomputed) and not is_symbolic(self.kernel.gram):
            rows, columns = (np.asarray(side)[:, 0].astype("int64") for side in (A, B))
            return GivenCrossMatrix(np.asarray(self.kernel.gram), rows, columns, self.dtype)
        rows = (A,)
        return super().between(rows, rows if A is B else (B,))


def _count(side: Rows) -> int:
    """The number of rows."""
    return np.shape(side[0])[0]


def _both(change: Callable[[Rows], Rows], A: Rows, B: Rows) -> tuple[Rows, Rows]:
    """Both sides, changed; one stays one."""
    left = change(A)
    return left, left if A is B else change(B)


def _dense(side: Rows) -> Rows:
    """The rows with dense points."""
    return tuple(array.toarray() if hasattr(array, "tocsr") else array for array in side)


def _kind(A: Rows, B: Rows) -> type[TiledCrossMatrix]:
    """How to evaluate a matrix. For a few points NumPy is done before any loop is compiled.

    Predictions, of rows A from other ones B, must not depend on their number: B alone decides.
    """
    width = sum(array.shape[1] if np.ndim(array) == 2 or hasattr(array, "tocsr") else 1 for array in B)
    is_sparse = _is_sparse(A) or _is_sparse(B)
    if A is not B:
        is_small = _count(B) * (width + _ENTRY_COST) < _SMALL_MODEL and not (is_sparse and width > _DENSE_FEATURES)
        return RowwiseCrossMatrix if is_small else TiledCrossMatrix
    is_small = _count(B) ** 2 < _SMALL_GRAM and not (is_sparse and _count(B) * width > SMALL_MATRIX)
    return NumpyCrossMatrix if is_small else TiledCrossMatrix


def _is_sparse(side: Rows) -> bool:
    return any(hasattr(array, "tocsr") for array in side)


def _sparse(side: Rows) -> Rows:
    """The rows with points as CSR."""
    from scipy.sparse import csr_matrix

    return tuple(csr_matrix(array) if np.ndim(array) == 2 or hasattr(array, "tocsr") else array for array in side)


def _cast(
    form: KernelForm,
    storage: Sequence[Any],
    data: Sequence[Any],
    dtype: str,
    centres: dict[int, Array] | None = None,
) -> list[Any]:
    """The same arrays and numbers in another type; indices stay as they are, and one array stays one.

    Differences of points do not depend on a centre: without it, points far from the origin would lose them. Points of
    the channels `_scaled` are multiplied by their weights.
    """
    data, made, i, scaled = list(data), {}, 0, _scaled(form, storage, dtype)
    for index, (channel, kinds) in enumerate(zip(form.channels, storage, strict=True)):
        size = sum(1 if kind == "dense" else 3 for kind in kinds) + ("csr" in kinds) + len(channel.weights)
        if channel.h.is_squared_difference and kinds == ("dense", "dense"):
            A, B, *weights = data[i : i + size]
            c = centre(B) if centres is None else centres[index]
            w = weights[0] if index in scaled else None
            a = centred(A, c, w, dtype)
            weights = weights if w is None else []
            data[i : i + size] = [a, a if A is B else centred(B, c, w, dtype), *weights]
            size = 2 + len(weights)
        i += size
    for value in data:
        if id(value) not in made:
            is_index = not isinstance(value, (np.ndarray, np.floating)) or value.dtype.kind != "f"
            made[id(value)] = value if is_index else value.astype(dtype, copy=False)
    return [made[id(value)] for value in data]


def _scaled(form: KernelForm, storage: Sequence[Any], dtype: str) -> list[int]:
    """The channels of squared differences whose points are multiplied by the weights, once, before any loop.

    In float64 the loops multiply the differences themselves, which keeps their digits; in float32 points have lost them
    anyway. The loops of sparse rows have the weights outside the loop over columns, where they cost nothing.
    """
    if dtype == "float64":
        return []
    return [
        i
        for i, (channel, kinds) in enumerate(zip(form.channels, storage, strict=True))
        if channel.h.is_squared_difference and channel.weights and kinds == ("dense", "dense")
    ]


def _stored(side: Rows, inputs: Sequence[Any]) -> Rows:
    """The rows in the types of the inputs, dense or CSR as they are."""
    return tuple(
        array.tocsr().astype(v.dtype)
        if hasattr(array, "tocsr")
        else np.require(array, dtype=v.dtype, requirements=["C", "W"])
        for array, v in zip(side, inputs, strict=True)
    )
