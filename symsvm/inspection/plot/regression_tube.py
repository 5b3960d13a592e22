"""`TubeDisplay`: a regression of one feature with its epsilon tube."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.inspection.plot.display import (
    INK,
    Display,
    Support,
    circle_support,
    column_names,
    constructor_parameter,
    final_estimator,
    find_support,
    series_colour,
)

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from symsvm._lib.types import Array

__all__ = ["TubeDisplay", "tube"]


class TubeDisplay(Display):
    """A regression f of one feature, its tube f - epsilon to f + epsilon, the points, and the support vectors.

    Parameters
    ----------
    grid, response : ndarray of shape (resolution,)
        The values of the feature, and f there.
    epsilon : float
        Half the width of the tube.
    x, y : ndarray of shape (m,)
        The points and their targets.
    support : Support, optional
        The support vectors among these points.
    xlabel, ylabel : str
        The labels of the axes.

    Attributes
    ----------
    line_, tube_, points_, circles_ : matplotlib artists
        What was drawn.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    line_: Any
    tube_: Any
    points_: Any
    circles_: list[Any]

    def __init__(
        self,
        *,
        grid: Array,
        response: Array,
        epsilon: float,
        x: Array,
        y: Array,
        support: Support | None = None,
        xlabel: str = "$x$",
        ylabel: str = "$y$",
    ) -> None:
        self.grid, self.response, self.epsilon = grid, response, epsilon
        self.x, self.y, self.support = x, y, support
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        x: ArrayLike,
        y: ArrayLike,
        *,
        epsilon: float | None = None,
        resolution: int = 500,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate a regression along its feature and draw it.

        Parameters
        ----------
        estimator, x, y, epsilon, resolution, ax, **kwargs : object
            As in `tube`.

        Returns
        -------
        TubeDisplay
            The display.
        """
        names = column_names(x)
        X: Any = x if names is not None else np.asarray(x, dtype="float64")
        if X.ndim == 1:
            X = X.reshape(-1, 1)
        if X.ndim != 2 or X.shape[1] != 1:
            raise ValueError(
                f"x must have one feature to draw a tube over, got the shape {X.shape}; fit on one column, X[:, [0]]."
            )
        points = np.asarray(X, dtype="float64")[:, 0]
        y = np.asarray(y, dtype="float64").ravel()
        if len(y) != len(points):
            raise ValueError(f"y must have one value for each of the {len(points)} points, got {len(y)}.")
        support = find_support(estimator, X)
        if support is not None and support.rows is None:
            support = None  # x are not the training points
        pad = 0.03 * (np.ptp(points) or 1.0)
        grid = np.linspace(points.min() - pad, points.max() + pad, resolution)
        column = grid.reshape(-1, 1)
        column = column if names is None else type(X)(dict(zip(X.columns, column.T, strict=True)))
        predict: Any = getattr(estimator, "predict")  # noqa: B009  (BaseEstimator does not declare it)
        if epsilon is None:
            epsilon = _find_epsilon(estimator, support, np.abs(y - np.asarray(predict(X)).ravel()))
        response = np.asarray(predict(column)).ravel()
        labels = {} if names is None else {"xlabel": names[0]}
        display = cls(grid=grid, response=response, epsilon=epsilon, x=points, y=y, support=support, **labels)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.plot` for the line of f.

        Returns
        -------
        TubeDisplay
            The display itself.
        """
        ax = self._open_axes(ax, figsize=(7.2, 4.2))
        f, epsilon = self.response, self.epsilon
        tint = series_colour(1)
        (self.line_,) = ax.plot(self.grid, f, **({"color": tint, "linewidth": 1.8, "label": "$f(x)$"} | kwargs))
        text = f"$f(x) \\pm \\epsilon$, $\\epsilon = {epsilon:.3g}$"
        self.tube_ = ax.fill_between(
            self.grid, f - epsilon, f + epsilon, color=tint, alpha=0.13, linewidth=0, label=text
        )
        for side in (-1, 1):
            ax.plot(self.grid, f + side * epsilon, color=tint, linewidth=0.8, linestyle=(0, (4, 2)))
        self.points_ = ax.scatter(self.x, self.y, s=14, c=INK, alpha=0.75, linewidths=0, zorder=3, label="$(x_i, y_i)$")
        rows = None if self.support is None else self.support.rows
        xy = None if rows is None else np.column_stack([self.x[rows], self.y[rows]])
        free, bounded = "at the edge, $0 < |q_i| < C$", "outside, $|q_i| = C$"
        self.circles_ = circle_support(ax, self.support, xy=xy, free=free, bounded=bounded)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        self._finish(legend_outside=True)
        return self


def tube(
    estimator: BaseEstimator,
    x: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float | None = None,
    resolution: int = 500,
    ax: Axes | None = None,
    **kwargs: Any,
) -> TubeDisplay:
    """Draw a regression of one feature: f, its tube f - epsilon to f + epsilon, the points and the support vectors.

    Errors inside the tube have no cost. Free support vectors, with a full ring, lie on its edge; those at C, with a
    dotted ring, lie outside.

    Parameters
    ----------
    estimator : estimator
        A fitted `SVR`, `NuSVR` or `LinearSVR`, or a pipeline or search of one.
    x : array-like of shape (m,) or (m, 1)
        The points. Support vectors are circled if these are the training points.
    y : array-like of shape (m,)
        The targets.
    epsilon : float, optional
        Half the width of the tube; by default the one of the estimator, which `NuSVR` determines itself.
    resolution : int, default 500
        The points of the grid.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.plot` for the line of f.

    Returns
    -------
    TubeDisplay
        The display.

    Examples
    --------
    >>> from symsvm import SVR
    >>> x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])
    >>> display = tube(SVR(kernel="linear", C=10.0, epsilon=0.1).fit(x.reshape(-1, 1), y), x, y)
    >>> display.epsilon, display.support.rows.tolist()
    (0.1, [0, 2])
    """
    return TubeDisplay.from_estimator(estimator, x, y, epsilon=epsilon, resolution=resolution, ax=ax, **kwargs)


def _find_epsilon(estimator: Any, support: Support | None, errors: Array) -> float:
    """Return half the width of the tube; for a nu-SVR without epsilon_, the error of its free support vectors."""
    final, _ = final_estimator(estimator)
    if hasattr(final, "epsilon_"):
        return float(final.epsilon_)
    if constructor_parameter(final, "epsilon") is not None:
        return float(final.epsilon)
    if support is not None and support.rows is not None and not support.bounded.all():
        return float(np.median(errors[support.rows[~support.bounded]]))
    raise ValueError(f"{type(final).__name__} has no epsilon, half the width of a tube: give epsilon=.")
