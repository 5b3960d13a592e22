"""The fast solver under fuzz, against an independent one: slow, and not part of the suite (make fuzz).

Forms, kernels, C from 1e-6 to 1e6, duplicates, constant columns, weights of 0, tiny classes, unscaled columns, starts.
What is asked of every run: the point is feasible, `tol` is said only where float64 agrees, W is the optimum to 1e-6.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from test_decomposition import FORMS, data, reference

from symsvm import RBF, Decomposition, KernelDual, Laplacian, Linear, Polynomial, solve
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.objectives import QuadraticProgram
from symsvm.solvers.decomposition.algorithm import decompose
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters

pytestmark = [pytest.mark.slow, pytest.mark.fuzz]

KERNELS = {
    "rbf": RBF(1.0),
    "narrow": RBF(0.05),
    "linear": Linear(),
    "polynomial": Polynomial(2, coef0=1.0),
    "cubic": Polynomial(3, gamma=0.5, coef0=1.0),
    "laplacian": Laplacian(0.5),
    "composed": RBF(0.7) * Linear() + 0.5,
}
MORE = {
    "svc, random weights": lambda y, t, C: QuadraticProgram.c_svc(y, C * weights(y)),
    "svc, squared, weights": lambda y, t, C: QuadraticProgram.c_svc(y, C * weights(y), squared=True),
    "svc, squared, no intercept": lambda y, t, C: QuadraticProgram.c_svc(y, C, squared=True, intercept=False),
    "svr, weights": lambda y, t, C: QuadraticProgram.svr(t, C * weights(y), 0.1),
    "svr, no tube": lambda y, t, C: QuadraticProgram.svr(t, C, 0.0),
    "one class, weights": lambda y, t, C: QuadraticProgram.one_class(weights(y), 0.4),
    "nu-svr, weights": lambda y, t, C: QuadraticProgram.nu_svr(t, C, 0.6, weights(y)),
}
CASES = FORMS | MORE
# Forms whose bounds do not depend on C.
FREE_OF_C = {"one class", "one class, weights", "nu-svc"}


def weights(y):
    """Weights between 0 and 2, some of them 0, a first one that is not."""
    w = np.random.default_rng(len(y)).choice([0.0, 0.0, 0.3, 1.0, 2.0], len(y))
    w[:2] = 1.0
    return w


problems = st.fixed_dictionaries(
    {
        "form": st.sampled_from(sorted(CASES)),
        "kernel": st.sampled_from(sorted(KERNELS)),
        "m": st.integers(2, 60),
        "seed": st.integers(0, 10**6),
        "log_C": st.floats(-6, 6),
        "tol": st.sampled_from([1e-6, 1e-7, 1e-8]),
        "troubles": st.fixed_dictionaries({name: st.booleans() for name in ("duplicates", "constant", "tiny_class")}),
    }
)


def fuzzed(examples):
    """Settings of a test that solves so many problems."""
    slow = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=examples, suppress_health_check=slow)


def made(form, m, seed, log_C, troubles):
    """The points and the program of an example."""
    X, y, t = data(m, seed, **troubles)
    return X, CASES[form](y, t, 10.0**log_C)


def judge(qp, K, result, tol, *scales):
    """Feasible, honest, optimal: from K and z alone, nothing that the solver says of itself but why it stopped."""
    z, Kz = result.z, K @ qp.weights(result.z)
    W, F = qp.value(Kz, z), qp.gradient(Kz, z)
    b, violation = qp.multipliers(F, z)
    gap, total = qp.gap(F, z, b), np.abs(z).sum()
    assert np.isfinite(W)
    assert (z >= qp.lower).all()
    assert (z <= qp.upper).all()
    assert qp.infeasibility(z) <= 1e-10 * max(1.0, total)
    # Two ways to sum K z differ by this much.
    rounding = 4 * np.finfo("float64").eps * np.abs(K).max() * total
    assert result.stopped in ("tol", "stalled")
    if result.stopped == "tol":
        assert violation <= tol + rounding
    else:
        assert tol < 100 * rounding  # nothing but rounding stops a run
        assert violation <= 100 * rounding
    # What the gap allows, for interior points lose digits where bounds are far away.
    reach = np.where(np.isfinite(qp.upper - qp.lower), qp.upper - qp.lower, 0.0)
    spread = rounding * total + 1e-12 * (1.0 + abs(W)) + 1e-13 * reach.max()
    assert gap >= -spread
    lost = W - min((reference(qp, K, scale) for scale in scales), default=np.inf)
    assert lost <= max(1e-6 * abs(W), gap) + spread
    assert gap <= 2 * max(violation, tol) * (total + reach.sum()) + spread
    event(f"gap within 1e-6 of W: {gap <= 1e-6 * max(1.0, abs(W))}")
    event(f"stopped: {result.stopped}")


# Working sets that are a part of the variables, also of small problems.
SOME = Parameters(whole=0, join=8)


def run(problem, start=None, time_limit=None, parameters=DEFAULTS):
    """Solve an example and judge it; one that runs out of time is judged for being feasible only."""
    problem = dict(problem)
    tol, kernel = problem.pop("tol"), KERNELS[problem.pop("kernel")]
    X, qp = made(**problem)
    K = KernelEvaluator(kernel).block(X, X)
    options = {"time_limit": time_limit, "start": None if start is None else start(qp), "parameters": parameters}
    result = decompose(qp, LocalKernelMatrix(kernel, X), tol=tol, **options)
    if time_limit is not None and result.stopped == "time_limit":
        assert qp.infeasibility(result.z) <= 1e-10 * max(1.0, np.abs(result.z).sum())
        event("out of time")
        return
    C = 1.0 if problem["form"] in FREE_OF_C else 10.0 ** problem["log_C"]
    judge(qp, K, result, tol, 1.0, C**0.5, C)


@fuzzed(2000)
@given(problem=problems)
def test_all_at_once(problem):
    run(problem)


@fuzzed(1500)
@given(problem=problems)
def test_in_working_sets(problem):
    run(problem, parameters=SOME)


@fuzzed(100)
@given(problem=problems, most=st.integers(12, 30))
def test_in_working_sets_that_hold_not_all_free_variables(problem, most):
    run(
        problem, time_limit=2.0, parameters=Parameters(whole=0, join=4, max_free=most)
    )  # a part of the free variables at a time gets on slowly


@fuzzed(700)
@given(
    problem=problems,
    seed=st.integers(0, 10**6),
    log_size=st.floats(-3, 3),
    density=st.sampled_from([0.1, 0.5, 1.0]),
    whole=st.booleans(),
)
def test_from_starts_feasible_or_not(problem, seed, log_size, density, whole):
    rng = np.random.default_rng(seed)

    def start(qp):
        reach = np.minimum(np.where(np.isfinite(qp.upper - qp.lower), qp.upper - qp.lower, 1.0), 1e6)
        return 10.0**log_size * reach * rng.normal(size=qp.n) * (rng.random(qp.n) < density)

    run(problem, start, parameters=DEFAULTS if whole else SOME)


@fuzzed(100)
@given(
    m=st.integers(4, 60),
    seed=st.integers(0, 10**6),
    log_scale=st.floats(0, 6),
    log_C=st.floats(0, 5),
    kernel=st.sampled_from(["linear", "rbf", "polynomial"]),
    whole=st.booleans(),
)
def test_where_float32_alone_goes_wrong(m, seed, log_scale, log_C, kernel, whole):
    """A column that was never scaled, and a large C: right in float64, or it says that it is not."""
    X, y, _ = data(m, seed)
    log_scale /= 2 if kernel == "polynomial" else 1  # its values grow as the fourth power
    X[:, 1] *= 10.0**log_scale
    C, kernel = 10.0**log_C, RBF(10.0 ** (log_scale - 1)) if kernel == "rbf" else KERNELS[kernel]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solver = Decomposition(parameters=DEFAULTS if whole else SOME)
        solution = solve(KernelDual(QuadraticProgram.c_svc(y, C), X, kernel), solver, tol=1e-6, time_limit=3.0)
    certificate, z = solution.certificate, solution.z
    K = KernelEvaluator(kernel).block(X, X)
    rounding = 4 * np.finfo("float64").eps * np.abs(K).max() * np.abs(z).sum()
    assert certificate.infeasibility <= 1e-10 * max(1.0, np.abs(z).sum())
    assert certificate.status in ("optimal", "feasible")
    assert (certificate.status == "optimal") == (certificate.violation <= 1e-6)
    if solution.stopped == "tol":
        assert certificate.status == "optimal"
        qp = QuadraticProgram.c_svc(y, C)
        assert qp.multipliers(qp.gradient(K @ z, z), z)[1] <= 1e-6 + rounding
    else:
        assert solution.stopped in ("stalled", "time_limit")
        assert solution.stopped == "time_limit" or rounding > 1e-8  # nothing but rounding is in the way
    event(solution.stopped)
