"""`SupportVectorsDisplay`: support vectors in the plane, as pictures, or as sorted coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from symsvm._lib.validation import count
from symsvm.inspection.plot.display import (
    INK,
    Display,
    Support,
    column_names,
    dense_points,
    final_estimator,
    find_support,
    marker,
    series_colour,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from symsvm._lib.types import Array, Points

__all__ = ["SupportVectorsDisplay", "support_vectors"]

# A bound is drawn as a line unless it is this many times the largest coefficient, and unless there are many bounds.
_MAX_BOUND_RATIO, _MAX_BOUND_LINES = 20, 4


class SupportVectorsDisplay(Display):
    """Support vectors in the plane, as pictures, or as sorted coefficients with the bound C.

    Parameters
    ----------
    kind : {"plane", "pictures", "coefficients"}
        How they are drawn.
    support : Support
        The vectors, their coefficients and bounds.
    sides : list of str
        The name of each side: of each class, or of each sign of q_i.
    points : ndarray of shape (m, 2), optional
        The training points, for a plane.
    m : int, optional
        The number of training points.
    image_shape : tuple of int, optional
        The shape of a picture.
    n : int, default 0
        The number of pictures.
    names : list of str, optional
        The names of the features.

    Attributes
    ----------
    order : ndarray of shape (n,)
        The support vectors from the largest coefficient to the smallest.
    marks_ : list of matplotlib artists
        What was drawn.
    image_ : matplotlib AxesImage
        The pictures, if any.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    marks_: list[Any]
    image_: Any

    def __init__(
        self,
        *,
        kind: Literal["plane", "pictures", "coefficients"],
        support: Support,
        sides: Sequence[str],
        points: Array | None = None,
        m: int | None = None,
        image_shape: Sequence[int] | None = None,
        n: int = 0,
        names: Sequence[str] | None = None,
    ) -> None:
        self.kind, self.support, self.sides, self.points = kind, support, sides, points
        self.m, self.image_shape, self.n, self.names = m, image_shape, n, names
        self.order = np.argsort(-support.size, kind="stable")

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | Points | None = None,
        *,
        kind: Literal["plane", "pictures", "coefficients"] | None = None,
        image_shape: Sequence[int] | None = None,
        n: int = 12,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the support vectors of a fitted estimator.

        Parameters
        ----------
        estimator, X, kind, image_shape, n, ax, **kwargs : object
            As in `support_vectors`.

        Returns
        -------
        SupportVectorsDisplay
            The display.
        """
        final, _ = final_estimator(estimator)
        names = column_names(X)
        points: Any = None if X is None else dense_points(X) if names is None else X
        support = find_support(estimator, points)
        if support is None or not len(support.size):
            needs = "; a linear estimator needs the training points, X" if hasattr(final, "coef_") else ""
            raise ValueError(f"{type(final).__name__} has no support vectors to draw{needs}.")
        vectors = support.vectors
        in_plane = vectors is not None and vectors.shape[1] == 2
        if kind is None:
            kind = "pictures" if image_shape is not None else "plane" if in_plane else "coefficients"
        if kind not in ("plane", "pictures", "coefficients"):
            raise ValueError(f"kind must be 'plane', 'pictures' or 'coefficients', got {kind!r}.")
        if kind == "plane" and not in_plane:
            raise ValueError("kind='plane' needs points of two features; kind='coefficients' draws any estimator.")
        if kind == "pictures":
            if image_shape is None or vectors is None or vectors.shape[1] != int(np.prod(image_shape)):
                have = "unknown" if vectors is None else f"of {vectors.shape[1]} features"
                raise ValueError(f"image_shape={image_shape} must hold the features of a vector, which are {have}.")
            image_shape, n = tuple(image_shape), min(count(n, "n", least=1), len(support.size))
        classes = [str(label) for label in getattr(final, "classes_", ())]
        has_classes = len(classes) == 2 or (len(classes) > 2 and hasattr(final, "n_support_"))
        display = cls(
            kind=kind,
            support=support,
            sides=classes if has_classes else ["$q_i < 0$", "$q_i > 0$"],
            points=np.asarray(points, dtype="float64") if kind == "plane" and X is not None else None,
            m=getattr(final, "shape_fit_", (None if X is None else points.shape[0],))[0],
            image_shape=image_shape,
            n=n,
            names=names,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.scatter`, `Axes.imshow` or `Axes.bar`, depending on the kind.

        Returns
        -------
        SupportVectorsDisplay
            The display itself.
        """
        ax = self._open_axes(ax, figsize={"plane": (6.4, 4.4), "pictures": (6.4, 5.2)}.get(self.kind, (6.4, 3.6)))
        getattr(self, f"_draw_{self.kind}")(ax, kwargs)
        return self

    def _draw_plane(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        """Draw circles with areas proportional to |q_i|, filled where q_i is at its bound."""
        s = self.support
        assert s.vectors is not None
        if self.points is not None:
            ax.scatter(*self.points.T, s=6, c="#AAAAAA", linewidths=0, label="$x_i$", zorder=1)
        area = np.maximum(200 * s.size / s.size.max(), 4)
        self.marks_ = []
        known = np.isfinite(s.bound).any()
        for side, name in enumerate(self.sides):
            for at in (False, True):
                rows = (s.side == side) & (s.bounded == at)
                if rows.any():
                    text = f"{name}, {f'at {s.limit}' if at else 'free'}" if known else name
                    face = {"facecolors": series_colour(side), "alpha": 0.45} if at else {"facecolors": "none"}
                    style = {"s": area[rows], "edgecolors": series_colour(side), "linewidths": 1.2, "label": text}
                    style |= {"marker": marker(side)} | face | kwargs
                    self.marks_.append(ax.scatter(*s.vectors[rows].T, zorder=3, **style))
        names = self.names or ("$x_1$", "$x_2$")
        ax.set(xlabel=names[0], ylabel=names[1])
        self._finish(legend_outside=True)
        legend: Any = ax.get_legend()
        legend.set_title("area $\\propto |q_i|$", prop={"size": "small"})
        legend.set_alignment("left")
        for handle in legend.legend_handles:
            handle.set_sizes([36])

    def _draw_pictures(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        """Draw the n vectors with the largest coefficients, row by row, with the class and |q_i| under each."""
        from matplotlib.patches import Rectangle

        assert self.image_shape is not None
        vectors = self.support.vectors
        assert vectors is not None
        rows, columns = _grid_shape(self.n, self.image_shape)
        frame: dict[str, Any] = {"edgecolor": "#BBBBBB", "linewidth": 0.6}
        height, width, *channels = self.image_shape
        gap = max(1, round(0.1 * width))
        foot = max(gap, round(0.26 * height))
        tall, wide = height + foot, width + gap
        shown = _alternate_sides(self.support)[: self.n]
        images = vectors[shown].reshape(self.n, *self.image_shape)
        low, high = float(images.min()), float(images.max())
        canvas = np.full((rows * tall, columns * wide - gap, *channels), np.nan)
        self.marks_ = []
        for place, (i, image) in enumerate(zip(shown.tolist(), images, strict=True)):
            r, c = divmod(place, columns)
            canvas[r * tall : r * tall + height, c * wide : c * wide + width] = image
            ax.add_patch(Rectangle((c * wide - 0.5, r * tall - 0.5), width, height, fill=False, clip_on=False, **frame))
            text = f"{self.sides[int(self.support.side[i])]}:  {self.support.total[i]:.3g}"
            at = (c * wide + width / 2 - 0.5, r * tall + height + 0.45 * foot - 0.5)
            self.marks_.append(ax.text(*at, text, ha="center", va="center", fontsize="x-small", color=INK))
        if channels:
            canvas = np.where(np.isnan(canvas), 1.0, (canvas - low) / ((high - low) or 1.0))
        style = {"cmap": "gray_r", "vmin": low, "vmax": high, "interpolation": "nearest"} | kwargs
        self.image_ = ax.imshow(canvas, **style)
        ax.set_axis_off()
        weight = "$|q_i|$" if np.array_equal(self.support.size, self.support.total) else "sum of $|q_i|$"
        kind = "class" if self.sides and not self.sides[0].startswith("$") else "side"
        title = f"the {self.n} largest of {len(self.order)} support vectors, {kind}: {weight}"
        ax.set_title(title, fontsize="medium")

    def _draw_coefficients(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        """Draw |q_i| from the largest to the smallest, those at the bound in another colour, and the bound."""
        s = self.support
        size, at = s.size[self.order], s.bounded[self.order]
        rank = np.arange(1, len(size) + 1)
        self.marks_ = []
        known = np.isfinite(s.bound).any()
        for flag, colour, name in ((True, series_colour(0), "at the bound"), (False, series_colour(1), "free")):
            if (at == flag).any():
                text = f"{np.sum(at == flag)} {name if known else 'support vectors'}"
                style = {"color": colour, "width": 1.0, "linewidth": 0, "alpha": 0.8, "label": text} | kwargs
                self.marks_.append(ax.bar(rank[at == flag], size[at == flag], **style))
        bounds = np.unique(s.bound[np.isfinite(s.bound)].round(12))
        highest = _MAX_BOUND_RATIO * size.max()
        if 0 < len(bounds) <= _MAX_BOUND_LINES and bounds[0] <= highest:
            name = s.limit.removeprefix("its ") if len(bounds) == 1 else s.limit.replace("C", "C_i")
            for bound in bounds:
                ax.axhline(bound, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
                ax.annotate(
                    f"{name} = {bound:.3g}", (1, bound), xycoords=("axes fraction", "data"), xytext=(0, 3),
                    textcoords="offset points", ha="right", fontsize="small",
                )  # fmt: skip
        of = "" if self.m is None else f" of $m = {self.m}$ points"
        ax.set(xlabel=f"{len(size)} support vectors{of}, by weight", ylabel="$|q_i|$", xlim=(0.5, len(size) + 0.5))
        drawn = bounds[bounds <= highest] if len(bounds) <= _MAX_BOUND_LINES else ()
        ax.set_ylim(0, 1.12 * max([size.max(), *drawn]))
        self._finish(legend_outside=True)


def support_vectors(
    estimator: BaseEstimator,
    X: ArrayLike | Points | None = None,
    *,
    kind: Literal["plane", "pictures", "coefficients"] | None = None,
    image_shape: Sequence[int] | None = None,
    n: int = 12,
    ax: Axes | None = None,
    **kwargs: Any,
) -> SupportVectorsDisplay:
    r"""Draw the support vectors of an estimator by weight, \|q_i\| = lam_i (Eq. 28).

    Points of two features are drawn in the plane, as circles whose area is proportional to \|q_i\|, filled at the bound
    C. With `image_shape` the vectors with the largest coefficients are drawn as pictures; equal coefficients alternate
    between the classes. Other estimators get their sorted \|q_i\|, with C as a line: many coefficients at C mean that
    classes overlap or that C is small. With several classes \|q_i\| is the largest over the binary problems; pictures
    use the sum.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator, or a pipeline or search of one.
    X : array-like of shape (m, d), optional
        The training points. Estimators with a kernel store their support vectors and do not need them.
    kind : {"plane", "pictures", "coefficients"}, optional
        How to draw them, chosen as described above by default.
    image_shape : tuple of int, optional
        Rows and columns of a picture, such as (28, 28), and its channels if it has any.
    n : int, default 12
        The number of pictures.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.scatter`, `Axes.imshow` or `Axes.bar`, depending on the kind.

    Returns
    -------
    SupportVectorsDisplay
        The display.

    Examples
    --------
    >>> from symsvm import SVC
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array(["no", "no", "yes", "yes"])
    >>> display = support_vectors(SVC(kernel="linear", C=10.0).fit(X, y))
    >>> display.kind, display.support.size.round(3).tolist(), display.support.bounded.tolist()
    ('coefficients', [2.0, 2.0], [False, False])
    """
    options = {"kind": kind, "image_shape": image_shape, "n": n, "ax": ax}
    return SupportVectorsDisplay.from_estimator(estimator, X, **options, **kwargs)


def _alternate_sides(support: Support) -> Array:
    """Return the order from the largest coefficient to the smallest; equal ones alternate between the sides."""
    turn = np.zeros(len(support.side), dtype="int64")
    weight = support.total.round(9)
    for side in np.unique(support.side):
        rows = np.flatnonzero(support.side == side)
        turn[rows[np.argsort(-weight[rows], kind="stable")]] = np.arange(len(rows))
    return np.lexsort((support.side, turn, -weight))


def _grid_shape(n: int, shape: Sequence[int]) -> tuple[int, int]:
    """Return the rows and columns of a grid of n pictures, about 4 wide for 3 high."""
    columns = int(np.clip(np.ceil(np.sqrt(n * 4 / 3 * shape[0] / shape[1])), 1, n))
    return -(-n // columns), columns
