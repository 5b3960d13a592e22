"""The order of the rows does not matter: the same optimum, the same decision function."""

import numpy as np
import pytest
from agreement import agree
from cases import Case, Data, build, draw, fit, make
from promise import Promise

LAYOUTS = ("float64", "float32", "fortran", "int", "csr")


def sample(rng, kernels=None):
    """A case whose rows can be taken."""
    return draw(rng, kernels=kernels).but(layout=str(rng.choice(LAYOUTS)))


def check(case, figures):
    """Fit the rows in two orders."""
    data = make(case)
    pairs = not case.is_linear and case.classifies and not case.machine.endswith("ovr")
    options = {"decision_function_shape": "ovo"} if pairs else {}
    order = np.random.default_rng(case.seed).permutation(case.m)
    square = case.kernel == "precomputed"
    X, dense = (A[order][:, order] if square else A[order] for A in (data.X, data.dense))
    Z, dense_Z = (A[:, order] if square else A for A in (data.Z, data.dense_Z))
    y, weight = (None if a is None else a[order] for a in (data.y, data.weight))
    other = Data(X, dense, y, weight, Z, dense_Z)
    outcomes = [fit(build(case, **options), each.X, each.y, each.weight) for each in (data, other)]
    agree(case, figures, (data, outcomes[0]), (other, outcomes[1]))


PROMISE = Promise(
    "order of rows",
    check,
    sample,
    fixed=(Case(log_C=-3.0, class_weight="balanced"), Case(machine="NuSVC", class_weight="balanced", m=41, classes=3)),
    examples=16,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_the_order_of_rows_does_not_matter(number):
    PROMISE.keep(PROMISE.example(number))
