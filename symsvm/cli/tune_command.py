"""The command `symsvm tune`: search for the best parameters by cross-validation."""

from __future__ import annotations

import contextlib
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.command_group import DONE, NOT_CONVERGED, Interrupted, InvalidUsage
from symsvm.cli.gradient_tuning import GradientTuning
from symsvm.cli.inputs import READER_OPTIONS, check_labels, points_to_scale, read_table
from symsvm.cli.interruptible_fit import progress_bar
from symsvm.cli.model_building import REGRESSIONS, build_model, check_text_options
from symsvm.cli.option_types import MAX_VALUES, Name
from symsvm.cli.options import (
    MachineCommand,
    data_options,
    default_gamma,
    file_argument,
    machine_options,
    output_options,
    refuse_given,
    section,
)
from symsvm.cli.output import (
    Output,
    check_model_path,
    check_output_path,
    column_table,
    file_size,
    require_matplotlib,
    save_model,
    styled,
)
from symsvm.cli.reports import data_line, describe_fit, fit_table, has_converged, model_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from symsvm.model_selection import Tuning

__all__ = ["Search", "describe_partial", "powers_of_two", "tune"]

_EXAMPLES = (
    (
        "symsvm tune svmguide1 --scale sym -c 0.1:1000:5 -g 0.01:100:5 -o best.symsvm",
        "A grid of 5 x 5 values, and the model with the best ones:",
    ),
    (
        "symsvm tune train.csv -c 1,10 -g 0.1,1 --search halving --plot surface.png",
        "Successive halving, with a plot of the scores:",
    ),
    (
        "symsvm tune housing_scale -s svr --by-gradient --widths --plot features.png -o best.symsvm",
        "A width for each feature by the gradient of the held-out error, with a plot of the features that matter:",
    ),
    ("symsvm tune heart_scale --log2c -5,15,2 --log2g 3,-15,-2", "The grid of LIBSVM's grid.py:"),
)
# Parameters that can be searched over.
_NUMBERS = ("C", "gamma", "degree", "coef0", "nu", "epsilon")
# Kernels (None is the default, rbf) on which a parameter has no effect: a single value is accepted, as in LIBSVM.
_NO_EFFECT = {
    "gamma": ("linear", "precomputed"),
    "degree": (None, "rbf", "linear", "sigmoid", "laplacian", "precomputed"),
    "coef0": (None, "rbf", "linear", "laplacian", "precomputed"),
}
# The grid if no values are given.
_DEFAULT_C = [0.1, 1.0, 10.0, 100.0, 1000.0]
_DEFAULT_GAMMA = [0.001, 0.01, 0.1, 1.0, 10.0]
_DEFAULT_NU = [0.1, 0.2, 0.3, 0.4, 0.5]
_PLOT_SUFFIXES = (".png", ".svg", ".pdf")
# Rows of the table of results.
_MAX_ROWS = 10
_search = section("Search")


