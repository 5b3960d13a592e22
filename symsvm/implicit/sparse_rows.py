"""Sums over pairs of sparse points in gradients: `with_sparse_points` puts CSR matrices in the place of dense inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symsvm._lib.types import Graph

__all__ = ["with_sparse_points"]


def with_sparse_points(total: Graph, sparse: dict[Any, Any]) -> Graph:
    """Return the graph with CSR matrices in the place of the inputs that they are values of."""
    if not sparse:
        return total
    raise TypeError("the gradient of a solution over sparse points is not built: give dense arrays.")
