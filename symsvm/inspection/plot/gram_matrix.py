"""`GramDisplay`: a Gram matrix as a picture, ordered by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.inspection.plot.display import Display, final_estimator
from symsvm.kernels import Kernel, Precomputed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from symsvm._lib.types import Array, Points

__all__ = ["GramDisplay", "gram"]

# A Gram matrix of more points takes too much memory and shows no more detail.
_MAX_GRAM_POINTS = 10_000
# Larger matrices are ordered by a Lanczos iteration instead of a full eigendecomposition.
_MAX_DENSE_EIGENVECTORS = 500


class GramDisplay(Display):
    """K(x_i, x_j) with the points ordered by class and, within a class, by similarity.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        The matrix in the order that is drawn.
    order : ndarray of shape (m,)
        The rows of X in this order.
    classes : sequence
        The classes; empty without y.
    sizes : sequence of int
        The number of points of each class.

    Attributes
    ----------
    image_, colorbar_ : matplotlib artists
        What was drawn.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    image_: Any
    colorbar_: Any

    def __init__(
        self, *, K: Array, order: Array, classes: Sequence[Any] | Array = (), sizes: Sequence[int] | Array = ()
    ) -> None:
        self.K, self.order, self.classes, self.sizes = K, order, classes, sizes

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel | str | Callable[[Any, Any], ArrayLike] | BaseEstimator,
        X: ArrayLike | Points,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate a kernel between the points and draw it.

        Parameters
        ----------
        kernel, X, y, ax, **kwargs : object
            As in `gram`.

        Returns
        -------
        GramDisplay
            The display.
        """
        points: Any = X
        m = np.shape(points)[0]
        if m > _MAX_GRAM_POINTS:
            raise ValueError(f"X has {m} points, more than a picture shows: draw a sample, X[:: {-(-m // 1000)}].")
        K = _evaluate_kernel(kernel, X)
        if y is None:
            rows = _order_by_similarity(K)
            return cls(K=K[np.ix_(rows, rows)], order=rows).plot(ax=ax, **kwargs)
        y = np.asarray(y)
        if y.shape != (m,):
            raise ValueError(f"y must have one label for each of the {m} points, got the shape {y.shape}.")
        classes, sizes = np.unique(y, return_counts=True)
        members = [np.flatnonzero(y == label) for label in classes]
        rows = np.concatenate([rows[_order_by_similarity(K[np.ix_(rows, rows)])] for rows in members])
        return cls(K=K[np.ix_(rows, rows)], order=rows, classes=classes, sizes=sizes).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.imshow`.

        Returns
        -------
        GramDisplay
            The display itself.
        """
        ax = self._open_axes(ax, figsize=(5.6, 4.8))
        low, high = float(self.K.min()), float(self.K.max())
        reach, diverging = max(-low, high), low < 0 < high
        style: dict[str, Any] = {"interpolation": "nearest"}
        if diverging:
            style |= {"cmap": "RdBu_r", "vmin": -reach, "vmax": reach}
        else:
            style |= {"cmap": "cividis", "vmin": low, "vmax": high}
        style |= kwargs
        self.image_ = ax.imshow(self.K, **style)
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, label="$K(x_i, x_j)$", shrink=0.85)
        self.colorbar_.outline.set_visible(False)
        ax.spines[:].set_visible(False)
        if len(self.classes):
            ends = np.cumsum(self.sizes)
            line: dict[str, Any] = {"color": "#444444" if diverging else "white", "linewidth": 1.0}
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


def gram(
    kernel: Kernel | str | Callable[[Any, Any], ArrayLike] | BaseEstimator,
    X: ArrayLike | Points,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    **kwargs: Any,
) -> GramDisplay:
    """Draw the Gram matrix K(x_i, x_j) of points, ordered by class.

    A kernel that suits the classes has bright blocks on the diagonal. Within a class (or without y) the order is that
    of the leading kernel principal component. A matrix with both signs gets a diverging colour map centred at 0.

    Parameters
    ----------
    kernel : Kernel, str, callable or estimator
        A symsvm kernel, a name that `SVC` accepts ("rbf" with gamma "scale", ...), a function K(X, Z) that returns a
        matrix, "precomputed" if X is the matrix, or a fitted estimator, whose kernel is used.
    X : array-like of shape (m, d)
        The points.
    y : array-like of shape (m,), optional
        Their labels.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.imshow`.

    Returns
    -------
    GramDisplay
        The display.

    Examples
    --------
    >>> from symsvm import Linear
    >>> display = gram(Linear(), [[1.0], [2.0], [3.0]], ["b", "a", "b"])
    >>> display.order.tolist(), display.K[0].tolist()
    ([1, 0, 2], [4.0, 2.0, 6.0])
    """
    return GramDisplay.from_kernel(kernel, X, y, ax=ax, **kwargs)


def _evaluate_kernel(kernel: Any, X: Any) -> Array:
    """Return the matrix K(X, X)."""
    final, steps = final_estimator(kernel)
    if hasattr(final, "fit"):
        X = X if steps is None else steps.transform(X)
        kernel = getattr(final, "kernel_", None)
        kernel = getattr(final, "kernel", "linear") if kernel is None else kernel
    if isinstance(kernel, str) and kernel != "precomputed":
        from symsvm.estimators import SVC

        name: Any = kernel  # `kernel_for` checks it
        kernel = SVC(kernel=name).kernel_for(np.asarray(X, dtype="float64"), np.ones(np.shape(X)[0]))
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


def _order_by_similarity(K: Array) -> Array:
    """Return the order of the leading kernel principal component, in which similar points are neighbours."""
    if len(K) < 3:
        return np.arange(len(K))
    centred = (K + K.T) / 2
    centred = centred - centred.mean(axis=0) - centred.mean(axis=1, keepdims=True) + centred.mean()
    if len(K) <= _MAX_DENSE_EIGENVECTORS:
        leading = np.linalg.eigh(centred)[1][:, -1]
    else:
        from scipy.sparse.linalg import eigsh

        start: Any = {"v0": np.arange(1.0, len(K) + 1), "tol": 1e-3}
        leading = eigsh(centred, k=1, which="LA", **start)[1][:, 0]
    leading = leading * np.sign(leading[np.abs(leading).argmax()])
    return np.argsort(leading, kind="stable")
