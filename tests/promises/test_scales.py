"""From 1e-150 to 1e150 there is a right answer, or a sentence; never a wrong answer in silence."""

import numpy as np
import pytest
import test_decision_values
import test_true_certificate
from cases import Case, draw
from promise import Promise, demand, started


def sample(rng, kernels=None):
    """A case of an extreme scale, of the points, the targets or C."""
    case = draw(rng, kernels=kernels)
    changes = {"log_scale": round(float(rng.uniform(-150, 150)), 2)}
    if rng.random() < 0.3:
        changes["log_target"] = round(float(rng.uniform(-150, 150)), 2)
    if rng.random() < 0.3:
        changes["log_C"] = round(float(rng.uniform(-100, 100)), 2)
    elif rng.random() < 0.5:
        changes["log_C"] = round(-2 * changes["log_scale"], 2)  # where a linear kernel has an ordinary problem
    return case.but(layout=str(rng.choice(["float64", "csr"])), **changes)


def check(case, figures):
    """Fit; a silent fit has a true certificate, finite attributes, and right decision values."""
    data, outcome = started(case)
    figures.note("refused", 0.0, case)
    if outcome.refusal is not None:
        demand(len(str(outcome.refusal).split()) > 3, f"refused without a sentence: {outcome.refusal!r}")
        return
    if outcome.converged:
        finite = np.isfinite(outcome.model.intercept_).all()
        demand(finite, f"intercept_ {outcome.model.intercept_} in silence")
    test_true_certificate.compare(case, data, outcome, figures)
    if outcome.converged:
        test_decision_values.compare(case, data, outcome, figures)


PROMISE = Promise(
    "scales",
    check,
    sample,
    fixed=(
        Case(kernel="linear", log_scale=150.0),
        Case(kernel="linear", log_scale=-150.0),
        Case(kernel="rbf", log_scale=150.0),
        Case(kernel="rbf", log_scale=-150.0),
        Case(kernel="widths", log_scale=150.0, layout="csr"),
        Case(kernel="widths", log_scale=-150.0),
        Case(machine="LinearSVC", kernel="linear", log_scale=100.0, log_C=-200.0),
        Case(machine="SVR", kernel="rbf", log_target=100.0),
    ),
    examples=8,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_every_scale_is_right_or_refused(number):
    PROMISE.keep(PROMISE.example(number))