@click.command(cls=MachineCommand, examples=_EXAMPLES)
@file_argument()
@_search(
    "--folds",
    "-v",
    type=click.IntRange(min=2),
    metavar="N",
    default=5,
    show_default=True,
    help="Folds of the cross-validation.",
)
@_search(
    "--search",
    type=Name(("grid", "halving")),
    default="grid",
    show_default=True,
    help="grid: all combinations on all points. halving: all on some points, the better ones on more and more.",
)
@_search(
    "--scoring",
    metavar="NAME",
    help="A score of scikit-learn, such as f1_macro. Default: accuracy; R2 for regressions. By gradient a loss: "
    "log_loss (the default) or smooth_hinge; squared_error (the default) or absolute_error for regressions.",
)
@_search(
    "--by-gradient",
    is_flag=True,
    help="Minimise the loss of held-out points by its gradient, from the best cells of a coarse grid. Searched are C, "
    "gamma, nu and epsilon, as far as the machine has them: one value fixes a parameter, several are the coarse grid.",
)
@_search("--widths", is_flag=True, help="With --by-gradient: search a width of the rbf kernel for each feature.")
@_search(
    "--starts",
    type=click.IntRange(min=1),
    metavar="N",
    default=2,
    show_default=True,
    help="With --by-gradient: the number of cells to start from.",
)
@_search("--log2c", "-log2c", metavar="BEGIN,END,STEP", help="Values of C as powers of 2, as in LIBSVM's grid.py.")
@_search("--log2g", "-log2g", metavar="BEGIN,END,STEP", help="Values of gamma as powers of 2.")
@_search("--jobs", type=click.IntRange(min=1), metavar="N", help="Number of threads. Default: all cores.")
@data_options
@section("Data")(
    "-o", "--output", metavar="MODEL", help="Train with the best parameters on all points, and write the model."
)
@machine_options(has_lists=True)
@section("Output")(
    "--plot",
    metavar="FILE",
    help="Plot the scores over two parameters: .png, .svg or .pdf. By gradient: the path of the search, or the widths.",
)
@output_options
@click.pass_context
def tune(ctx: click.Context, /, as_json: bool, quiet: bool, **settings: Any) -> None:
    """Search for the best parameters of a machine on FILE by cross-validation.

    C, gamma, degree, coef0, nu and epsilon take several values: a list 0.1,1,10 or a range 0.01:100:5, five values
    from the first to the second (spaced by a factor for C and gamma, evenly for the others). Without any, C and gamma
    are searched over five values each. Ctrl-C ends the search with the best parameters so far, and exit code 1.
    """
    if settings["by_gradient"]:
        refuse_given(ctx, ("search",), "--by-gradient is a search of its own")
        is_success = GradientTuning(settings, Output(as_json, quiet), _PLOT_SUFFIXES).run()
        ctx.exit(DONE if is_success else NOT_CONVERGED)
    refuse_given(ctx, ("widths", "starts"), "these options belong to --by-gradient")
    settings["default_gamma"] = default_gamma(settings, ctx.meta["libsvm"])
    is_success = Search(settings, Output(as_json, quiet)).run()
    ctx.exit(DONE if is_success else NOT_CONVERGED)


