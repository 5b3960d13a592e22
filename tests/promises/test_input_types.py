"""The same numbers give the same model: sparse or dense, any order of memory, lists, frames, float32 and integers."""

import sys

import numpy as np
import pytest
from agreement import agree, raw_values
from cases import UNTIMED, Case, Data, build, draw, fit, make
from promise import Promise, demand
from scipy import sparse


def sample(rng, kernels=None):
    """Dense points; the other types are made of them."""
    case = draw(rng, kernels=kernels, wild=False)
    return case.but(layout=str(rng.choice(["float64", "int", "float32"])))


def check(case, figures):
    """Fit the numbers as float64, and in another type."""
    data = make(case)
    dense = data.dense
    if not np.isfinite(dense).all():
        return
    options = dict(UNTIMED)
    if not case.is_linear and case.classifies and not case.machine.endswith("ovr"):
        options["decision_function_shape"] = "ovo"
    plain = Data(dense, dense, data.y, data.weight, data.dense_Z, data.dense_Z)
    first = fit(build(case, **options), dense, data.y, data.weight)
    if first.timed_out:
        return
    for name, X in same_bits(dense).items():
        outcome = fit(build(case, **options), X, data.y, data.weight)
        demand((outcome.refusal is None) == (first.refusal is None), f"{name}: refused, or not: {outcome.refusal}")
        if outcome.timed_out:  # under load; what the clock ended at another iteration has other bits
            return
        if first.refusal is None:
            Z = X[: len(dense)] if name == "frame" else dense
            one, two = raw_values(case, first.model, dense), raw_values(case, outcome.model, Z)
            demand(np.array_equal(one, two), f"{name}: other bits, by up to {np.abs(one - two).max():.2g}")
    for name, X in same_numbers(case, data).items():
        outcome = fit(build(case, **options), X, data.y, data.weight)
        try:
            agree(case.but(layout="float64"), figures, (plain, first), (plain._replace(X=X), outcome))
        except AssertionError as error:
            raise type(error)(f"{name}: {error}") from None


def same_bits(dense):
    """Other forms of one array of float64."""
    import pandas

    read_only = dense.copy()
    read_only.flags.writeable = False
    return {
        "Fortran": np.asfortranarray(dense),
        "list": dense.tolist(),
        "strided": np.repeat(dense, 2, axis=0)[::2],
        "read-only": read_only,
        "swapped bytes": dense.astype(">f8"),
        "object": dense.astype(object),
        "frame": pandas.DataFrame(dense, columns=[f"c{j}" for j in range(dense.shape[1])]),
    }


def same_numbers(case, data):
    """The points in other types, of the same value."""
    found = {}
    if case.kernel not in ("precomputed", "function"):
        found |= {"CSR": sparse.csr_matrix(data.dense), "CSC": sparse.csc_matrix(data.dense)}
        found["CSR array"] = sparse.csr_array(data.dense)
    if case.layout != "float64" and case.kernel != "precomputed":
        found[case.layout] = data.X
    return found


PROMISE = Promise(
    "types of input",
    check,
    sample,
    fixed=(Case(shape="offset", far=8.0), Case(machine="OneClassSVM", shape="offset", far=6.0, kernel="rbf")),
    examples=8,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_the_type_of_the_input_does_not_matter(number):
    PROMISE.keep(PROMISE.example(number))


def test_a_fit_that_the_clock_ends_has_no_bits_to_compare(monkeypatch):
    untimed = build

    def timed(case, **options):
        models.append(untimed(case, **options))
        return models[-1].set_params(time_limit=1e-9) if len(models) == 7 else models[-1]  # of the object array

    case, models = Case(shape="clusters", far=3.0, log_C=2.0), []
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[__name__], "build", timed)
        PROMISE.keep(case)
    data = make(case)
    whole, cut = (fit(build(case, time_limit=t), data.X, data.y, None) for t in (10.0, 1e-9))
    assert cut.timed_out
    assert not whole.timed_out
    assert not np.array_equal(whole.model.decision_function(data.X), cut.model.decision_function(data.X))
