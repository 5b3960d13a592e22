"""GramDisplay: a Gram matrix as a picture, class by class."""

import numpy as np

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.inspection.plot.canvas import Display, machine_of
from symsvm.kernels import Kernel, Precomputed

__all__ = ["GramDisplay", "gram"]

_MOST = 10_000


class GramDisplay(Display):
    """K(x_i, x_j) with the points ordered by class and, inside a class, by their likeness.

    Attributes
    ----------
    K : the matrix in the order that is drawn.
    order : the rows of X in this order.
    classes, sizes : the classes and how many points each has; none without y.
    image_, colorbar_ : what was drawn.
    ax_, figure_ : where.
    """

    def __init__(self, *, K, order, classes=(), sizes=()):
        self.K, self.order, self.classes, self.sizes = K, order, classes, sizes

    @classmethod
    def from_kernel(cls, kernel, X, y=None, *, ax=None, **kwargs):
        """Evaluate a kernel between the points and draw it; see `gram`."""
        m = np.shape(X)[0]
        if m > _MOST:
            raise ValueError(f"X has {m} points, more than a picture shows: draw a sample, X[:: {-(-m // 1000)}].")
        K = _evaluated(kernel, X)
        if y is None:
            return cls(K=K[np.ix_(rows := _alike(K), rows)], order=rows).plot(ax=ax, **kwargs)
        y = np.asarray(y)
        if y.shape != (m,):
            raise ValueError(f"y must have one label for each of the {m} points, got the shape {y.shape}.")
        classes, sizes = np.unique(y, return_counts=True)
        members = [np.flatnonzero(y == label) for label in classes]
        rows = np.concatenate([rows[_alike(K[np.ix_(rows, rows)])] for rows in members])
        return cls(K=K[np.ix_(rows, rows)], order=rows, classes=classes, sizes=sizes).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw on `ax`, or on a figure of its own; `kwargs` are for `Axes.imshow`."""
        ax = self._begin(ax, figsize=(5.6, 4.8))
        low, high = float(self.K.min()), float(self.K.max())
        if low < 0 < high:
            reach = max(-low, high)
            style = {"cmap": "RdBu_r", "vmin": -reach, "vmax": reach}
        else:
            style = {"cmap": "cividis", "vmin": low, "vmax": high}
        self.image_ = ax.imshow(self.K, **({"interpolation": "nearest"} | style | kwargs))
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, label="$K(x_i, x_j)$", shrink=0.85)
        self.colorbar_.outline.set_visible(False)
        ax.spines[:].set_visible(False)
        if len(self.classes):
            ends = np.cumsum(self.sizes)
            line = {"color": "white" if style["cmap"] == "cividis" else "#444444", "linewidth": 1.0}
            for end in ends[:-1] - 0.5:
                ax.axhline(end, **line)
                ax.axvline(end, **line)
            middles = ends - np.asarray(self.sizes) / 2 - 0.5
            names = [str(label) for label in self.classes]
            long = max(map(len, names)) * len(names) > 40
            ax.set_xticks(middles, names, rotation=45 if long else 0, ha="right" if long else "center")
            ax.set_yticks(middles, names)
            ax.tick_params(length=0)
        else:
            ax.set(xlabel="$j$", ylabel="$i$", xticks=[], yticks=[])
        return self


def gram(kernel, X, y=None, *, ax=None, **kwargs):
    """Draw the Gram matrix K(x_i, x_j) of points, ordered by class: a good kernel makes bright blocks on the diagonal.

    Inside a class (or without y) the order is that of the leading kernel principal component. Kernels of both signs get
    colours that part at 0.

    Parameters
    ----------
    kernel : a symsvm kernel, a name that `SVC` takes ("rbf" with gamma "scale", ...), a function K(X, Z) that returns a
        matrix, "precomputed" where X is the matrix, or a fitted estimator, whose kernel is taken.
    X, y : points (m, d) and their labels.
    ax : matplotlib axes, new ones by default.

    Returns
    -------
    a `GramDisplay`.

    >>> from symsvm import Linear
    >>> display = gram(Linear(), [[1.0], [2.0], [3.0]], ["b", "a", "b"])
    >>> display.order.tolist(), display.K[0].tolist()
    ([1, 0, 2], [4.0, 2.0, 6.0])
    """
    return GramDisplay.from_kernel(kernel, X, y, ax=ax, **kwargs)


def _evaluated(kernel, X):
    """The matrix K(X, X)."""
    machine, before = machine_of(kernel)
    if hasattr(machine, "fit"):
        X = X if before is None else before.transform(X)
        kernel = getattr(machine, "kernel_", None)
        kernel = getattr(machine, "kernel", "linear") if kernel is None else kernel
    if isinstance(kernel, str) and kernel != "precomputed":
        from symsvm.estimators import SVC

        kernel = SVC(kernel=kernel).kernel_for(np.asarray(X, dtype="float64"), np.ones(np.shape(X)[0]))
    if isinstance(kernel, Kernel):
        X = X if hasattr(X, "tocsr") else np.asarray(X, dtype="float64")
        if isinstance(kernel, Precomputed) and X.shape[1:] != (1,):
            X = Precomputed.points(X.shape[0])
        kernel.check_points(X)
        K = KernelEvaluator(kernel).block(X, X)
    elif callable(kernel):
        K = np.asarray(kernel(X, X), dtype="float64")
    elif isinstance(kernel, str):
        K = np.asarray(X, dtype="float64")
    else:
        raise TypeError(f"kernel must be a symsvm kernel, a name, a function or a fitted estimator, got {kernel!r}.")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K(X, X) must be a square matrix, got the shape {K.shape}.")
    if not np.isfinite(K).all():
        raise ValueError("K(X, X) must be finite to be drawn.")
    return K


def _alike(K):
    """An order that puts points side by side that the kernel finds alike: along the leading kernel component."""
    if len(K) < 3:
        return np.arange(len(K))
    centred = (K + K.T) / 2
    centred = centred - centred.mean(axis=0) - centred.mean(axis=1, keepdims=True) + centred.mean()
    if len(K) <= 500:
        leading = np.linalg.eigh(centred)[1][:, -1]
    else:
        from scipy.sparse.linalg import eigsh

        leading = eigsh(centred, k=1, which="LA", v0=np.arange(1.0, len(K) + 1), tol=1e-3)[1][:, 0]
    leading = leading * np.sign(leading[np.abs(leading).argmax()])
    return np.argsort(leading, kind="stable")
