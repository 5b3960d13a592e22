"""Rows of sparse points in the graphs of gradients: `SparseRows` as CSR, `DenseRows` written out.

A sum over pairs of the points themselves, K(X), is computed from CSR rows, and has gradients by the numbers of the
kernel. A sum over pairs of features of the points, such as X / s with a width for each feature, is computed from dense
rows, those that have an adjoint or a multiplier only, and has gradients by what the features depend on.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot

from symsvm.compiler.lifting import MEMORY

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Graph

__all__ = ["DenseRows", "SparseRows", "rows_of", "sparse_input"]


class _HeldRows(Op):
    """Rows i of a CSR matrix that is held: a constant of the graph, which no graph copies."""

    __props__ = ()

    def __init__(self, matrix: Any):
        self.matrix = matrix

    def __eq__(self, other):
        return type(self) is type(other) and self.matrix is other.matrix

    def __hash__(self):
        return hash((type(self), id(self.matrix)))

    def connection_pattern(self, node):
        """No output varies smoothly with the indices."""
        return [[False] * len(node.outputs)]

    def pullback(self, inputs, outputs, cotangents):
        """Indices do not change."""
        return [inputs[0].zeros_like(dtype="float64")]

    def perform(self, node, inputs, outputs):
        """Take the rows."""
        found = self.solve(*inputs)
        for output, value in zip(outputs, found if isinstance(found, tuple) else (found,), strict=True):
            output[0] = value


class SparseRows(_HeldRows):
    """Rows of a CSR matrix as its three arrays: entries, their features, and where each row begins."""

    def make_node(self, i):
        """Make the node."""
        return Apply(self, [pt.as_tensor(i)], [pt.dvector(), pt.lvector(), pt.lvector()])

    def solve(self, i: Array) -> tuple[Array, Array, Array]:
        """Return the arrays in numbers."""
        some = self.matrix[i]
        return some.data.astype("float64"), some.indices.astype("int64"), some.indptr.astype("int64")


class DenseRows(_HeldRows):
    """Rows of a CSR matrix, written out."""

    def make_node(self, i):
        """Make the node."""
        return Apply(self, [pt.as_tensor(i)], [pt.matrix(dtype="float64", shape=(None, self.matrix.shape[1]))])

    def solve(self, i: Array) -> Array:
        """Return the rows in numbers."""
        size = 8 * len(i) * self.matrix.shape[1]
        if size > MEMORY:
            raise ValueError(
                f"the gradient by what features of sparse points depend on needs {len(i)} rows with all their "
                f"{self.matrix.shape[1]} features in memory ({size / 2**30:.1f} GiB): use fewer features."
            )
        return np.ascontiguousarray(self.matrix[i].toarray(), dtype="float64")


def sparse_input(graph: Graph, sparse: dict[Any, Any]) -> Any:
    """Return the sparse input that a graph depends on, None without one.

    Parameters
    ----------
    graph : TensorVariable
        The graph.
    sparse : dict of TensorVariable to CSR matrix
        The sparse inputs.

    Returns
    -------
    TensorVariable or None
        The input.
    """
    found = [x for x in ancestors([graph]) if x in sparse]
    return found[0] if found else None


def rows_of(graph: Graph, i: Graph, sparse: dict[Any, Any]) -> Graph:
    """Return graph[i] for a graph whose row k depends on row k of a sparse input, from dense rows of that input.

    Parameters
    ----------
    graph : TensorVariable
        Features of points, (m, ...).
    i : TensorVariable
        The indices of rows.
    sparse : dict of TensorVariable to CSR matrix
        The sparse inputs.

    Returns
    -------
    TensorVariable
        The rows.
    """
    x = sparse_input(graph, sparse)
    if not _is_by_rows(graph, x):
        raise TypeError(
            "the gradient over sparse points needs features that are computed row by row, by elementwise functions and "
            "products with matrices: give dense points."
        )
    return clone_replace([graph], {x: DenseRows(sparse[x])(i)}, rebuild_strict=False)[0]


def _is_by_rows(graph: Any, x: Any) -> bool:
    """Whether row k of a graph is a function of row k of x alone."""
    if graph is x:
        return True
    node = graph.owner
    if node is None or x not in set(ancestors([graph])):
        return False
    on_x = [v for v in node.inputs if x in set(ancestors([v]))]
    if isinstance(node.op, Elemwise):
        return all(v.ndim == graph.ndim and _is_by_rows(v, x) for v in on_x) and all(
            v in on_x or v.type.broadcastable[0] for v in node.inputs
        )
    if isinstance(node.op, DimShuffle):
        return bool(node.op.new_order) and node.op.new_order[0] == 0 and _is_by_rows(node.inputs[0], x)
    return isinstance(node.op, Dot) and on_x == [node.inputs[0]] and _is_by_rows(node.inputs[0], x)
