"""DecisionBoundaryDisplay: where a classifier changes its mind, in a plane of two features."""

import numpy as np

from symsvm.inspection.plot.canvas import INK, Display, area, colour, machine_of, marker, names_of
from symsvm.inspection.plot.support import Support, support_of

__all__ = ["DecisionBoundaryDisplay", "decision_boundary", "ring"]


class DecisionBoundaryDisplay(Display):
    """The boundary f = 0 and the margins f = -1, +1 (Eq. 30), or the regions of several classes, with points.

    Attributes
    ----------
    x0, x1 : the grid, (resolution, resolution) each.
    response : f on the grid, or the index of the class for several classes.
    levels : the values of f that lines are drawn at; none for several classes.
    points, labels, classes : the points (m, 2), the index of each one's class, and the classes.
    support : a `Support`, or None.
    xlabel, ylabel : the names of the features.
    lines_, regions_, points_, circles_ : what was drawn.
    ax_, figure_ : where.
    """

    def __init__(self, *, x0, x1, response, levels, points, labels, classes, support=None, xlabel="", ylabel=""):
        self.x0, self.x1, self.response, self.levels = x0, x1, response, levels
        self.points, self.labels, self.classes, self.support = points, labels, classes, support
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, lam=None, *, features=None, at=None, levels=None, resolution=None, ax=None, **kwargs
    ):
        """Evaluate an estimator on a grid around the points and draw it; see `decision_boundary`."""
        points, plane, names, fill = _plane(X, features, at)
        low, high = points.min(axis=0), points.max(axis=0)
        pad = 0.08 * np.where(high > low, high - low, 1.0)
        if resolution is None:  # the edges of regions have no value between grid points to follow
            resolution = 400 if len(getattr(estimator, "classes_", ())) > 2 else 200
        x0, x1 = np.meshgrid(*(np.linspace(*ends, resolution) for ends in zip(low - pad, high + pad, strict=True)))
        response, lines = _response(estimator, fill(np.column_stack([x0.ravel(), x1.ravel()])))
        lines = lines if levels is None else tuple(levels) if len(lines) else ()
        labels, classes = _labelled(estimator, X, y, len(points))
        if lam is not None:
            support = _given(points, np.asarray(lam, dtype="float64").ravel())
        else:
            support = support_of(estimator, X if hasattr(X, "shape") else np.asarray(X))
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

    def plot(self, ax=None, **kwargs):
        """Draw on `ax`, or on a figure of its own; `kwargs` are for the points, as of `Axes.scatter`."""
        ax = self._begin(ax, figsize=(6.4, 4.4))
        k = len(self.classes)
        self.regions_, self.lines_ = [], None
        if len(self.levels):
            ends = [-np.inf, 0.0, np.inf]
            tints = [colour(0), colour(1)]
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
            for text, style, width in (("$f = 0$", "-", 1.6), (_others(levels), (0, (4, 2)), 0.9)):
                if text:
                    ax.plot([], [], color=INK, linestyle=style, linewidth=width, label=text)
        else:
            for c in np.unique(self.response).astype("int64"):
                inside = (self.response == c).astype("float64")
                self.regions_.append(
                    ax.contourf(self.x0, self.x1, inside, levels=[0.5, 1.5], colors=[colour(c)], alpha=0.14)
                )
                if 0 < inside.mean() < 1:
                    ax.contour(self.x0, self.x1, inside, levels=[0.5], colors=INK, linewidths=0.9)
        self.points_ = []
        for c in range(k):
            style = {"s": 26 * area(c), "c": colour(c), "marker": marker(c), "linewidths": 0.4, "edgecolors": "white"}
            rows = self.labels == c
            self.points_.append(
                ax.scatter(*self.points[rows].T, label=f"{self.classes[c]}", zorder=3, **(style | kwargs))
            )
        self.circles_ = ring(ax, self.support)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        return self._end(beside=True)


def decision_boundary(
    estimator, X, y=None, lam=None, *, features=None, at=None, levels=None, resolution=None, ax=None, **kwargs
):
    """Draw the boundary f = 0 and the margins f = -1, +1 of a classifier (Eq. 30) with its points and support vectors.

    Several classes are drawn as regions. Support vectors between their bounds have a full ring, those at C a dotted
    one.

    Parameters
    ----------
    estimator : a fitted classifier, `OneClassSVM`, a pipeline or a search of them, or a function of points (n, d) that
        returns decision values (n,).
    X, y : points (m, 2) and their labels; without y, what the estimator predicts.
    lam : for a function: multipliers (m,), of which those above 0 belong to support vectors.
    features : two columns (numbers, or names of a data frame) to draw of more; the others are held at `at`.
    at : a value for every feature, (d,), where the plane goes through; the medians of X by default.
    levels : the values of f to draw lines at, by default -1, 0, 1, and 0 for one class.
    resolution : points of the grid along each axis, by default 200, and 400 for several classes.
    ax : matplotlib axes, new ones by default.

    Returns
    -------
    a `DecisionBoundaryDisplay`.

    >>> X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> display = decision_boundary(lambda Z: 2 * Z[:, 0], X, [-1, 1, 1])
    >>> display.lines_.get_paths()[2].vertices[:, 0].round(6).tolist()[:2]  # the margin f = 1
    [0.5, 0.5]
    """
    options = {"features": features, "at": at, "levels": levels, "resolution": resolution, "ax": ax}
    return DecisionBoundaryDisplay.from_estimator(estimator, X, y, lam, **options, **kwargs)


