"""The active set of a run whose points live with workers: counts here, lists there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["SpreadActiveSet"]


class SpreadActiveSet:
    """How many variables and points are active; which, is asked of the workers.

    Parameters
    ----------
    vectors : SpreadVectors
        The vectors of the run.
    """

    def __init__(self, vectors: Any) -> None:
        self._vectors = vectors
        self.reset()

    def reset(self) -> None:
        """All of them."""
        self.n_variables, self.n_points, self.n_bounded = self._vectors.qp.n, self._vectors.qp.m, 0
        self._lists = None

    def count(self, n_variables: int, n_points: int, n_bounded: int) -> None:
        """Note what a shrinking has left.

        Parameters
        ----------
        n_variables, n_points : int
            Those that are active.
        n_bounded : int
            Dropped variables at a bound other than 0.
        """
        self.n_variables, self.n_points, self.n_bounded = n_variables, n_points, n_bounded
        self._lists = None

    @property
    def is_shrunk(self) -> bool:
        """Whether variables were dropped."""
        return self.n_variables < self._vectors.qp.n

    @property
    def variables(self) -> Array:
        """The active variables."""
        return self._read()[0]

    @property
    def points(self) -> Array:
        """The active points."""
        return self._read()[1]

    def _read(self):
        if self._lists is None:
            self._lists = self._vectors.read_active()
        return self._lists