class Search:
    """One call of `symsvm tune`."""

    def __init__(self, settings: Mapping[str, Any], output: Output) -> None:
        self.output = output
        self.kind = settings["type_"] or ("linear-svc" if settings["text"] else "c-svc")
        if self.kind == "one-class":
            raise InvalidUsage("--type one-class has no labels to compute scores from: use another type.")
        self.settings = {**settings, "type_": self.kind}
        if settings["plot"] and Path(settings["plot"]).suffix not in _PLOT_SUFFIXES:
            raise InvalidUsage(f"--plot must end in {', '.join(_PLOT_SUFFIXES)}, got {settings['plot']!r}.")
        check_output_path(settings["plot"])
        if settings["plot"]:
            require_matplotlib()
        check_text_options(settings, self.kind)
        is_scaled = settings["scale"] not in (None, "none")
        check_model_path(settings["output"], is_scaled=is_scaled, is_linear=self.kind.startswith("linear"))

    def run(self) -> bool:
        """Search and report; return whether the search is complete and the model, if one is written, converged."""
        import numpy as np
        from sklearn.exceptions import ConvergenceWarning

        from symsvm.model_selection import tune

        s, output = self.settings, self.output
        _check_scoring(s["scoring"])
        table = read_table(
            s["file"],
            targets=self.kind in REGRESSIONS,
            is_gram=s["kernel"] == "precomputed",
            **{name: s[name] for name in READER_OPTIONS},
        )
        check_labels(table, self.kind)
        grid, fixed = self._grid()
        # The model is built with the first values, so that parameters which it does not have are refused.
        firsts = {name: values[0] for name, values in grid.items()}
        model = build_model({**s, **dict.fromkeys(_NUMBERS), **fixed, **firsts}, table.y)
        prefix = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
        # Fits that did not converge are listed in the table of results.
        with self._show_progress() as progress, output.warnings_as_notes(ignore=(ConvergenceWarning,)):
            tuning = tune(
                model,
                points_to_scale(table.X, s["scale"]),
                table.y,
                {prefix + name: values for name, values in grid.items()},
                random_state=s["seed"],
                progress=progress,
                folds=s["folds"],
                scoring=s["scoring"],
                search=s["search"],
                n_jobs=s["jobs"],
            )
        if not tuning.is_complete and not np.isfinite(tuning.table["mean_score"]).any():
            raise Interrupted(describe_partial(tuning, prefix))
        document = {"command": "tune", "data": table.describe(), **_describe(tuning, prefix)}
        output.show(data_line(document["data"]))
        _show_cells(document, output)
        if s["plot"]:
            _draw_surface(tuning, list(grid), prefix, s["plot"])
            document["plot"] = s["plot"]
            output.show(f"drawn: {s['plot']}")
        converged = self._write_best(tuning, document) if s["output"] else True
        if not tuning.is_complete:
            output.note("interrupted: the best parameters are those of the cells scored so far.", is_failure=True)
        output.print_json(document)
        return tuning.is_complete and converged

    def _grid(self) -> tuple[dict[str, list], dict[str, Any]]:
        """Return the parameters that are searched over, with their values, and those that have one value."""
        s = self.settings
        given = {name: s[name] for name in _NUMBERS if s[name] is not None}
        for name, flag in (("C", "log2c"), ("gamma", "log2g")):
            if s[flag] is not None:
                if name in given:
                    raise InvalidUsage(f"{name} is given twice, also by --{flag}.")
                given[name] = powers_of_two(s[flag], flag)
        if not given:
            given = {"nu": _DEFAULT_NU} if self.kind == "nu-svc" else {"C": _DEFAULT_C}
            if not self.kind.startswith("linear") and s["kernel"] not in ("linear", "precomputed"):
                given["gamma"] = _DEFAULT_GAMMA
        if s["default_gamma"] is not None:
            given.setdefault("gamma", [s["default_gamma"]])
        searched = {name: values for name, values in given.items() if len(values) > 1}
        fixed = {name: values[0] for name, values in given.items() if len(values) == 1}
        for name in searched:
            if not self.kind.startswith("linear") and s["kernel"] in _NO_EFFECT.get(name, ()):
                kernel = s["kernel"] or "rbf"
                raise InvalidUsage(f"--{name} has no effect on the {kernel} kernel: give it one value or none.")
        if not searched:
            raise InvalidUsage("there is nothing to search: give several values, such as -c 0.1,1,10.")
        return searched, fixed

    @contextlib.contextmanager
    def _show_progress(self) -> Iterator[Callable[[Any], None] | None]:
        if not self.output.shows_progress:
            yield None
            return
        with progress_bar("fits", self.output) as bar:
            task, best = bar.add_task("", status=""), float("-inf")

            def progress(step: Any) -> None:
                nonlocal best
                best = max(best, step.score)
                bar.update(task, completed=step.done, total=step.total, status=f"best fold {best:.4f}")

            yield progress

    def _write_best(self, tuning: Tuning, document: dict[str, Any]) -> bool:
        """Train with the best parameters on all points and write the model; return whether it converged."""
        path, show = self.settings["output"], self.output.show
        with self.output.warnings_as_notes():
            model = tuning.refit()
        save_model(model, path, has_fallback=True)
        refit = describe_fit(model)
        document |= {"output": path, "refit": refit}
        show("", model_line(refit["model"]), "", fit_table(refit))
        show("", styled("written to ", (path, "bold"), f", {file_size(path)}"))
        return has_converged(refit)


def powers_of_two(text: str, flag: str) -> list[float]:
    """Return the values of grid.py's BEGIN,END,STEP.

    >>> powers_of_two("-1,3,2", "log2c")
    [0.5, 2.0, 8.0]
    """
    try:
        begin, end, step = map(float, text.split(","))
        count = int((end - begin) / step + 1e-9) + 1
        values = [2.0 ** (begin + i * step) for i in range(count if count <= MAX_VALUES else 0)]
    except (ValueError, ZeroDivisionError, OverflowError):
        values = []
    if not values or not min(values) > 0:
        raise InvalidUsage(f"--{flag} must be BEGIN,END,STEP, such as -5,15,2, got {text!r}.")
    return values


def _check_scoring(name: str | None) -> None:
    from sklearn.metrics import get_scorer_names

    if name is not None and name not in get_scorer_names():
        near = ", ".join(difflib.get_close_matches(name, get_scorer_names(), 3, 0.0))
        raise InvalidUsage(f"--scoring must be a score of scikit-learn, got {name!r}; did you mean one of {near}?")


