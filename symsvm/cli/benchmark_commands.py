"""The commands `symsvm compare`, every algorithm on the same problems, and `symsvm bench`, fits timed side by side."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.command_group import DONE, Command, InvalidUsage
from symsvm.cli.inputs import READER_OPTIONS, check_labels, densify, points_to_scale, read_table
from symsvm.cli.interruptible_fit import abort_on_interrupt
from symsvm.cli.model_building import REGRESSIONS, SCALES, build_estimator, describe_model
from symsvm.cli.option_types import POSITIVE, Name, Number
from symsvm.cli.options import (
    MachineCommand,
    data_options,
    default_gamma,
    file_argument,
    machine_options,
    output_options,
    section,
)
from symsvm.cli.output import Output, column_table, require_matplotlib, styled
from symsvm.cli.reports import data_line, model_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from symsvm.inspection.comparison import Entry, Problem

__all__ = ["bench", "compare"]

# ---- compare

_COMPARE_EXAMPLES = (
    ("symsvm compare sine iris", "Two of the built-in problems:"),
    ("symsvm compare --to out/compare", "All of them, with a report and plots:"),
    ("symsvm compare heart_scale -c 1 -g 0.1 --algorithms decomposition,smo,libsvm", "Your own data:"),
)
# The columns of the table, the most important first: a narrow terminal leaves out the last ones.
_COLUMNS = ("algorithm", "model", "above P*", "score", "seconds", "vectors", "gap", "steps", "stopped", "P")
# The attributes of an entry in the JSON document.
_ATTRIBUTES = (
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
# The share of a file to train on; the rest is for the score.
_TRAIN_SHARE = 0.75
_machine = section("Machine")


@click.command(cls=Command, examples=_COMPARE_EXAMPLES)
@click.argument("problems", nargs=-1)
@_machine("-c", "-C", "--cost", "C", type=POSITIVE, default=1.0, show_default=True, help="C, for your own data.")
@_machine(
    "-g",
    "--gamma",
    type=Number(words=("linear",), positive=True),
    default="linear",
    show_default=True,
    help="gamma of the RBF kernel, or linear for the linear kernel, for your own data.",
)
@_machine("-p", "--epsilon", type=Number(), help="Treat your own data as a regression with this epsilon.")
@_machine("--algorithms", metavar="NAME,...", help="Algorithms to run. Default: all that can solve the problem.")
@_machine("-e", "--tol", type=POSITIVE, default=1e-3, show_default=True, help="Tolerance of every algorithm.")
@_machine(
    "--time-limit",
    type=POSITIVE,
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="Maximum time for each algorithm.",
)
@_machine("--mode", type=Name(("NUMBA", "JAX")), help="Backend of the algorithms that are compiled graphs.")
@section("Output")("--to", metavar="DIR", help="Write report.md and plots to this directory.")
@output_options
@click.pass_context
def compare(
    ctx: click.Context, /, problems: Sequence[str], to: str | None, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Run every algorithm on PROBLEMS: names of built-in problems (default: all of them), data sets or files.

    P is the primal objective at the result of an algorithm, and P* its minimum. The features of a file are
    standardised, and a quarter of its points is held out for the score.
    """
    _compare(problems, to, options, Output(as_json, quiet))
    ctx.exit(DONE)


def _compare(names: Sequence[str], directory: str | None, options: Mapping[str, Any], out: Output) -> None:
    """Run the comparison, print a table for each problem, and write the report if there is a directory for it."""
    from symsvm.inspection import comparison

    if directory is not None:
        require_matplotlib()
    algorithms = [name.strip() for name in options["algorithms"].split(",")] if options["algorithms"] else None
    run = {"algorithms": algorithms, **{name: options[name] for name in ("tol", "time_limit", "mode")}}
    problems = [_build_problem(name, options) for name in names or comparison.PROBLEMS]
    _check_algorithms(algorithms or (), problems, options["mode"])
    entries = []
    if directory is not None:
        with abort_on_interrupt():
            entries = comparison.report(problems, directory, show=lambda text: None, **run)
    for problem in problems:
        if directory is not None:
            own = [entry for entry in entries if entry.problem is problem]
        else:
            with abort_on_interrupt():
                own = list(_run_problem(problem, run, out))
            entries += own
        m, d = problem.X.shape
        title = f"{problem.name}: {m} x {d}, {problem.kernel!r}, C = {problem.C:g}"
        out.show(column_table(_COLUMNS, [_cells(entry) for entry in own], left=2, title=title, width=out.width))
    findings = comparison.findings(entries)
    out.show(*(f"- {sentence}" for sentence in findings))
    if directory is not None:
        out.show(f"written to {os.path.join(directory, 'report.md')}")
    rows = [_describe_entry(entry) for entry in entries]
    out.print_json({"command": "compare", "entries": rows, "findings": findings, "output": directory})


