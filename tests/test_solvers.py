"""Every solver by its name: the optimum of an independent solver on every problem; the findings of the documents."""

import sys

import numpy as np
import pytensor.tensor as pt
import pytest
from optima import CASES, DUALS, INFOS, KERNEL, PAIRS, REFUSED, TARGETS, X, Y, meets, stated
from problems import KERNELS, MODES
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MinMaxScaler

from symsvm import (
    CSVC,
    RBF,
    SVC,
    KernelDual,
    Linear,
    Objective,
    PrimalRisk,
    QuadraticProgram,
    SimplifiedSMO,
    compile,
    grad,
    hard_margin,
    list_solvers,
    soft_margin,
    solve,
)
from symsvm.compiler.functions import function
from symsvm.solvers.registry import SOLVERS
from symsvm.solvers.solver import PROBLEMS as KINDS
from symsvm.solvers.textbook.simplified_smo import random_index

# Runs end early here, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped .* above tol=:sklearn.exceptions.ConvergenceWarning")

NAMES = [info.name for info in list_solvers("dual")]
# Those with a JAX test of their own, to the optimum, are in test_accelerated_gradient and test_equations.
ELSEWHERE = ("accelerated-gradient", "projected-gradient")
# Numba compiles these for half a minute each: there they are tests that are slow.
LONG = ("adagrad", "smo-simplified")
STEPS = [info.name for info in list_solvers("dual") if "jax" in info.backends and info.name not in ELSEWHERE]


def meets_the_optimum(name, case, mode):
    """A solver ends at the optimum of a problem it lists, to the accuracy its info states, or names another solver."""
    objective, tol = CASES[case].make(), stated(name, case)
    if (name, case) in REFUSED:
        with pytest.raises(ValueError, match=rf"{REFUSED[name, case]}.*use '"):
            compile(objective, name, mode=mode)
        return
    most = 20_000 if name == "adagrad" else None
    options = {"max_iter": 100_000 if CASES[case].kind == "dual" else most}
    CASES[case].check(compile(objective, name, mode=mode).run(tol=tol, **options), tol)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "name", "case"),
    [(mode, name, case) for mode in MODES for name, case in PAIRS if mode.lower() in INFOS[name].backends],
)
def test_solvers_x_problems(mode, name, case):
    """All of them, on every backend that its info names: some minutes of compilation."""
    meets_the_optimum(name, case, mode)


# What does not meet an optimum on both backends elsewhere in the suite, without long compilations.
QUICK = [
    *((name, case, "JAX") for name, case in PAIRS if (name, case) in REFUSED),
    ("gradient-descent", "squared_epsilon_insensitive, free bias", "JAX"),
    ("stochastic-subgradient", "epsilon_insensitive, embedded bias", "JAX"),
    *((name, case, "NUMBA") for name, case in PAIRS if name == "qp" and CASES[case].kind != "dual"),
    ("adagrad", "hinge, free bias", "JAX"),
    ("adagrad", "squared regression, relaxed", "JAX"),
    ("smo", "no intercept", "JAX"),
    ("decomposition", "a quadratic W", "NUMBA"),
    ("perceptron", "two blobs", "JAX"),
    ("kernel-perceptron", "two blobs, over a kernel", "JAX"),
]


@pytest.mark.parametrize(("name", "case", "mode"), QUICK)
def test_some_solvers_x_problems(name, case, mode):
    meets_the_optimum(name, case, mode)


def test_every_kind_of_problem_and_every_solver_has_a_pair():
    assert {name for name, _ in PAIRS} == {info.name for info in list_solvers()}
    assert {CASES[case].kind for _, case in PAIRS} == set(KINDS)
    assert set(REFUSED) <= set(PAIRS)


@pytest.mark.parametrize("dual", ["C-SVC", "C-SVC, a C each", "squared hinge", "one class"])
@pytest.mark.parametrize("name", NAMES)
def test_each_solver_meets_the_optimum(name, dual):
    qp = DUALS[dual]
    # Numba compiles the longest of all steps in test_program, and those of SMO below.
    mode = "JAX" if name in ("accelerated-gradient", "smo", *LONG) else None
    meets(solve(KernelDual(qp, X, KERNEL), name, mode=mode, tol=1e-3, max_iter=100_000), qp, 1e-3)


# Steps after which runs are compared point by point. Later on, SMO meets ties: after a step that no bound cuts short,
# both variables of the pair violate optimality alike, and rounding decides which of them is in the next pair.
FEW = 6


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in STEPS]
)
def test_each_step_is_the_same_on_jax(name):
    objective = KernelDual(DUALS["C-SVC"], X, KERNEL)
    first, second = (solve(objective, name, mode=mode, max_iter=FEW) for mode in MODES)
    np.testing.assert_allclose(second.point, first.point, atol=1e-8)
    meets(solve(objective, name, mode="JAX", tol=1e-3, max_iter=100_000), DUALS["C-SVC"], 1e-3)


