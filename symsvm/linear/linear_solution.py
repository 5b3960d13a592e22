"""LinearSolution: what a linear run returns, whatever stopped it; and the loop that every such run goes through."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from symsvm.solvers.convergence import warn_not_converged
from symsvm.solvers.solution import Info, collect_trace

__all__ = ["LinearSolution", "follow"]

STALE = 50  # looks without a better gap, violation, D or P after which a stage is over


@dataclass(frozen=True)
class LinearSolution:
    """A linear model and what is known about it.

    Attributes
    ----------
    w, b : the weights (d,), or (d, k) for k classes at once, and the weight of the constant feature s, None without
        an intercept: f(x) = x.w + s b. See `intercept`.
    dual : the dual vector z (n,), or (n, k), feasible, that the certificate is made with.
    stopped : `tol`, `max_iter`, `time_limit`, `callback`, `interrupt` or `stalled` (rounding leaves no useful step).
    n_iter : passes over the points, or Newton steps, or both where one followed on the other.
    trace : arrays, an entry a look at the whole problem: `iteration`, `seconds`, `W` = -D, `violation`, `gap`.
    algorithm : what was run, in order: "coordinate descent", "newton", "interior point", ...
    certify : the function that makes the certificate.
    s : the constant feature.
    """

    w: np.ndarray = field(repr=False)
    b: float | np.ndarray | None
    dual: np.ndarray | None = field(repr=False)
    stopped: str
    n_iter: int
    trace: dict = field(repr=False)
    algorithm: str
    certify: Callable = field(repr=False)
    s: float = 1.0
    C: np.ndarray | None = field(default=None, repr=False)

    @functools.cached_property
    def certificate(self):
        """The `Certificate` in float64, computed from the data, w, b and the dual vector when it is first read."""
        return self.certify()

    @property
    def intercept(self):
        """s b, what is added to x.w; 0 without an intercept."""
        return 0.0 if self.b is None else self.s * self.b


def follow(stages, measure, *, tol, max_iter, time_limit, callback, last=None):
    """Run stages one after the other until a point reaches tol; return the best point and how it ended.

    A stage is (name, function of the best point so far and of the iterations left). The function returns a generator
    of (iterations, u, z[, f, whether the stage itself is content]), which is sent the measure of each. `measure(u, z,
    f=)` returns a `Measure` and the feasible z. The best point is the one with the least gap. `last` is a stage that
    goes on from a point which reaches tol; what it finds counts where neither gap nor violation grows.
    """
    began, infos, best, stopped, names, total = time.perf_counter(), [], None, None, [], 0
    most = np.inf if max_iter is None else max_iter

    def look(point):
        """Measure a point; return the Measure, (u, z), whether its stage is content, and whether the user wants out."""
        done, u, z, *more = point
        found, z = measure(u, z, f=more[0] if more else None)
        info = Info(before + int(done), time.perf_counter() - began, -found.dual, found.violation, found.gap)
        infos.append(info)
        late = time_limit is not None and info.seconds >= time_limit
        return found, (u, z), all(more[1:]), "time_limit" if late else _wish(callback, info)

    try:
        for name, stage in stages:
            before = total
            names.append(name)
            points, found, low, stale = stage(best, most - total), None, None, 0
            while (point := next_point(points, found)) is not None:
                found, pair, content, out = look(point)
                total = infos[-1].iteration
                if best is None or found.gap < best[0].gap or found.reaches(tol):
                    best = found, *pair
                end = "max_iter" if total >= most else out
                stopped = "tol" if found.reaches(tol) and content else end
                new = np.array([found.gap, found.violation, -found.dual, found.primal])
                better = low is None or (new < low - np.abs(low) * (1e-3, 1e-3, 1e-15, 1e-15)).any()
                stale, low = 0 if better else stale + 1, new if low is None else np.fmin(low, new)
                if stopped or stale >= STALE:
                    break
            if stopped:
                break
        if stopped == "tol" and last is not None and out is None:
            before = total
            names.append(last[0])
            for point in last[1](best, most - total):
                found, pair, _, out = look(point)
                if found.gap <= best[0].gap and found.violation <= best[0].violation:
                    best = found, *pair
                if out or infos[-1].iteration >= most:
                    break
            total = infos[-1].iteration
    except KeyboardInterrupt:
        if best is None:
            raise
        stopped = stopped or "interrupt"
    stopped = stopped or "stalled"
    if stopped != "tol":
        measure = best[0]
        relative = measure.gap / measure.primal if measure.primal > 0 else np.inf
        reached = f"a relative gap of {relative:.2g} and a violation of {measure.violation:.2g}, where tol={tol:g}"
        warn_not_converged(stopped, total, reached, ["Scale the features, lower C or allow more iterations."])
    return best, stopped, total, collect_trace(infos), ", ".join(names)


def _wish(callback, info):
    """What the user says to a point, which is there by now whatever it is: None, "callback" or "interrupt"."""
    try:
        return "callback" if callback is not None and callback(info) else None
    except KeyboardInterrupt:
        return "interrupt"


def next_point(points, measure):
    """The next point of a stage, which is told the measure of the last one; None at its end."""
    try:
        return points.send(measure)
    except StopIteration:
        return None
