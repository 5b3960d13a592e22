"""SurfaceDisplay: the scores of a search over one parameter or two."""

import numbers

import numpy as np

from symsvm.inspection.plot.canvas import INK, Display, colour

__all__ = ["SurfaceDisplay", "surface"]

# Cells whose scores are written into them.
_FEW = 64


class SurfaceDisplay(Display):
    """The mean score of a search over two parameters as a heat map, over one as a curve, with the best marked.

    Attributes
    ----------
    parameters : the names of the parameters on the axes, one or two.
    values : the values of each, in order.
    scores : the mean scores, (values of the second, values of the first) or a vector; nan where there is none.
    deviations : the standard deviations over folds in the same places.
    best : the index of the best cell in each of `values`.
    mesh_, colorbar_ : of a heat map; line_ of a curve; best_ is the mark.
    ax_, figure_ : where it was drawn.
    """

    def __init__(self, *, parameters, values, scores, deviations, best, label="score"):
        self.parameters, self.values, self.scores, self.deviations = parameters, values, scores, deviations
        self.best, self.label = best, label

    @classmethod
    def from_tuning(cls, tuning, *, parameters=None, ax=None, **kwargs):
        """Take the scores from a `Tuning` and draw them; see `surface`."""
        table, best = tuning.table, tuning.best_index
        varied = [name for name in _names(tuning) if len(_distinct(table[name])) > 1]
        names = [*(varied or _names(tuning)[:1])] if parameters is None else list(parameters)
        unknown = [name for name in names if name not in _names(tuning)]
        if unknown or not 1 <= len(names) <= 2:
            found = ", ".join(_names(tuning))
            raise ValueError(f"parameters must be one or two of {found}, got {', '.join(names) or 'none'}.")
        values = [_distinct(table[name]) for name in names]
        # The parameters that no axis shows are those of the best cell.
        others = [name for name in varied if name not in names]
        scores = np.full([len(v) for v in reversed(values)], np.nan)
        deviations = scores.copy()
        for i in range(len(tuning.params)):
            if all(_same(table[name][i], table[name][best]) for name in others):
                place = tuple(_index(v, table[name][i]) for v, name in zip(values, names, strict=True))[::-1]
                scores[place], deviations[place] = table["mean_score"][i], table["std_score"][i]
        place = tuple(_index(v, table[name][best]) for v, name in zip(values, names, strict=True))
        label = tuning.scoring if isinstance(tuning.scoring, str) else "score"
        display = cls(
            parameters=names, values=values, scores=scores, deviations=deviations, best=place, label=f"mean {label}"
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw on `ax`, or on a figure of its own; `kwargs` are for `Axes.pcolormesh`, or for the line of a curve."""
        if len(self.parameters) == 1:
            return self._curve(ax, kwargs)
        ax = self._begin(ax, figsize=(5.6, 4.4))
        scales = [_Scale(values) for values in self.values]
        edges = [scale.edges for scale in scales]
        self.mesh_ = ax.pcolormesh(*edges, np.ma.masked_invalid(self.scores), **({"cmap": "cividis"} | kwargs))
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, label=self.label)
        self.colorbar_.outline.set_visible(False)
        for axis, scale in zip("xy", scales, strict=True):
            scale.put_on(ax, axis)
        ax.set(xlabel=self.parameters[0], ylabel=self.parameters[1])
        place = [[scale.places[k]] for scale, k in zip(scales, self.best, strict=True)]
        style = {"marker": "*", "s": 190, "color": "white", "edgecolors": INK, "linewidths": 1.0}
        self.best_ = ax.scatter(*place, **style)
        if self.scores.size <= _FEW:
            self._write(ax, *(scale.places for scale in scales))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(f"best: {self._words()}", fontsize="medium")
        return self

    def _write(self, ax, x, y):
        """Write the scores into their cells; that of the best is in the title."""
        low, high = np.nanmin(self.scores), np.nanmax(self.scores)
        for (j, i), score in np.ndenumerate(self.scores):
            if np.isfinite(score) and (i, j) != tuple(self.best):
                shade = INK if score > low + 0.6 * (high - low) else "white"
                ax.text(x[i], y[j], f"{score:.3g}", color=shade, fontsize="small", ha="center", va="center")

    def _curve(self, ax, kwargs):
        ax = self._begin(ax, figsize=(5.2, 3.8))
        (values,), (best,) = self.values, self.best
        scale = _Scale(values)
        x = scale.places
        self.line_ = ax.plot(x, self.scores, **({"color": colour(1), "marker": "o", "linewidth": 1.7} | kwargs))[0]
        low, high = self.scores - self.deviations, self.scores + self.deviations
        ax.fill_between(x, low, high, color=self.line_.get_color(), alpha=0.15, linewidth=0, label="one deviation")
        style = {"marker": "*", "s": 170, "color": colour(0), "edgecolors": INK, "linewidths": 0.8, "zorder": 3}
        self.best_ = ax.scatter(x[best], self.scores[best], **style, label=f"best: {self._words()}")
        scale.put_on(ax, "x")
        ax.set(xlabel=self.parameters[0], ylabel=self.label)
        return self._end()

    def _words(self):
        """The best cell in words."""
        chosen = zip(self.parameters, self.values, self.best, strict=True)
        score = self.scores[tuple(reversed(self.best))]
        return ", ".join(f"{name} = {_shown(values[k])}" for name, values, k in chosen) + f" ({score:.4g})"


def surface(tuning, *, parameters=None, ax=None, **kwargs):
    """Draw the scores of a search: a heat map over two parameters, a curve over one, with the best cell marked.

    Positive numbers that span more than a decade, as those of C and gamma do, are on logarithmic axes; names are one
    beside another. A best cell on the border says that the grid should go on there.

    Parameters
    ----------
    tuning : what `symsvm.tuning.tune` has returned.
    parameters : the names of the parameters on the axes, by default those that the grid varies. If it varies more than
        two, name two: the others are those of the best cell.
    ax : matplotlib axes, new ones by default.

    Returns
    -------
    a `SurfaceDisplay`.
    """
    return SurfaceDisplay.from_tuning(tuning, parameters=parameters, ax=ax, **kwargs)


class _Scale:
    """An axis of values: logarithmic for positive numbers over more than a decade, linear for others, else names."""

    def __init__(self, values):
        self.is_number = len(values) > 1 and all(_is_number(value) for value in values)
        self.values, self.places = values, np.arange(len(values), dtype="float64")
        if self.is_number:
            self.places = np.array(values, dtype="float64")
        self.is_log = self.is_number and self.places[0] > 0 and self.places[-1] >= 10 * self.places[0]

    @property
    def edges(self):
        """The borders between the values, half way on the axis, and as far beyond the first and the last."""
        x = np.log(self.places) if self.is_log else self.places
        step = np.diff(x) if len(x) > 1 else np.ones(1)
        x = np.concatenate([[x[0] - step[0] / 2], x[:-1] + step / 2 if len(x) > 1 else [], [x[-1] + step[-1] / 2]])
        return np.exp(x) if self.is_log else x

    @property
    def labels(self):
        """The values in words; powers of two as such, should one of them be long."""
        texts = [_shown(value) for value in self.values]
        if self.is_log and max(map(len, texts)) > 4 and (np.log2(self.places) % 1 == 0).all():
            return [f"$2^{{{power:.0f}}}$" for power in np.log2(self.places)]
        return texts

    def put_on(self, ax, axis):
        """Scale an axis and label the values, some of them where they are many."""
        if self.is_log:
            getattr(ax, f"set_{axis}scale")("log")
        some = slice(None, None, -(-len(self.values) // 12))
        getattr(ax, f"set_{axis}ticks")(self.places[some], self.labels[some])
        getattr(ax, f"set_{axis}ticks")([], minor=True)


def _names(tuning):
    """The names of the parameters, those that the grid varies first to last."""
    return list(dict.fromkeys(name for cell in tuning.params for name in cell))


def _is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _same(a, b):
    return a is b or bool(np.all(a == b))


def _distinct(column):
    """The different values of a parameter, numbers in order, others as they come."""
    found = []
    for value in column:
        if not any(_same(value, other) for other in found):
            found.append(value)
    return sorted(found) if all(map(_is_number, found)) else found


def _index(values, value):
    return next(k for k, other in enumerate(values) if _same(value, other))


def _shown(value):
    return f"{value:.4g}" if _is_number(value) else str(value)
