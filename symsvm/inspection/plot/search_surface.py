"""`SurfaceDisplay`: the scores of a parameter search, as a heat map over two parameters or a curve over one."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.inspection.plot.display import INK, Display, series_colour

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from matplotlib.axes import Axes

    from symsvm._lib.types import Array
    from symsvm.model_selection import Tuning

__all__ = ["Axis", "SurfaceDisplay", "surface"]

# Up to this many cells have their score written into them.
_MAX_LABELLED_CELLS = 64
_MAX_TICKS = 12


class SurfaceDisplay(Display):
    """The mean score of a search over two parameters as a heat map, over one as a curve, with the best marked.

    Parameters
    ----------
    parameters : list of str
        The names of the parameters on the axes, one or two.
    values : list of list
        The values of each parameter, in order.
    scores : ndarray
        The mean scores, of shape (values of the second, values of the first) or a vector; NaN where there is none.
    deviations : ndarray
        The standard deviations over the folds, in the same shape.
    best : tuple of int
        The index of the best cell in each of `values`.
    label : str
        The label of the scores.

    Attributes
    ----------
    mesh_, colorbar_ : matplotlib artists
        The heat map, for two parameters.
    line_ : matplotlib Line2D
        The curve, for one parameter.
    best_ : matplotlib artist
        The mark of the best cell.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    mesh_: Any
    colorbar_: Any
    line_: Any
    best_: Any

    def __init__(
        self,
        *,
        parameters: Sequence[str],
        values: Sequence[Sequence[Any]],
        scores: Array,
        deviations: Array,
        best: Sequence[int],
        label: str = "score",
    ) -> None:
        self.parameters, self.values, self.scores, self.deviations = parameters, values, scores, deviations
        self.best, self.label = best, label

    @classmethod
    def from_tuning(
        cls, tuning: Tuning, *, parameters: Sequence[str] | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the scores of a `Tuning`.

        Parameters
        ----------
        tuning, parameters, ax, **kwargs : object
            As in `surface`.

        Returns
        -------
        SurfaceDisplay
            The display.
        """
        table, best = tuning.table, tuning.best_index
        known = list(dict.fromkeys(name for cell in tuning.params for name in cell))
        varied = [name for name in known if len(_distinct(table[name])) > 1]
        names = [*(varied or known[:1])] if parameters is None else list(parameters)
        if any(name not in known for name in names) or not 1 <= len(names) <= 2:
            raise ValueError(f"parameters must be one or two of {', '.join(known)}, got {', '.join(names) or 'none'}.")
        values = [_distinct(table[name]) for name in names]
        # Parameters that are on no axis have their best value.
        others = [name for name in varied if name not in names]
        scores = np.full([len(v) for v in reversed(values)], np.nan)
        deviations = scores.copy()
        for i in range(len(tuning.params)):
            if all(_is_same(table[name][i], table[name][best]) for name in others):
                cell = tuple(_index(v, table[name][i]) for v, name in zip(values, names, strict=True))[::-1]
                scores[cell], deviations[cell] = table["mean_score"][i], table["std_score"][i]
        label = tuning.scoring if isinstance(tuning.scoring, str) else "score"
        display = cls(
            parameters=names,
            values=values,
            scores=scores,
            deviations=deviations,
            best=tuple(_index(v, table[name][best]) for v, name in zip(values, names, strict=True)),
            label=f"mean {label}",
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.pcolormesh`, or of `Axes.plot` for one parameter.

        Returns
        -------
        SurfaceDisplay
            The display itself.
        """
        if len(self.parameters) == 1:
            self._draw_curve(ax, kwargs)
        else:
            self._draw_mesh(ax, kwargs)
        return self

    def _draw_mesh(self, ax: Axes | None, kwargs: dict[str, Any]) -> None:
        ax = self._open_axes(ax, figsize=(5.6, 4.4))
        scales = [Axis(values) for values in self.values]
        edges = [scale.edges for scale in scales]
        style: dict[str, Any] = {"cmap": "cividis"} | kwargs
        self.mesh_ = ax.pcolormesh(*edges, np.ma.masked_invalid(self.scores), **style)
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, label=self.label)
        self.colorbar_.outline.set_visible(False)
        for axis, scale in zip("xy", scales, strict=True):
            scale.apply(ax, axis)
        ax.set(xlabel=self.parameters[0], ylabel=self.parameters[1])
        x, y = ([scale.positions[k]] for scale, k in zip(scales, self.best, strict=True))
        self.best_ = ax.scatter(x, y, marker="*", s=190, color="white", edgecolors=INK, linewidths=1.0)
        if self.scores.size <= _MAX_LABELLED_CELLS:
            self._label_cells(ax, *(scale.positions.tolist() for scale in scales))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(f"best: {self._describe_best()}", fontsize="medium")

    def _label_cells(self, ax: Axes, x: Sequence[float], y: Sequence[float]) -> None:
        """Write the scores into their cells, except the best, which is in the title."""
        low, high = np.nanmin(self.scores), np.nanmax(self.scores)
        for (j, i), score in np.ndenumerate(self.scores):
            if np.isfinite(score) and (i, j) != tuple(self.best):
                shade = INK if score > low + 0.6 * (high - low) else "white"
                ax.text(x[i], y[j], f"{score:.3g}", color=shade, fontsize="small", ha="center", va="center")

    def _draw_curve(self, ax: Axes | None, kwargs: dict[str, Any]) -> None:
        ax = self._open_axes(ax, figsize=(5.2, 3.8))
        (values,), (best,) = self.values, self.best
        scale = Axis(values)
        x = scale.positions
        self.line_ = ax.plot(x, self.scores, **({"color": series_colour(1), "marker": "o", "linewidth": 1.7} | kwargs))[
            0
        ]
        low, high = self.scores - self.deviations, self.scores + self.deviations
        ax.fill_between(x, low, high, color=self.line_.get_color(), alpha=0.15, linewidth=0, label="one deviation")
        style: dict[str, Any] = {"marker": "*", "s": 170, "color": series_colour(0), "edgecolors": INK}
        label = f"best: {self._describe_best()}"
        self.best_ = ax.scatter(x[best], self.scores[best], linewidths=0.8, zorder=3, label=label, **style)
        scale.apply(ax, "x")
        ax.set(xlabel=self.parameters[0], ylabel=self.label)
        self._finish()

    def _describe_best(self) -> str:
        chosen = zip(self.parameters, self.values, self.best, strict=True)
        score = self.scores[tuple(reversed(self.best))]
        return ", ".join(f"{name} = {_format_value(values[k])}" for name, values, k in chosen) + f" ({score:.4g})"


