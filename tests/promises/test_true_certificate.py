"""The certificate is true: W, the violation and the gap, recomputed in extended precision from what a user has."""

import numpy as np
import pytest
from cases import Case, draw
from extended import EPS
from fitted import is_definite, problems
from promise import Promise, demand, started

# Differences below this share of tol cannot make a certificate say too much.
SHARE = 1e-2
TINY = float(np.finfo("float64").tiny)


def check(case, figures):
    """Fit, and compare every certificate with the truth."""
    data, outcome = started(case)
    if outcome.refusal is None:
        compare(case, data, outcome, figures)


def compare(case, data, outcome, figures):
    """Compare the certificates of a fit with the truth, and its silence with the certificates."""
    model = outcome.model
    best = "optimal" if is_definite(model) else "stationary"
    for number, (said, true) in enumerate(problems(case, data, model)):
        where = f"problem {number}, {said.status}{' and silent' if outcome.converged else ''}: "
        silent = outcome.converged or getattr(model, "fit_status_", 1) == 0
        demand(said.status == best or not silent, f"{where}no ConvergenceWarning, or fit_status_ 0 ({said})")
        demand(said.status in (best, "feasible", "infeasible", "diverged"), f"{where}another status than {best}")
        if said.status in ("diverged", "infeasible"):
            continue
        if not silent and not np.isfinite([true.of_violation, true.of_W, true.of_gap]).all():
            continue  # it says that it is not optimal, and the numbers are beyond float64
        leeway = SHARE * said.tol
        apart = abs(said.violation - true.violation)
        allowed = true.of_violation + leeway
        figures.note("violation, difference / allowed", apart / allowed, case)
        found = f"violation {said.violation:.3g}, truly {true.violation:.3g} (rounding {true.of_violation:.1g})"
        demand(apart <= allowed, where + found)
        apart, allowed = abs(said.W - true.W), true.of_W + leeway * true.total + 1e-12 * abs(true.W) + TINY
        figures.note("W, difference / allowed", apart / allowed if allowed else apart, case)
        found = f"W {said.W:.10g}, truly {true.W:.10g} (rounding {true.of_W:.1g})"
        demand(apart <= allowed, where + found)
        short = true.gap - said.gap
        allowed = true.of_gap + leeway * true.total + 1e-9 * abs(true.W) + 1e-9 * abs(true.gap) + TINY
        figures.note("gap, understatement / allowed", short / allowed if allowed else short, case)
        demand(short <= allowed, f"{where}gap {said.gap:.3g}, truly {true.gap:.3g} (rounding {true.of_gap:.1g})")
        outside = 64 * EPS * np.sqrt(len(data.dense)) * true.total
        demand(true.infeasibility <= outside, f"{where}infeasible by {true.infeasibility:.3g}")
        figures.note("relative gap of an optimum", max(0, true.gap) / max(abs(true.W), 1) if silent else 0, case)


def _few(seed, m=8, **fields):
    return Case(seed=seed, machine="NuSVC", m=m, d=5, classes=4, shape="clusters", far=3.0, **fields)


PROMISE = Promise(
    "true certificate",
    check,
    draw,
    fixed=(
        Case(shape="outlier", far=8.0, m=60),
        Case(kernel="pair", shape="clusters", far=8.0, layout="csr"),
        Case(kernel="sum", shape="outlier", far=8.0),
        Case(kernel="widths", shape="clusters", far=8.0, d=5, log_C=3.0),
        Case(kernel="widths", shape="clusters", far=10.0, d=3, m=50, layout="csr", log_scale=4.0),
        Case(kernel="laplacian widths", shape="outlier", far=8.0, machine="SVR"),
        Case(kernel="linear", shape="separable", log_scale=5.0, log_C=6.0),
        Case(kernel="poly", log_scale=3.0, machine="SVR"),
        Case(machine="NuSVC", class_weight="balanced", weights="reals"),
        # Bounds that are reached, in sums over a class that rounding has moved by more than a unit of the last place.
        _few(135993612, kernel="poly", weights="integers", names="signs", nu=0.341),
        _few(13768901, kernel="linear", weights="integers", nu=0.475),
        _few(245076948, kernel="Polynomial", m=7, weights="zeros", nu=0.598),
        Case(machine="LinearSVC crammer_singer", kernel="linear", classes=3, shape="columns", far=6.0),
        Case(machine="LinearSVR l1", kernel="linear", weights="zeros"),
    ),
    examples=24,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_the_certificate_is_true(number):
    PROMISE.keep(PROMISE.example(number))
