"""Contests: problems by name or from files, each algorithm's row as it is known."""

import os

import numpy as np

from symsvm.cli.errors import Refused
from symsvm.cli.inputs import read_table
from symsvm.cli.machine import check_labels
from symsvm.cli.output import grid
from symsvm.cli.pictures import prepare
from symsvm.cli.table import filled
from symsvm.cli.watch import ended_by_ctrl_c

__all__ = ["compared", "problem_of"]

# The most important first: a narrow terminal leaves the last ones out.
_HEAD = ("algorithm", "model", "above P*", "score", "seconds", "vectors", "gap", "steps", "stopped", "P")


def compared(names, directory, options, out):
    """Run the contest, show a table for each problem, and write the report if there is a directory for it."""
    from symsvm.inspection import comparison

    if directory is not None:
        prepare()
    asked = [name.strip() for name in options["algorithms"].split(",")] if options["algorithms"] else None
    run = {"algorithms": asked, **{name: options[name] for name in ("tol", "time_limit", "mode")}}
    problems = [problem_of(name, options) for name in names or comparison.PROBLEMS]
    _check_algorithms(asked or (), problems, options["mode"])
    written = directory is not None
    with ended_by_ctrl_c():
        entries = comparison.report(problems, directory, show=lambda text: None, **run) if written else []
    for problem in problems:
        with ended_by_ctrl_c():
            own = [entry for entry in entries if entry.problem is problem] or list(_contest(problem, run, out))
        entries += [] if written else own
        m, d = problem.X.shape
        title = f"{problem.name}: {m} x {d}, {problem.kernel!r}, C = {problem.C:g}"
        out.show(grid(_HEAD, [_cells(entry) for entry in own], left=2, title=title, width=out.width))
    found = comparison.findings(entries)
    out.show(*(f"- {sentence}" for sentence in found))
    if written:
        out.show(f"written to {os.path.join(directory, 'report.md')}")
    out.finish(
        {"command": "compare", "entries": [_row(entry) for entry in entries], "findings": found, "output": directory}
    )


def _check_algorithms(asked, problems, mode):
    """Refuse, before any work, a name that suits none of the problems."""
    from symsvm.inspection.comparison.contestants import contestants

    known = dict.fromkeys(name for problem in problems for _, name, _ in contestants(problem, mode))
    for name in asked:
        if name not in known:
            raise Refused(f"no algorithm for these problems is called {name!r}: there are {', '.join(known)}.")


def _contest(problem, run, out):
    from symsvm.inspection.comparison import contest

    if not out.draws:
        yield from contest(problem, **run)
        return
    with out.aside.status(f"{problem.name} ...") as status:
        for entry in contest(problem, **run):
            status.update(f"{problem.name}: {entry.algorithm} took {entry.seconds:.2g} s ...")
            yield entry


def problem_of(name, options):
    """A built-in problem, or one made of a file or of a data set."""
    from symsvm.inspection.comparison import PROBLEMS, Problem, problem
    from symsvm.io.data import SETS, signs, standardise
    from symsvm.kernels import RBF, Linear

    if name in PROBLEMS and not os.path.exists(name):
        return problem(name)
    if not os.path.exists(name) and name not in SETS:
        raise Refused(f"{name!r} is no file, no data set, and none of the problems {', '.join(PROBLEMS)}.")
    from sklearn.model_selection import train_test_split

    table, epsilon = read_table(name), options["epsilon"]
    if epsilon is None and len(np.unique(table.y)) != 2:
        raise Refused(f"{name}: algorithms are compared on two classes, or on a regression with --epsilon.")
    if epsilon is not None:
        check_labels(table, "svr")
    y = signs(table.y) if epsilon is None else table.y.astype("float64")
    stratify = y if epsilon is None else None
    X, X_test, y, y_test = train_test_split(
        filled(table.X, "comparing"), y, train_size=0.75, random_state=0, stratify=stratify
    )
    X, X_test = standardise(X, X_test)
    kernel = Linear() if options["gamma"] == "linear" else RBF.from_gamma(options["gamma"])
    return Problem(table.name, X, y, X_test, y_test, kernel, options["C"], epsilon)


def _row(entry):
    names = (
        "algorithm",
        "P",
        "excess",
        "gap",
        "infeasibility",
        "score",
        "vectors",
        "iterations",
        "seconds",
        "stopped",
        "memory",
    )
    return {"problem": entry.problem.name, "model": str(entry.model), **{name: getattr(entry, name) for name in names}}


def _cells(entry):
    vectors = "" if entry.vectors is None else f"{100 * entry.vectors:.0f} %"
    gap = "" if entry.gap is None or np.isnan(entry.gap) else f"{entry.gap:.1e}"
    cells = (entry.algorithm, str(entry.model).removesuffix(" bias"), f"{entry.excess:.1e}", f"{entry.score:.3f}")
    return (*cells, f"{entry.seconds:.3g}", vectors, gap, entry.iterations, entry.stopped, f"{entry.P:.6g}")
