"""Some of the points of a linear machine, with a worker: sums over them, and their part of all vectors of points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from symsvm.linear.linear_problem import LinearProblem
from symsvm.linear.proximal_points import ProximalPoints
from symsvm.linear.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array
    from symsvm.linear.measure import Assessment

__all__ = ["LinearPartition", "PartitionSummary"]


class PartitionSummary(NamedTuple):
    """What a partition is.

    Attributes
    ----------
    n, d : int
        Its points and features; n = 0 has no features.
    is_sparse : bool
        Whether they are CSR.
    dtype : str
        The type of the features.
    labels, counts, weights : ndarray
        The labels, or targets, of the points with a weight, each once; how many points have it, and their weight. None
        of them for a regression.
    """

    n: int
    d: int
    is_sparse: bool
    dtype: str
    labels: Any
    counts: Any
    weights: Any


class LinearPartition:
    """The points of some blocks of a collection, one below another, and a `LinearProblem` over them.

    Parameters
    ----------
    blocks : sequence of tuple
        (points, targets, weights) of each block; weights may be None. Points with a method `load` are what it returns,
        or it returns points and targets.
    s : float
        The constant feature of the intercept; 0 for none.
    classifies : bool
        Whether the targets are labels.
    name : str
        What errors call these blocks.
    """

    def __init__(self, blocks: Sequence[tuple[Any, Any, Any]], s: float, classifies: bool, name: str) -> None:
        self._classifies, self._name, self._kept = classifies, name, {}
        found = [self._checked(*block) for block in blocks]
        found = [block for block in found if block[0].shape[0]]
        if not found:
            self._n = 0
            return
        widths = sorted({X.shape[1] for X, _, _ in found})
        if len(widths) > 1:
            raise ValueError(f"X must have the same features everywhere, got {widths[0]} and {widths[-1]} ({name}).")
        points, targets, weights = zip(*found, strict=True)
        sparse = any(map(scipy.sparse.issparse, points))
        X: Any = points[0]
        if len(points) > 1:
            X = scipy.sparse.vstack(points, "csr") if sparse else np.concatenate(points)
        self._y, self._weights = np.concatenate(targets), np.concatenate(weights)
        try:
            self._rows = Rows(X, s)
        except ValueError as error:
            raise ValueError(f"{error} It is in {name}.") from None
        self._n = self._rows.n

    def _checked(self, X: Any, y: Any, weights: Any) -> tuple[Any, Array, Array]:
        """The arrays of a block."""
        if hasattr(X, "load"):
            X = X.load()
            X, y = X if isinstance(X, tuple) else (X, y)
        if y is None:
            raise ValueError(f"y must be given: no labels come with these points ({self._name}).")
        X = X if scipy.sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two axes, got {X.ndim} ({self._name}).")
        y = np.asarray(y)
        w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype="float64")
        for name, values in (("y", y), ("sample_weight", w)):
            if values.shape != (X.shape[0],):
                raise ValueError(
                    f"{name} must have one entry for each point, got the shape {values.shape} for {X.shape[0]} points "
                    f"({self._name})."
                )
        if not (np.isfinite(w).all() and (w >= 0).all()):
            raise ValueError(f"sample_weight must be finite and not negative ({self._name}).")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"y must be finite, got NaN or infinity ({self._name}).")
        if not self._classifies:
            y = y.astype("float64")
        return X, y, w

    def summary(self) -> PartitionSummary:
        """Return what the partition is.

        Returns
        -------
        PartitionSummary
            The numbers.
        """
        if not self._n:
            return PartitionSummary(0, 0, False, "float32", None, None, None)
        rows, labels, counts, weights = self._rows, None, None, None
        if self._classifies:
            used = self._weights > 0
            labels, index = np.unique(self._y[used], return_inverse=True)
            counts, weights = np.bincount(index), np.bincount(index, self._weights[used])
        return PartitionSummary(self._n, rows.d, rows.sparse, str(rows.X.dtype), labels, counts, weights)

    def begin(self, classes: Array | None, sides: Array | None, costs: Array, options: dict[str, Any]) -> Array:
        """Begin a problem over the points.

        Parameters
        ----------
        classes : ndarray or None
            All classes, in order; None for a regression.
        sides : ndarray or None
            -1 or +1 for each class.
        costs : ndarray
            C times the weight of each class, 0 for classes without a part in the problem; one number for a regression.
        options : dict
            The arguments loss, epsilon and free of `LinearProblem`.

        Returns
        -------
        ndarray
            How many points have a cost, how many of these are positive and negative; the sum of their targets, the
            largest C_i, the loss that is rounding, the sum of their squares.
        """
        if classes is None or sides is None:
            targets, C = self._y, costs[0] * self._weights
        else:
            index = np.minimum(np.searchsorted(classes, self._y), len(classes) - 1)
            # A label that is no class has points of weight 0 only.
            targets, C = sides[index], np.where(self._weights > 0, costs[index] * self._weights, 0.0)
        self._problem = problem = LinearProblem(self._rows, targets, C, **options)
        self._kept.clear()
        t = problem.t[problem.used]
        positive, negative = int((t > 0).sum()), int((t < 0).sum())
        return np.array(
            [len(t), positive, negative, t.sum(), C.max(), problem.rounding, self._rows.squares[problem.used].sum()]
        )

    def sizes(self, mean: float) -> Array:
        """Return the sum of max(0, abs(t - mean) - epsilon) over the points with a cost, and the largest abs(t - mean).

        Parameters
        ----------
        mean : float
            What is subtracted from the targets.

        Returns
        -------
        ndarray
            The two numbers.
        """
        problem = self._problem
        sizes = np.abs(problem.t[problem.used] - mean)
        return np.array([np.maximum(sizes - problem.epsilon, 0.0).sum(), sizes.max(initial=0.0)])

    def prepare(self, method: str, unit: float) -> None:
        """Prepare an algorithm.

        Parameters
        ----------
        method : {"newton", "interior point", "proximal newton"}
            The algorithm.
        unit : float
            The unit of violations of the whole problem.
        """
        self._problem.unit = unit
        if method == "newton":
            self._points: Any = self._problem.newton_points()
        elif method == "proximal newton":
            self._points = ProximalPoints(self._problem)
        else:
            self._points = self._problem.interior_variables(whole=False)

    def ask(self, method: str, *args: Any) -> Any:
        """Call a method of the `NewtonPoints` or the `InteriorVariables`.

        Parameters
        ----------
        method : str
            The method.
        *args : object
            Its arguments.

        Returns
        -------
        object
            Its result.
        """
        return getattr(self._points, method)(*args)

    def renew(self, unused: list[int], number: int, method: str, *args: Any) -> Any:
        """Keep a new z.

        Parameters
        ----------
        unused : list of int
            The numbers of vectors z to forget.
        number : int
            The number of the new one.
        method : {"evaluate", "take_step", "rebalanced"}
            What makes it: Newton's method, the interior-point method, or `LinearProblem.rebalanced` of another z, whose
            number is the first argument.
        *args : object
            The arguments of the method.

        Returns
        -------
        object
            The result of `evaluate`; whether a step has finite numbers.
        """
        for each in unused:
            self._kept.pop(each, None)
        if method == "evaluate":
            result = self._points.evaluate(*args)
            self._kept[number] = self._points.snapshot()[0]
            return result
        if method == "take_step":
            z = self._points.take_step(*args)
            self._kept[number] = np.zeros(self._n) if z is None else z
            return z is not None
        self._kept[number] = self._problem.rebalanced(self._z(args[0]), *args[1:])
        return None

    def _z(self, number: int) -> Array:
        return self._kept[number] if number else np.zeros(self._n)

    def total(self, number: int) -> float:
        """Return sum z.

        Parameters
        ----------
        number : int
            The number of z.

        Returns
        -------
        float
            The sum.
        """
        return float(self._z(number).sum())

    def sides(self, number: int, excess: float) -> Array:
        """Return `LinearProblem.sides`.

        Parameters
        ----------
        number : int
            The number of z.
        excess : float
            The sum of all z.

        Returns
        -------
        ndarray
            The four sums.
        """
        return np.array(self._problem.sides(self._z(number), excess))

    def combination(self, number: int) -> Array:
        """Return (X'z, s sum z).

        Parameters
        ----------
        number : int
            The number of z.

        Returns
        -------
        ndarray
            The vector (d + 1,).
        """
        return self._rows.transposed(self._z(number))

    def assess(self, u: Array, v: Array, number: int) -> Assessment:
        """Return `LinearProblem.assess`.

        Parameters
        ----------
        u, v : ndarray
            The weights, and those of z.
        number : int
            The number of z.

        Returns
        -------
        Assessment
            The sums and extremes.
        """
        return self._problem.assess(u, v, self._z(number))
