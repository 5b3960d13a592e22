"""A row's decision value has the same bits alone, in any batch, and in any order."""

import numpy as np
import pytest
from cases import Case, draw
from promise import Promise, demand, started


def check(case, figures):
    """Predict rows in several batches."""
    data, outcome = started(case)
    if outcome.refusal is not None:
        return
    model, n = outcome.model, len(data.dense_Z)
    decide = getattr(model, "decision_function", model.predict)
    whole = decide(data.Z)
    rng = np.random.default_rng(case.seed)
    order = rng.permutation(n)
    batches = {
        "another order": order,
        "half of the rows": order[: n // 2],
        "two rows": order[:2],
        "forty times as many": np.tile(np.arange(n), 40),
        "one row": order[:1],
    }
    for name, rows in batches.items():
        figures.note("batches", 0.0, case)
        part = decide(taken(data.Z, rows))
        here, there = np.asarray(part, "float64"), np.asarray(whole, "float64")[rows]
        same = (here == there) | (np.isnan(here) & np.isnan(there))  # NaN where values of K overflow
        found = np.abs(here - there).max()
        demand(same.all(), f"{name}: {np.sum(~same)} of {same.size} values differ, by up to {found:.2g}")
        demand((model.predict(taken(data.Z, rows)) == model.predict(data.Z)[rows]).all(), f"{name}: other predictions")
    for i in range(n):
        alone = decide(taken(data.Z, np.array([i])))
        demand(np.array_equal(alone[0], whole[i], equal_nan=True), f"alone: {alone[0]!r} for {whole[i]!r}")


def taken(A, rows):
    """Some rows of any layout."""
    if isinstance(A, list):
        return [A[i] for i in rows]
    return A.iloc[rows] if hasattr(A, "iloc") else A[rows]


PROMISE = Promise(
    "batches",
    check,
    draw,
    fixed=(
        Case(kernel="linear"),
        Case(kernel="rbf"),
        Case(kernel="sum"),
        Case(kernel="widths", d=5, layout="csr"),
        Case(kernel="widths", d=3, layout="float32"),
        Case(machine="LinearSVC", kernel="linear", d=5),
    ),
    examples=16,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_rows_do_not_see_each_other(number):
    PROMISE.keep(PROMISE.example(number))
