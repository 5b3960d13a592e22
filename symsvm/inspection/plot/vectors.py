"""SupportVectorsDisplay: which points a machine is made of, and how much each weighs."""

import numpy as np

from symsvm._lib.validation import count
from symsvm.inspection.plot.canvas import INK, Display, colour, dense, machine_of, marker, names_of
from symsvm.inspection.plot.support import support_of

__all__ = ["SupportVectorsDisplay", "support_vectors"]


class SupportVectorsDisplay(Display):
    """Support vectors: in the plane, as pictures, or as the sorted |q_i| with the bound C.

    Attributes
    ----------
    kind : "plane", "pictures" or "coefficients".
    support : the `Support`: vectors, size |q_i|, bound, side.
    sides : the name of each side.
    points : the other points, for a plane; or None.
    m : the number of points of the fit, or None.
    image_shape, n : the shape of a picture, and how many are drawn.
    order : the support vectors from the heaviest to the lightest.
    marks_ : what was drawn.
    ax_, figure_ : where.
    """

    def __init__(self, *, kind, support, sides, points=None, m=None, image_shape=None, n=0, names=None):
        self.kind, self.support, self.sides, self.points = kind, support, sides, points
        self.m, self.image_shape, self.n, self.names = m, image_shape, n, names
        self.order = np.argsort(-support.size, kind="stable")

    @classmethod
    def from_estimator(cls, estimator, X=None, *, kind=None, image_shape=None, n=12, ax=None, **kwargs):
        """Take the support vectors of a fitted estimator and draw them; see `support_vectors`."""
        machine, _ = machine_of(estimator)
        names = names_of(X)
        X = None if X is None else dense(X) if names is None else X
        support = support_of(estimator, X)
        if support is None or not len(support.size):
            needs = "; a linear machine needs the training points, X" if hasattr(machine, "coef_") else ""
            raise ValueError(f"{type(machine).__name__} has no support vectors to draw{needs}.")
        vectors = support.vectors
        flat = vectors is not None and vectors.shape[1] == 2
        if kind is None:
            kind = "pictures" if image_shape is not None else "plane" if flat else "coefficients"
        if kind not in ("plane", "pictures", "coefficients"):
            raise ValueError(f"kind must be 'plane', 'pictures' or 'coefficients', got {kind!r}.")
        if kind == "plane" and not flat:
            raise ValueError("kind='plane' needs points of two features; kind='coefficients' draws any machine.")
        if kind == "pictures":
            if image_shape is None or vectors is None or vectors.shape[1] != int(np.prod(image_shape)):
                have = "unknown" if vectors is None else f"of {vectors.shape[1]} features"
                raise ValueError(f"image_shape={image_shape} must hold the features of a vector, which are {have}.")
            image_shape, n = tuple(image_shape), min(count(n, "n", least=1), len(support.size))
        classes = [str(label) for label in getattr(machine, "classes_", ())]
        known = len(classes) == 2 or (len(classes) > 2 and hasattr(machine, "n_support_"))
        sides = classes if known else ["$q_i < 0$", "$q_i > 0$"]
        m = getattr(machine, "shape_fit_", (None if X is None else X.shape[0],))[0]
        points = np.asarray(X, dtype="float64") if kind == "plane" and X is not None else None
        options = {"points": points, "m": m, "image_shape": image_shape, "n": n, "names": names}
        return cls(kind=kind, support=support, sides=sides, **options).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw on `ax`, or on a figure of its own; `kwargs` are for circles, pictures or strips."""
        ax = self._begin(ax, figsize={"plane": (6.4, 4.4), "pictures": (6.4, 5.2)}.get(self.kind, (6.4, 3.6)))
        return getattr(self, f"_{self.kind}")(ax, kwargs)

    def _plane(self, ax, kwargs):
        """Circles with areas in proportion to |q_i|, filled where q_i is at its bound."""
        s = self.support
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
                    face = {"facecolors": colour(side), "alpha": 0.45} if at else {"facecolors": "none"}
                    style = {"s": area[rows], "edgecolors": colour(side), "linewidths": 1.2, "label": text}
                    style |= {"marker": marker(side)} | face | kwargs
                    self.marks_.append(ax.scatter(*s.vectors[rows].T, zorder=3, **style))
        names = self.names or ("$x_1$", "$x_2$")
        ax.set(xlabel=names[0], ylabel=names[1])
        self._end(beside=True)
        legend = ax.get_legend()
        legend.set_title("area $\\propto |q_i|$", prop={"size": "small"})
        legend.set_alignment("left")
        for handle in legend.legend_handles:
            handle.set_sizes([36])
        return self

    def _pictures(self, ax, kwargs):
        """The n heaviest vectors, row by row, with |q_i| under each."""
        from matplotlib.patches import Rectangle

        rows, columns = _mosaic(self.n, self.image_shape)
        frame = {"edgecolor": "#BBBBBB", "linewidth": 0.6}
        height, width, *colours = self.image_shape
        gap = max(1, round(0.1 * width))
        foot = max(gap, round(0.26 * height))
        tall, wide = height + foot, width + gap
        shown = _in_turn(self.support)[: self.n]
        images = self.support.vectors[shown].reshape(self.n, *self.image_shape)
        low, high = float(images.min()), float(images.max())
        canvas = np.full((rows * tall, columns * wide - gap, *colours), np.nan)
        self.marks_ = []
        for place, (i, image) in enumerate(zip(shown, images, strict=True)):
            r, c = divmod(place, columns)
            canvas[r * tall : r * tall + height, c * wide : c * wide + width] = image
            ax.add_patch(Rectangle((c * wide - 0.5, r * tall - 0.5), width, height, fill=False, clip_on=False, **frame))
            text = f"{self.sides[self.support.side[i]]}:  {self.support.total[i]:.3g}"
            self.marks_.append(
                ax.text(
                    c * wide + width / 2 - 0.5, r * tall + height + 0.45 * foot - 0.5, text, ha="center", va="center",
                    fontsize="x-small", color=INK,
                )
            )  # fmt: skip
        if colours:
            canvas = np.where(np.isnan(canvas), 1.0, (canvas - low) / ((high - low) or 1.0))
        style = {"cmap": "gray_r", "vmin": low, "vmax": high, "interpolation": "nearest"} | kwargs
        self.image_ = ax.imshow(canvas, **style)
        ax.set_axis_off()
        weight = "$|q_i|$" if np.array_equal(self.support.size, self.support.total) else "sum of $|q_i|$"
        kind = "class" if self.sides and not self.sides[0].startswith("$") else "side"
        ax.set_title(f"the {self.n} heaviest of {len(self.order)} support vectors, {kind}: {weight}", fontsize="medium")
        return self

    def _coefficients(self, ax, kwargs):
        """|q_i| from the largest to the smallest, those at the bound apart from the free ones, and the bound."""
        s = self.support
        size, at = s.size[self.order], s.bounded[self.order]
        rank = np.arange(1, len(size) + 1)
        self.marks_ = []
        known = np.isfinite(s.bound).any()
        for flag, tint, name in ((True, colour(0), "at the bound"), (False, colour(1), "free")):
            if (at == flag).any():
                text = f"{np.sum(at == flag)} {name if known else 'support vectors'}"
                style = {"color": tint, "width": 1.0, "linewidth": 0, "alpha": 0.8, "label": text} | kwargs
                self.marks_.append(ax.bar(rank[at == flag], size[at == flag], **style))
        bounds = np.unique(s.bound[np.isfinite(s.bound)].round(12))
        if 0 < len(bounds) <= 4 and bounds[0] <= 20 * size.max():
            name = s.limit.removeprefix("its ") if len(bounds) == 1 else s.limit.replace("C", "C_i")
            for bound in bounds:
                ax.axhline(bound, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
                ax.annotate(
                    f"{name} = {bound:.3g}", (1, bound), xycoords=("axes fraction", "data"), xytext=(0, 3),
                    textcoords="offset points", ha="right", fontsize="small",
                )  # fmt: skip
        of = "" if self.m is None else f" of $m = {self.m}$ points"
        ax.set(xlabel=f"{len(size)} support vectors{of}, by weight", ylabel="$|q_i|$", xlim=(0.5, len(size) + 0.5))
        ax.set_ylim(0, 1.12 * max([size.max(), *(bounds[bounds <= 20 * size.max()] if len(bounds) <= 4 else ())]))
        return self._end(beside=True)


def support_vectors(estimator, X=None, *, kind=None, image_shape=None, n=12, ax=None, **kwargs):
    """Draw the support vectors of a machine by weight, |q_i| = lam_i (Eq. 28).

    Points of two features are drawn in the plane, as circles of an area in proportion to |q_i|, filled at the bound C.
    With `image_shape` the heaviest are shown as pictures, those of equal weight class by class in turn. Any other
    machine gets its |q_i| sorted, with C as a line: many at C say that classes overlap or that C is small. With several
    classes |q_i| is the largest over the problems, and the sum for pictures.

    Parameters
    ----------
    estimator : a fitted machine, or a pipeline or a search of them.
    X : the training points; optional for machines over a kernel, which keep their support vectors.
    kind : "plane", "pictures" or "coefficients", to choose otherwise.
    image_shape : rows and columns of a picture, (28, 28), and its channels if there are any.
    n : how many pictures.
    ax : matplotlib axes, new ones by default.

    Returns
    -------
    a `SupportVectorsDisplay`.

    >>> from symsvm import SVC
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array(["no", "no", "yes", "yes"])
    >>> display = support_vectors(SVC(kernel="linear", C=10.0).fit(X, y))
    >>> display.kind, display.support.size.round(3).tolist(), display.support.bounded.tolist()
    ('coefficients', [2.0, 2.0], [False, False])
    """
    options = {"kind": kind, "image_shape": image_shape, "n": n, "ax": ax}
    return SupportVectorsDisplay.from_estimator(estimator, X, **options, **kwargs)


def _in_turn(support):
    """From the heaviest to the lightest, and where weights are equal one of each side in turn."""
    turn = np.zeros(len(support.side), dtype="int64")
    weight = support.total.round(9)
    for side in np.unique(support.side):
        rows = np.flatnonzero(support.side == side)
        turn[rows[np.argsort(-weight[rows], kind="stable")]] = np.arange(len(rows))
    return np.lexsort((support.side, turn, -weight))


def _mosaic(n, shape):
    """Rows and columns of a field of n pictures, about 4 wide for 3 high."""
    columns = int(np.clip(np.ceil(np.sqrt(n * 4 / 3 * shape[0] / shape[1])), 1, n))
    return -(-n // columns), columns
