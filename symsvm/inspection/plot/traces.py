"""ConvergenceDisplay: how far from the optimum runs were, and when."""

import numpy as np

from symsvm._lib.validation import choice
from symsvm.inspection.plot.canvas import Display, colour, dash, machine_of

__all__ = ["ConvergenceDisplay", "convergence"]

_LABELS = {
    "gap": "duality gap $P - D$",
    "violation": "largest KKT violation",
    "W": "$|W - W^*|$",
    "seconds": "seconds",
    "iteration": "iteration $t$",
}


class ConvergenceDisplay(Display):
    """Gaps, violations or distances |W - W*| of one or several runs, on a logarithmic axis.

    Attributes
    ----------
    curves : pairs (x, y) of arrays for each name, one pair a problem.
    x, y : what they are: "seconds" or "iteration"; "gap", "violation" or "W".
    optimum : W*, where y is "W".
    floor : what counts as 0: the rounding of W.
    lines_ : what was drawn, in the order of the curves.
    ax_, figure_ : where.
    """

    def __init__(self, *, curves, x, y, optimum=None, floor=0.0):
        self.curves, self.x, self.y, self.optimum, self.floor = curves, x, y, optimum, floor

    @classmethod
    def from_traces(cls, traces, optimum=None, *, x=None, y=None, ax=None, **kwargs):
        """Take the curves from traces and draw them; see `convergence`."""
        named = _named(traces)
        every = [trace for group in named.values() for trace in group]
        if y is None:
            usual = ("gap", "violation") if optimum is None else ()
            y = next((name for name in usual if all(_positive(trace, name) for trace in every)), "W")
        if x is None:
            x = "seconds" if all("seconds" in trace for trace in every) else "iteration"
        choice(y, "y", ("gap", "violation", "W"))
        choice(x, "x", ("seconds", "iteration"))
        for name, group in named.items():
            for wanted in (x, y):
                if any(wanted not in trace for trace in group):
                    raise ValueError(f"the trace of {name!r} has no {wanted!r}, only {', '.join(group[0])}.")
        if y == "W" and optimum is None:
            optimum = {name: [_least(trace["W"]) for trace in group] for name, group in named.items()}
            least = [min(values) for values in zip(*optimum.values(), strict=False)]
            # Runs with as many problems ran on the same ones: the best W of any is the optimum of all.
            if len({len(group) for group in named.values()}) == 1:
                optimum = dict.fromkeys(optimum, least)
        curves = {
            name: [
                (trace[x], np.abs(trace["W"] - _of(optimum, name, i)) if y == "W" else trace[y])
                for i, trace in enumerate(group)
            ]
            for name, group in named.items()
        }
        ends = [trace["W"][-1] for trace in every if "W" in trace and len(trace["W"]) and y != "violation"]
        floor = np.finfo("float64").eps * float(np.nanmax(np.abs(ends), initial=0.0))
        return cls(curves=curves, x=x, y=y, optimum=optimum, floor=floor).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw on `ax`, or on a figure of its own; `kwargs` are for the lines."""
        ax = self._begin(ax, figsize=(6.4, 4.2))
        self.lines_, exact = [], []
        for i, (name, group) in enumerate(self.curves.items()):
            style = {"color": colour(i + 1), "linestyle": dash(i), "linewidth": 1.7} | kwargs
            for n, (x, y) in enumerate(group):
                above = np.isfinite(y) & (y > self.floor)
                marks = {"marker": "o", "markersize": 3.2} if above.sum() <= 25 else {}
                label = {"label": str(name)} if n == 0 and (len(self.curves) > 1 or name) else {}
                if len(group) > 1:
                    marks["alpha"] = 0.6
                self.lines_ += ax.plot(x, np.where(above, y, np.nan), **(marks | style | label))
                if len(y) and y[-1] <= self.floor:
                    last = np.flatnonzero(above)[-1:]
                    exact.append((x[[*last, -1]], y[last], style))
        ax.set_yscale("log")
        curves = [pair for group in self.curves.values() for pair in group]
        if not any((y > self.floor).any() for _, y in curves):
            ax.set_ylim(1e-16, 1.0)
        ends = [x[-1] for x, _ in curves if len(x) and x[-1] > 0]
        if self.x == "seconds" and ends and max(ends) > 20 * min(ends):
            ax.set_xscale("log")
        foot = ax.get_ylim()[0]
        for x, y, style in exact:  # below every power of ten: an arrow at the foot
            ax.plot(x, [*y, foot], **(style | {"linewidth": 0.8}))
            ax.plot(
                x[-1:], [foot], marker="v", markersize=7, color=style["color"], linestyle="", clip_on=False, zorder=4
            )
        ax.set_ylim(bottom=foot)
        ax.set(xlabel=_LABELS[self.x], ylabel=_LABELS[self.y])
        ax.grid(axis="y", alpha=0.2, linewidth=0.6)
        return self._end()


def convergence(traces, optimum=None, *, x=None, y=None, ax=None, **kwargs):
    """Draw how runs converged, all on one logarithmic axis.

    A run that ends at 0, up to the rounding of W, has an arrow at the foot of the axis; other values that have no
    logarithm are left out. Seconds are on a logarithmic axis too where one run takes 20 times another's.

    Parameters
    ----------
    traces : a `Solution`, a fitted estimator, its `trace_`, the values of W; or a dict of name -> any of them.
    optimum : W*; with it |W - W*| is drawn. Without it the least W of all runs takes its place, if y is "W".
    x : "seconds" or "iteration"; the first of them that every trace has.
    y : "gap", "violation" or "W"; the first of them that every trace has.
    ax : matplotlib axes, new ones by default.

    Returns
    -------
    a `ConvergenceDisplay`.

    >>> display = convergence({"slow": [3.0, 2.0], "fast": [3.0, 1.1]}, optimum=1.0)
    >>> [line.get_ydata().round(3).tolist() for line in display.lines_]
    [[2.0, 1.0], [2.0, 0.1]]
    """
    return ConvergenceDisplay.from_traces(traces, optimum, x=x, y=y, ax=ax, **kwargs)


def _named(traces):
    """A list of traces, each a dict of arrays, for every name."""
    if isinstance(traces, dict) and not _is_trace(traces):
        if not traces:
            raise ValueError("traces must hold at least one trace, got an empty dict.")
        return {name: _traces(value, name) for name, value in traces.items()}
    return {"": _traces(traces, "")}


def _traces(value, name):
    machine, _ = machine_of(value)
    if not isinstance(value, np.ndarray):  # whose trace is another one
        value = getattr(machine, "trace_", getattr(machine, "trace", value))
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


def _is_trace(value):
    return isinstance(value, dict) and ("iteration" in value or "seconds" in value)


def _positive(trace, name):
    """Whether a trace has values of this name that a logarithm can show."""
    return name in trace and bool((trace[name] > 0).any())


def _least(W):
    return float(np.min(W, where=np.isfinite(W), initial=np.inf))


def _of(optimum, name, i):
    return optimum[name][i] if isinstance(optimum, dict) else optimum