def ring(ax, support, *, free="free support vector", bounded="support vector at {}", xy=None):
    """Circle support vectors: a full ring for free ones, a dotted ring for those at C; return both, or nothing."""
    xy = support.vectors if xy is None and support is not None else xy
    if xy is None or not len(xy):
        return []
    if not np.isfinite(support.bound).any():
        groups = [(np.ones(len(xy), dtype=bool), "-", "support vector")]
    else:
        groups = [(~support.bounded, "-", free), (support.bounded, (0, (1, 1.2)), bounded.format(support.limit))]
    style = {"s": 70, "facecolors": "none", "edgecolors": INK, "linewidths": 1.0, "zorder": 4}
    return [
        ax.scatter(*xy[rows].T, linestyles=[dashes], label=text, **style) for rows, dashes, text in groups if rows.any()
    ]


def _plane(X, features, at):
    """The points in the plane, its columns, their names, and the function from the plane to all features."""
    names, d = names_of(X), np.shape(X)[-1]
    array = np.asarray(X.toarray() if hasattr(X, "tocsr") else X)
    if array.ndim != 2 or (d != 2 and features is None):
        more = "; choose two with features=(0, 1), or fit on two made by PCA(n_components=2)" if d > 2 else ""
        raise ValueError(f"X must have two features to be drawn, got the shape {array.shape}{more}.")
    chosen = (0, 1) if features is None else tuple(features)
    if len(chosen) != 2 or len(set(chosen)) != 2:
        raise ValueError(f"features must be two different columns of X, got {features!r}.")
    for feature in chosen:
        if isinstance(feature, str) and feature not in (names or ()):
            raise ValueError(f"features must name columns of X, which has {names or 'no names'}, got {feature!r}.")
        if not isinstance(feature, str) and not -d <= feature < d:
            raise ValueError(f"features must be columns 0 to {d - 1} of X, got {feature!r}.")
    plane = [names.index(f) if isinstance(f, str) else int(f) % d for f in chosen]
    array = array.astype("float64")
    middle = np.median(array, axis=0) if at is None else np.asarray(at, dtype="float64")
    if middle.shape != (d,):
        raise ValueError(f"at must hold a value for each of the {d} features, got the shape {middle.shape}.")

    def fill(grid):
        full = np.tile(middle, (len(grid), 1))
        full[:, plane] = grid
        return full if names is None else type(X)(dict(zip(X.columns, full.T, strict=True)))

    shown = [f"$x_{{{j + 1}}}$" for j in plane] if names is None else [names[j] for j in plane]
    return array[:, plane], plane, shown, fill


def _response(estimator, grid):
    """f on the grid and the levels to draw, or the index of the class and no levels."""
    machine, _ = machine_of(estimator)
    if not hasattr(machine, "predict"):
        if not callable(estimator):
            raise TypeError(f"estimator must be a fitted classifier or a function of points, got {estimator!r}.")
        return np.asarray(estimator(grid), dtype="float64").ravel(), (-1.0, 0.0, 1.0)
    classes = getattr(estimator, "classes_", ())
    if hasattr(estimator, "decision_function") and len(classes) <= 2:
        return np.asarray(estimator.decision_function(grid)), (-1.0, 0.0, 1.0) if len(classes) else (0.0,)
    if not len(classes):
        raise TypeError(f"{type(machine).__name__} has no classes; for a regression see symsvm.plot.tube.")
    return np.searchsorted(classes, np.asarray(estimator.predict(grid))), ()


def _labelled(estimator, X, y, m):
    """The index of each point's class, and the classes as they are shown."""
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
    shown = [f"$y = {c:+g}$" if set(order) <= {-1, 1} else f"{c}" for c in classes.tolist()]
    return np.array([order[label] for label in y.tolist()]), shown


def _given(points, lam):
    if lam.shape != (len(points),):
        raise ValueError(f"lam must have one entry for each of the {len(points)} points, got the shape {lam.shape}.")
    rows = np.flatnonzero(lam > 0)
    bound, side = np.full(len(rows), np.nan), np.zeros(len(rows), dtype="int64")
    return Support(points[rows], rows, lam[rows], lam[rows], bound, side)


def _others(levels):
    """The label of the lines beside f = 0."""
    others = [level for level in levels if level != 0]
    if len(others) == 2 and others[0] == -others[1]:
        return f"$f = \\pm {others[1]:g}$"
    return f"$f = {', '.join(f'{level:g}' for level in others)}$" if others else ""
