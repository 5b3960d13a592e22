"""The base class of displays, and what they share: styles, access to estimators and points, support vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from symsvm._lib.types import Array

__all__ = [
    "INK",
    "Display",
    "Support",
    "circle_support",
    "column_names",
    "constructor_parameter",
    "dense_points",
    "final_estimator",
    "find_support",
    "line_style",
    "marker",
    "marker_area",
    "series_colour",
]

# The colours of Okabe and Ito (Color Universal Design, 2008) without black, which colour-blind readers can tell apart;
# after them three more, for which the markers help.
_COLOURS = (
    "#D55E00",
    "#0072B2",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7F7F7F",
    "#832DB6",
    "#A96B59",
    "#F0E442",
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_MARKER_AREAS = {"s": 0.8, "D": 0.75, "P": 1.3, "X": 1.3, "*": 1.9}
_LINE_STYLES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
# The colour of lines and text that belong to no class.
INK = "#222222"

# A coefficient is at its bound if it is this close to it, relative to the bound.
_BOUND_TOLERANCE = 1e-6
# A coefficient of a linear estimator is zero if it is this small, relative to the largest.
_ZERO_TOLERANCE = 1e-6
# The relative error of w = sum_i z_i x_i that a stopping rule may leave.
_WEIGHTS_TOLERANCE = 0.05


def series_colour(i: int) -> str:
    """Return the colour of the i-th class or line."""
    return _COLOURS[i % len(_COLOURS)]


def marker(i: int) -> str:
    """Return the marker of the i-th class; markers and colours repeat with different periods."""
    return _MARKERS[i % len(_MARKERS)]


def marker_area(i: int) -> float:
    """Return the area of the i-th marker, relative to a circle, that makes all markers look equally large."""
    return _MARKER_AREAS.get(marker(i), 1.0)


def line_style(i: int) -> Any:
    """Return the line style of the i-th line."""
    return _LINE_STYLES[i % len(_LINE_STYLES)]


class Display:
    """Base class of displays: `plot` draws and sets `ax_` and `figure_`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that were drawn on.
    figure_ : matplotlib Figure
        The figure of the axes.
    """

    ax_: Axes
    figure_: Figure

    def _open_axes(self, ax: Axes | None, **options: Any) -> Axes:
        """Return the axes to draw on; new ones, made with these options, unless given."""
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError(
                    "Pictures need matplotlib, which is not installed: pip install 'symsvm[plot]'."
                ) from None
            new: Any = pyplot.subplots(layout="constrained", **options)[1]
            ax = new
        assert ax is not None
        self.ax_, self.figure_ = ax, ax.figure  # pyright: ignore[reportAttributeAccessIssue]  # may be a SubFigure
        return ax

    def _finish(self, *, legend_outside: bool = False) -> None:
        """Hide two spines, and add a legend, inside or beside the axes, if something has a label."""
        self.ax_.spines[["top", "right"]].set_visible(False)
        if self.ax_.get_legend_handles_labels()[0]:
            place: dict[str, Any] = {}
            if legend_outside:
                place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
            self.ax_.legend(frameon=False, fontsize="small", **place)


def final_estimator(estimator: Any) -> tuple[Any, Any]:
    """Return the final estimator of a search or a pipeline, and the steps before it (None if there are none)."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "steps"):
        return final_estimator(estimator[-1])[0], estimator[:-1] if len(estimator) > 1 else None
    return estimator, None


def constructor_parameter(estimator: Any, name: str) -> Any:
    """Return a constructor parameter, None if there is none (scikit-learn sets attributes of other models to 0)."""
    return estimator.get_params(deep=False).get(name) if hasattr(estimator, "get_params") else None


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, None for an array."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def dense_points(X: Any) -> Array:
    """Return X as an array of floats, (m, d)."""
    X = np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype="float64")
    if X.ndim != 2 or 0 in X.shape:
        hint = "; reshape one feature with X.reshape(-1, 1)" if X.ndim == 1 else ""
        raise ValueError(f"X must have two dimensions (points, features), got the shape {X.shape}{hint}.")
    return X


# ---- support vectors


class Support(NamedTuple):
    """Support vectors with their coefficients; n is their number.

    Attributes
    ----------
    vectors : ndarray of shape (n, d) or None
        The vectors in the features that the estimator is given; None where they are not known.
    rows : ndarray of shape (n,) or None
        Their rows in X; None where X are not the training points.
    size : ndarray of shape (n,)
        The coefficients \\|q_i\\|, with several classes the largest over the binary problems.
    total : ndarray of shape (n,)
        The sum of \\|q_i\\| over these problems.
    bound : ndarray of shape (n,)
        C_i, in the units of size; NaN where it is not known, infinite for squared losses.
    side : ndarray of shape (n,)
        The index of the class, or of the sign of the coefficient, -1 before +1.
    limit : str
        The label of the bound.
    """

    vectors: Array | None
    rows: Array | None
    size: Array
    total: Array
    bound: Array
    side: Array
    limit: str = "$C$"

    @property
    def bounded(self) -> Array:
        """Which coefficients are at their bound, lam_i = C_i."""
        return self.size >= self.bound * (1 - _BOUND_TOLERANCE)


def find_support(estimator: Any, X: Any = None) -> Support | None:
    """Return the support vectors of a fitted estimator, or of the last step of a pipeline or search; None without any.

    If X are the training points, the result has their rows. A linear estimator stores no vectors and needs them.
    """
    final, steps = final_estimator(estimator)
    if hasattr(final, "dual_coef_") and hasattr(final, "support_"):
        return _kernel_support(final, steps, X)
    solutions = getattr(final, "solutions_", None)
    if solutions and X is not None and hasattr(solutions[0], "dual"):
        return _linear_support(final, steps, solutions, X)
    return None


