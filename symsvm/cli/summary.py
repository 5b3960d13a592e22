"""Summary: what a fit came to: the data, the model, the certificate; as a dict and as tables."""

import re

import numpy as np

from symsvm.cli.machine import machine_of, parts_of
from symsvm.cli.output import facts, grid, styled
from symsvm.cli.scores import training_score

__all__ = ["certified", "data_line", "fitted", "fitted_lines", "model_line", "problem_table"]

_GOOD = ("optimal", "stationary")


def certified(model):
    """The worst of a model's certificates: the status, the largest gap and violation, and how many there are."""
    machine = machine_of(model)
    found = machine.certificate_
    found = found if isinstance(found, list) else [found]
    order = ("optimal", "stationary", "unknown", "feasible", "infeasible", "diverged")
    gaps = [c.relative_gap for c in found if c.gap is not None]
    return {
        "status": max((c.status for c in found), key=order.index),
        "problems": len(found),
        "converged": sum(c.status in _GOOD for c in found),
        "gap": max((c.gap for c in found if c.gap is not None), default=None),
        "relative_gap": max(gaps, default=None),
        "violation": max(c.violation for c in found),
        "infeasibility": max(c.infeasibility for c in found),
        "tol": found[0].tol,
    }


def fitted(model, seconds=None):
    """What there is to know about a fitted model, as a dict."""
    machine = machine_of(model)
    found = {"model": parts_of(model), "certificate": certified(model)}
    if hasattr(machine, "support_"):
        found["support_vectors"] = len(machine.support_)
        found["points"] = int(machine.shape_fit_[0])
    found["iterations"] = int(np.sum(machine.n_iter_))
    found["stopped"] = sorted({solution.stopped for solution in machine.solutions_})
    if seconds is not None:
        found["seconds"] = seconds
    return found


def data_line(facts):
    """A sentence about points and labels."""
    name, m, d = facts["name"], facts["rows"], facts.get("features")
    text = f"{m} texts" if d is None else f"{m} points, {d} feature{'s' * (d != 1)}"
    if facts.get("filled", 1.0) < 0.995:
        text += f", {100 * facts['filled']:.3g} % not zero"
    if "classes" in facts:
        counts = [f"{label} ({count})" for label, count in facts["classes"].items()]
        more = f" and {len(counts) - 10} more" if len(counts) > 10 else ""
        text += f"; {len(counts)} labels: {', '.join(counts[:10])}{more}" if len(counts) > 1 else f"; label {counts[0]}"
    if "targets" in facts:
        t = facts["targets"]
        text += f"; targets from {t['least']:g} to {t['greatest']:g}, mean {t['mean']:.4g}"
    return styled((name, "bold"), f": {text}")


def model_line(parts):
    """The model as one line: its class, what was set, the kernel with its numbers, and the scaling before it."""
    names = ("C", "nu", "epsilon", "loss", "penalty", "class_weight", "calibration")
    shown = {k: parts["params"][k] for k in names if parts["params"].get(k) is not None}
    if parts["classes"] > 2:
        shown["multi_class"] = parts["params"]["multi_class"]
    said = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items()]
    if parts["kernel"]:
        said.append(f"kernel={_rounded(parts['kernel'])}")
        said += [f"gamma={parts['gamma']:.6g}"] if parts["gamma"] else []
    before = "".join(f", {step}" for step in parts["before"])
    return styled((parts["class"], "bold cyan"), f"({', '.join(said)}){before}")


def _rounded(text):
    """A text with the numbers in it cut to six digits."""
    return re.sub(r"\d+\.\d{6,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.6g}", text)


def fitted_lines(found):
    """The certificate and the size of a fit, as a table."""
    c = found["certificate"]
    if c["status"] == "unknown":
        vectors = ("support vectors", found["support_vectors"])
        return facts([("status", "unknown: the file holds neither a certificate nor C"), vectors])
    good = c["status"] in _GOOD
    status = [
        (
            c["status"],
            "bold green" if good else "bold red" if c["status"] in ("infeasible", "diverged") else "bold yellow",
        )
    ]
    if c["problems"] > 1:
        status.append(
            f", {c['converged']} of {c['problems']} problems within tol"
            if not good
            else f", all {c['problems']} problems"
        )
    lines = [("status", styled(*status))]
    if c["gap"] is not None:
        lines.append(("gap", f"{c['gap']:.2e} ({c['relative_gap']:.1e} relative)"))
    lines.append(("violation", f"{c['violation']:.2e} (tol {c['tol']:g})"))
    if "support_vectors" in found:
        share = 100 * found["support_vectors"] / max(found["points"], 1)
        lines.append(("support vectors", f"{found['support_vectors']} of {found['points']} points ({share:.0f} %)"))
    lines.append(("iterations", f"{found['iterations']}"))
    if "seconds" in found:
        lines.append(("seconds", f"{found['seconds']:.3g}"))
    if "training" in found:
        lines.append(training_score(found["training"]))
    return facts(lines)


def problem_table(machine, width):
    """A row for each problem of a machine with several."""
    rows = []
    for i, solution in enumerate(machine.solutions_):
        c = solution.certificate
        gap = "" if c.gap is None else f"{c.relative_gap:.1e}"
        rows.append((c.status, i + 1, gap, f"{c.violation:.1e}", solution.n_iter, solution.stopped))
    return grid(["status", "problem", "relative gap", "violation", "iterations", "stopped"], rows, left=1, width=width)
