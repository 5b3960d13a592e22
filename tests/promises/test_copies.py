"""A weight of k equals k copies of a point, and a weight of 0 a point that is not there."""

import numpy as np
import pytest
from agreement import agree
from cases import Case, Data, build, draw, fit, make
from promise import Promise

LAYOUTS = ("float64", "float32", "fortran", "int")


def sample(rng, kernels=None):
    """A case with integer weights."""
    case = draw(rng, kernels=kernels)
    return case.but(weights=str(rng.choice(["integers", "zeros"])), layout=str(rng.choice(LAYOUTS)))


def check(case, figures):
    """Fit with weights, and with copies."""
    data = make(case)
    options = {"decision_function_shape": "ovo"} if _has_shape(case) else {}
    weighted = fit(build(case, **options), data.X, data.y, data.weight)
    rows = np.repeat(np.arange(case.m), data.weight.astype(int))
    X, dense = _taken(case, data.X, rows), _taken(case, data.dense, rows)
    Z = data.Z[:, rows] if case.kernel == "precomputed" else data.Z
    copied = Data(X, dense, None if data.y is None else data.y[rows], None, Z, np.asarray(Z))
    agree(case, figures, (data, weighted), (copied, fit(build(case, **options), X, copied.y, None)))


def _has_shape(case):
    return not case.is_linear and case.classifies and not case.machine.endswith("ovr")


def _taken(case, A, rows):
    return A[np.ix_(rows, rows)] if case.kernel == "precomputed" else A[rows]


PROMISE = Promise(
    "weights are copies",
    check,
    sample,
    fixed=(
        Case(weights="integers", log_C=-3.0, class_weight="balanced"),
        Case(weights="integers", log_C=-3.0, machine="SVR", kernel="linear"),
        Case(weights="zeros", machine="LinearSVR l1", kernel="linear"),
    ),
    examples=16,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_a_weight_is_as_many_copies(number):
    PROMISE.keep(PROMISE.example(number))
