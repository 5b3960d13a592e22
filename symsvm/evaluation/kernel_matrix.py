"""The protocol of a kernel matrix that is not held: what a solver asks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Points

__all__ = ["KernelMatrix"]


class KernelMatrix(Protocol):
    """The symmetric matrix K_ij = K(x_i, x_j) between the points of a problem, by blocks and products.

    A solver needs no more than this: the matrix may be computed in tiles (`LocalKernelMatrix`, `PairMatrix`), scaled
    (`ScaledMatrix`), read from a cache, or live on a device or on other machines. `tests/test_kernel_matrix.py` checks
    every implementation against it.

    Attributes
    ----------
    name : str
        What the matrix is of, for messages.
    X : array or CSR matrix of shape (m, d), or None
        The points, for advice about their scales; None if the rows are of several arrays.
    m : int
        The number of points.
    width : float
        The features that a value costs: d, or the entries of a sparse row on average.
    entries : int
        The values that were computed so far.
    is_exact : bool
        Whether blocks and products are always float64.
    """

    @property
    def name(self) -> str:
        """What the matrix is of, for messages."""
        ...

    @property
    def X(self) -> Points | None:
        """The points, None if the rows are of several arrays."""
        ...

    @property
    def m(self) -> int:
        """The number of points."""
        ...

    @property
    def width(self) -> float:
        """The features that a value costs."""
        ...

    @property
    def entries(self) -> int:
        """The values that were computed so far."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether blocks and products are always float64."""
        ...

    def diagonal(self, points: Array) -> Array:
        """Return K(x_i, x_i) in float64 for the chosen points.

        Parameters
        ----------
        points : array of int
            The indices of points.

        Returns
        -------
        array of shape (len(points),)
            The values.
        """
        ...

    def block(self, rows: Array, columns: Array, out: Array) -> None:
        """Write K between the chosen points to the first columns of an array.

        Parameters
        ----------
        rows, columns : array of int
            The indices of points.
        out : array of shape (len(rows), at least len(columns))
            Where to; its type, float32 or float64, is that of the values.
        """
        ...

    def product(self, q: Array, rows: Array | None, columns: Array, out: Array, *, exact: bool) -> None:
        """Add sum_j K(x_i, x_j) q_j over the chosen j to an array, for the chosen i.

        Parameters
        ----------
        q : array of shape (len(columns),)
            The factors.
        rows : array of int or None
            The indices i, None for all points.
        columns : array of int
            The indices j.
        out : array of float64
            One entry for each i.
        exact : bool
            Whether the values must be float64; else they may be float32.
        """
        ...
