"""The decision function is what the fitted attributes say: sum_j coef_j K(x, x_j) + b, in extended precision."""

import numpy as np
import pytest
from cases import Case, draw
from extended import EPS
from fitted import decision
from promise import Promise, demand, started

# A share of the sum of absolute terms: what products of matrices lose beside sums by differences, for ordinary points.
LEEWAY = 1e-10


def check(case, figures):
    """Compare decision values with the sum over the attributes."""
    data, outcome = started(case)
    if outcome.refusal is None:
        compare(case, data, outcome, figures)


def compare(case, data, outcome, figures):
    """Compare the decision values of two classes, a target or an outlier."""
    model = outcome.model
    if case.classifies and len(model.classes_) > 2:
        return
    Z = data.Z
    values = np.asarray(getattr(model, "decision_function", model.predict)(Z))
    true, rounding, size = decision(case, data, model)
    rounding = rounding + LEEWAY * size
    eps = float(np.finfo(values.dtype).eps)
    if eps > EPS:  # values of float32 points are float32; those of the linear machines are computed in it
        rounding = rounding * (eps / EPS if case.is_linear else 1) + 2 * eps * np.abs(true)
    with np.errstate(over="ignore"):
        rounding = np.asarray(rounding, "float64") + np.finfo(values.dtype).tiny
    inside = np.abs(true) + rounding < np.finfo(values.dtype).max / 1e6
    apart = np.abs(values - true)[inside]
    if not len(apart):
        return
    share = apart / rounding[inside]
    figures.note("difference / rounding", share.max(), case)
    at = int(np.argmax(share))
    found = f"{values[inside][at]:.10g}, truly {true[inside][at]:.10g} (rounding {rounding[inside][at]:.1g})"
    demand(share[at] <= 1, f"decision value {found}")


PROMISE = Promise(
    "decision values",
    check,
    draw,
    fixed=(
        Case(shape="outlier", far=9.0, m=60),
        Case(kernel="sum", shape="clusters", far=8.0),
        Case(kernel="widths", shape="clusters", far=8.0, d=5),
        Case(machine="NuSVC"),
    ),
    examples=10,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_decision_values_are_those_of_the_attributes(number):
    PROMISE.keep(PROMISE.example(number))
