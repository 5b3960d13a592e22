"""Expansion: sum_j K(x, v_j) q_j over points v_j that stay, for predictions of a row or of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.evaluation.cross_matrix import TiledCrossMatrix
from symsvm.evaluation.evaluator import KernelEvaluator

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.kernels import Kernel

__all__ = ["Expansion"]


class Expansion:
    """The function x -> sum_j K(x, v_j) q_j. What depends on the points v_j alone is computed once.

    The result has the bits of `KernelEvaluator.matvec`.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    V : array or CSR matrix of shape (n, d)
        The points v_j.
    mode : str, pytensor Mode or None
        The backend.

    Examples
    --------
    >>> from symsvm.kernels import Linear
    >>> expansion = Expansion(Linear(), np.eye(2))
    >>> [expansion(np.array([[1.0, 3.0]]), np.array([1.0, 2.0])).tolist() for _ in range(2)]
    [[7.0], [7.0]]
    """

    def __init__(self, kernel: Kernel, V: Any, *, mode: Any = None):
        self._given, self._numbers = (kernel, V, mode), _numbers(kernel)
        self._state, self._key = dict(vars(kernel)), kernel.key
        self._V = V.astype("float64", copy=False)
        self._evaluator = KernelEvaluator(kernel, mode=mode)
        self._kept: Any = None  # the `TiledCrossMatrix` between some points and V, where both are dense

    def is_of(self, kernel: Kernel, V: Any, mode: Any) -> bool:
        """Whether it is the expansion over these points; a kernel may have other numbers than it had."""
        same = all(a is b for a, b in zip(self._given, (kernel, V, mode), strict=True))
        if same and all(type(value) in (float, int, str) for value in vars(kernel).values()):
            return vars(kernel) == self._state
        return same and kernel.key == self._key and all(map(np.array_equal, self._numbers, _numbers(kernel)))

    def __call__(self, X: Any, q: Array) -> Array:
        """Return the values at the points X, (m,), or one column for each of q (n, p)."""
        X, kept = X.astype("float64", copy=False), self._kept
        if kept is not None and isinstance(X, np.ndarray) and X.shape[1] == self._V.shape[1]:
            return kept.with_rows(np.require(X, requirements=["C", "W"])).matvec(q)
        X = X[:] if X is self._V else X  # a matrix between points and themselves is evaluated otherwise
        pairs: Any = self._evaluator.between(X, self._V)
        if self._is_of_rows_alone(pairs, X):
            self._kept = pairs.with_rows(X[:0])  # without the points X, which would stay as long as the model
        return pairs.matvec(q)

    def _is_of_rows_alone(self, pairs: Any, X: Any) -> bool:
        """Whether the points X themselves are all that a matrix has of them."""
        return (
            isinstance(pairs, TiledCrossMatrix)
            and isinstance(X, np.ndarray)
            and isinstance(self._V, np.ndarray)
            and not pairs.form.rows
            and all(channel.A in self._evaluator.expression.rows for channel in pairs.form.channels)
            and all(kinds == ("dense", "dense") for kinds in pairs.storage)
        )


def _numbers(kernel: Kernel) -> list[Any]:
    """The hyper-parameters of a kernel."""
    found: list[Any] = []
    kernel.lift(lambda name, value: found.append(np.array(value, dtype="float64")))
    return found
