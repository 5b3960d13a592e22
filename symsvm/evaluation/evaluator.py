"""The evaluation of one kernel on given points, in tiles of bounded memory."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.replace import clone_replace

from symsvm._lib.validation import is_symbolic
from symsvm.compiler.functions import function, resolve_mode
from symsvm.compiler.matvec import kernel_form
from symsvm.compiler.ops.scalar_function import NotElementwise
from symsvm.compiler.rewrites.products import SMALL_MATRIX
from symsvm.evaluation.cross_matrix import GivenCrossMatrix, GraphCrossMatrix, NumpyCrossMatrix, TiledCrossMatrix
from symsvm.graphs.structure import signature
from symsvm.kernels import Precomputed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor.compile.mode import Mode as PyTensorMode

    from symsvm._lib.types import Array, Graph, Points
    from symsvm.compiler.ops import KernelForm
    from symsvm.kernels import Kernel

    CrossMatrix = TiledCrossMatrix | GivenCrossMatrix | GraphCrossMatrix

__all__ = ["KernelEvaluator"]

# NumPy by Python: sums over points are not worth a compilation, nor what PyTensor's other modes import.
_PLAIN = Mode("py", "fast_compile")
# Rows of sparse points that are made dense at a time.
_DENSE_ROWS = 1024
# Bytes of a Gram matrix that is held for many products.
_OPERATOR_BYTES = 2**29


class KernelEvaluator:
    """Evaluate one kernel on given points: a block of the Gram matrix, or its product with vectors.

    On Numba the kernel's `KernelForm` runs in the generated loops, a vectorised epilogue on tiles of sums over
    features; a kernel without a form, and every other backend, evaluates the graph of the kernel a tile of rows at a
    time. Numbers in the kernel are inputs of what is compiled: another sigma compiles nothing again.

    >>> from symsvm.kernels import Linear
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> KernelEvaluator(Linear(), mode="FAST_COMPILE").block(X, X).tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """

    def __init__(self, kernel: Kernel, *, dtype: str = "float64", mode: str | PyTensorMode | None = None):
        self.kernel, self.dtype, self._mode = kernel, dtype, resolve_mode(mode)
        self._symbols = _symbols(kernel, dtype)

    @functools.cached_property
    def _values(self) -> list[Array]:
        """The numbers in the kernel, in the order of their inputs."""
        values = []
        self.kernel.lift(lambda name, value: values.append(np.asarray(value, dtype="float64")))
        return values

    def block(self, A: Points, B: Points) -> Array:
        """The matrix K(a_i, b_j), (n_A, n_B)."""
        return self.between(A, B).block()

    def matvec(self, A: Points, B: Points, q: Array) -> Array:
        """The vector sum_j K(a_i, b_j) q_j, (n_A,), or one column for each of q (n_B, p), without the matrix."""
        return self.between(A, B).matvec(q)

    def operator(self, X: Points) -> Callable[[Array], Array]:
        """The function v -> K(X, X) v for many v; the matrix is held where it fits, else computed each time."""
        pairs = self.between(X, X)
        if _count(X) ** 2 * np.dtype(self.dtype).itemsize > _OPERATOR_BYTES:
            return pairs.matvec
        K = pairs.block()
        return lambda v: K @ v

    def between(self, A: Points, B: Points) -> CrossMatrix:
        """The kernel matrix between two sets of points, dense or CSR, for many blocks and products."""
        if isinstance(self.kernel, Precomputed) and not is_symbolic(self.kernel.gram):
            rows, columns = (np.asarray(side)[:, 0].astype("int64") for side in (A, B))
            return GivenCrossMatrix(np.asarray(self.kernel.gram), rows, columns, self.dtype)
        small = _count(A) * _count(B) < SMALL_MATRIX
        if small or self._mode is not get_mode("NUMBA"):
            A, B = (_dense(A),) * 2 if A is B else (_dense(A), _dense(B))
        is_centred = not (hasattr(A, "tocsr") or hasattr(B, "tocsr"))
        form = self._symbols.form(is_centred) if self._mode is get_mode("NUMBA") else None
        if form is None:
            return GraphCrossMatrix(self._compiled, _dense(A), _dense(B), self.dtype)
        # For a few points NumPy is done before any loop is compiled.
        return self._tiled(NumpyCrossMatrix if small else TiledCrossMatrix, is_centred, *self._bind(form, A, B))

    def _tiled(self, kind: type[TiledCrossMatrix], is_centred: bool, *bound: Any) -> TiledCrossMatrix:
        """A matrix with the loops that others of the same form and storage have compiled."""
        form = self._symbols.form(is_centred)
        assert form is not None
        pairs = kind(form, *bound, dtype=self.dtype, is_centred=is_centred)
        pairs.loops = self._symbols.loops.setdefault((is_centred, pairs.storage), {})
        return pairs

    def like(self, pairs: CrossMatrix) -> CrossMatrix:
        """The same matrix in the type of this evaluator, from that of another evaluator of the same kernel."""
        if isinstance(pairs, TiledCrossMatrix):
            bound = pairs.storage, _cast(pairs.data, self.dtype), *pairs.shape
            return self._tiled(type(pairs), pairs.is_centred, *bound)
        if isinstance(pairs, GraphCrossMatrix):
            return GraphCrossMatrix(self._compiled, pairs.A, pairs.B, self.dtype)
        return GivenCrossMatrix(pairs.gram, pairs.A, pairs.B, self.dtype)

    def _compiled(self, name: str, build: Callable) -> Callable[..., Array]:
        """The function of (A, B, further inputs) of a graph over the matrix of pairs, cached under this name."""
        inputs, output = build(self._symbols.gram)
        compiled = self._symbols.function(name, output, self._mode, inputs)
        return lambda *given: np.asarray(compiled(*given, *self._values))

    def _bind(self, form: KernelForm, A: Any, B: Any) -> tuple[tuple, list[Any], int, int]:
        """The storage of a form's channels, and its numbers for these points."""
        same = A is B
        A = _stored(A, self.dtype)
        B = A if same else _stored(B, self.dtype)
        if A.shape[1] != B.shape[1]:
            raise ValueError(f"points must have the same features, got {A.shape[1]} and {B.shape[1]}.")
        values = iter(self._evaluate(form, A, B))
        storage, data = [], []
        for channel in form.channels:
            kind = []
            for value in (next(values), next(values)):
                is_sparse = hasattr(value, "tocsr")
                data += [value.data, value.indices, value.indptr] if is_sparse else [value]
                kind.append("csr" if is_sparse else "dense")
            data += [A.shape[1]] if "csr" in kind else []
            data += [next(values) for _ in channel.weights]
            storage.append(tuple(kind))
        number = np.dtype(self.dtype).type
        data += [value if value.ndim else number(value) for value in values]
        return tuple(storage), data, A.shape[0], B.shape[0]

    def _evaluate(self, form: KernelForm, A: Any, B: Any) -> list[Any]:
        """The values of the parts of a form."""
        parts, where, compiled = self._symbols.parts(form, A is B)
        if hasattr(A, "tocsr") or hasattr(B, "tocsr"):
            results = self._in_rows(compiled, A, B)
        else:
            results = compiled(A, B, *self._values)
        results = [np.require(v, dtype=self.dtype, requirements=["C", "W"]) for v in results]
        given = {self._symbols.A: A, self._symbols.B: B}
        return [given[v] if v in given else results[i] for v, i in zip(parts, where, strict=True)]

    def _in_rows(self, compiled: Callable, A: Any, B: Any) -> list[Array]:
        """The parts of sparse points, made dense some rows at a time: vectors have one value for each row."""
        results = []
        for i in range(0, max(1, A.shape[0], B.shape[0]), _DENSE_ROWS):
            tiles = [_dense(side[i : i + _DENSE_ROWS]) for side in ((A,) if A is B else (A, B))]
            results.append(compiled(tiles[0], tiles[-1], *self._values))
        return [np.concatenate(v) if v[0].ndim and v[0].shape[0] != 0 else v[0] for v in zip(*results, strict=True)]


