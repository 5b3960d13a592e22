"""TubeDisplay: a regression of one feature, its tube and the points that hold it."""

import numpy as np

from symsvm.inspection.plot.boundary import ring
from symsvm.inspection.plot.canvas import INK, Display, colour, machine_of, names_of, parameter
from symsvm.inspection.plot.support import support_of

__all__ = ["TubeDisplay", "tube"]


class TubeDisplay(Display):
    """The function f, the tube f - epsilon to f + epsilon, the points, and the support vectors at its edge and outside.

    Attributes
    ----------
    grid, response : f along the feature.
    epsilon : half the width of the tube.
    x, y : the points.
    support : a `Support` of these points, or None.
    line_, tube_, points_, circles_ : what was drawn.
    ax_, figure_ : where.
    """

    def __init__(self, *, grid, response, epsilon, x, y, support=None, xlabel="$x$", ylabel="$y$"):
        self.grid, self.response, self.epsilon = grid, response, epsilon
        self.x, self.y, self.support = x, y, support
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(cls, estimator, x, y, *, epsilon=None, resolution=500, ax=None, **kwargs):
        """Evaluate a regression along its feature and draw it; see `tube`."""
        names = names_of(x)
        X = x if names is not None else np.asarray(x, dtype="float64")
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
        machine, _ = machine_of(estimator)
        support = support_of(estimator, X)
        if support is not None and support.rows is None:
            support = None  # other points than those of the fit
        pad = 0.03 * (np.ptp(points) or 1.0)
        grid = np.linspace(points.min() - pad, points.max() + pad, resolution)
        column = grid.reshape(-1, 1)
        column = column if names is None else type(X)(dict(zip(X.columns, column.T, strict=True)))
        if epsilon is None:
            epsilon = _epsilon(machine, support, np.abs(y - np.asarray(estimator.predict(X)).ravel()))
        response = np.asarray(estimator.predict(column)).ravel()
        labels = {} if names is None else {"xlabel": names[0]}
        display = cls(grid=grid, response=response, epsilon=epsilon, x=points, y=y, support=support, **labels)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw on `ax`, or on a figure of its own; `kwargs` are for the line of f."""
        ax = self._begin(ax, figsize=(7.2, 4.2))
        f, epsilon = self.response, self.epsilon
        tint = colour(1)
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
        self.circles_ = ring(ax, self.support, xy=xy, free=free, bounded=bounded)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        return self._end(beside=True)


def tube(estimator, x, y, *, epsilon=None, resolution=500, ax=None, **kwargs):
    """Draw a regression of one feature: f, its tube of half the width epsilon, the points and the support vectors.

    Inside the tube an error costs nothing. Free support vectors, with a full ring, are on its edge, those at C, with a
    dotted one, outside it.

    Parameters
    ----------
    estimator : a fitted `SVR`, `NuSVR` or `LinearSVR`, or a pipeline or a search of them.
    x, y : points, (m,) or (m, 1), and their targets; support vectors are circled where they are those of the fit.
    epsilon : half the width of the tube, by default that of the estimator; `NuSVR` finds its own.
    resolution : points of the grid.
    ax : matplotlib axes, new ones by default.

    Returns
    -------
    a `TubeDisplay`.

    >>> from symsvm import SVR
    >>> x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])
    >>> display = tube(SVR(kernel="linear", C=10.0, epsilon=0.1).fit(x.reshape(-1, 1), y), x, y)
    >>> display.epsilon, display.support.rows.tolist()
    (0.1, [0, 2])
    """
    options = {"epsilon": epsilon, "resolution": resolution, "ax": ax}
    return TubeDisplay.from_estimator(estimator, x, y, **options, **kwargs)


def _epsilon(machine, support, errors):
    """Half the width of the machine's tube; for a nu-SVR that does not tell, the error of its free support vectors."""
    if hasattr(machine, "epsilon_"):
        return float(machine.epsilon_)
    if parameter(machine, "epsilon") is not None:
        return float(machine.epsilon)
    if support is not None and not support.bounded.all():
        return float(np.median(errors[support.rows[~support.bounded]]))
    raise ValueError(f"{type(machine).__name__} does not say how wide its tube is; give epsilon=.")
