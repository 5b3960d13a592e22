"""KernelGram, KernelMatvec and KernelFeatures: Ops that evaluate a `KernelForm` in tiles.

    KernelGram      K_ij                              the matrix itself
    KernelMatvec    sum_j K_ij q_j                    with no more of K in memory than a tile
    KernelFeatures  sum_j K_ij f(a_ik, b_jk, w_k)     derivatives by A where h is not a product

with K_ij = e(s_ij, ..., u_i, ..., v_j, ..., theta, ...), s_ij = sum_k h(a_ik, b_jk, w_k). A derivative of K by s, u, v
or theta is another such K, with the derivative of e as its epilogue, so a gradient of KernelMatvec is made of the same
Ops. With g the cotangent of sum_j K_ij q_jr, for p right-hand sides r, the gradients are

    q_j     sum_i K_ij g_i                                 KernelMatvec of the transposed matrix
    u_i     g_i . sum_j (de/du)_ij q_j                     KernelMatvec with another epilogue; also for v and theta
    a_ik    sum_j (de/ds)_ij (g_i . q_j) (dh/da)_ijk       with one more channel, g_i . q_j

Where h is a product or a squared difference, the last sum is a KernelMatvec too, of B, or of B and of ones. The
gradient by w_k is the sum over i of what a_ik has, with dh/dw in place of dh/da.
"""

# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false, reportIndexIssue=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedGrad, disconnected_grad, grad
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op

from symsvm._lib.blas import row_products
from symsvm.compiler.ops.registration import register
from symsvm.compiler.ops.scalar_function import ScalarFunction
from symsvm.compiler.ops.squared_distances import SquaredDistances, squared_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable

    from symsvm._lib.types import Graph
    from symsvm.compiler.ops.kernel_form import KernelForm

__all__ = ["SHAPE_ERROR", "KernelFeatures", "KernelGram", "KernelMatvec", "check_shapes"]

# Entries of the largest array that `perform` allocates in NumPy.
_PERFORM_ENTRIES = 2**20
SHAPE_ERROR = "points, vectors and right-hand sides do not fit one another."


