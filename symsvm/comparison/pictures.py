"""Pictures of a comparison: boundaries, tubes, the gap over time, and the ways that solvers take to the optimum."""

import itertools

import numpy as np

from symsvm import plot
from symsvm.comparison.contest import Model, _dual
from symsvm.solvers import AcceleratedGradient, AdaGrad, MaximalViolatingPair, ProjectedGradient, compile, solve

__all__ = ["boundaries", "convergences", "trajectories", "tubes"]

_STEPPING = (ProjectedGradient, AcceleratedGradient, AdaGrad, MaximalViolatingPair)
_EXACT, _RELAXED = "decomposition", "adagrad on the Lagrangian dual"


def _figure(rows, columns, size):
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(columns * size[0], rows * size[1]), squeeze=False, layout="constrained")


def _saved(figure, path):
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


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
    figure, axes = _figure(2, len(names), (4.2, 4.0))
    for e in shown:
        ax = axes[[_EXACT, _RELAXED].index(e.algorithm), names.index(e.problem.name)]
        plot.decision_boundary(e.decide, e.problem.X, e.problem.y, np.abs(e.z), ax=ax)
        ax.set_title(_title(e), fontsize=9)
        if e.problem.name != names[-1]:
            ax.get_legend().remove()
    return [_saved(figure, directory / "boundaries.png")]


def tubes(entries, directory):
    """Draw the optimum and the Lagrangian dual of a regression over one feature."""
    shown = [e for e in _of(entries, _EXACT, _RELAXED) if e.problem.epsilon is not None and e.problem.X.shape[1] == 1]
    if not shown:
        return []
    figure, axes = _figure(1, len(shown), (5.2, 4.0))
    for ax, e in zip(axes[0], shown, strict=True):
        x, y, width = e.problem.X[:, 0], e.problem.y, e.problem.epsilon
        grid = np.linspace(x.min(), x.max(), 400)
        f = e.decide(grid[:, None])
        vectors = np.abs(e.z.reshape(-1, len(x))).sum(axis=0) > 0
        ax.fill_between(grid, f - width, f + width, alpha=0.15, linewidth=0, color="tab:blue", label="tube")
        ax.plot(grid, f, color="tab:blue", label="f")
        ax.plot(x[~vectors], y[~vectors], "o", markersize=3.5, color="0.6", label="points")
        ax.plot(x[vectors], y[vectors], "o", markersize=3.5, color="0.1", label="support vectors")
        ax.set(xlabel="x", ylabel="y")
        ax.set_title(_title(e), fontsize=9)
        ax.legend(frameon=False, fontsize=8)
    return [_saved(figure, directory / "tubes.png")]


def convergences(entries, directory):
    """Draw the gap over time of all algorithms with a trace, a panel for each problem."""
    problems = list(dict.fromkeys(e.problem.name for e in entries))
    shown = {name: {} for name in problems}
    for e in entries:
        if e.trace is not None and e.model.bias == "free" and len(e.trace.get("gap", ())) > 1:
            shown[e.problem.name][e.algorithm] = e.trace
    shown = {name: traces for name, traces in shown.items() if traces}
    if not shown:
        return []
    figure, axes = _figure(-(-len(shown) // 2), 2, (5.6, 3.8))
    for ax, item in itertools.zip_longest(axes.ravel(), shown.items()):
        if item is None:
            ax.axis("off")
            continue
        plot.convergence(item[1], x="seconds", y="gap", ax=ax)
        ax.set_title(item[0], fontsize=9)
    return [_saved(figure, directory / "convergence.png")]


def trajectories(entries, directory, steps=400):
    """Draw the way of z in the plane of its two main directions, for solvers that are steps."""
    small = [e.problem for e in _of(entries, _EXACT) if e.problem.epsilon is None and len(e.problem.y) <= 200]
    names = {e.algorithm for e in entries}
    solvers = [make() for make in _STEPPING if make.card.name in names]
    if not small or not solvers:
        return []
    figure, axes = _figure(1, len(small), (4.4, 4.2))
    for ax, problem in zip(axes[0], small, strict=True):
        dual = _dual(problem, Model("hinge", "free"))
        best = solve(dual, tol=1e-9).lam
        ways = {}
        for solver in solvers:
            program = compile(dual, solver)
            points = itertools.islice(program.steps(program.first()), steps)
            ways[solver.card.name] = np.array([point - best for point, *_ in points])
        _, _, directions = np.linalg.svd(np.concatenate(list(ways.values())), full_matrices=False)
        for name, way in ways.items():
            ax.plot(*(way @ directions[:2].T).T, marker=".", markersize=3, linewidth=0.9, label=name)
        ax.plot(0, 0, "*", color="black", markersize=11, label="optimum")
        ax.set(xlabel="first direction of z - z*", ylabel="second")
        ax.set_title(problem.name, fontsize=9)
        ax.legend(frameon=False, fontsize=7)
    return [_saved(figure, directory / "trajectories.png")]
