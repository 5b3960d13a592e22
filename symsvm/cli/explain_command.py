"""The command `symsvm explain`: the formula and the certificate of a model, or the terms of a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.command_group import DONE, Command, InvalidUsage
from symsvm.cli.inputs import points_for, read_table_for
from symsvm.cli.model_building import final_estimator
from symsvm.cli.option_types import Name
from symsvm.cli.options import data_options, file_argument, model_argument, output_options, refuse_given, section
from symsvm.cli.output import Output, check_output_path, column_table, key_value_table, load_model
from symsvm.cli.reports import describe_fit, fit_table, model_line, problem_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from symsvm.inspection.contributions import Contributions

__all__ = ["explain"]

_EXAMPLES = (
    ("symsvm explain model.symsvm", "The formula, its compiled graph and the certificate:"),
    ("symsvm explain model.symsvm --as html -o model.html", "The same as a web page with a picture:"),
    ("symsvm explain model.symsvm new.csv --row 3", "The terms of the decision on the third point:"),
)
_HEADING = "The dual problem of the machine and its compiled graph:"
_output = section("Output")


@click.command(cls=Command, examples=_EXAMPLES)
@model_argument
@file_argument(required=False)
@data_options
@section("Data")(
    "--row", type=click.IntRange(min=1), metavar="N", default=1, show_default=True, help="Row of FILE, from 1."
)
@_output(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    default=10,
    show_default=True,
    help="Number of terms of a decision to show.",
)
@_output(
    "--as",
    "form",
    type=Name(("text", "svg", "html")),
    default="text",
    show_default=True,
    help="Text, a picture of the graphs, or a web page with both.",
)
@_output("-o", "--output", metavar="FILE", help="Write the explanation to this file.")
@output_options
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    model: str,
    file: Any,
    row: int,
    top: int,
    form: str,
    output: str | None,
    n_features: int | None,
    trust: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **reader: Any,
) -> None:
    """Explain MODEL: the formula of its dual problem, the graph before and after compilation, and its certificate.

    With FILE, explain the decision on one point instead: the largest terms of its sum over features or support
    vectors. Support vectors are named by their row in the training file, from 1.
    """
    if file is None:
        refuse_given(ctx, ("row", "top", *reader), "without FILE the model is explained, not a decision")
    if file is not None and (form != "text" or output is not None):
        raise InvalidUsage("a decision is printed as text or with --json: leave out --as and --output.")
    if form != "text" and output is None and not as_json:
        raise InvalidUsage(f"--as {form} is written to a file: name it with -o.")
    check_output_path(output)
    out, fitted = Output(as_json, quiet), load_model(model, trust, n_features)
    if file is None:
        _explain_model(fitted, form, output, out)
    else:
        _explain_decision(fitted, file, reader, row, top, out)
    ctx.exit(DONE)


# ---- a model


def _explain_model(model: Any, form: str, path: str | None, out: Output) -> None:
    """Print the certificate, the formula and the graphs of a model, or write the latter two to a file."""
    estimator = final_estimator(model)
    document = {"command": "explain", **describe_fit(model), "explanation": _explanation(estimator, form)}
    out.show(model_line(document["model"]), "", fit_table(document))
    if document["certificate"]["problems"] > 1:
        out.show(problem_table(estimator, out.width))
    if path is None:
        out.show("", *([_HEADING, ""] if document["model"]["kernel"] else []), document["explanation"])
    else:
        from symsvm._lib.atomic_write import atomic_write

        with atomic_write(path) as file:
            file.write(document["explanation"].encode())
        document["output"] = path
        out.show(f"written to {path}")
    out.print_json(document)


def _explanation(estimator: Any, form: str) -> str:
    if hasattr(estimator, "explain") and getattr(estimator, "kernel_", None) is not None:
        return estimator.explain(format=form)
    if form != "text":
        raise InvalidUsage(f"--as {form} needs a model whose kernel is an expression; this one has none.")
    if hasattr(estimator, "kernel"):
        return "The kernel was given as a matrix: there is no expression to compile."
    return "f(x) = x.w + b, a linear model trained without a kernel: nothing is compiled."


# ---- a decision


def _explain_decision(model: Any, file: Any, reader: Mapping[str, Any], row: int, top: int, out: Output) -> None:
    """Print the prediction of one point, and the terms of the decisions for or against it."""
    from symsvm.inspection.contributions import contributions

    table = read_table_for(model, file, reader, supervised=False)
    X = points_for(model, table)
    if row > table.n_rows:
        raise InvalidUsage(f"{table.name} has {table.n_rows} rows: there is no row {row}.")
    x = X[row - 1 : row]
    label = model.predict(x)[0]
    found = contributions(model, x, label=label if hasattr(final_estimator(model), "classes_") else None)
    decisions = [_describe_decision(each, top) for each in found]
    out.show(f"{table.name}, row {row}: {label}")
    for decision in decisions:
        _show_decision(decision, out)
    out.print_json({"command": "explain", "row": row, "prediction": label, "decisions": decisions})


def _describe_decision(found: Contributions, top: int) -> dict[str, Any]:
    """Return a decision and its largest terms; support vectors are rows of the training file, from 1."""
    terms = [term._asdict() for term in found.top(top)]
    if found.by == "support vectors":
        terms = [term | {"name": term["name"] + 1} for term in terms]
    return {
        "for": found.label,
        "against": found.against,
        "decision": found.decision,
        "intercept": found.intercept,
        "probability": found.probability,
        "by": found.by,
        "terms": terms,
        "remainder": found.remainder(top),
        "left_out": max(0, len(found) - top),
    }


def _show_decision(decision: Mapping[str, Any], out: Output) -> None:
    sides = "" if decision["for"] is None else f", positive for {decision['for']}"
    sides += "" if decision["against"] is None else f", negative for {decision['against']}"
    probability = None if decision["probability"] is None else f"{decision['probability']:.4f} for {decision['for']}"
    out.show("", key_value_table([("decision", f"{decision['decision']:.6g}{sides}"), ("probability", probability)]))
    of_features = decision["by"] == "features"
    rows = []
    for term in decision["terms"]:
        numbers = (f"{term[key]:.4g}" for key in ("contribution", "weight", "value"))
        rows.append((term["name"] if of_features else f"row {term['name']}", *numbers))
    if decision["left_out"]:
        others = f"{decision['left_out']} other{'s' * (decision['left_out'] > 1)}"
        rows.append((others, f"{decision['remainder']:.4g}", "", ""))
    rows.append(("intercept", f"{decision['intercept']:.4g}", "", ""))
    name = "feature" if of_features else "support vector"
    out.show(column_table([name, "contribution", "weight", "value"], rows, width=out.width))