def _check_algorithms(algorithms: Iterable[str], problems: Sequence[Problem], mode: str | None) -> None:
    """Raise, before any work, if an algorithm is not one of those for the problems."""
    from symsvm.inspection.comparison.contest import list_algorithms

    known = dict.fromkeys(name for problem in problems for _, name, _ in list_algorithms(problem, mode))
    for name in algorithms:
        if name not in known:
            raise InvalidUsage(f"there is no algorithm {name!r} for these problems; there are {', '.join(known)}.")


def _run_problem(problem: Problem, run: Mapping[str, Any], out: Output) -> Iterator[Entry]:
    """Yield the results of the algorithms on a problem, with progress."""
    from symsvm.inspection.comparison import contest

    if not out.shows_progress:
        yield from contest(problem, **run)
        return
    with out.stderr.status(f"{problem.name} ...") as status:
        for entry in contest(problem, **run):
            status.update(f"{problem.name}: {entry.algorithm} took {entry.seconds:.2g} s ...")
            yield entry


def _build_problem(name: str, options: Mapping[str, Any]) -> Problem:
    """Return a built-in problem, or one made from a file or a data set."""
    import numpy as np

    from symsvm.inspection.comparison import PROBLEMS, Problem, problem
    from symsvm.io.data import SETS, signs, standardise
    from symsvm.kernels import RBF, Linear

    if name in PROBLEMS and not os.path.exists(name):
        return problem(name)
    if not os.path.exists(name) and name not in SETS:
        raise InvalidUsage(
            f"{name!r} is not a file, not a data set, and not one of the problems {', '.join(PROBLEMS)}."
        )
    from sklearn.model_selection import train_test_split

    table, epsilon = read_table(name), options["epsilon"]
    labels = np.asarray(table.y)
    if epsilon is None and len(np.unique(labels)) != 2:
        raise InvalidUsage(f"{name}: algorithms are compared on two classes, or on a regression with --epsilon.")
    if epsilon is not None:
        check_labels(table, "svr")
    y = signs(labels) if epsilon is None else labels.astype("float64")
    points, stratify = densify(table.X, "comparing"), y if epsilon is None else None
    split: Any = train_test_split(points, y, train_size=_TRAIN_SHARE, random_state=0, stratify=stratify)
    X, X_test, y, y_test = split
    scaled: Any = standardise(X, X_test)
    kernel = Linear() if options["gamma"] == "linear" else RBF.from_gamma(options["gamma"])
    return Problem(table.name, scaled[0], y, scaled[1], y_test, kernel, options["C"], epsilon)


def _describe_entry(entry: Entry) -> dict[str, Any]:
    values = {name: getattr(entry, name) for name in _ATTRIBUTES}
    return {"problem": entry.problem.name, "model": str(entry.model), **values}


def _cells(entry: Entry) -> tuple[Any, ...]:
    """Return the cells of an entry, as _COLUMNS names them."""
    vectors = "" if entry.vectors is None else f"{100 * entry.vectors:.0f} %"
    gap = "" if entry.gap is None or entry.gap != entry.gap else f"{entry.gap:.1e}"  # NaN is not equal to itself
    cells = (entry.algorithm, str(entry.model).removesuffix(" bias"), f"{entry.excess:.1e}", f"{entry.score:.3f}")
    return (*cells, f"{entry.seconds:.3g}", vectors, gap, entry.iterations, entry.stopped, f"{entry.P:.6g}")


# ---- bench

_BENCH_EXAMPLES = (
    ("symsvm bench svmguide1 --scale zscore -c 10", "A data set:"),
    ("symsvm bench train.csv --labels y -s linear-svc --turns 5", "Your own data and type of machine:"),
)
# Parameters of symsvm -> the values that scikit-learn has as well.
_SKLEARN_VALUES = {
    "multi_class": ("ovo", "ovr", "crammer_singer"),
    "kernel": ("linear", "poly", "rbf", "sigmoid", "precomputed"),
}


@click.command(cls=MachineCommand, examples=_BENCH_EXAMPLES)
@file_argument()
@data_options
@machine_options
@section("Solver")(
    "--turns",
    type=click.IntRange(min=1),
    metavar="N",
    default=3,
    show_default=True,
    help="Number of fits of each; the fastest counts.",
)
@output_options
@click.pass_context
def bench(ctx: click.Context, /, file: Any, turns: int, as_json: bool, quiet: bool, **settings: Any) -> None:
    """Time fits to FILE by symsvm and by scikit-learn: same points, machine and tolerance, alternating, in one run.

    Compare the times of one run only: those of different runs or computers differ for other reasons. The first fit of
    symsvm, which compiles, is reported separately.
    """
    if settings["gamma"] is None:
        settings["gamma"] = default_gamma(settings, ctx.meta["libsvm"])
    out = Output(as_json, quiet)
    document = {"command": "bench", **_time_fits(file, settings, turns, out)}
    _show_times(document, out)
    out.print_json(document)
    ctx.exit(DONE)