@pytest.mark.parametrize("dual", ["no intercept", "SVR", "nu-SVC", "nu-SVR"])
@pytest.mark.parametrize("name", ["qp", "decomposition"])
def test_the_reference_agrees_with_the_fast_solver(name, dual):
    meets(solve(KernelDual(DUALS[dual], X, KERNEL), name, tol=1e-6), DUALS[dual], 1e-6)


@pytest.mark.parametrize(
    ("name", "dual"),
    [
        ("smo", QuadraticProgram.c_svc(Y[:12], 1.0, intercept=False)),
        ("smo", QuadraticProgram.nu_svr(TARGETS[:12], 1.0, 0.4)),
        ("smo", QuadraticProgram.svr(TARGETS[:12], 1.0, 0.1)),
        ("smo-simplified", QuadraticProgram.nu_svc(Y[:12], 0.4)),
    ],
)
def test_smo_with_no_equality_with_two_and_with_two_variables_a_point(name, dual):
    """LIBSVM's rule: a pair of one group; a single variable where there is none."""
    meets(solve(KernelDual(dual, X[:12], KERNEL), name, mode="FAST_COMPILE", tol=1e-2), dual, 1e-2)


@pytest.mark.parametrize("name", ["smo", "smo-simplified"])
def test_smo_in_the_papers_symbols(name):
    """CSVC over lam and y, and KernelDual over z = y lam: the same pairs, the same optimum."""
    lam, A, y = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y")
    program, dual = (
        compile(CSVC(lam, A, y, 1.0, KERNEL), name, mode="FAST_COMPILE"),
        QuadraticProgram.c_svc(Y[:12], 1.0),
    )
    objective = KernelDual(dual, X[:12], KERNEL)
    few = program.run(np.zeros(12), X=X[:12], y=Y[:12], max_iter=FEW)
    np.testing.assert_allclose(few.lam * Y[:12], solve(objective, name, max_iter=FEW).z, atol=1e-8)
    solution, other = program.run(np.zeros(12), X=X[:12], y=Y[:12], tol=1e-2), solve(objective, name, tol=1e-2)
    meets(other, dual, 1e-2)
    assert solution.certificate.status == "optimal"
    assert abs(solution.W - other.W) <= solution.certificate.gap + other.certificate.gap