def _count(side: Any) -> int:
    """The number of points."""
    return np.shape(side)[0]


def _dense(side: Any) -> Array:
    """The points as a dense array."""
    return side.toarray() if hasattr(side, "tocsr") else side


def _cast(data: Sequence[Any], dtype: str) -> list[Any]:
    """The same arrays and numbers in another type; indices stay as they are, and one array stays one."""
    made = {}
    for value in data:
        if id(value) not in made:
            is_index = not isinstance(value, (np.ndarray, np.floating)) or value.dtype.kind != "f"
            made[id(value)] = value if is_index else value.astype(dtype)
    return [made[id(value)] for value in data]


def _stored(side: Any, dtype: str) -> Any:
    """The points in a type, dense or CSR as they are."""
    if hasattr(side, "tocsr"):
        return side.tocsr().astype(dtype)
    return np.require(side, dtype=dtype, requirements=["C", "W"])


class _Symbols:
    """The graphs of a kernel over two sets of points, and what was compiled from them, for all its numbers."""

    def __init__(self, kernel: Kernel, dtype: str):
        self.A, self.B = (pt.tensor(name, dtype=dtype, shape=(None, None)) for name in "AB")
        self.hyper = []
        self.kernel = kernel.lift(self._input)
        self._forms, self._parts, self._functions, self.loops = {}, {}, {}, {}

    def _input(self, name, value):
        self.hyper.append(pt.tensor(name, dtype="float64", shape=(None,) * np.ndim(value)))
        return self.hyper[-1]

    @functools.cached_property
    def gram(self) -> Graph:
        """The graph of the matrix of pairs."""
        return self.kernel(self.A, self.B)

    def form(self, centred: bool) -> KernelForm | None:
        """The form of the kernel, None if it has none."""
        if centred not in self._forms:
            try:
                self._forms[centred] = kernel_form(self.kernel, self.A, self.B, centred=centred)
            except NotElementwise:
                self._forms[centred] = None
        return self._forms[centred]

    def parts(self, form: KernelForm, same: bool) -> tuple[list[Graph], list[Any], Callable]:
        """The inputs of the loops: their graphs, the index of each among the results, the function of these.

        Where both sets of points are the same, so are most arrays of one and of the other: they are computed once.
        """
        key = form, same
        if key not in self._parts:
            parts = [v for c in form.channels for v in (c.A, c.B, *c.weights)]
            parts += [*form.rows, *form.columns, *form.numbers]
            graphs: Any = clone_replace(parts, {self.B: self.A}) if same else parts
            inputs, different, where = [self.A, self.B, *self.hyper], {}, []
            for part, graph in zip(parts, graphs, strict=True):
                name = None if part in (self.A, self.B) else signature(inputs, [graph])
                where.append(None if name is None else different.setdefault(name, (len(different), graph))[0])
            compiled = function(inputs, [graph for _, graph in different.values()], mode=_PLAIN, trust_input=True)
            self._parts[key] = parts, where, compiled
        return self._parts[key]

    def function(self, name: str, output: Graph, mode: PyTensorMode, inputs: Sequence[Graph] = ()) -> Callable:
        """The compiled function of (A, B, the inputs, the hyper-parameters)."""
        key = name, mode
        if key not in self._functions:
            inputs = [self.A, self.B, *inputs, *self.hyper]
            self._functions[key] = function(inputs, output, mode=mode)
        return self._functions[key]


_SYMBOLS = {}


def _symbols(kernel: Kernel, dtype: str) -> _Symbols:
    key = kernel.key, dtype
    if key not in _SYMBOLS:
        _SYMBOLS[key] = _Symbols(kernel, dtype)
    return _SYMBOLS[key]