# ---- the report


def _describe(tuning: Tuning, prefix: str) -> dict[str, Any]:
    """Return the best parameters and all cells; `prefix` is that of a pipeline's parameters."""
    import numpy as np

    table: Any = tuning.table
    cells = []
    for i, params in enumerate(tuning.params):
        numbers = {name: float(table[name][i]) for name in ("mean_score", "std_score", "seconds")}
        cells.append(
            {
                "params": _strip(params, prefix),
                **{name: value if np.isfinite(value) else None for name, value in numbers.items()},
                "fold_scores": tuning.fold_scores[i],
                "points": int(table["points"][i]),
                "status": str(table["status"][i]),
            }
        )
    return {
        "best_params": _strip(tuning.best_params, prefix),
        "best_score": tuning.best_score,
        "seconds": tuning.seconds,
        "folds": tuning.fold_scores.shape[1],
        "complete": tuning.is_complete,
        "cells": cells,
    }


def _strip(params: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in params.items()}


def _format_params(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_format_value(value)}" for name, value in params.items())


def _format_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_partial(tuning: Tuning, prefix: str) -> str:
    """Return a sentence about an interrupted search in which no cell has the scores of all folds."""
    import numpy as np

    scores: Any = tuning.fold_scores
    is_scored = np.isfinite(scores)
    n_folds = is_scored.sum(axis=1)
    text = "interrupted before any cell was scored in all folds"
    if n_folds.any():
        means = np.where(is_scored, scores, 0.0).sum(axis=1) / np.maximum(n_folds, 1)
        best = int(np.argmax(np.where(n_folds == n_folds.max(), means, -np.inf)))
        params = _format_params(_strip(tuning.params[best], prefix))
        text += f"; in {n_folds.max()} of {scores.shape[1]} folds the best is {params} with {means[best]:.4f}"
    return f"{text}; nothing was written."


def _show_cells(report: Mapping[str, Any], output: Output) -> None:
    """Print the best cells as a table, why cells failed, and the best parameters."""
    names, cells = list(report["best_params"]), report["cells"]
    rows = []
    for cell in sorted(cells, key=_sort_key)[:_MAX_ROWS]:
        scores = ("", "") if cell["mean_score"] is None else (f"{cell['mean_score']:.4f}", f"{cell['std_score']:.4f}")
        status = cell["status"].partition(":")[0]  # the reason of a failure is too long for a column
        values = (_format_value(cell["params"][name]) for name in names)
        rows.append((*values, *scores, f"{cell['seconds']:.3g}", status))
    more = f", the first {_MAX_ROWS}" if len(cells) > _MAX_ROWS else ""
    title = f"{len(cells)} cells in {report['folds']} folds, {report['seconds']:.3g} s; best first{more}"
    heads = [*names, "mean score", "deviation", "seconds", "status"]
    output.show(column_table(heads, rows, left=0, title=title, width=output.width))
    failed = [cell["status"] for cell in cells if cell["status"].startswith("failed: ")]
    if failed:
        reason = " ".join(failed[0].removeprefix("failed: ").split())
        output.note(f"{len(failed)} of {len(cells)} cells failed; the first: {reason}")
    best = _format_params(report["best_params"])
    output.show(styled(("best: ", "bold"), (best, "bold green"), f", score {report['best_score']:.4f}"))


def _sort_key(cell: Mapping[str, Any]) -> tuple[int, float]:
    """Sort by points, most first, then by score, best first; cells without a score come last."""
    return -cell["points"], float("inf") if cell["mean_score"] is None else -cell["mean_score"]


def _draw_surface(tuning: Tuning, names: list[str], prefix: str, path: str) -> None:
    """Plot the scores over the first two parameters; the others have their best values."""
    from symsvm.inspection import plot

    display = plot.surface(tuning, parameters=[prefix + name for name in names[:2]])
    ax = display.ax_
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_text(text.get_text().replace(prefix, ""))
    display.figure_.savefig(path, dpi=120, bbox_inches="tight")
