"""The source of an estimator's kernel values where its training points live with workers."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from symsvm.distributed.dask_collection import (
    DaskCollection,
    apply_to_blocks,
    is_dask,
    is_frame,
    local_array,
)
from symsvm.distributed.dask_engine import active_client
from symsvm.distributed.spread_data import Spread
from symsvm.distributed.spread_matrix import SpreadKernelMatrix
from symsvm.distributed.spread_points import SpreadPoints
from symsvm.estimators.kernel_source import KernelSource
from symsvm.evaluation.symmetry import check_symmetric
from symsvm.solvers import Decomposition
from symsvm.solvers.decomposition.parameters import DEFAULTS
from symsvm.solvers.registry import choose_solver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from symsvm._lib.types import Array
    from symsvm.kernels import Kernel

__all__ = ["PointsView", "SpreadSource", "collection_of", "fits_collections", "maps_collections", "score_collection"]

_Method = TypeVar("_Method", bound="Callable[..., Any]")


def collection_of(X: Any) -> Any:
    """Return X as a collection whose blocks live with workers, None if it is an array or there are no workers."""
    if isinstance(X, Spread):
        return X
    return DaskCollection(X) if is_dask(X) and active_client() is not None else None


def fits_collections(fit: _Method) -> _Method:
    """Make `fit` take collections: their points stay with the workers, labels and weights come to the caller.

    The model then has `traffic_`, a dict of what was sent and computed; see `symsvm.distributed.team.Traffic`.
    """

    @functools.wraps(fit)
    def spread_fit(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        if isinstance(X, np.ndarray) or (collection := collection_of(X)) is None:
            vars(model).pop("traffic_", None)
            return fit(model, X, y, sample_weight)
        with _source_of(model, collection, X) as points:
            if y is None and points.has_labels:
                y = points.labels()
            fit(model, PointsView(points), local_array(y), local_array(sample_weight))
            model.traffic_ = points.team.traffic.summary()
            return model

    return spread_fit  # pyright: ignore[reportReturnType]


def maps_collections(method: _Method) -> _Method:
    """Make a method of a fitted model, which has a value for each row, return a collection for one."""

    @functools.wraps(method)
    def spread_method(model: Any, X: Any, *args: Any) -> Any:
        if isinstance(X, np.ndarray):
            return method(model, X, *args)
        if is_dask(X):
            check_is_fitted(model)
            return apply_to_blocks(X, _without_solutions(model), method.__name__)
        if isinstance(X, Spread):
            check_is_fitted(model)
            points = SpreadPoints(X.connect, X.blocks)
            try:
                return points.apply(method.__name__, _without_solutions(model))
            finally:
                points.close()
        return method(model, X, *args)

    return spread_method  # pyright: ignore[reportReturnType]


def _without_solutions(model: Any) -> Any:
    """A copy of a fitted model for predictions: its certificates, which are computed for copies, stay behind."""
    other = copy.copy(model)
    other.solutions_ = []
    return other


def score_collection(model: Any, X: Any, y: Any, sample_weight: Any, score: Callable[..., float]) -> float:
    """Return the score of a model's predictions; those for a collection are made where the points are."""
    if not (is_dask(X) or isinstance(X, Spread)):
        return score(X, y, sample_weight)
    predicted = np.asarray(local_array(model.predict(X)))
    targets, weights = (np.asarray(v) if v is not None else None for v in map(local_array, (y, sample_weight)))
    if hasattr(model, "classes_"):
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(targets, predicted, sample_weight=weights))
    from sklearn.metrics import r2_score

    return float(r2_score(targets, predicted, sample_weight=weights))


@contextlib.contextmanager
def _source_of(model: Any, collection: Any, X: Any) -> Iterator[SpreadPoints]:
    """Let a model take its points from workers inside the block."""
    if not isinstance(choose_solver(model.solver, "dual"), Decomposition):
        raise ValueError("solver must be 'decomposition' for points that live with workers: others need them all.")
    if getattr(model, "calibration", None) is not None:
        raise ValueError("calibration needs folds of arrays in memory: fit without it, then calibrate on a sample.")
    if model.kernel == "precomputed" or (callable(model.kernel) and not hasattr(model.kernel, "is_psd")):
        raise ValueError("kernel must be a name or a Kernel for points that live with workers: they compute it.")
    points = SpreadPoints(collection.connect, collection.blocks)
    before = vars(model).get("_source")
    names = np.asarray(X.columns, dtype=object) if is_frame(X) else None
    vars(model)["_source"] = SpreadSource(names)
    try:
        yield points
    finally:
        points.close()
        vars(model).pop("_source")
        if before is not None:
            vars(model)["_source"] = before