def test_simplified_smo_ends_when_passes_change_nothing():
    objective = KernelDual(DUALS["C-SVC"], X, KERNEL)
    solution = solve(objective, SimplifiedSMO(tol=0.3, max_passes=2), tol=1e-9)
    assert (solution.stopped, solution.certificate.status) == ("rest", "feasible")
    assert 1e-9 < solution.certificate.violation <= 0.6 + 1e-9
    seeds = [solve(objective, SimplifiedSMO(seed=seed)).trace["W"] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(seeds[0], seeds[1])
    assert len(seeds[0]) != len(seeds[2]) or (seeds[0] != seeds[2]).any()
    with pytest.raises(ValueError, match="this dual has none: use 'smo', .* or 'qp'"):
        solve(KernelDual(DUALS["no intercept"], X, KERNEL), "smo-simplified", mode="FAST_COMPILE")


def test_draws_are_even_and_the_same_everywhere():
    n = pt.dvector("n")
    graph = random_index(n, pt.constant(7.0), 50)
    first, second = (np.asarray(function([n], graph, mode=mode)(np.arange(20_000.0))) for mode in ("NUMBA", "JAX"))
    np.testing.assert_array_equal(first, second)
    counts = np.bincount(first, minlength=50)
    assert ((counts - 400) ** 2 / 400).sum() < 90  # chi-squared of 49 degrees: 1 in 3000
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03


def test_an_indefinite_kernel_ends_stationary_or_is_refused():
    objective = KernelDual(QuadraticProgram.c_svc(Y, 1.0), X, KERNELS["sigmoid"][0])
    solution = solve(objective, "smo", mode="FAST_COMPILE")
    assert solution.certificate.status == "stationary"
    strong = KernelDual(QuadraticProgram.c_svc(Y, 1.0), X, -1.0 * Linear())
    with pytest.raises(ValueError, match="positive semi-definite matrix, and this one has the eigenvalue"):
        solve(strong, "qp")


# ---- margins


def test_soft_margin_is_the_dual_of_the_dual():
    solution = soft_margin(X, Y, 1.0)
    dual = solve(KernelDual(QuadraticProgram.c_svc(Y, 1.0), X, Linear()), "qp", tol=1e-6)
    assert solution.certificate.status == "optimal"
    assert solution.W == pytest.approx(dual.W, abs=1e-7)
    np.testing.assert_allclose(solution.theta, X.T @ (solution.lam * Y), atol=1e-6)
    primal = 0.5 * solution.theta @ solution.theta + solution.xi.sum()
    assert primal == pytest.approx(solution.certificate.primal, abs=1e-6)


def test_hard_margin_or_the_proof_that_there_is_none():
    apart = X + 3 * Y[:, None]
    solution = hard_margin(apart, Y)
    assert (solution.stopped, solution.certificate.status) == ("tol", "optimal")
    assert 0 <= solution.certificate.gap + 1e-12 < 1e-8
    assert (Y * (apart @ solution.theta + solution.b)).min() > 1 - 1e-8
    none = hard_margin(X, Y)
    assert (none.stopped, none.certificate.status, none.theta) == ("infeasible", "infeasible", None)
    # A point in both convex hulls.
    hulls = [none.lam[Y == sign] @ X[Y == sign] for sign in (1, -1)]
    np.testing.assert_allclose(hulls[0], hulls[1], atol=1e-6)
    assert none.lam.min() >= 0
    assert none.lam[Y > 0].sum() == pytest.approx(1.0, abs=1e-6)


def test_a_missing_qp_solver_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(ImportError, match=r"needs Clarabel: pip install symsvm\[qp\]\.$"):
        soft_margin(X, Y, 1.0)


# ---- names


def test_infos_describe_every_solver():
    infos = list_solvers()
    names = [info.name for info in infos]
    assert {"decomposition", "smo", "smo-simplified", "qp", "accelerated-gradient", "projected-gradient"} <= set(names)
    assert len(set(names)) == len(names) == len(SOLVERS)
    table = str(infos)
    for info in infos:
        assert info.name in table
        assert set(info.problems) <= set(KINDS)
        assert set(info.backends) <= {"numba", "jax"}
        assert all((info.equation, info.reference, info.accuracy))
    assert {info.name for info in list_solvers("primal")} < set(names)
    with pytest.raises(ValueError, match="problem must be one of 'dual'"):
        list_solvers("dula")


class Descent:
    """A solver that does not derive from `Solver` and has only what the protocol asks for."""

    structure = "a solver of a user"

    def start(self):
        return (0.4,)

    def init(self, objective, lam):
        return (objective.project(lam),)

    def step(self, objective, lam, alpha):
        g = grad(objective.value, lam)
        return (objective.project(lam - alpha * g), alpha), objective.value, g


def test_a_solver_of_a_user():
    lam = pt.dvector("lam")
    objective = Objective(((lam - 3.0) ** 2).sum(), lam, upper=2.0, is_convex=True)
    solution = solve(objective, Descent(), mode="FAST_COMPILE", start=[0.0, 0.5])
    assert solution.certificate.status == "optimal"
    np.testing.assert_allclose(solution.lam, 2.0)

    class Half:
        structure, start = "half", Descent.start

    with pytest.raises(TypeError, match="which has no init and no step"):
        compile(objective, Half())


def test_unknown_names_and_unsuitable_pairs_say_what_to_do():
    objective = KernelDual(QuadraticProgram.c_svc(Y, 1.0), X, KERNEL)
    with pytest.raises(ValueError, match="got 'smo-simplifed'; did you mean 'smo-simplified'\\?"):
        solve(objective, "smo-simplifed")
    with pytest.raises(ValueError, match="'smo' is for dual problems, and this is a primal .*: use 'adagrad'"):
        solve(PrimalRisk(X, Y), "smo")
    with pytest.raises(ValueError, match="use 'adagrad'"):
        compile(PrimalRisk(X, Y), SimplifiedSMO())
    v = pt.dvector("v")
    with pytest.raises(ValueError, match="'smo-simplified' is for dual problems"):
        solve(Objective((v**4).sum(), v), "smo-simplified", start=[1.0])
    with pytest.raises(ValueError, match="solver must be one of 'auto', 'decomposition'"):
        SVC(solver="fastest").fit(X, Y)


@pytest.mark.parametrize("name", ["smo", "qp"])
def test_estimators_take_names(name):
    model = SVC(kernel=RBF(0.8), solver=name).fit(X, Y)
    exact = SVC(kernel=RBF(0.8), tol=1e-6).fit(X, Y)
    assert model.certificate_.status == "optimal"
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=5e-3)


# ---- findings of the documents


def test_iris_with_a_gaussian_kernel_by_smo_and_qp():
    """The test of Meoli (2021): 97 %, one class against the rest, features in [0, 1]; SMO and QP predict alike."""
    A, y = load_iris(return_X_y=True)
    A = MinMaxScaler().fit_transform(A)
    train, test, y_train, y_test = train_test_split(A, y, train_size=0.75, random_state=1)
    predictions = {}
    for name in ("smo", "qp", "decomposition"):
        model = OneVsRestClassifier(SVC(kernel="rbf", gamma="scale", solver=name)).fit(train, y_train)
        predictions[name] = model.predict(test)
    assert np.mean(predictions["smo"] == y_test) >= 0.97
    for name in predictions:
        assert np.mean(predictions[name] == predictions["qp"]) >= 0.97
