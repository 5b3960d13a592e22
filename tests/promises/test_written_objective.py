"""A W written by hand, as sums over pairs, has the optimum that the estimator finds."""

import numpy as np
import pytensor
import pytest
from cases import Case, draw, make
from fitted import problems
from promise import Promise, demand, started

import symsvm
from symsvm import sum_over

KERNELS = ("RBF", "widths", "laplacian widths", "laplacian", "Polynomial", "sum", "product", "pair")


def sample(rng, kernels=None):
    """A machine of one problem over a kernel with an expression."""
    case = draw(rng, machines=["SVC", "SVC without intercept", "SVR", "OneClassSVM"], kernels=KERNELS)
    return case.but(classes=2, layout="float64", class_weight=None, solver="auto")


def check(case, figures):
    """Write W, solve it, compare it with the estimator's."""
    data, outcome = started(case)
    if outcome.refusal is not None or not outcome.converged:
        return
    (problem,) = problems(case, data, outcome.model)
    objective = written(case, data, outcome.model)
    solution = symsvm.solve(objective, tol=case.tol, time_limit=1.0)
    said, true = solution.certificate, problem.truth
    if said.status not in ("optimal", "stationary") or solution.stopped == "time_limit":
        return
    allowed = true.gap + 2 * true.of_W + true.of_gap + 1e-9 * abs(true.W)
    allowed += said.gap if said.gap is not None else said.violation * 2 * true.total
    figures.note("W, difference / allowed", abs(said.W - true.W) / allowed if allowed else 0, case)
    demand(abs(said.W - true.W) <= allowed, f"W {said.W:.12g}, of the estimator {true.W:.12g} ({allowed:.2g} allowed)")


def written(case, data, model):
    """The dual of a machine, as a user writes it."""
    weight = np.ones(case.m) if data.weight is None else data.weight
    used = np.flatnonzero(weight)
    weight, kernel = weight[used], model.kernel_
    X = pytensor.shared(data.dense[used], name="X")
    n = len(used)
    if case.family == "SVR":
        lam = pytensor.shared(np.zeros(2 * n), name="lam")
        y = pytensor.shared(data.y[used].astype("float64"), name="y")
        beta = lam[:n] - lam[n:]
        pairs = _double_sum(beta, X, kernel)
        W = 0.5 * pairs + model.epsilon * lam.sum() - (y * beta).sum()
        sides = np.repeat([1.0, -1.0], n)
        return symsvm.Objective(W, lam, 0.0, np.tile(model.C * weight, 2), (sides, 0.0), is_convex=kernel.is_psd)
    lam = pytensor.shared(np.zeros(n), name="lam")
    if case.family == "OneClassSVM":
        equality = np.ones(n), model.nu * weight.sum()
        return symsvm.Objective(0.5 * _double_sum(lam, X, kernel), lam, 0.0, weight, equality, is_convex=kernel.is_psd)
    signs = np.where(data.y[used] == model.classes_[1], 1.0, -1.0)
    y = pytensor.shared(signs, name="y")
    W = 0.5 * _double_sum(lam * y, X, kernel) - lam.sum()
    equality = None if case.machine.endswith("without intercept") else (y, 0)
    return symsvm.Objective(W, lam, 0.0, model.C * weight, equality, is_convex=kernel.is_psd)


def _double_sum(q, X, kernel):
    def inner(x_i):
        return sum_over(lambda q_j, x_j: q_j * kernel.pair(x_i, x_j), q, X)

    return sum_over(lambda q_i, x_i: q_i * inner(x_i), q, X)


PROMISE = Promise(
    "written objective",
    check,
    sample,
    fixed=(Case(kernel="RBF"), Case(machine="SVR", kernel="RBF"), Case(kernel="widths", shape="clusters", far=6.0)),
    examples=3,
    share=0.5,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_a_written_objective_is_the_estimators(number):
    PROMISE.keep(PROMISE.example(number))


def test_the_machines_are_those_that_are_written():
    assert make(Case()).y is not None
