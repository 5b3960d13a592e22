"""The exact kernel layer: decision values of support vector machines of a batch, as a function of the batch."""

# pyright: reportAttributeAccessIssue=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace

from symsvm._lib.validation import as_float, choice, count
from symsvm.compiler.functions import COMPILING
from symsvm.compiler.lifting import lift
from symsvm.heads.machines import solve_machines
from symsvm.kernels import Kernel

if TYPE_CHECKING:
    from symsvm._lib.types import Graph

__all__ = ["kernel_machines"]


def kernel_machines(
    X: Any,
    y: Any,
    Z: Any,
    kernel: Kernel,
    *,
    n_classes: int,
    C: Any = 1.0,
    squared: bool = False,
    multi_class: Literal["ovr", "ovo"] = "ovr",
    tol: float = 1e-8,
) -> Graph:
    """Decision values at Z of exact machines trained on (X, y), as a graph (Eq. 005:5).

    ::

        f_r(z) = sum_i q_ri K(z, x_i) + b_r,    (q_r, b_r) the C-SVC of class r against the rest

    `pytensor.grad` differentiates them by X, Z, C, the numbers of the kernel, and all that these are computed from: the
    weights of a network whose features X and Z are. All machines share one Gram matrix (m, m), which is stored; the
    derivative takes one linear system for each machine (Eq. 005:6).

    Parameters
    ----------
    X : TensorVariable or array_like
        The points that the machines are trained on (m, d), the features of a batch.
    y : TensorVariable or array_like
        Their classes 0 to n_classes - 1, integers (m,).
    Z : TensorVariable or array_like
        The points to decide (n, d).
    kernel : Kernel
        The kernel; its numbers may be graphs.
    n_classes : int
        The number k of classes, at least 2. Where a batch has no point of a class, that class has f = -1.
    C : float or TensorVariable
        The penalty of slack, a number or one for each point (m,).
    squared : bool
        Whether the square of slack is penalised.
    multi_class : {"ovr", "ovo"}
        Each class against the rest, or a machine for each pair of classes; f_r is then the mean of its k - 1 decision
        values.
    tol : float
        The largest KKT violation.

    Returns
    -------
    TensorVariable
        The decision values (n, k), in the type of X. The class of a point is that of the largest.

    Examples
    --------
    >>> import pytensor
    >>> from symsvm.kernels import RBF
    >>> X, Z, sigma = pt.dmatrix("X"), np.array([[0.2], [1.9]]), pt.dscalar("sigma")
    >>> f = kernel_machines(X, [0, 0, 1, 1], Z, RBF(sigma), n_classes=2)
    >>> slope = pytensor.grad(f[0, 0], sigma)
    >>> run = pytensor.function([X, sigma], [f[:, 0], slope], mode="FAST_COMPILE")
    >>> [x.round(4).tolist() for x in run(np.array([[0.0], [0.5], [1.5], [2.0]]), 1.0)]
    [[0.9265, -0.9725], -0.236]
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a symsvm Kernel, such as RBF(sigma=1.0), got {kernel!r}.")
    X, k = as_float(X), count(n_classes, "n_classes", least=2)
    Z = as_float(Z).astype(X.dtype)
    if X.ndim != 2 or Z.ndim != 2:
        raise ValueError(f"X must be (m, d) and Z (n, d), got {X.ndim} and {Z.ndim} dimension(s).")
    T = _labels(y, k, choice(multi_class, "multi_class", ("ovr", "ovo")))
    C = pt.as_tensor_variable(C)
    if C.ndim > 1:
        raise ValueError(f"C must be a number or one for each point (m,), got {C.ndim} dimensions.")
    q, b = solve_machines(_gram(kernel, X, X), T, C, squared=squared, is_psd=kernel.is_psd, tol=tol)
    f = pt.dot(_gram(kernel, Z, X), q.T.astype(X.dtype)) + b.astype(X.dtype)
    return f if multi_class == "ovr" else pt.dot(f, pt.constant(_votes(k), dtype=X.dtype))


def _gram(kernel: Kernel, A: Graph, B: Graph) -> Graph:
    """K(a_i, b_j) in products of matrices, as a graph of A, B and the numbers of the kernel as they are."""
    symbols = kernel.symbols()
    numbers = [v.type(name=v.name) for v in symbols]
    points = {v: pt.matrix(dtype=v.dtype) for v in dict.fromkeys((A, B))}
    with COMPILING:
        (K,) = lift([kernel.with_values(numbers)(points[A], points[B])])
    swaps: Any = dict(zip(numbers, symbols, strict=True)) | {inner: outer for outer, inner in points.items()}
    return graph_replace([K], swaps, strict=False)[0]


def _labels(y: Any, k: int, multi_class: str) -> Graph:
    """The labels of all machines, (k, m), or a row for each pair; NaN, an error later, for points of no class."""
    y = pt.as_tensor_variable(y)
    if y.ndim != 1 or not y.dtype.startswith(("int", "uint")):
        raise TypeError(
            f"the classes y must be integers from 0 to n_classes - 1, (m,), got {y.dtype} with {y.ndim} dimension(s): "
            "numpy.unique(labels, return_inverse=True)[1] makes such numbers."
        )
    is_class: Any = pt.eq(pt.constant(np.arange(k)[:, None]), y[None, :])
    if multi_class == "ovr":
        T = pt.switch(is_class, 1.0, -1.0)
    else:
        first, second = np.array(list(itertools.combinations(range(k), 2))).T
        T = is_class[first].astype("float64") - is_class[second].astype("float64")
    return pt.switch(is_class.any(axis=0), T, np.nan).astype("float64")


def _votes(k: int) -> np.ndarray:
    """The mean over the machines of a class, (pairs, k): of a pair, the first class has the value f, the second -f."""
    pairs = list(itertools.combinations(range(k), 2))
    votes = np.zeros((len(pairs), k))
    for row, (r, s) in zip(votes, pairs, strict=True):
        row[r], row[s] = 1 / (k - 1), -1 / (k - 1)
    return votes
