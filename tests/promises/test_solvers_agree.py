"""Both backends and every solver for duals: a certificate that is true, and one optimum where they reach it."""

import pytest
from agreement import agree
from cases import Case, build, draw, fit, make
from promise import Promise, demand
from test_true_certificate import compare

MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "SVC ovr", "SVC, penalised intercept")
SOLVERS = ("qp", "smo", "accelerated-gradient", "projected-gradient", "adagrad", "smo-simplified")


def sample(rng, kernels=None):
    """A small case with another solver or backend; most often the other backend, or an exact solver."""
    case = draw(
        rng, machines=MACHINES, kernels=kernels or ("linear", "RBF", "laplacian", "Polynomial", "sum"), wild=False
    )
    case = case.but(m=min(case.m, 24), tol=1e-3, layout=str(rng.choice(["float64", "csr"])))
    if rng.random() < 0.4:
        return case.but(mode="JAX")
    return case.but(solver=str(rng.choice(SOLVERS, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1])))


def check(case, figures):
    """Fit with the default, and with the other solver or backend."""
    data = make(case)
    first = fit(build(case.but(solver="auto", mode=None)), data.X, data.y, data.weight)
    second = fit(build(case), data.X, data.y, data.weight)
    if second.refusal is not None and first.refusal is None:
        told = str(second.refusal)
        demand(case.solver in told or case.solver.split("-")[0] in told.lower(), f"refused without a reason: {told}")
        return
    if second.refusal is None:
        compare(case, data, second, figures)
    if case.classes == 2 and case.family != "NuSVC":
        agree(case, figures, (data, first), (data, second))


PROMISE = Promise(
    "solvers and backends",
    check,
    sample,
    fixed=(
        Case(mode="JAX", kernel="RBF"),
        Case(solver="qp", kernel="RBF"),
        Case(machine="NuSVC", solver="qp", kernel="RBF"),
    ),
    examples=0,
    share=0.5,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_solvers_and_backends_agree(number):
    PROMISE.keep(PROMISE.example(number))