def _kernel_support(final: Any, steps: Any, X: Any) -> Support:
    q = final.dual_coef_
    q = np.asarray(q.toarray() if hasattr(q, "tocsr") else q, dtype="float64")
    size, rows = np.abs(q).max(axis=0, initial=0.0), np.asarray(final.support_)
    vectors = final.support_vectors_
    vectors = dense_points(vectors) if vectors.shape[0] and len(rows) else None
    if X is not None and _are_training_points(X, rows, vectors, steps, final.shape_fit_):
        vectors = dense_points(X)[rows]
    else:
        rows = None
        if steps is not None and vectors is not None:
            inverse = getattr(steps, "inverse_transform", None)
            vectors = None if inverse is None else np.asarray(inverse(vectors))
    classes = getattr(final, "classes_", ())
    several, limit = len(classes) > 1, "its bound" if constructor_parameter(final, "C") is None else "$C$"
    side = np.repeat(np.arange(len(classes)), final.n_support_) if several else (q[0] > 0).astype("int64")
    return Support(vectors, rows, size, np.abs(q).sum(axis=0), _bounds(final, q, side), side, limit)


def _are_training_points(X: Any, rows: Array, vectors: Array | None, steps: Any, shape: tuple[int, ...]) -> bool:
    """Whether X has as many rows as the training points and the support vectors at their rows."""
    if X.shape[0] != shape[0] or vectors is None:
        return X.shape[0] == shape[0]
    found = dense_points(steps.transform(X) if steps is not None else X)[rows]
    return found.shape == vectors.shape and np.allclose(found, vectors, rtol=1e-5, atol=1e-8)


def _bounds(final: Any, q: Array, side: Array) -> Array:
    """Return the bound of each coefficient: from the solved programs, else C times the weight of the class."""
    solutions = getattr(final, "solutions_", ())
    if solutions and all(getattr(s, "program", None) is not None for s in solutions):
        return _program_bounds(final, solutions)
    C = constructor_parameter(final, "C")
    if C is None:  # one class has the bound 1; dual_coef_ of scikit-learn's nu-SVC is divided by rho, which is unknown
        return np.full(q.shape[1], 1.0 if hasattr(final, "offset_") else np.nan)
    weight = getattr(final, "class_weight_", None)
    return np.full(q.shape[1], float(C)) * (1.0 if weight is None or not len(weight) else np.asarray(weight)[side])


def _program_bounds(final: Any, solutions: Sequence[Any]) -> Array:
    """Return C_i of the variable that each coefficient comes from, scaled as the coefficient is."""
    coef = final.decision_coef_
    bound = np.full(coef.shape, np.nan)
    for column, solution in enumerate(solutions):
        rows = np.flatnonzero(coef[:, column])
        if getattr(final, "multi_class", None) == "ovr" or len(solutions) == 1:
            rows = rows[np.argsort(final.support_[rows])]  # all but one-vs-one problems keep the order of the points
        program = solution.program
        beta = program.weights(np.asarray(solution.z))
        reach = np.fmax(np.abs(program.lower), np.abs(program.upper)).reshape(-1, program.m).max(axis=0)
        nonzero = np.flatnonzero(beta)
        bound[rows, column] = reach[nonzero] * np.abs(coef[rows, column] / beta[nonzero])
    largest = np.abs(coef).argmax(axis=1)  # the problem whose coefficient is shown
    return bound[np.arange(len(coef)), largest]


def _linear_support(final: Any, steps: Any, solutions: Sequence[Any], X: Any) -> Support | None:
    points = dense_points(steps.transform(X) if steps is not None else X)
    duals = [np.asarray(s.dual) for s in solutions if s.dual is not None]
    if len(duals) < len(solutions) or any(len(z) != len(points) for z in duals):
        return None
    z = np.column_stack(duals)
    w = np.column_stack([s.w for s in solutions])
    error = np.linalg.norm(points.T @ z - w)
    if getattr(final, "penalty", "l2") == "l2" and error > _WEIGHTS_TOLERANCE * np.linalg.norm(w):
        return None  # X are not the training points
    size = np.abs(z).max(axis=1)
    rows = np.flatnonzero(size > _ZERO_TOLERANCE * size.max(initial=0.0))
    C = solutions[0].C
    squared = "squared" in getattr(final, "loss", "")
    bound = np.full(len(points), np.inf if squared else np.nan) if squared or C is None else np.asarray(C) + 0 * size
    largest = z[np.arange(len(z)), np.abs(z).argmax(axis=1)]
    side = (largest[rows] > 0).astype("int64")
    return Support(dense_points(X)[rows], rows, size[rows], np.abs(z[rows]).sum(axis=1), bound[rows], side)


def circle_support(
    ax: Axes,
    support: Support | None,
    *,
    free: str = "free support vector",
    bounded: str = "support vector at {}",
    xy: Array | None = None,
) -> list[Any]:
    """Circle support vectors, with full rings for free ones and dotted rings for those at C; return what was drawn."""
    xy = support.vectors if xy is None and support is not None else xy
    if support is None or xy is None or not len(xy):
        return []
    if not np.isfinite(support.bound).any():
        groups = [(np.ones(len(xy), dtype=bool), "-", "support vector")]
    else:
        groups = [(~support.bounded, "-", free), (support.bounded, (0, (1, 1.2)), bounded.format(support.limit))]
    style = {"s": 70, "facecolors": "none", "edgecolors": INK, "linewidths": 1.0, "zorder": 4}
    return [
        ax.scatter(*xy[rows].T, linestyles=[dashes], label=text, **style) for rows, dashes, text in groups if rows.any()
    ]