class _PairOp(Op):
    """An Op over all pairs (i, j); its inputs are A, B and the w of each channel, the u, the v, the theta.

    Attributes
    ----------
    epilogue : ScalarFunction
        The function e.
    hs : tuple of ScalarFunction
        The function h of each channel.
    n_rows, n_columns, n_numbers : int
        How many vectors u, vectors v and numbers theta the epilogue takes.
    storage : tuple of (str, str)
        For each channel how A and B are stored, "dense" or "csr".
    result : {"block", "matvec", "features"}
        What is computed from K; see `symsvm.compiler.ops.tiles`.
    f : tuple of (int, ScalarFunction) or None
        For `features`, the index of a channel and the function of (a_ik, b_jk, w_k).
    """

    __props__ = ("epilogue", "hs", "n_rows", "n_columns", "n_numbers", "storage")
    result: Literal["block", "matvec", "features"]
    f: tuple[int, ScalarFunction] | None = None

    def __init__(
        self,
        epilogue: ScalarFunction,
        hs: Sequence[ScalarFunction],
        n_rows: int,
        n_columns: int,
        n_numbers: int,
        storage: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        self.epilogue, self.hs = epilogue, tuple(hs)
        self.n_rows, self.n_columns, self.n_numbers = n_rows, n_columns, n_numbers
        self.storage = (("dense", "dense"),) * len(self.hs) if storage is None else tuple(storage)

    @classmethod
    def of(cls, form: KernelForm, *more: Graph, transposed: bool = False) -> Graph:
        """Apply the Op to a `KernelForm`, or to its transpose."""
        hs = [channel.h for channel in form.channels]
        op = cls(form.epilogue, hs, len(form.rows), len(form.columns), len(form.numbers))
        channels = [v for channel in form.channels for v in (channel.A, channel.B, *channel.weights)]
        data = [*channels, *form.rows, *form.columns, *form.numbers]
        if transposed:
            op, data = _transpose(op, data)
        return op(*data, *more)  # pyright: ignore[reportReturnType]

    def retyped(self, dtype: str) -> _PairOp:
        """Return the Op that computes in another floating type."""
        hs = [h.retyped(dtype) for h in self.hs]
        more = {} if self.f is None else {"f": (self.f[0], self.f[1].retyped(dtype))}
        counts = self.n_rows, self.n_columns, self.n_numbers
        return type(self)(self.epilogue.retyped(dtype), hs, *counts, self.storage, **more)

    @property
    def dtype(self) -> str:
        """The floating type of the computation."""
        return self.epilogue.dtype

    def __str__(self):
        return f"{type(self).__name__}{{{self.epilogue}}}"

    def split(self, inputs):
        """Sort inputs into (A, B, weights) of each channel, u, v, theta and the rest (q)."""
        inputs, channels = list(inputs), []
        for h, storage in zip(self.hs, self.storage, strict=True):
            sides = []
            for kind in storage:
                size = 1 if kind == "dense" else 3
                part, inputs = inputs[:size], inputs[size:]
                sides.append(part[0] if kind == "dense" else tuple(part))
            size = len(h.inputs) - 2 + ("csr" in storage)
            channels.append((*sides, inputs[:size]))
            inputs = inputs[size:]
        groups = []
        for size in (self.n_rows, self.n_columns, self.n_numbers):
            groups.append(inputs[:size])
            inputs = inputs[size:]
        return channels, *groups, inputs

    def make_node(self, *inputs):
        """Make the node; inputs are cast to the type of the epilogue, except the indices of sparse matrices."""
        register()
        inputs = [pt.as_tensor(v) for v in inputs]
        inputs = [v if v.dtype.startswith("int") else v.astype(self.dtype) for v in inputs]
        return Apply(self, inputs, [self._output(inputs)])

    def _lengths(self, inputs):
        """Return the static m and n, None where unknown."""
        channels = self.split(inputs)[0]
        left = [A.type.shape[0] for A, _, _ in channels if not isinstance(A, tuple)]
        right = [B.type.shape[0] for _, B, _ in channels if not isinstance(B, tuple)]
        return tuple(next((length for length in side if length is not None), None) for side in (left, right))

    def graph(self, inputs: Sequence[Variable]) -> Graph:
        """Return the matrix K as a plain graph of the inputs, which must be dense."""
        channels, u, v, theta, _ = self.split(inputs)
        sums = [_channel_sum(h, *channel) for h, channel in zip(self.hs, channels, strict=True)]
        args = [*sums, *(r[:, None] for r in u), *(c[None, :] for c in v), *(t[None, None] for t in theta)]
        return self.epilogue.graph(args)

    def perform(self, node, inputs, outputs):
        """Compute in NumPy, for backends that have no tiled loops."""
        outputs[0][0] = self.evaluate(inputs)

    def evaluate(self, inputs: Sequence[np.ndarray], *, by_rows: bool = False) -> np.ndarray:
        """Return the output in NumPy, some rows at a time.

        Parameters
        ----------
        inputs : sequence of ndarray
            The values of the inputs.
        by_rows : bool
            Whether to multiply one row at a time, so that the result of a row does not depend on the other rows.

        Returns
        -------
        ndarray
            The value of the output.
        """
        channels, u, v, theta, more = self.split(inputs)
        channels = [_to_dense(*channel, kind) for channel, kind in zip(channels, self.storage, strict=True)]
        m, n = check_shapes(channels, u, v, more)
        rows = max(1, _PERFORM_ENTRIES // max(1, *(n * A.shape[1] for A, _, _ in channels)))
        parts = []
        for i in range(0, max(1, m), rows):  # at least once, for the shape of an empty result
            part = slice(i, i + rows)
            sums = [
                _channel_sum_numpy(h, A[part], B, w, by_rows) for h, (A, B, w) in zip(self.hs, channels, strict=True)
            ]
            K = self.epilogue(*sums, *(x[part, None] for x in u), *v, *theta)
            parts.append(self._reduce(np.broadcast_to(K, (len(sums[0]), n)), part, channels, more, by_rows))
        return np.concatenate(parts).astype(self.dtype)

    def _output(self, inputs: list) -> Graph:
        """Return the output variable."""
        raise NotImplementedError

    def _reduce(self, K: np.ndarray, part: slice, channels: list, more: list, by_rows: bool) -> np.ndarray:
        """Return the result for the rows of K in `part`."""
        raise NotImplementedError


def check_shapes(channels, u, v, more):
    """Return m and n; raise a ValueError if the shapes of the dense arrays differ (a length of 1 is not broadcast)."""
    m, n = (side.shape[0] for side in channels[0][:2])
    left = [m, *(A.shape[0] for A, _, _ in channels), *(x.shape[0] for x in u)]
    right = [n, *(B.shape[0] for _, B, _ in channels), *(x.shape[0] for x in (*v, *more))]
    widths = [{A.shape[1], B.shape[1], *(w.shape[0] for w in weights)} for A, B, weights in channels]
    if len(set(left)) > 1 or len(set(right)) > 1 or any(len(width) > 1 for width in widths):
        shapes = [(A.shape, B.shape, *(w.shape for w in weights)) for A, B, weights in channels]
        shapes += [tuple(x.shape) for x in (*u, *v, *more)]
        raise ValueError(f"{SHAPE_ERROR} Their shapes are {', '.join(map(str, shapes))}.")
    return m, n


def _to_dense(A, B, weights, storage):
    """Return a channel with dense matrices."""
    if "csr" not in storage:
        return A, B, weights
    d, *weights = weights
    sides = []
    for side in (A, B):
        if isinstance(side, tuple):
            x, k, start = side
            side = np.zeros((len(start) - 1, int(d)), x.dtype)
            np.add.at(side, (np.repeat(np.arange(len(side)), np.diff(start)), k), x)  # duplicate entries are added
        sides.append(side)
    return *sides, weights


def _channel_sum_numpy(h, A, B, weights, by_rows):
    if h.is_product:
        return row_products(A, B.T) if by_rows else A @ B.T
    if h.is_squared_difference:
        return squared_distances(A, B, *weights, by_rows=by_rows)
    return h(A[:, None, :], B[None, :, :], *weights).sum(axis=2)


def _channel_sum(h, A, B, weights):
    """Return the sums of one channel as a graph: a product of matrices, or a sum over the last of three axes."""
    if h.is_product:
        return pt.dot(A, B.T)
    if h.is_squared_difference:
        return SquaredDistances(bool(weights))(A, B, *weights)
    return h.graph([A[:, None, :], B[None, :, :], *(w[None, None, :] for w in weights)]).sum(axis=2)


class KernelGram(_PairOp):
    """K_ij for all i and j, (m, n)."""

    result = "block"

    def _output(self, inputs):
        return pt.tensor(dtype=self.dtype, shape=self._lengths(inputs))

    def _reduce(self, K, part, channels, more, by_rows):
        return K

    def pullback(self, inputs, outputs, cotangents):
        """Return the gradient of the plain graph."""
        return grad(None, list(inputs), known_grads={self.graph(inputs): cotangents[0]})


class KernelMatvec(_PairOp):
    """sum_j K_ij q_j, (m,), or sum_j K_ij q_jr for each column of q (n, p), (m, p)."""

    result = "matvec"

    def _output(self, inputs):
        m, _ = self._lengths(inputs)
        return pt.tensor(dtype=self.dtype, shape=(m, *inputs[-1].type.shape[1:]))

    def _reduce(self, K, part, channels, more, by_rows):
        return row_products(K, more[0]) if by_rows else K @ more[0]

    def pullback(self, inputs, outputs, cotangents):
        """Return the gradients by all inputs; the docstring of this module gives the formulas."""
        (*data, q), (g,) = inputs, cotangents
        q2, g2 = (q, g) if q.ndim == 2 else (q[:, None], g[:, None])
        channels, u, v, theta, _ = self.split(inputs)
        p, r, c = len(channels), len(u), len(v)
        if any("csr" in storage for storage in self.storage):
            rest = len(data) - r - c - len(theta)
            gradients = [_by_sparse_points(x) for x in data[:rest]]
        else:
            gradients = []
            for index, (A, B, weights) in enumerate(channels):
                gradients += self._by_channel(index, A, B, weights, data, g2, q2)
        for i, x in enumerate([*u, *v, *theta]):
            de = self.epilogue.grad(p + i)
            if de is None:
                gradients.append(pt.zeros_like(x))
            elif i < r:
                gradients.append((g2 * self._with(de)(*data, q2)).sum(axis=1))
            elif i < r + c:
                gradients.append((q2 * self._with(de).transposed(data, g2)).sum(axis=1))
            else:
                gradients.append((g2 * self._with(de)(*data, q2)).sum())
        return [*gradients, self.transposed(data, g)]

    def _by_channel(self, index, A, B, weights, data, g, q):
        """Return the gradients by A, B and the weights of one channel."""
        h, de, p = self.hs[index], self.epilogue.grad(index), len(self.hs)
        if de is None:
            return [pt.zeros_like(v) for v in (A, B, *weights)]
        # The weights (de/ds)_ij (g_i . q_j) are a kernel matrix with one more channel.
        order = [*range(p), len(de.inputs), *range(p, len(de.inputs))]
        x, y = pt.scalar(dtype=self.dtype), pt.scalar(dtype=self.dtype)
        weighted = (de.times().permuted(order), (*self.hs, ScalarFunction([x, y], x * y)))
        rest = (self.n_rows, self.n_columns, self.n_numbers)
        n = self._n_channel_inputs()
        extended = [*data[:n], g, q, *data[n:]]
        if h.is_product:
            matvec = KernelMatvec(*weighted, *rest)
            return [matvec(*extended, B), matvec.transposed(extended, A)]
        if h.is_squared_difference:
            matvec, c = KernelMatvec(*weighted, *rest), disconnected_grad(B.mean(axis=0))
            a, b = A - c, B - c
            rows, columns = matvec(*extended, pt.ones_like(B[:, 0])), matvec.transposed(extended, pt.ones_like(A[:, 0]))
            by_A = a * rows.dimshuffle(0, "x") - matvec(*extended, b)
            by_B = b * columns.dimshuffle(0, "x") - matvec.transposed(extended, a)
            if not weights:
                return [2 * by_A, 2 * by_B]
            dw = KernelFeatures(*weighted, *rest, f=(index, h.grad(2)))(*extended).sum(axis=0)
            return [2 * weights[0] ** 2 * by_A, 2 * weights[0] ** 2 * by_B, dw]
        by = [h.grad(i) for i in range(len(h.inputs))]
        sums = [None if dh is None else KernelFeatures(*weighted, *rest, f=(index, dh)) for dh in by]
        dA = pt.zeros_like(A) if sums[0] is None else sums[0](*extended)
        dB = pt.zeros_like(B) if sums[1] is None else sums[1].transposed(extended)
        dw = [
            pt.zeros_like(w) if s is None else s(*extended).sum(axis=0) for w, s in zip(weights, sums[2:], strict=True)
        ]
        return [dA, dB, *dw]

    def _n_channel_inputs(self):
        return sum(len(h.inputs) for h in self.hs)

    def _with(self, epilogue):
        return type(self)(epilogue, self.hs, self.n_rows, self.n_columns, self.n_numbers, self.storage)

    def transposed(self, data, q):
        """Return the graph of sum_i K_ij q_i."""
        op, data = _transpose(self, data)
        return op(*data, q)


def _by_sparse_points(x):
    """Return the gradient by an input of a channel of sparse points: 0 for indices and for what has none anyway."""
    is_fixed = isinstance(x, Constant) or (x.owner is not None and isinstance(x.owner.op, DisconnectedGrad))
    if x.dtype.startswith("float") and not is_fixed:
        raise NotImplementedError("KernelMatvec of sparse points has no gradient: pass the points as dense arrays.")
    return x.zeros_like(dtype="float64")


def _transpose(op, data, **props):
    """Return the Op with the roles of rows and columns exchanged, and its data."""
    channels, u, v, theta, _ = op.split(data)
    hs = [h.permuted([1, 0, *range(2, len(h.inputs))]) for h in op.hs]
    p, r, c, t = len(hs), op.n_rows, op.n_columns, op.n_numbers
    order = [*range(p), *range(p + r, p + r + c), *range(p, p + r), *range(p + r + c, p + r + c + t)]
    storage = [(right, left) for left, right in op.storage]
    swapped = type(op)(op.epilogue.permuted(order), hs, c, r, t, storage, **props)
    sides = [
        ((B,) if right == "dense" else B, (A,) if left == "dense" else A)
        for (A, B, _), (left, right) in zip(channels, op.storage, strict=True)
    ]
    data = [x for (B, A), (*_, w) in zip(sides, channels, strict=True) for x in (*B, *A, *w)]
    return swapped, [*data, *v, *u, *theta]


class KernelFeatures(_PairOp):
    """sum_j K_ij f(a_ik, b_jk, w_k), (m, d), with A, B and w of one channel."""

    __props__ = (*_PairOp.__props__, "f")
    result = "features"

    def __init__(self, epilogue, hs, n_rows, n_columns, n_numbers, storage=None, *, f):
        super().__init__(epilogue, hs, n_rows, n_columns, n_numbers, storage)
        self.f: tuple[int, ScalarFunction] = f

    def _output(self, inputs):
        m, _ = self._lengths(inputs)
        A = self.split(inputs)[0][self.f[0]][0]
        return pt.tensor(dtype=self.dtype, shape=(m, A.type.shape[1]))

    def _reduce(self, K, part, channels, more, by_rows):
        index, f = self.f
        A, B, weights = channels[index]
        return (K[:, :, None] * f(A[part, None, :], B[None, :, :], *weights)).sum(axis=1)

    def transposed(self, data):
        """Return the graph of sum_i K_ij f(a_ik, b_jk, w_k), (n, d)."""
        index, f = self.f
        op, data = _transpose(self, data, f=(index, f.permuted([1, 0, *range(2, len(f.inputs))])))
        return op(*data)

    def pullback(self, inputs, outputs, cotangents):
        """Raise: the gradient would need further derivatives of the channels' functions."""
        raise NotImplementedError(
            "second derivatives by the points exist only for kernels of inner products and squared distances: use such "
            "a kernel, or differentiate the graph of the matrix, kernel(X, Z)."
        )
