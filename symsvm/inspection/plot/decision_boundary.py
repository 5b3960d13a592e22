"""`DecisionBoundaryDisplay`: the decision function of a classifier in a plane of two features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.inspection.plot.display import (
    INK,
    Display,
    Support,
    circle_support,
    column_names,
    final_estimator,
    find_support,
    marker,
    marker_area,
    series_colour,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from symsvm._lib.types import Array, Points

__all__ = ["DecisionBoundaryDisplay", "decision_boundary"]

# Points of the grid along an axis. The edges of regions need more, since they are not interpolated between grid points.
_RESOLUTION, _REGION_RESOLUTION = 200, 400


class DecisionBoundaryDisplay(Display):
    """The boundary f = 0 and the margins f = -1, +1 (Eq. 30), or the regions of several classes, with points.

    Parameters
    ----------
    x0, x1 : ndarray of shape (resolution, resolution)
        The grid.
    response : ndarray of shape (resolution, resolution)
        The decision function f on the grid, or the index of the class for several classes.
    levels : tuple of float
        The values of f that lines are drawn at; none for several classes.
    points : ndarray of shape (m, 2)
        The points.
    labels : ndarray of shape (m,)
        The index of the class of each point.
    classes : sequence
        The classes.
    support : Support, optional
        The support vectors.
    xlabel, ylabel : str
        The names of the features.

    Attributes
    ----------
    lines_, regions_, points_, circles_ : matplotlib artists
        What was drawn.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    lines_: Any
    regions_: list[Any]
    points_: list[Any]
    circles_: list[Any]

    def __init__(
        self,
        *,
        x0: Array,
        x1: Array,
        response: Array,
        levels: Sequence[float],
        points: Array,
        labels: Array,
        classes: Sequence[Any],
        support: Support | None = None,
        xlabel: str = "",
        ylabel: str = "",
    ) -> None:
        self.x0, self.x1, self.response, self.levels = x0, x1, response, levels
        self.points, self.labels, self.classes, self.support = points, labels, classes, support
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator | Callable[[Array], ArrayLike],
        X: ArrayLike | Points,
        y: ArrayLike | None = None,
        lam: ArrayLike | None = None,
        *,
        features: Sequence[int] | Sequence[str] | None = None,
        at: ArrayLike | None = None,
        levels: Sequence[float] | None = None,
        resolution: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate an estimator on a grid around the points and draw it.

        Parameters
        ----------
        estimator, X, y, lam, features, at, levels, resolution, ax, **kwargs : object
            As in `decision_boundary`.

        Returns
        -------
        DecisionBoundaryDisplay
            The display.
        """
        points, plane, names, fill = _select_plane(X, features, at)
        low, high = points.min(axis=0), points.max(axis=0)
        pad = 0.08 * np.where(high > low, high - low, 1.0)
        if resolution is None:
            resolution = _REGION_RESOLUTION if len(getattr(estimator, "classes_", ())) > 2 else _RESOLUTION
        x0, x1 = np.meshgrid(*(np.linspace(*ends, resolution) for ends in zip(low - pad, high + pad, strict=True)))
        response, lines = _evaluate(estimator, fill(np.column_stack([x0.ravel(), x1.ravel()])))
        lines = lines if levels is None else tuple(levels) if len(lines) else ()
        labels, classes = _index_classes(estimator, X, y, len(points))
        if lam is not None:
            support = _support_of_multipliers(points, np.asarray(lam, dtype="float64").ravel())
        else:
            support = find_support(estimator, X if hasattr(X, "shape") else np.asarray(X))
            if support is not None and support.vectors is not None:
                support = support._replace(vectors=support.vectors[:, plane])
        display = cls(
            x0=x0,
            x1=x1,
            response=response.reshape(x0.shape),
            levels=lines,
            points=points,
            labels=labels,
            classes=classes,
            support=support,
            xlabel=names[0],
            ylabel=names[1],
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.scatter` for the points.

        Returns
        -------
        DecisionBoundaryDisplay
            The display itself.
        """
        ax = self._open_axes(ax, figsize=(6.4, 4.4))
        self.regions_, self.lines_ = [], None
        if len(self.levels):
            self._draw_lines(ax)
        else:
            self._draw_regions(ax)
        self.points_ = []
        for c, name in enumerate(self.classes):
            style = {"s": 26 * marker_area(c), "c": series_colour(c), "marker": marker(c)}
            style |= {"linewidths": 0.4, "edgecolors": "white"} | kwargs
            rows = self.labels == c
            self.points_.append(ax.scatter(*self.points[rows].T, label=f"{name}", zorder=3, **style))
        self.circles_ = circle_support(ax, self.support)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        self._finish(legend_outside=True)
        return self

    def _draw_lines(self, ax: Axes) -> None:
        """Draw the two sides of f = 0, and a line at each level."""
        ends, tints = [-np.inf, 0.0, np.inf], [series_colour(0), series_colour(1)]
        self.regions_ = [ax.contourf(self.x0, self.x1, self.response, levels=ends, colors=tints, alpha=0.12)]
        levels = sorted(self.levels)
        solid = [level == 0 for level in levels]
        self.lines_ = ax.contour(
            self.x0,
            self.x1,
            self.response,
            levels=levels,
            colors=INK,
            linestyles=["-" if s else (0, (4, 2)) for s in solid],
            linewidths=[1.6 if s else 0.9 for s in solid],
        )
        for text, style, width in (("$f = 0$", "-", 1.6), (_label_margins(levels), (0, (4, 2)), 0.9)):
            if text:
                ax.plot([], [], color=INK, linestyle=style, linewidth=width, label=text)

    def _draw_regions(self, ax: Axes) -> None:
        """Draw the region of each class and its edge."""
        for c in np.unique(self.response).astype("int64"):
            inside = (self.response == c).astype("float64")
            colours = [series_colour(c)]
            self.regions_.append(ax.contourf(self.x0, self.x1, inside, levels=[0.5, 1.5], colors=colours, alpha=0.14))
            if 0 < inside.mean() < 1:
                ax.contour(self.x0, self.x1, inside, levels=[0.5], colors=INK, linewidths=0.9)


