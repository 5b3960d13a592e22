"""Explanations: of a model, and of its decision on one point."""

from symsvm.cli.errors import Refused
from symsvm.cli.inputs import fitting, table_for
from symsvm.cli.machine import machine_of
from symsvm.cli.output import facts, grid
from symsvm.cli.summary import fitted, fitted_lines, model_line, problem_table

__all__ = ["decision_explained", "model_explained"]

_HEADING = "The dual problem of the machine, and what the compiler makes of it:"


def model_explained(model, form, path, out):
    """Show the certificate, the formula and the graphs of a model, or write them to a file."""
    machine = machine_of(model)
    document = {"command": "explain", **fitted(model), "explanation": _explanation(machine, form)}
    out.show(model_line(document["model"]), "", fitted_lines(document))
    if document["certificate"]["problems"] > 1:
        out.show(problem_table(machine, out.width))
    if path is None:
        out.show("", *([_HEADING, ""] if document["model"]["kernel"] else []), document["explanation"])
    else:
        from symsvm._lib.atomic_write import atomic_write

        with atomic_write(path) as file:
            file.write(document["explanation"].encode())
        document["output"] = path
        out.show(f"written to {path}")
    out.finish(document)


def _explanation(machine, form):
    if hasattr(machine, "explain") and getattr(machine, "kernel_", None) is not None:
        return machine.explain(format=form)
    if form != "text":
        raise Refused(f"a {form} needs a kernel with an expression, which this model has not.")
    if hasattr(machine, "kernel"):
        return "The kernel is a matrix that was given: there is no expression to compile."
    return "f(x) = x.w + b, solved over the points themselves, without a kernel: nothing is compiled."


def decision_explained(model, file, data, row, top, out):
    """Show the terms of the decisions that speak for or against the label that a model gives to one point."""
    from symsvm.inspection.contributions import contributions

    table = table_for(model, file, data, supervised=False)
    X = fitting(model, table)
    n = len(X) if isinstance(X, list) else X.shape[0]
    if row > n:
        raise Refused(f"{table.name} has {n} rows: there is no row {row}.")
    x = X[row - 1 : row]
    label = model.predict(x)[0]
    found = contributions(model, x, label=label if hasattr(machine_of(model), "classes_") else None)
    document = {"command": "explain", "row": row, "prediction": label, "decisions": [_decision(c, top) for c in found]}
    out.show(f"{table.name}, row {row}: {label}")
    for decision in document["decisions"]:
        _show(decision, out)
    out.finish(document)


def _decision(found, top):
    """A decision and its largest terms, as a dict; rows of files, which support vectors are named by, count from 1."""
    terms = [term._asdict() for term in found.top(top)]
    if found.by == "support vectors":
        terms = [term | {"name": term["name"] + 1} for term in terms]
    values = {"for": found.label, "against": found.against, "decision": found.decision, "intercept": found.intercept}
    values |= {"probability": found.probability, "by": found.by, "terms": terms}
    return values | {"remainder": found.remainder(top), "left_out": max(0, len(found) - top)}


def _show(decision, out):
    side = "" if decision["for"] is None else f", positive for {decision['for']}"
    side += "" if decision["against"] is None else f", negative for {decision['against']}"
    probability = None if decision["probability"] is None else f"{decision['probability']:.4f} for {decision['for']}"
    out.show("", facts([("decision", f"{decision['decision']:.6g}{side}"), ("probability", probability)]))
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
    out.show(grid([name, "contribution", "weight", "value"], rows, width=out.width))
