"""Fits of linear estimators to collections, whose partitions stay with the workers."""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.validation import number
from symsvm.distributed import Team
from symsvm.distributed.partitions import make_parts
from symsvm.estimators.multiclass import class_weights
from symsvm.linear.partition import LinearPartition
from symsvm.linear.partitioned_problem import PartitionedPoints, PartitionedProblem
from symsvm.linear.solve_partitioned import solve_partitioned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm._lib.types import Array

__all__ = ["fit_classes", "fit_targets"]


@contextlib.contextmanager
def _points(model: Any, collection: Any, data: tuple[Any, Any, Any], classifies: bool) -> Iterator[PartitionedPoints]:
    """The points with the workers, for the length of a block."""
    if model.penalty != "l2":
        raise ValueError("penalty='l1' does not run over partitions: use penalty='l2', or points in one process.")
    scaling = number(model.intercept_scaling, "intercept_scaling", positive=True)
    s = scaling if model.fit_intercept else 0.0
    with collection.connect() as engine:
        team = Team(engine, make_parts(engine, collection, *data, LinearPartition, s, classifies))
        try:
            points = PartitionedPoints(team)
            _check(model, data[0], points)
            yield points
            model.traffic_ = team.traffic.summary()
        finally:
            team.close()


def _check(model: Any, X: Any, points: PartitionedPoints) -> None:
    """Check what all partitions are together, and note their features."""
    widths = sorted({summary.d for summary in points.summaries})
    if not widths:
        raise ValueError("X must have at least one row, got none in all partitions.")
    if len(widths) > 1:
        raise ValueError(f"X must have the same features in all partitions, got {widths[0]} and {widths[-1]}.")
    model.n_features_in_ = widths[0]
    vars(model).pop("feature_names_in_", None)
    names = list(getattr(X, "columns", ()))
    if names and all(isinstance(name, str) for name in names):
        model.feature_names_in_ = np.array(names, dtype=object)


def _solve(model: Any, points: PartitionedPoints, epsilon: float, start: Any, *problem: Any) -> Any:
    """Solve one problem of a fit."""
    free = bool(model.fit_intercept) and not model.penalize_intercept
    s = float(model.intercept_scaling) if model.fit_intercept else 0.0
    made = PartitionedProblem(points, *problem, s=s, loss=model.loss, epsilon=epsilon, free=free)
    first = None if start is None else np.append(start.w, 0.0 if start.b is None else start.b)
    max_iter = None if model.max_iter == -1 else model.max_iter
    options = {"tol": model.tol, "max_iter": max_iter, "time_limit": model.time_limit, "start": first}
    return model.monitor.solve(functools.partial(solve_partitioned, made, **options))


def fit_targets(model: Any, collection: Any, data: tuple[Any, Any, Any], start: Any) -> Any:
    """Fit a linear regressor.

    Parameters
    ----------
    model : LinearSVR
        The estimator.
    collection : Collection
        The points in blocks.
    data : tuple
        The points as the user gave them, their targets, and weights or None.
    start : list or None
        Solutions to start from.

    Returns
    -------
    LinearSolution
        The solution.
    """
    with _points(model, collection, data, classifies=False) as points:
        costs = np.array([number(model.C, "C", positive=True)])
        return _solve(model, points, float(model.epsilon), _taken(start, 0, points), None, None, costs)


def fit_classes(model: Any, collection: Any, data: tuple[Any, Any, Any], start: Any) -> tuple[Array, int, list[Any]]:
    """Fit a linear classifier, one class against the rest or each pair.

    Parameters
    ----------
    model : LinearSVC
        The estimator.
    collection : Collection
        The points in blocks.
    data : tuple
        The points as the user gave them, their labels, and weights or None.
    start : list or None
        Solutions to start from.

    Returns
    -------
    classes : ndarray
        The classes.
    n : int
        The number of points with a weight.
    solutions : list of LinearSolution
        The solution of each problem.
    """
    if model.multi_class == "crammer_singer":
        raise ValueError("multi_class='crammer_singer' does not run over partitions: use 'ovr' or 'ovo'.")
    if model.calibration is not None:
        raise ValueError("calibration does not run over partitions: fit without it, and calibrate on points in memory.")
    with _points(model, collection, data, classifies=True) as points:
        found = points.summaries
        classes = functools.reduce(np.union1d, [summary.labels for summary in found])
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes with a positive weight, got {len(classes)} class.")
        totals, counts = np.zeros(len(classes)), np.zeros(len(classes), dtype=int)
        for summary in found:
            index = np.searchsorted(classes, summary.labels)
            totals[index] += summary.weights
            counts[index] += summary.counts
        factors = class_weights(model.class_weight, classes, np.arange(len(classes)), totals)
        costs = number(model.C, "C", positive=True) * factors
        solutions = []
        for sides, part in _problems(len(classes), model.multi_class):
            first = _taken(start, len(solutions), points)
            solutions.append(_solve(model, points, 0.0, first, classes, sides, np.where(part, costs, 0.0)))
        return classes, int(counts.sum()), solutions


def _problems(k: int, multi_class: str) -> Iterator[tuple[Array, Array]]:
    """The side of each class in each problem, and whether it has a part in it."""
    every, names = np.ones(k, dtype=bool), np.arange(k)
    if k == 2:
        yield np.array([-1.0, 1.0]), every
    elif multi_class == "ovr":
        for c in range(k):
            yield np.where(names == c, 1.0, -1.0), every
    else:
        for a, b in itertools.combinations(range(k), 2):
            yield np.where(names == a, 1.0, -1.0), (names == a) | (names == b)


def _taken(start: Any, k: int, points: PartitionedPoints) -> Any:
    """The k-th solution of another fit to as many features."""
    if start is None or len(start) <= k or len(start[k].w) != points.summaries[0].d:
        return None
    return start[k]
