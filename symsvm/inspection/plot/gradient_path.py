"""`SearchPathDisplay` and `WidthsDisplay`: the path of a search by gradient, and the widths that it found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.inspection.plot.display import INK, Display, column_names, dense_points, final_estimator, series_colour
from symsvm.inspection.plot.search_surface import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.model_selection import GradientSearchCV

__all__ = ["SearchPathDisplay", "WidthsDisplay", "search_path", "widths"]

# Features that get a bar of their own.
_MAX_BARS = 30


class SearchPathDisplay(Display):
    """The path of a search by gradient over the losses of its coarse grid.

    Parameters
    ----------
    parameters : list of str
        The names of the parameters on the axes.
    values : list of array
        Their values in all evaluations; of a vector the geometric mean.
    losses : array
        The held-out loss of each evaluation.
    stages : array of int
        0 for the grid, then the number of the start.
    best : int
        The best evaluation.
    label : str
        The name of the loss.

    Attributes
    ----------
    mesh_, colorbar_ : matplotlib artists
        The losses of the grid; for one parameter a line without a colorbar.
    lines_ : list of matplotlib Line2D
        The path from each start.
    best_ : matplotlib artist
        The mark of the best evaluation.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    mesh_: Any
    colorbar_: Any
    lines_: list[Any]
    best_: Any

    def __init__(
        self,
        *,
        parameters: Sequence[str],
        values: Sequence[Array],
        losses: Array,
        stages: Array,
        best: int,
        label: str = "loss",
    ) -> None:
        self.parameters, self.values, self.losses = parameters, values, losses
        self.stages, self.best, self.label = stages, best, label

    @classmethod
    def from_search(
        cls,
        search: GradientSearchCV,
        *,
        parameters: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the path of a fitted `GradientSearchCV`.

        Parameters
        ----------
        search, parameters, ax, **kwargs : object
            As in `search_path`.

        Returns
        -------
        SearchPathDisplay
            The display.
        """
        results = search.cv_results_
        known = list(search.best_params_)
        if parameters is None:
            varied = [name for name in known if len(np.unique(_means(results, name)[results["stage"] == 0])) > 1]
            parameters = (varied + [name for name in known if name not in varied])[:2]
        if not 1 <= len(parameters) <= 2 or any(name not in known for name in parameters):
            chosen = ", ".join(parameters) or "none"
            raise ValueError(f"parameters must be one or two of {', '.join(known)}, got {chosen}.")
        display = cls(
            parameters=list(parameters),
            values=[_means(results, name) for name in parameters],
            losses=-results["mean_test_score"],
            stages=results["stage"],
            best=search.best_index_,
            label=f"held-out {search.scoring_.replace('_', ' ')}",
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.pcolormesh`.

        Returns
        -------
        SearchPathDisplay
            The display itself.
        """
        ax = self._open_axes(ax, figsize=(5.8, 4.4))
        places = [*self.values, self.losses][:2]  # of one parameter, the loss is the other axis
        if len(self.parameters) == 2:
            self._draw_grid(ax, kwargs)
        else:
            on_grid = np.flatnonzero(self.stages == 0)
            on_grid = on_grid[np.argsort(self.values[0][on_grid])]
            dotted: dict[str, Any] = {"color": INK, "marker": "s", "ls": ":"} | kwargs
            x, y = (v[on_grid] for v in places)
            self.mesh_ = ax.plot(x, y, **dotted)[0]
            self.mesh_.set_label("grid")
            ax.set_ylabel(self.label)
            if self.values[0].min() > 0:
                ax.set_xscale("log")
        self.lines_ = []
        for stage in range(1, int(self.stages.max(initial=0)) + 1):
            x, y = (v[self._descending(stage)] for v in places)
            line: dict[str, Any] = {
                "color": series_colour(stage - 1),
                "marker": "o",
                "markersize": 4.5,
                "linewidth": 1.6,
            }
            self.lines_ += ax.plot(x, y, label=f"start {stage}", markeredgecolor="white", markeredgewidth=0.6, **line)
        x, y = ([v[self.best]] for v in places)
        self.best_ = ax.scatter(x, y, marker="*", s=190, color="white", edgecolors=INK, linewidths=1.0, zorder=4)
        ax.set_xlabel(self.parameters[0])
        values = ", ".join(f"{name} = {v[self.best]:.4g}" for name, v in zip(self.parameters, self.values, strict=True))
        ax.set_title(f"best: {values} ({self.losses[self.best]:.4g})", fontsize="medium")
        self._finish()
        if ax.get_legend() is not None:  # readable over the cells
            ax.legend(fontsize="small", framealpha=0.9, edgecolor="none")
        return self

    def _draw_grid(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        """Draw the losses of the grid as cells."""
        on_grid = self.stages == 0
        cells = [np.unique(v[on_grid]) for v in self.values]
        scales = [Axis(list(v)) for v in cells]
        surface = np.full([len(v) for v in reversed(cells)], np.nan)
        for x, y, loss in zip(*(v[on_grid] for v in self.values), self.losses[on_grid], strict=True):
            i, j = np.searchsorted(cells[1], y), np.searchsorted(cells[0], x)
            surface[i, j] = np.fmin(surface[i, j], loss)
        finite = self.losses[np.isfinite(self.losses)]
        style: dict[str, Any] = {"cmap": "cividis_r", "vmin": finite.min()} | kwargs
        shown = np.ma.masked_where(~np.isfinite(surface), surface)
        self.mesh_ = ax.pcolormesh(*(scale.edges for scale in scales), shown, **style)
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, label=self.label)
        self.colorbar_.outline.set_visible(False)
        for axis, scale in zip("xy", scales, strict=True):
            if scale.is_log:
                getattr(ax, f"set_{axis}scale")("log")
        ax.set_ylabel(self.parameters[1])

    def _descending(self, stage: int) -> Array:
        """The evaluations of a start that are better than all before them: those that the search goes on from."""
        members = np.flatnonzero(self.stages == stage)
        losses = self.losses[members]
        before = np.minimum.accumulate(np.concatenate([[np.inf], losses[:-1]]))
        return members[losses < before]


class WidthsDisplay(Display):
    """How much each feature matters to a kernel with a width for each: 1 / sigma_k as bars.

    Parameters
    ----------
    relevance : array of shape (d,)
        1 / sigma_k, or the deviation of the feature divided by sigma_k.
    names : list of str
        The names of the features.
    label : str
        The label of the axis.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        The bars, the largest at the top.
    order_ : array of int
        The feature of each bar.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    bars_: Any
    order_: Array

    def __init__(self, *, relevance: Array, names: Sequence[str], label: str) -> None:
        self.relevance, self.names, self.label = relevance, names, label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the widths of a fitted estimator or search.

        Parameters
        ----------
        estimator, X, feature_names, ax, **kwargs : object
            As in `widths`.

        Returns
        -------
        WidthsDisplay
            The display.
        """
        sigma = _widths_of(estimator)
        relevance, label = 1 / sigma, "1 / width"
        if X is not None:
            points = dense_points(X)
            if points.shape[1] != len(sigma):
                raise ValueError(f"X must have the {len(sigma)} features of the widths, got {points.shape[1]}.")
            relevance, label = points.std(axis=0) / sigma, "standard deviation / width"
        names = feature_names if feature_names is not None else column_names(X)
        if names is None:
            stored = getattr(estimator, "feature_names_in_", None)
            names = [f"feature {k + 1}" for k in range(len(sigma))] if stored is None else list(stored)
        if len(names) != len(sigma):
            raise ValueError(f"feature_names must have {len(sigma)} names, got {len(names)}.")
        return cls(relevance=relevance, names=list(map(str, names)), label=label).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.barh`.

        Returns
        -------
        WidthsDisplay
            The display itself.
        """
        order = np.argsort(-self.relevance, kind="stable")
        n = min(len(order), _MAX_BARS)
        self.order_ = order[:n]
        ax = self._open_axes(ax, figsize=(5.2, 1.0 + 0.26 * n))
        style: dict[str, Any] = {"color": series_colour(1), "height": 0.72} | kwargs
        self.bars_ = ax.barh(np.arange(n), self.relevance[self.order_], **style)
        ax.set_yticks(np.arange(n), [str(self.names[k]) for k in self.order_.tolist()])
        ax.set_ylim(n - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(self.label)
        hidden = len(order) - n
        title = "features by their widths" + (f", the first {n} of {len(order)}" if hidden else "")
        ax.set_title(title, fontsize="medium")
        self._finish()
        return self


def search_path(
    search: GradientSearchCV,
    *,
    parameters: Sequence[str] | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> SearchPathDisplay:
    """Draw the path of a search by gradient: from the cells of the coarse grid to the best parameters.

    The grid is a heat map of the held-out loss, of which each cell shows the least one over the other parameters. A
    line connects the evaluations of a start that improved on all before.

    Parameters
    ----------
    search : GradientSearchCV
        The fitted search.
    parameters : sequence of str, optional
        One or two parameters on the axes; by default those that the grid varies. Of a vector it is the geometric mean.
        Over one parameter the losses are a curve.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.pcolormesh`.

    Returns
    -------
    SearchPathDisplay
        The display.
    """
    return SearchPathDisplay.from_search(search, parameters=parameters, ax=ax, **kwargs)


def widths(
    estimator: Any,
    X: ArrayLike | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> WidthsDisplay:
    """Draw which features matter to a kernel with a width for each: the narrower, the more.

    The kernel sees x_k / sigma_k. A feature whose width is large against its deviation is as good as absent.

    Parameters
    ----------
    estimator : GradientSearchCV or estimator
        A search over widths, or an estimator with a kernel such as `RBF(sigma=vector)`.
    X : array-like of shape (m, d), optional
        Points: bars are then their deviations divided by the widths, which do not depend on the units of features.
    feature_names : sequence of str, optional
        The names of the features; by default those of the columns of X.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.barh`.

    Returns
    -------
    WidthsDisplay
        The display.
    """
    return WidthsDisplay.from_estimator(estimator, X, feature_names=feature_names, ax=ax, **kwargs)


def _means(results: Any, name: str) -> Array:
    """The values of a parameter, of vectors their geometric means."""
    values = np.asarray(results[f"param_{name}"], dtype="float64")
    if values.ndim == 1:
        return values
    return np.exp(np.log(values).mean(axis=1)) if (values > 0).all() else values.mean(axis=1)


def _widths_of(estimator: Any) -> Array:
    found = getattr(estimator, "best_params_", None)
    candidates = list(found.items()) if found else []
    model = final_estimator(estimator)[0]
    kernel = getattr(model, "kernel", None)
    if not candidates and hasattr(kernel, "get_params"):
        candidates = list(kernel.get_params().items())  # pyright: ignore[reportOptionalMemberAccess]
    for name, value in candidates:
        if name.rpartition("__")[2] == "sigma" and np.ndim(value) == 1:
            return np.asarray(value, dtype="float64")
    raise ValueError("there is no width for each feature: give a kernel such as RBF(sigma=np.ones(d)).")