def surface(
    tuning: Tuning, *, parameters: Sequence[str] | None = None, ax: Axes | None = None, **kwargs: Any
) -> SurfaceDisplay:
    """Draw the scores of a search: a heat map over two parameters, a curve over one, with the best cell marked.

    Positive numbers that span more than a decade, such as C and gamma, are on logarithmic axes; values that are not
    numbers are evenly spaced. If the best cell is on the border, extend the grid there.

    Parameters
    ----------
    tuning : Tuning
        The result of `symsvm.tuning.tune`.
    parameters : sequence of str, optional
        The parameters on the axes; by default those that the grid varies. If it varies more than two, name two; the
        others have their best value.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.pcolormesh`, or of `Axes.plot` for one parameter.

    Returns
    -------
    SurfaceDisplay
        The display.
    """
    return SurfaceDisplay.from_tuning(tuning, parameters=parameters, ax=ax, **kwargs)


class Axis:
    """An axis of values: logarithmic for positive numbers over more than a decade, linear for others, else evenly."""

    def __init__(self, values: Sequence[Any]) -> None:
        is_numeric = len(values) > 1 and all(_is_number(value) for value in values)
        self.values = values
        self.positions = np.array(values if is_numeric else range(len(values)), dtype="float64")
        self.is_log = is_numeric and self.positions[0] > 0 and self.positions[-1] >= 10 * self.positions[0]

    @property
    def edges(self) -> Array:
        """The borders of the cells: half way between the values, and as far beyond the first and the last."""
        x = np.log(self.positions) if self.is_log else self.positions
        step = np.diff(x) if len(x) > 1 else np.ones(1)
        x = np.concatenate([[x[0] - step[0] / 2], x[:-1] + step / 2 if len(x) > 1 else [], [x[-1] + step[-1] / 2]])
        return np.exp(x) if self.is_log else x

    @property
    def labels(self) -> list[str]:
        """The values as text; powers of two as such, if one of them is long."""
        texts = [_format_value(value) for value in self.values]
        if self.is_log and max(map(len, texts)) > 4 and (np.log2(self.positions) % 1 == 0).all():
            return [f"$2^{{{power:.0f}}}$" for power in np.log2(self.positions)]
        return texts

    def apply(self, ax: Axes, axis: str) -> None:
        """Scale an axis and label the values, or some of them if there are many."""
        if self.is_log:
            getattr(ax, f"set_{axis}scale")("log")
        some = slice(None, None, -(-len(self.values) // _MAX_TICKS))
        getattr(ax, f"set_{axis}ticks")(self.positions[some], self.labels[some])
        getattr(ax, f"set_{axis}ticks")([], minor=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _is_same(a: Any, b: Any) -> bool:
    return a is b or bool(np.all(a == b))


def _distinct(column: Iterable[Any]) -> list[Any]:
    """Return the different values of a parameter, numbers sorted, others in the order of the grid."""
    found: list[Any] = []
    for value in column:
        if not any(_is_same(value, other) for other in found):
            found.append(value)
    return sorted(found) if all(map(_is_number, found)) else found


def _index(values: Sequence[Any], value: Any) -> int:
    return next(k for k, other in enumerate(values) if _is_same(value, other))


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if _is_number(value) else str(value)