def decision_boundary(
    estimator: BaseEstimator | Callable[[Array], ArrayLike],
    X: ArrayLike | Points,
    y: ArrayLike | None = None,
    lam: ArrayLike | None = None,
    *,
    features: Sequence[int] | Sequence[str] | None = None,
    at: ArrayLike | None = None,
    levels: Sequence[float] | None = None,
    resolution: int | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> DecisionBoundaryDisplay:
    """Draw the boundary f = 0 and the margins f = -1, +1 of a classifier (Eq. 30) with its points and support vectors.

    Several classes are drawn as regions. Free support vectors have a full ring, those at C a dotted one.

    Parameters
    ----------
    estimator : estimator or callable
        A fitted classifier, `OneClassSVM`, a pipeline or search of one, or a function that maps points (n, d) to
        decision values (n,).
    X : array-like of shape (m, d)
        The points.
    y : array-like of shape (m,), optional
        Their labels; the predictions of the estimator by default.
    lam : array-like of shape (m,), optional
        The multipliers, for a function; points with a positive multiplier are support vectors.
    features : sequence of two int or str, optional
        Two columns (numbers, or names of a data frame) to draw, if there are more. The others are set to `at`.
    at : array-like of shape (d,), optional
        A point of the plane that is drawn; the medians of X by default.
    levels : sequence of float, optional
        The values of f to draw lines at: by default -1, 0, 1, and 0 for `OneClassSVM`.
    resolution : int, optional
        The points of the grid along each axis: by default 200, and 400 for several classes.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.scatter` for the points.

    Returns
    -------
    DecisionBoundaryDisplay
        The display.

    Examples
    --------
    >>> X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> display = decision_boundary(lambda Z: 2 * Z[:, 0], X, [-1, 1, 1])
    >>> display.lines_.get_paths()[2].vertices[:, 0].round(6).tolist()[:2]  # the margin f = 1
    [0.5, 0.5]
    """
    options: dict[str, Any] = {"features": features, "at": at, "levels": levels, "resolution": resolution, "ax": ax}
    return DecisionBoundaryDisplay.from_estimator(estimator, X, y, lam, **options, **kwargs)


def _select_plane(X: Any, features: Any, at: Any) -> tuple[Array, list[int], list[str], Callable[[Array], Any]]:
    """Return the points in the plane, its columns, their names, and the function from the plane to all features."""
    names, d = column_names(X), np.shape(X)[-1]
    array = np.asarray(X.toarray() if hasattr(X, "tocsr") else X)
    if array.ndim != 2 or (d != 2 and features is None):
        more = "; choose two with features=(0, 1), or fit on two made by PCA(n_components=2)" if d > 2 else ""
        raise ValueError(f"X must have two features to be drawn, got the shape {array.shape}{more}.")
    chosen = (0, 1) if features is None else tuple(features)
    if len(chosen) != 2 or len(set(chosen)) != 2:
        raise ValueError(f"features must be two different columns of X, got {features!r}.")
    plane = []
    for feature in chosen:
        if isinstance(feature, str):
            if names is None or feature not in names:
                raise ValueError(f"features must name columns of X, which has {names or 'no names'}, got {feature!r}.")
            plane.append(names.index(feature))
        elif not -d <= feature < d:
            raise ValueError(f"features must be columns 0 to {d - 1} of X, got {feature!r}.")
        else:
            plane.append(int(feature) % d)
    array = array.astype("float64")
    middle = np.median(array, axis=0) if at is None else np.asarray(at, dtype="float64")
    if middle.shape != (d,):
        raise ValueError(f"at must hold a value for each of the {d} features, got the shape {middle.shape}.")

    def fill(grid: Array) -> Any:
        full = np.tile(middle, (len(grid), 1))
        full[:, plane] = grid
        return full if names is None else type(X)(dict(zip(X.columns, full.T, strict=True)))

    labels = [f"$x_{{{j + 1}}}$" for j in plane] if names is None else [names[j] for j in plane]
    return array[:, plane], plane, labels, fill


def _evaluate(estimator: Any, grid: Any) -> tuple[Array, tuple[float, ...]]:
    """Return f on the grid and the levels to draw, or the index of the class and no levels."""
    final, _ = final_estimator(estimator)
    if not hasattr(final, "predict"):
        if not callable(estimator):
            raise TypeError(f"estimator must be a fitted classifier or a function of points, got {estimator!r}.")
        return np.asarray(estimator(grid), dtype="float64").ravel(), (-1.0, 0.0, 1.0)
    classes = getattr(estimator, "classes_", ())
    if hasattr(estimator, "decision_function") and len(classes) <= 2:
        return np.asarray(estimator.decision_function(grid)), (-1.0, 0.0, 1.0) if len(classes) else (0.0,)
    if not len(classes):
        raise TypeError(f"{type(final).__name__} has no classes; for a regression see symsvm.plot.tube.")
    return np.searchsorted(classes, np.asarray(estimator.predict(grid))), ()


def _index_classes(estimator: Any, X: Any, y: Any, m: int) -> tuple[Array, list[str]]:
    """Return the index of each point's class, and the labels of the classes."""
    if y is None:
        y = estimator.predict(X) if hasattr(estimator, "predict") else np.sign(np.asarray(estimator(X)).ravel())
        if not len(getattr(estimator, "classes_", ())):
            return (np.asarray(y) > 0).astype("int64"), ["outside, $f < 0$", "inside, $f \\geq 0$"]
    y = np.asarray(y)
    if y.shape != (m,):
        raise ValueError(f"y must have one label for each of the {m} points, got the shape {y.shape}.")
    classes = getattr(estimator, "classes_", ())
    classes = np.unique(y) if not len(classes) else np.concatenate([classes, np.setdiff1d(y, classes)])
    order = {label: i for i, label in enumerate(classes.tolist())}
    labels = [f"$y = {c:+g}$" if set(order) <= {-1, 1} else f"{c}" for c in classes.tolist()]
    return np.array([order[label] for label in y.tolist()]), labels


def _support_of_multipliers(points: Array, lam: Array) -> Support:
    if lam.shape != (len(points),):
        raise ValueError(f"lam must have one entry for each of the {len(points)} points, got the shape {lam.shape}.")
    rows = np.flatnonzero(lam > 0)
    bound, side = np.full(len(rows), np.nan), np.zeros(len(rows), dtype="int64")
    return Support(points[rows], rows, lam[rows], lam[rows], bound, side)


def _label_margins(levels: Sequence[float]) -> str:
    """Return the label of the lines other than f = 0."""
    others = [level for level in levels if level != 0]
    if len(others) == 2 and others[0] == -others[1]:
        return f"$f = \\pm {others[1]:g}$"
    return f"$f = {', '.join(f'{level:g}' for level in others)}$" if others else ""
