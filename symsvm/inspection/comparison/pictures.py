"""Pictures of a comparison: boundaries, tubes, the gap over time, and the ways that solvers take to the optimum."""

import itertools

import numpy as np

from symsvm.inspection import plot
from symsvm.inspection.comparison.contestants import Model, dual_of
from symsvm.inspection.plot.canvas import colour, dash
from symsvm.inspection.plot.support import Support
from symsvm.solvers import AcceleratedGradient, AdaGrad, MaximalViolatingPair, ProjectedGradient, compile, solve

__all__ = ["boundaries", "convergences", "trajectories", "tubes"]

_STEPPING = (ProjectedGradient, AcceleratedGradient, AdaGrad, MaximalViolatingPair)
_EXACT, _RELAXED = "decomposition", "adagrad on the Lagrangian dual"
_FLOOR = 1e-8  # gaps relative to P* below it are drawn at it


def _figure(rows, columns, size):
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(columns * size[0], rows * size[1]), squeeze=False, layout="constrained")


def _saved(figure, path):
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _panels(number, size):
    """A figure with two columns of panels, those that are too many left empty, and its axes."""
    figure, axes = _figure(-(-number // 2), min(2, number), size)
    for ax in axes.ravel()[number:]:
        ax.axis("off")
    return figure, axes.ravel()


def _legend(figure, axes):
    """One legend for all panels, below them."""
    labels = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            labels.setdefault(label, handle)
        if ax.get_legend() is not None:
            ax.get_legend().remove()
    columns = max(1, min(len(labels), int(figure.get_figwidth() / 2.1)))
    figure.legend(labels.values(), labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def _of(entries, *algorithms):
    """The entries of these algorithms for a free bias."""
    return [e for e in entries if e.algorithm in algorithms and e.model.bias == "free"]


def _title(entry):
    name = "the optimum" if entry.algorithm == _EXACT else "by its Lagrangian dual"
    return f"{entry.problem.name}, {name}\n{100 * entry.vectors:.0f} % support vectors"


def boundaries(entries, directory):
    """Draw the optimum and the Lagrangian dual, with margins and support vectors, for classes in the plane."""
    shown = [e for e in _of(entries, _EXACT, _RELAXED) if e.problem.epsilon is None and e.problem.X.shape[1] == 2]
    if not shown:
        return []
    names = list(dict.fromkeys(e.problem.name for e in shown))
    algorithms = [name for name in (_EXACT, _RELAXED) if name in {e.algorithm for e in shown}]
    figure, axes = _figure(len(algorithms), len(names), (4.2, 4.0))
    for e in shown:
        ax = axes[algorithms.index(e.algorithm), names.index(e.problem.name)]
        plot.decision_boundary(e.decide, e.problem.X, e.problem.y, np.abs(e.z), ax=ax)
        ax.set_title(_title(e), fontsize=9)
    _legend(figure, axes.ravel())
    return [_saved(figure, directory / "boundaries.png")]


def tubes(entries, directory):
    """Draw the optimum and the Lagrangian dual of a regression over one feature."""
    shown = [e for e in _of(entries, _EXACT, _RELAXED) if e.problem.epsilon is not None and e.problem.X.shape[1] == 1]
    if not shown:
        return []
    figure, axes = _figure(1, len(shown), (5.2, 4.0))
    for ax, e in zip(axes[0], shown, strict=True):
        x, m = e.problem.X[:, 0], len(e.problem.y)
        size = np.abs(e.z.reshape(-1, m)).sum(axis=0)
        rows = np.flatnonzero(size)
        bound = np.full(len(rows), float(e.problem.C))
        support = Support(e.problem.X[rows], rows, size[rows], size[rows], bound, np.zeros(len(rows), dtype=int))
        grid = np.linspace(x.min(), x.max(), 400)
        shape = {"grid": grid, "response": e.decide(grid[:, None]), "epsilon": e.problem.epsilon}
        plot.TubeDisplay(**shape, x=x, y=e.problem.y, support=support).plot(ax=ax)
        ax.set_title(_title(e), fontsize=9)
    _legend(figure, axes.ravel())
    return [_saved(figure, directory / "tubes.png")]


def convergences(entries, directory):
    """Draw the least gap so far over time, relative to P*, of all algorithms that have one: a panel for each problem.

    An algorithm that is looked at once, at its end, is one point.
    """
    shown = {}
    for e in entries:
        if e.model.bias == "embedded" and e.z is not None:  # has a twin with a free bias
            continue
        x, gap = _gaps(e)
        if gap is not None and np.isfinite(gap).any():
            shown.setdefault(e.problem.name, {})[e.algorithm] = x, gap
    if not shown:
        return []
    order = list(dict.fromkeys(name for curves in shown.values() for name in curves))
    figure, axes = _panels(len(shown), (5.6, 3.8))
    for ax, (problem, curves) in zip(axes, shown.items(), strict=False):
        for name, (x, gap) in curves.items():
            i = order.index(name)
            marks = {"marker": "oDs^vP"[i % 6], "markersize": 6} if len(x) == 1 else {}
            ax.plot(x, gap, color=colour(i + 1), linestyle=dash(i), linewidth=1.7, label=name, **marks)
        ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="least gap so far / $P^*$")
        ax.grid(axis="y", alpha=0.2, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(problem, fontsize=9)
    _legend(figure, axes)
    return [_saved(figure, directory / "convergence.png")]


def _gaps(entry):
    """Seconds and the least gap until then, relative to P*; (None, None) where nobody measured it."""
    trace = entry.trace or {}
    if len(trace.get("gap", ())) > 1:
        gap = np.asarray(trace["gap"], dtype="float64")
        x = np.maximum(np.asarray(trace["seconds"], dtype="float64"), 1e-4)
    elif np.isfinite(entry.gap):
        gap, x = np.array([entry.gap]), np.array([entry.seconds])
    else:
        return None, None
    gap = np.fmin.accumulate(gap) / entry.optimum
    return x, np.maximum(gap, _FLOOR)


def trajectories(entries, directory, steps=400):
    """Draw the way of z in the plane of its two main directions, for solvers that are steps."""
    small = [e.problem for e in _of(entries, _EXACT) if e.problem.epsilon is None and len(e.problem.y) <= 200]
    names = {e.algorithm for e in entries}
    solvers = [make() for make in _STEPPING if make.info.name in names]
    if not small or not solvers:
        return []
    figure, axes = _panels(len(small), (5.0, 4.2))
    for ax, problem in zip(axes, small, strict=False):
        dual = dual_of(problem, Model("hinge", "free"))
        best = solve(dual, tol=1e-9).lam
        ways = {}
        for solver in solvers:
            program = compile(dual, solver)
            points = itertools.islice(program.steps(program.initial_state()), steps)
            ways[solver.info.name] = np.array([point - best for point, *_ in points])
        every = np.concatenate(list(ways.values()))
        _, _, directions = np.linalg.svd(every, full_matrices=False)
        for i, (name, way) in enumerate(ways.items()):
            x, y = (way @ directions[:2].T).T
            style = {"color": colour(i + 1), "linestyle": dash(i), "linewidth": 1.6, "alpha": 0.85}
            ax.plot(x, y, marker="oDs^"[i % 4], markersize=3, markevery=max(1, len(x) // 40), label=name, **style)
        ax.plot(0, 0, "*", color="black", markersize=12, label="optimum")
        # A first step that overshoots far must not make the others a dot.
        for limit, along in ((ax.set_xlim, every @ directions[0]), (ax.set_ylim, every @ directions[1])):
            shown = [*np.quantile(along, [0.01, 0.99]), along[0], 0.0]  # most points, the start and the optimum
            pad = 0.08 * np.ptp(shown) + 1e-3
            limit(min(shown) - pad, max(shown) + pad)
        ax.set(xlabel="first direction of $z - z^*$", ylabel="second direction")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(problem.name, fontsize=9)
    _legend(figure, axes)
    return [_saved(figure, directory / "trajectories.png")]
