"""The report of a comparison: tables, claims of Meoli (2021) checked against the results, and plots."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.inspection import plot
from symsvm.inspection.comparison.contest import LAGRANGIAN, Entry, Model, contest, make_dual
from symsvm.inspection.plot.display import Support, line_style, series_colour
from symsvm.solvers import AcceleratedGradient, AdaGrad, MaximalViolatingPair, ProjectedGradient, compile, solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from symsvm._lib import types
    from symsvm._lib.types import Array
    from symsvm.inspection.comparison.problems import Problem

__all__ = ["findings", "report", "table"]

# The solver whose solution counts as the optimum.
_EXACT = "decomposition"
# The share of support vectors that counts as nearly all.
_NEARLY_ALL = 0.9
# Solvers whose iterates are drawn, how many of them, and up to how many points.
_ITERATIVE = (ProjectedGradient, AcceleratedGradient, AdaGrad, MaximalViolatingPair)
_TRAJECTORY_STEPS, _MAX_TRAJECTORY_POINTS = 400, 200
# Smaller gaps, relative to P*, and shorter times are drawn at these values.
_GAP_FLOOR, _SECONDS_FLOOR = 1e-8, 1e-4

_HEAD = "| model | algorithm | P | above P* | gap | infeasibility | score | vectors | steps | seconds | MB | stopped |"
_LEGEND = """\
P is the primal objective of the solution, P* the optimum of its model. Gap and infeasibility come from the certificate
of the run. Score is the accuracy, or R2, on the test set. Vectors is the share of points that prediction needs. Seconds
exclude compilation. MB is the peak memory of Python and NumPy in the first second; memory that LIBSVM and LIBLINEAR
allocate is not counted.
"""


def report(
    problems: Iterable[Problem], directory: types.Path, *, show: Callable[[str], object] = print, **options: Any
) -> list[Entry]:
    """Run the contest on problems and write report.md and plots to a directory.

    Parameters
    ----------
    problems : iterable of Problem
        The problems.
    directory : path-like
        The directory, which is created if necessary.
    show : callable, default print
        Called with each part of the report as soon as it is known.
    **options : dict
        Options of `contest`.

    Returns
    -------
    list of Entry
        The results of all algorithms on all problems.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    lines: list[str] = []

    def write(text: str) -> None:
        lines.append(text)
        show(text)

    write("# All algorithms on the same problems\n")
    write(_LEGEND)
    for problem in problems:
        own = list(contest(problem, **options))
        entries += own
        kind = "classes" if problem.epsilon is None else f"values, epsilon = {problem.epsilon:g}"
        m, d = problem.X.shape
        write(f"## {problem.name}: {m} x {d}, {kind}, {problem.kernel!r}, C = {problem.C:g}\n")
        write(table(own) + "\n")
    write("## Claims of Meoli (2021)\n")
    for sentence in findings(entries):
        write(f"- {sentence}")
    for draw in (_draw_boundaries, _draw_tubes, _draw_convergence, _draw_trajectories):
        path = draw(entries, directory)
        if path is not None:
            lines.append(f"\n![{path.stem}]({path.name})")
    (directory / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return entries


def table(entries: Iterable[Entry]) -> str:
    """Return the entries of one problem as a Markdown table.

    Parameters
    ----------
    entries : iterable of Entry
        The entries.

    Returns
    -------
    str
        The table.
    """
    lines = [_HEAD, "|---|---|" + "--:|" * 9 + "---|"]
    for e in entries:
        vectors = "" if e.vectors is None else f"{100 * e.vectors:.0f} %"
        cells = (
            str(e.model),
            e.algorithm,
            f"{e.P:.6g}",
            f"{e.excess:.1e}",
            _format_number(e.gap),
            _format_number(e.infeasibility),
            f"{e.score:.3f}",
            vectors,
            f"{e.iterations}",
            f"{e.seconds:.3g}",
            f"{e.memory:.1f}",
            e.stopped,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _format_number(value: float | None) -> str:
    return "" if value is None or np.isnan(value) else f"{value:.1e}"


# ---- claims


def findings(entries: Sequence[Entry]) -> list[str]:
    """Check claims of Meoli (2021) against the entries of a comparison.

    The claims: the Lagrangian dual makes nearly all points support vectors; LIBSVM is faster than a general QP solver;
    an SMO written as symbolic steps is not; an embedded bias scores better than a free one under the Lagrangian
    relaxation.

    Parameters
    ----------
    entries : sequence of Entry
        The entries, of any number of problems.

    Returns
    -------
    list of str
        A sentence for each claim that the entries allow to check, with the numbers that it rests on.
    """
    names = list(dict.fromkeys(e.problem.name for e in entries))
    by = {(e.problem.name, e.model.bias, e.algorithm): e for e in entries}
    sentences = [
        _check_support(by, names),
        _compare_with_qp(by, names, "libsvm", "LIBSVM is faster than the general QP solver"),
        _compare_with_qp(
            by, names, "smo", "SMO, written as symbolic steps, is not faster than the general QP solver", faster=False
        ),
        _check_embedded_bias(by, names),
    ]
    return [sentence for sentence in sentences if sentence]


def _conclude(claim: str, cases: Sequence[tuple[bool, str]]) -> str | None:
    """Return a sentence with the claim and its cases, each (whether it holds, the numbers); None without cases."""
    if not cases:
        return None
    n = sum(holds for holds, _ in cases)
    verdict = "holds" if n == len(cases) else "does not hold" if not n else f"holds on {n} of {len(cases)}"
    return f"{claim} (Meoli, 2021): {verdict} ({'; '.join(numbers for _, numbers in cases)})."


def _check_support(by: Mapping[tuple[str, str, str], Entry], names: Iterable[str]) -> str | None:
    cases = []
    for name in names:
        exact, relaxed = by.get((name, "free", _EXACT)), by.get((name, "free", LAGRANGIAN))
        if exact and relaxed and exact.vectors is not None and relaxed.vectors is not None:
            numbers = f"{name} {100 * relaxed.vectors:.0f} % of the points, {100 * exact.vectors:.0f} % at the optimum"
            cases.append((relaxed.vectors >= _NEARLY_ALL, numbers))
    return _conclude("The Lagrangian dual makes nearly all points support vectors", cases)


def _compare_with_qp(
    by: Mapping[tuple[str, str, str], Entry], names: Iterable[str], algorithm: str, claim: str, *, faster: bool = True
) -> str | None:
    cases = []
    for name in names:
        one, qp = by.get((name, "free", algorithm)), by.get((name, "free", "qp"))
        if one and qp:
            cases.append(((one.seconds < qp.seconds) == faster, f"{name} {one.seconds:.2g} s and {qp.seconds:.2g} s"))
    return _conclude(claim, cases)


def _check_embedded_bias(by: Mapping[tuple[str, str, str], Entry], names: Iterable[str]) -> str | None:
    cases = []
    for name in names:
        free, embedded = (by.get((name, bias, LAGRANGIAN)) for bias in ("free", "embedded"))
        if free and embedded:
            better = embedded.score > free.score or bool(np.isnan(free.score))
            cases.append((better, f"{name} {embedded.score:.3f} and {free.score:.3f}"))
    return _conclude("An embedded bias scores better under the Lagrangian relaxation than a free one", cases)


# ---- plots; each function returns the path of what it wrote, or None if no entry can be drawn


def _draw_boundaries(entries: Sequence[Entry], directory: Path) -> Path | None:
    """Draw the optimum and the Lagrangian dual, with margins and support vectors, for classes in the plane."""
    drawn = [e for e in _select(entries, _EXACT, LAGRANGIAN) if e.problem.epsilon is None and e.problem.X.shape[1] == 2]
    if not drawn:
        return None
    names = list(dict.fromkeys(e.problem.name for e in drawn))
    algorithms = [name for name in (_EXACT, LAGRANGIAN) if name in {e.algorithm for e in drawn}]
    figure, axes = _new_figure(len(algorithms), len(names), (4.2, 4.0))
    for e in drawn:
        ax = axes[algorithms.index(e.algorithm), names.index(e.problem.name)]
        assert e.z is not None
        plot.decision_boundary(e.decide, e.problem.X, e.problem.y, np.abs(e.z), ax=ax)
        ax.set_title(_title(e), fontsize=9)
    _share_legend(figure, axes.ravel())
    return _save(figure, directory / "boundaries.png")


def _draw_tubes(entries: Sequence[Entry], directory: Path) -> Path | None:
    """Draw the optimum and the Lagrangian dual of a regression of one feature."""
    drawn = [e for e in _select(entries, _EXACT, LAGRANGIAN) if e.problem.X.shape[1] == 1]
    drawn = [e for e in drawn if e.problem.epsilon is not None]
    if not drawn:
        return None
    figure, axes = _new_figure(1, len(drawn), (5.2, 4.0))
    for ax, e in zip(axes[0], drawn, strict=True):
        x, m, epsilon = e.problem.X[:, 0], len(e.problem.y), e.problem.epsilon
        assert e.z is not None
        assert epsilon is not None
        size = np.abs(e.z.reshape(-1, m)).sum(axis=0)
        rows = np.flatnonzero(size)
        bound = np.full(len(rows), float(e.problem.C))
        support = Support(e.problem.X[rows], rows, size[rows], size[rows], bound, np.zeros(len(rows), dtype=int))
        grid = np.linspace(x.min(), x.max(), 400)
        display = plot.TubeDisplay(
            grid=grid, response=e.decide(grid[:, None]), epsilon=epsilon, x=x, y=e.problem.y, support=support
        )
        display.plot(ax=ax)
        ax.set_title(_title(e), fontsize=9)
    _share_legend(figure, axes.ravel())
    return _save(figure, directory / "tubes.png")


def _draw_convergence(entries: Sequence[Entry], directory: Path) -> Path | None:
    """Draw the smallest gap so far, relative to P*, over time, one panel for each problem.

    An algorithm that reports a gap only at its end is one point.
    """
    curves: dict[str, dict[str, tuple[Array, Array]]] = {}
    for e in entries:
        if e.model.bias == "embedded" and e.z is not None:  # the same algorithm with a free bias is drawn
            continue
        curve = _gap_curve(e)
        if curve is not None and np.isfinite(curve[1]).any():
            curves.setdefault(e.problem.name, {})[e.algorithm] = curve
    if not curves:
        return None
    order = list(dict.fromkeys(name for group in curves.values() for name in group))
    figure, axes = _new_panels(len(curves), (5.6, 3.8))
    for ax, (problem, group) in zip(axes, curves.items(), strict=False):
        for name, (x, gap) in group.items():
            i = order.index(name)
            style: dict[str, Any] = {"color": series_colour(i + 1), "linestyle": line_style(i), "linewidth": 1.7}
            style |= {"marker": "oDs^vP"[i % 6], "markersize": 6} if len(x) == 1 else {}
            ax.plot(x, gap, label=name, **style)
        ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="smallest gap so far / $P^*$")
        ax.grid(axis="y", alpha=0.2, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(problem, fontsize=9)
    _share_legend(figure, axes)
    return _save(figure, directory / "convergence.png")


def _gap_curve(entry: Entry) -> tuple[Array, Array] | None:
    """Return seconds and the smallest gap so far, relative to P*; None without a gap."""
    trace = entry.trace or {}
    if len(trace.get("gap", ())) > 1:
        gap = np.asarray(trace["gap"], dtype="float64")
        x = np.maximum(np.asarray(trace["seconds"], dtype="float64"), _SECONDS_FLOOR)
    elif np.isfinite(entry.gap):
        gap, x = np.array([entry.gap]), np.array([entry.seconds])
    else:
        return None
    gap = np.fmin.accumulate(gap) / entry.optimum
    return x, np.maximum(gap, _GAP_FLOOR)


def _draw_trajectories(entries: Sequence[Entry], directory: Path) -> Path | None:
    """Draw the iterates of solvers in the plane of the two main directions of z - z*."""
    classifiers = [e.problem for e in _select(entries, _EXACT) if e.problem.epsilon is None]
    small = [problem for problem in classifiers if len(problem.y) <= _MAX_TRAJECTORY_POINTS]
    names = {e.algorithm for e in entries}
    solvers = [make() for make in _ITERATIVE if make.info.name in names]
    if not small or not solvers:
        return None
    figure, axes = _new_panels(len(small), (5.0, 4.2))
    for ax, problem in zip(axes, small, strict=False):
        dual = make_dual(problem, Model("hinge", "free"))
        best = solve(dual, tol=1e-9).point
        paths = {}
        for solver in solvers:
            program: Any = compile(dual, solver)
            points = itertools.islice(program.steps(program.initial_state()), _TRAJECTORY_STEPS)
            paths[solver.info.name] = np.array([point - best for point, *_ in points])
        every = np.concatenate(list(paths.values()))
        _, _, directions = np.linalg.svd(every, full_matrices=False)
        for i, (name, path) in enumerate(paths.items()):
            x, y = (path @ directions[:2].T).T
            style: dict[str, Any] = {"color": series_colour(i + 1), "linestyle": line_style(i), "linewidth": 1.6}
            style |= {"marker": "oDs^"[i % 4], "markersize": 3, "markevery": max(1, len(x) // 40), "alpha": 0.85}
            ax.plot(x, y, label=name, **style)
        ax.plot(0, 0, "*", color="black", markersize=12, label="optimum")
        # The limits leave out a first step that overshoots, which would shrink the other paths to a dot.
        for set_limits, along in ((ax.set_xlim, every @ directions[0]), (ax.set_ylim, every @ directions[1])):
            shown = [*np.quantile(along, [0.01, 0.99]), along[0], 0.0]  # most points, the start and the optimum
            pad = 0.08 * np.ptp(shown) + 1e-3
            set_limits(min(shown) - pad, max(shown) + pad)
        ax.set(xlabel="first direction of $z - z^*$", ylabel="second direction")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(problem.name, fontsize=9)
    _share_legend(figure, axes)
    return _save(figure, directory / "trajectories.png")


def _select(entries: Iterable[Entry], *algorithms: str) -> list[Entry]:
    """Return the entries of these algorithms with a free bias."""
    return [e for e in entries if e.algorithm in algorithms and e.model.bias == "free"]


def _title(entry: Entry) -> str:
    name = "the optimum" if entry.algorithm == _EXACT else "by its Lagrangian dual"
    share = 0.0 if entry.vectors is None else entry.vectors
    return f"{entry.problem.name}, {name}\n{100 * share:.0f} % support vectors"


def _new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(columns * size[0], rows * size[1]), squeeze=False, layout="constrained")


def _new_panels(number: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure with two columns of panels, and its axes; unused panels are blank."""
    figure, axes = _new_figure(-(-number // 2), min(2, number), size)
    for ax in axes.ravel()[number:]:
        ax.axis("off")
    return figure, axes.ravel()


def _share_legend(figure: Any, axes: Iterable[Any]) -> None:
    """Replace the legends of the panels by one below them."""
    labels = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            labels.setdefault(label, handle)
        if ax.get_legend() is not None:
            ax.get_legend().remove()
    columns = max(1, min(len(labels), int(figure.get_figwidth() / 2.1)))
    figure.legend(labels.values(), labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def _save(figure: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
