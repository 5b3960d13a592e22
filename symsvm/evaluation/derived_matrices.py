"""Kernel matrices made from others: of some of the points, and with a factor for each point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix

__all__ = ["ScaledMatrix", "SubMatrix"]


class SubMatrix:
    """The matrix between some of the points of another, a `KernelMatrix`."""

    def __init__(self, whole: Any, points: Array):
        self._whole, self._points, self.m, self.width = whole, points, len(points), whole.width
        self.is_exact, self.name = whole.is_exact, whole.name

    @property
    def entries(self) -> int:
        """The values that the calling thread has had computed so far, for all submatrices together."""
        return self._whole.entries

    @property
    def kernel(self) -> Any:
        """The kernel."""
        return self._whole.kernel

    @property
    def X(self) -> Any:
        """The points."""
        return None if self._whole.X is None else self._whole.X[self._points]

    def dense(self) -> tuple[Array | None, Array]:
        """Return the whole matrix in float64, None if a value is not finite, and the rows of it that are the points."""
        return self._whole.dense()[0], self._points

    def diagonal(self, points: Array) -> Array:
        """Return K(x_i, x_i) in float64 for the chosen points."""
        return self._whole.diagonal(self._points[points])

    def block(self, rows: Array, columns: Array, out: Array) -> None:
        """Write K between the chosen points to the first columns of `out`, in its type."""
        self._whole.block(self._points[rows], self._points[columns], out)

    def product(self, q: Array, rows: Array | None, columns: Array, out: Array, *, exact: bool) -> None:
        """Add sum_j K(x_i, x_j) q_j over the chosen j to `out`, for the chosen i (all if `rows` is None)."""
        rows = self._points if rows is None else self._points[rows]
        self._whole.product(q, rows, self._points[columns], out, exact=exact)


class ScaledMatrix:
    """The matrix t_i K_ij t_j of another one and a factor t_i for each point, a `KernelMatrix`."""

    def __init__(self, whole: KernelMatrix, factors: Array):
        self._whole, self._factors, self.m, self.width = whole, factors, whole.m, whole.width
        self.is_exact, self.name, self.X = whole.is_exact, f"t_i t_j {whole.name}", whole.X

    @property
    def entries(self) -> int:
        """The values that were computed so far."""
        return self._whole.entries

    def diagonal(self, points: Array) -> Array:
        """Return t_i^2 K(x_i, x_i) in float64 for the chosen points."""
        return self._factors[points] ** 2 * self._whole.diagonal(points)

    def block(self, rows: Array, columns: Array, out: Array) -> None:
        """Write t_i K_ij t_j between the chosen points to the first columns of `out`, in its type."""
        self._whole.block(rows, columns, out)
        part = out[:, : len(columns)]
        part *= self._factors[rows, None].astype(out.dtype)
        part *= self._factors[columns].astype(out.dtype)

    def product(self, q: Array, rows: Array | None, columns: Array, out: Array, *, exact: bool) -> None:
        """Add t_i sum_j K_ij t_j q_j over the chosen j to `out`, for the chosen i (all if `rows` is None)."""
        part = np.zeros(len(out))
        self._whole.product(self._factors[columns] * q, rows, columns, part, exact=exact)
        out += (self._factors if rows is None else self._factors[rows]) * part