def _time_fits(file: Any, settings: Mapping[str, Any], turns: int, out: Output) -> dict[str, Any]:
    """Time fits and predictions of the training points."""
    import numpy as np

    kind = settings["type_"] or "c-svc"
    if settings["text"]:
        raise InvalidUsage("texts cannot be timed: give a file of points, and leave out --text.")
    table = read_table(
        file,
        supervised=kind != "one-class",
        targets=kind in REGRESSIONS,
        is_gram=settings["kernel"] == "precomputed",
        **{name: settings[name] for name in READER_OPTIONS},
    )
    if kind != "one-class":
        check_labels(table, kind)
    X, y = _scale(table.X, settings["scale"]), table.y
    ours = build_estimator(settings, y)
    models = {"symsvm": ours, "scikit-learn": _sklearn_equivalent(ours, y)}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
    with abort_on_interrupt(), out.warnings_as_notes():
        first = _seconds(lambda: ours.fit(X, y).predict(X))
        for _ in range(turns):
            for name, model in models.items():
                fit_seconds = _seconds(lambda model=model: model.fit(X, y))
                times[name].append((fit_seconds, _seconds(lambda model=model: model.predict(X))))
        rows = {name: _describe_times(model, X, y, times[name]) for name, model in models.items()}
    same = None
    if hasattr(ours, "classes_"):
        same = float(np.mean(ours.predict(X) == models["scikit-learn"].predict(X)))
    return {
        "data": table.describe(),
        "model": describe_model(ours),
        "first_fit_seconds": first,
        "rows": rows,
        "times_faster": rows["scikit-learn"]["fit_seconds"] / rows["symsvm"]["fit_seconds"],
        "same_predictions": same,
    }


def _scale(X: Any, scale: str | None) -> Any:
    if scale is None or scale == "none":
        return X
    from symsvm.io.data import Scaling

    return Scaling(SCALES[scale]).fit_transform(points_to_scale(X, scale))


def _sklearn_equivalent(estimator: Any, y: Any) -> Any:
    """Create scikit-learn's estimator of the same name and parameters."""
    import numpy as np
    import sklearn.svm

    params, make = estimator.get_params(deep=False), getattr(sklearn.svm, type(estimator).__name__)
    known = make().get_params()
    for name, values in _SKLEARN_VALUES.items():
        if params.get(name) is not None and params[name] not in values:
            raise InvalidUsage(f"scikit-learn has no {name} {params[name]!r} to compare with.")
    if "multi_class" not in known and params.get("multi_class") == "ovr" and len(np.unique(y)) > 2:
        raise InvalidUsage("scikit-learn trains this machine one against one only: leave out --multi-class ovr.")
    if params.get("calibration") is not None:
        raise InvalidUsage("scikit-learn calibrates probabilities in another way: leave out -b and --calibration.")
    params.pop("probability", None)  # not given, since there is a calibration instead
    return make(**{name: value for name, value in params.items() if name in known})


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _describe_times(model: Any, X: Any, y: Any, times: Sequence[tuple[float, float]]) -> dict[str, Any]:
    fits, predictions = zip(*times, strict=True)
    row: dict[str, Any] = {"fit_seconds": min(fits), "predict_seconds": min(predictions)}
    if y is not None and hasattr(model, "score"):
        row["training_score"] = float(model.score(X, y))
    if hasattr(model, "support_"):
        row["support_vectors"] = len(model.support_)
    return row


def _show_times(document: Mapping[str, Any], out: Output) -> None:
    """Print a row for each library and the ratio of the times."""
    rows = []
    for name, row in document["rows"].items():
        cells = (f"{row['fit_seconds']:.4g}", f"{row['predict_seconds']:.4g}", row.get("support_vectors", ""))
        rows.append((name, *cells, f"{row['training_score']:.4f}" if "training_score" in row else ""))
    names = ["", "fit, s", "predict, s", "support vectors", "training score"]
    ratio = document["times_faster"]
    verdict = f"{ratio:.3g} times faster" if ratio >= 1 else f"{1 / ratio:.3g} times slower"
    out.show(data_line(document["data"]), model_line(document["model"]), column_table(names, rows, width=out.width))
    out.show(styled("symsvm fits ", (verdict, "bold green" if ratio >= 1 else "bold yellow"), "."))
    seconds = f"{document['first_fit_seconds']:.3g} s"
    out.show(f"The first fit and prediction, which load or compile their code, took {seconds}.")
    if document["same_predictions"] is not None:
        out.show(f"{100 * document['same_predictions']:.4g} % of the predictions are the same.")