class PointsView:
    """Some of the points that live with workers, in some order, as far as a fit needs to see them.

    Parameters
    ----------
    points : SpreadPoints
        The points.
    index : array of int, optional
        Which, all by default.
    """

    ndim = 2

    def __init__(self, points: SpreadPoints, index: Array | None = None) -> None:
        self.points, self.dtype = points, points.dtype
        self.index = np.arange(len(points)) if index is None else index
        self.shape = len(self.index), points.shape[1]

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Array) -> Any:
        """Copies of some of the points."""
        return self.points.take(self.index[rows])

    def view(self, rows: Array) -> PointsView:
        """Return a view of some of the points.

        Parameters
        ----------
        rows : array of int
            Which.

        Returns
        -------
        PointsView
            The view.
        """
        return PointsView(self.points, self.index[rows])

    def row_sums(self) -> Array:
        """Return the sum of each row, in float64.

        Returns
        -------
        array of shape (m,)
            The sums.
        """
        return self.points.sums()[self.index]

    def row_squares(self, mean: float) -> Array:
        """Return the sum of (x - mean)^2 of each row.

        Parameters
        ----------
        mean : float
            What is subtracted.

        Returns
        -------
        array of shape (m,)
            The sums.
        """
        return self.points.squares(mean)[self.index]

    def max(self) -> float:
        """Return the largest number of all points.

        Returns
        -------
        float
            The number.
        """
        return self.points.extremes[1]

    def min(self) -> float:
        """Return the least number of all points.

        Returns
        -------
        float
            The number.
        """
        return self.points.extremes[0]


class SpreadSource(KernelSource):
    """Computes kernel values where the points are; a problem of few points comes to the caller.

    Parameters
    ----------
    names : array of str, optional
        The names of the features, of a data frame.
    """

    def __init__(self, names: Array | None = None) -> None:
        self._names = names

    def check_points(self, estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
        """Check labels; points were checked by their workers."""
        if not isinstance(X, PointsView):
            return super().check_points(estimator, X, *y, **options)
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        if self._names is not None and all(isinstance(name, str) for name in self._names):
            estimator.feature_names_in_ = self._names
        if not y:
            return X
        if y[0] is None:
            raise ValueError(f"{type(estimator).__name__} needs labels or targets y, got None.")
        is_target = options.get("y_numeric", False)
        dtype: Any = np.float64 if is_target else None
        labels: Any = check_array(y[0], ensure_2d=False, dtype=dtype, input_name="y", ensure_all_finite=is_target)
        labels = np.ravel(labels)
        if len(labels) != len(X):
            raise ValueError(f"X and y must have the same number of rows, got {len(X)} and {len(labels)}.")
        if not is_target:
            check_classification_targets(labels)
        return X, labels

    def take(self, estimator: Any, X: Any, rows: Array) -> Any:
        """Return a view of some of the training points."""
        return X.view(rows) if isinstance(X, PointsView) else super().take(estimator, X, rows)

    def bind(self, estimator: Any, X: Any, weights: Array) -> tuple[Kernel | None, Any]:
        """Return the kernel with its numbers, and the kernel matrix of the points."""
        if not isinstance(X, PointsView):
            return super().bind(estimator, X, weights)
        kernel = estimator.kernel_for(X, weights)
        kernel.check_points(X)
        check_symmetric(kernel, X, mode=estimator.mode)  # pyright: ignore[reportArgumentType]
        if len(X) <= DEFAULTS.whole:  # all points are the working set, which the caller has
            local: Any = _copy_with_kernel(estimator, kernel)
            return kernel, super().bind(local, X[np.arange(len(X))], weights)[1]
        return kernel, SpreadKernelMatrix(estimator.add_intercept(kernel), X.points, X.index, mode=estimator.mode)

    def solve(self, estimator: Any, program: Any, matrix: Any, monitor: Any, reuse: Any = None) -> Any:
        """Solve one program; its certificate is computed by the workers when it is asked for."""
        solution = super().solve(estimator, program, matrix, monitor, reuse)
        if not isinstance(matrix, SpreadKernelMatrix):
            return solution
        points, certify = matrix.points, solution.certify

        @functools.cache
        def certified():
            with points.opened():
                return certify()

        return dataclasses.replace(solution, certify=certified)


def _copy_with_kernel(estimator: Any, kernel: Kernel) -> Any:
    """Return a copy of an estimator whose kernel is this one, for a matrix in memory."""
    other = copy.copy(estimator)
    other.kernel_for = lambda X, weights: kernel
    return other
