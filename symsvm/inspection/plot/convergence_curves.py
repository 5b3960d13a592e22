"""`ConvergenceDisplay`: the duality gap, KKT violation or objective of runs over time or iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from symsvm._lib.validation import choice
from symsvm.inspection.plot.display import Display, final_estimator, line_style, series_colour

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from symsvm._lib.types import Array
    from symsvm.solvers import Solution

__all__ = ["ConvergenceDisplay", "convergence"]

# Shorter traces get a marker at each value.
_MAX_MARKED_VALUES = 25
# Seconds are on a logarithmic axis if the longest run takes this many times the shortest.
_LOG_SECONDS_RATIO = 20
_ERRORS: tuple[Literal["gap"], Literal["violation"]] = ("gap", "violation")
_AXIS_LABELS = {
    "gap": "duality gap $P - D$",
    "violation": "largest KKT violation",
    "W": "$|W - W^*|$",
    "seconds": "seconds",
    "iteration": "iteration $t$",
}


class ConvergenceDisplay(Display):
    """Duality gaps, KKT violations or distances \\|W - W*\\| of one or several runs, on a logarithmic axis.

    Parameters
    ----------
    curves : dict of str to list of (ndarray, ndarray)
        For each name, the values of x and y of each of its problems.
    x : {"seconds", "iteration"}
        What x is.
    y : {"gap", "violation", "W"}
        What y is.
    optimum : float or dict, optional
        W*, if y is "W".
    floor : float, default 0.0
        Values up to it count as 0: the rounding error of W.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The lines, in the order of the curves.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    lines_: list[Any]

    def __init__(
        self,
        *,
        curves: Mapping[str, list[tuple[Array, Array]]],
        x: Literal["seconds", "iteration"],
        y: Literal["gap", "violation", "W"],
        optimum: float | Mapping[str, list[float]] | None = None,
        floor: float = 0.0,
    ) -> None:
        self.curves, self.x, self.y, self.optimum, self.floor = curves, x, y, optimum, floor

    @classmethod
    def from_traces(
        cls,
        traces: Any,
        optimum: float | None = None,
        *,
        x: Literal["seconds", "iteration"] | None = None,
        y: Literal["gap", "violation", "W"] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of traces.

        Parameters
        ----------
        traces, optimum, x, y, ax, **kwargs : object
            As in `convergence`.

        Returns
        -------
        ConvergenceDisplay
            The display.
        """
        groups = _group_traces(traces)
        every = [trace for group in groups.values() for trace in group]
        if y is None:
            y = _choose_y(every) if optimum is None else "W"
        if x is None:
            x = "seconds" if all("seconds" in trace for trace in every) else "iteration"
        choice(y, "y", ("gap", "violation", "W"))
        choice(x, "x", ("seconds", "iteration"))
        for name, group in groups.items():
            for wanted in (x, y):
                if any(wanted not in trace for trace in group):
                    raise ValueError(f"the trace of {name!r} has no {wanted!r}, only {', '.join(group[0])}.")
        optima: Any = optimum
        if y == "W" and optimum is None:
            optima = {name: [_least_finite(trace["W"]) for trace in group] for name, group in groups.items()}
            least = [min(values) for values in zip(*optima.values(), strict=False)]
            # Runs with equal numbers of problems ran on the same problems: the least W of any run serves for all.
            if len({len(group) for group in groups.values()}) == 1:
                optima = dict.fromkeys(optima, least)

        def distance(trace: dict[str, Array], name: str, i: int) -> Array:
            optimum = optima[name][i] if isinstance(optima, dict) else optima
            return np.abs(trace["W"] - optimum)

        curves = {
            name: [(trace[x], distance(trace, name, i) if y == "W" else trace[y]) for i, trace in enumerate(group)]
            for name, group in groups.items()
        }
        ends = [trace["W"][-1] for trace in every if "W" in trace and len(trace["W"]) and y != "violation"]
        floor = np.finfo("float64").eps * float(np.nanmax(np.abs(ends), initial=0.0))
        return cls(curves=curves, x=x, y=y, optimum=optima, floor=floor).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.plot` for the lines.

        Returns
        -------
        ConvergenceDisplay
            The display itself.
        """
        ax = self._open_axes(ax, figsize=(6.4, 4.2))
        self.lines_, exact = [], []
        for i, (name, group) in enumerate(self.curves.items()):
            style: dict[str, Any] = {
                "color": series_colour(i + 1),
                "linestyle": line_style(i),
                "linewidth": 1.7,
            } | kwargs
            for n, (x, y) in enumerate(group):
                above = np.isfinite(y) & (y > self.floor)
                marks: dict[str, Any] = {"marker": "o", "markersize": 3.2} if above.sum() <= _MAX_MARKED_VALUES else {}
                label = {"label": str(name)} if n == 0 and (len(self.curves) > 1 or name) else {}
                if len(group) > 1:
                    marks["alpha"] = 0.6
                marks |= style | label
                self.lines_ += ax.plot(x, np.where(above, y, np.nan), **marks)
                if len(y) and y[-1] <= self.floor:
                    last = np.flatnonzero(above)[-1:]
                    exact.append((x[[*last, -1]], y[last], style))
        ax.set_yscale("log")
        curves = [pair for group in self.curves.values() for pair in group]
        if not any((y > self.floor).any() for _, y in curves):
            ax.set_ylim(1e-16, 1.0)
        ends = [x[-1] for x, _ in curves if len(x) and x[-1] > 0]
        if self.x == "seconds" and ends and max(ends) > _LOG_SECONDS_RATIO * min(ends):
            ax.set_xscale("log")
        foot = ax.get_ylim()[0]
        for x, y, style in exact:  # zero has no logarithm: an arrow at the foot of the axis
            thin: dict[str, Any] = style | {"linewidth": 0.8}
            ax.plot(x, [*y, foot], **thin)
            arrow: dict[str, Any] = {"marker": "v", "markersize": 7, "color": style["color"], "linestyle": ""}
            ax.plot(x[-1:], [foot], clip_on=False, zorder=4, **arrow)
        ax.set_ylim(bottom=foot)
        ax.set(xlabel=_AXIS_LABELS[self.x], ylabel=_AXIS_LABELS[self.y])
        ax.grid(axis="y", alpha=0.2, linewidth=0.6)
        self._finish()
        return self


def convergence(
    traces: Solution | BaseEstimator | Mapping[str, Any] | ArrayLike,
    optimum: float | None = None,
    *,
    x: Literal["seconds", "iteration"] | None = None,
    y: Literal["gap", "violation", "W"] | None = None,
    ax: Axes | None = None,
    **kwargs: Any,
) -> ConvergenceDisplay:
    """Draw the convergence of runs on a logarithmic axis.

    A run that ends at 0, up to the rounding error of W, has an arrow at the foot of the axis. Other values that have no
    logarithm are left out. Seconds are on a logarithmic axis too if one run takes 20 times as long as another.

    Parameters
    ----------
    traces : Solution, estimator, dict or array-like
        A `Solution`, a fitted estimator, its `trace_`, or the values of W; or a dict of them by name.
    optimum : float, optional
        W*, to draw \\|W - W*\\|. By default, if y is "W", the least W of all runs.
    x : {"seconds", "iteration"}, optional
        The horizontal axis; by default the first that every trace has.
    y : {"gap", "violation", "W"}, optional
        The vertical axis; by default the first that every trace has.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.plot` for the lines.

    Returns
    -------
    ConvergenceDisplay
        The display.

    Examples
    --------
    >>> display = convergence({"slow": [3.0, 2.0], "fast": [3.0, 1.1]}, optimum=1.0)
    >>> [line.get_ydata().round(3).tolist() for line in display.lines_]
    [[2.0, 1.0], [2.0, 0.1]]
    """
    return ConvergenceDisplay.from_traces(traces, optimum, x=x, y=y, ax=ax, **kwargs)


def _group_traces(traces: Any) -> dict[str, list[dict[str, Array]]]:
    """Return a list of traces, each a dict of arrays, for every name."""
    if isinstance(traces, Mapping) and not _is_trace(traces):
        if not traces:
            raise ValueError("traces must hold at least one trace, got an empty dict.")
        return {name: _read_traces(value, name) for name, value in traces.items()}
    return {"": _read_traces(traces, "")}


def _read_traces(value: Any, name: str) -> list[dict[str, Array]]:
    if not isinstance(value, np.ndarray):  # the method `trace` of an array is another thing
        final, _ = final_estimator(value)
        value = getattr(final, "trace_", getattr(final, "trace", value))
    if _is_trace(value):
        value = [value]
    elif not (isinstance(value, list) and value and all(_is_trace(v) for v in value)):
        try:
            W = np.asarray(value, dtype="float64")
        except (TypeError, ValueError):
            W = np.zeros(0)
        if W.ndim != 1 or not len(W):
            raise TypeError(
                f"a trace must be a Solution, a fitted estimator, its trace_ or values of W, got {value!r}"
                + (f" for {name!r}." if name else ".")
            )
        value = [{"iteration": np.arange(len(W)), "W": W}]
    return [{key: np.asarray(v, dtype="float64") for key, v in trace.items()} for trace in value]


def _is_trace(value: Any) -> bool:
    return isinstance(value, Mapping) and ("iteration" in value or "seconds" in value)


def _choose_y(traces: list[dict[str, Array]]) -> Literal["gap", "violation", "W"]:
    """Return the first of gap and violation that every trace has values of that a logarithmic axis can show, else W."""
    for name in _ERRORS:
        if all(name in trace and (trace[name] > 0).any() for trace in traces):
            return name
    return "W"


def _least_finite(W: Array) -> float:
    return float(np.min(W, where=np.isfinite(W), initial=np.inf))
