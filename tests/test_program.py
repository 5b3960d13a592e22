"""Programs: any objective, the one loop, and every way to stop it."""

import itertools
import os
import subprocess
import sys

import numpy as np
import oracles
import pytensor
import pytensor.tensor as pt
import pytest
from problems import MODES, SOLVERS
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scan import reduce
from pytensor.scan.op import Scan
from pytensor.tensor.math import Dot
from sklearn.exceptions import ConvergenceWarning

from symsvm import CSVC, RBF, Laplacian, Linear, Objective, ProjectedGradient, compile, grad, pair_kernel, solve
from symsvm.compiler.functions import MODES as BACKENDS
from symsvm.compiler.functions import function, resolve_mode
from symsvm.evaluation.spectrum import lambda_max

# Runs end early here, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped .* above tol=:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(2)
M = 6
Q = np.cov(RNG.normal(size=(M, 3 * M))) + 0.1 * np.eye(M)
p = RNG.normal(size=M)
a = RNG.choice([-1.0, 1.0], M)


def quadratic(lam, **constraints):
    return Objective(0.5 * lam @ (Q @ lam) + (p * lam).sum(), variable=lam, is_convex=True, **constraints)


FEASIBLE_SETS = {
    "box and hyperplane": {"lower": 0.0, "upper": 1.0, "equality": (a, 0.0)},
    "shifted hyperplane": {"lower": -0.5, "upper": np.linspace(0.5, 1, M), "equality": (a, 0.25)},
    "box": {"lower": 0.0, "upper": 1.0},
    "half space": {"equality": (a, 0.0)},
    "free": {"lower": -np.inf, "upper": np.inf},
}


def is_enough(name, region, mode):
    """Each compiles for seconds, on Numba for ten: one of the sets with an equality stands for all, and alone on Numba.

    There the accelerated gradient, with the longest of all steps; that of the projected gradient is compiled below, in
    test_solvers and in the README.
    """
    if mode == "NUMBA":
        return region == "box and hyperplane" and name == "accelerated gradient"
    return region not in ("shifted hyperplane", "half space")


CASES = [
    pytest.param(*case, marks=[] if is_enough(*case) else [pytest.mark.slow])
    for case in itertools.product(SOLVERS, FEASIBLE_SETS, MODES)
]


@pytest.mark.parametrize(("name", "region", "mode"), CASES)
def test_solvers_meet_the_optimum(name, region, mode):
    constraints = FEASIBLE_SETS[region]
    lam = pt.tensor("lam", dtype="float64", shape=(M,))
    solution = solve(
        quadratic(lam, **constraints), SOLVERS[name], mode=mode, start=np.ones(M), tol=1e-9, max_iter=20000
    )
    lower, upper = constraints.get("lower", 0.0), constraints.get("upper", np.inf)
    normal, c = constraints.get("equality", (None, 0.0))
    reference = oracles.qp(Q, p, lower, upper, normal, c)
    assert solution.stopped == "tol"
    assert solution.certificate.status == "optimal"
    assert solution.W == pytest.approx(0.5 * reference @ Q @ reference + p @ reference, abs=1e-8)
    np.testing.assert_allclose(solution.lam, reference, atol=1e-5)
    assert len(solution.trace["W"]) == solution.n_iter + 1
    assert solution.W == solution.trace["W"][-1]


def test_a_w_that_is_not_quadratic_is_stationary_until_it_is_known_to_be_convex():
    lam = pt.dvector("lam")
    W = pt.exp(lam).sum() + ((lam - 2.0) ** 4).sum()
    for convex, status in ((None, "stationary"), (True, "optimal")):
        objective = Objective(
            W, variable=lam, lower=0.0, upper=3.0, equality=(np.array([1.0, -1.0]), 0.0), is_convex=convex
        )
        solution = solve(objective, mode="FAST_COMPILE", start=np.zeros(2), tol=1e-7)
        assert solution.certificate.status == status
        # On the hyperplane both coordinates agree: exp(t) + 4 (t - 2)^3 = 0.
        t = solution.lam[0]
        assert np.exp(t) + 4 * (t - 2) ** 3 == pytest.approx(0, abs=1e-6)


@pytest.fixture(scope="module")
def program():
    lam = pytensor.shared(np.full(M, 0.9), name="lam")
    return compile(quadratic(lam, upper=1.0, equality=(a, 0.0)), ProjectedGradient(0.05), mode="FAST_COMPILE")


def is_feasible(solution):
    return solution.certificate.infeasibility < 1e-15 and solution.certificate.status in ("feasible", "optimal")


def test_a_run_that_stops_short_of_tol_says_so(program):
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=2 iterations with a violation of .*Raise max"):
        assert program.run(max_iter=2, tol=1e-9).stopped == "max_iter"
    with pytest.warns(ConvergenceWarning, match="stopped by the callback with a violation of"):
        assert program.run(callback=lambda info: True, tol=1e-9, verbose=1).stopped == "callback"


def test_max_iter(program):
    solution = program.run(tol=1e-9, max_iter=3)
    assert (solution.stopped, solution.n_iter, len(solution.trace["W"])) == ("max_iter", 3, 4)
    assert solution.certificate.status == "feasible"
    assert is_feasible(solution)
    assert is_feasible(program.run(max_iter=0))  # the start itself is projected


def test_callback_stops_and_sees_each_iteration(program):
    seen = []
    solution = program.run(tol=1e-9, callback=lambda info: seen.append(info) or info.iteration == 4)
    assert (solution.stopped, solution.n_iter) == ("callback", 4)
    assert [info.iteration for info in seen] == list(range(5))
    assert [info.W for info in seen] == solution.trace["W"].tolist()
    assert is_feasible(solution)


def test_time_limit(program):
    solution = program.run(tol=1e-12, max_iter=10**9, time_limit=0.0)
    assert (solution.stopped, solution.n_iter) == ("time_limit", 0)
    assert is_feasible(solution)


def test_interrupt_returns_the_point_reached(program):
    def interrupt(info):
        if info.iteration == 2:
            raise KeyboardInterrupt

    solution = program.run(tol=1e-9, callback=interrupt)
    assert (solution.stopped, solution.n_iter) == ("interrupt", 2)
    assert is_feasible(solution)


def test_an_interrupt_inside_a_compiled_function_is_one_outside(program, monkeypatch):
    error = SystemError("returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()

    def steps(first, data):
        yield from itertools.islice(whole(first, data), most)
        raise error

    whole, most = program.steps, 2
    monkeypatch.setattr(program, "steps", steps, raising=False)
    assert program.run(tol=1e-9).stopped == "interrupt"
    most = 0
    with pytest.raises(KeyboardInterrupt):
        program.run(tol=1e-9)
    error.__cause__ = None
    with pytest.raises(SystemError):
        program.run(tol=1e-9)


def test_an_interrupt_inside_the_certificate_does_not_mix_two_points(program, monkeypatch):
    calls = []
    certificate = program.objective.certificate

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return certificate(*args, **kwargs)

    monkeypatch.setattr(program.objective, "certificate", interrupted)
    solution = program.run(tol=1e-9)
    assert (solution.stopped, solution.n_iter) == ("interrupt", 1)
    assert solution.W == solution.certificate.W == solution.trace["W"][-1]


def test_a_step_that_diverges_is_not_called_optimal():
    lam = pt.dvector("lam")
    objective = Objective(((lam - 1) ** 2).sum(), variable=lam, lower=-np.inf, is_convex=True)
    solution = solve(
        objective, ProjectedGradient(10.0), mode="FAST_COMPILE", start=[0.0, 0.5], tol=1e-6, max_iter=10**4
    )
    assert solution.stopped == "diverged"
    assert np.isfinite(solution.lam).all()
    assert solution.certificate.status == "feasible"


def test_the_printed_projection_has_its_feasible_point_beside_it():
    """P then Pi with K the identity converges to (1, s, s), s = (1 + alpha) / (2 + alpha), off the hyperplane."""
    labels, alpha = np.array([1.0, -1.0, -1.0]), 0.5
    lam = pytensor.shared(np.full(3, 0.9), name="lam")
    objective = Objective(0.5 * (lam**2).sum() - lam.sum(), lam, upper=1.0, equality=(labels, 0.0), is_convex=True)
    solver = ProjectedGradient(alpha, projection="paper")
    solution = solve(objective, solver, mode="FAST_COMPILE", max_iter=100)
    s = (1 + alpha) / (2 + alpha)
    np.testing.assert_allclose(solution.lam, [1, s, s])
    assert solution.certificate.status == "infeasible"
    assert abs(labels @ solution.feasible) < 1e-14
    np.testing.assert_allclose(solution.feasible, [1, 0.5, 0.5])


@pytest.mark.parametrize("mode", MODES)
def test_shapes_need_not_be_known(mode):
    """One program for every m, on JAX too: the loops are lifted."""
    lam, X, y = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y")
    program = compile(CSVC(lam, X, y, 1.0, RBF(1.0)), ProjectedGradient(), mode=mode)
    for m in (6, 9):
        labels = np.where(np.arange(m) % 2, 1.0, -1.0)
        points = labels[:, None] + RNG.normal(size=(m, 2))
        solution = program.run(np.zeros(m), tol=1e-6, max_iter=20000, X=points, y=labels)
        assert solution.certificate.status == "optimal"
        assert solution.certificate.gap < 1e-5


def test_labels_other_than_signs_are_refused():
    lam, X, y = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y")
    program = compile(CSVC(lam, X, y, 1.0, RBF(1.0)), ProjectedGradient(0.1), mode="FAST_COMPILE")
    with pytest.raises(ValueError, match=r"y must hold the labels -1 and \+1"):
        program.run(np.zeros(4), X=RNG.normal(size=(4, 2)), y=[0.0, 1.0, 0.0, 1.0])


def test_the_same_run_gives_the_same_bits(program):
    first, second = program.run(tol=1e-6), program.run(tol=1e-6)
    np.testing.assert_array_equal(first.lam, second.lam)
    np.testing.assert_array_equal(first.trace["W"], second.trace["W"])


def test_w_never_rises_below_the_largest_stable_step():
    limit = 2 / lambda_max(lambda v: Q @ v, M)
    assert lambda_max(lambda v: Q @ v, M) == pytest.approx(np.linalg.eigvalsh(Q)[-1], rel=1e-2)
    lam = pt.dvector("lam")
    objective = quadratic(lam, upper=1.0, equality=(a, 0.0))
    solution = solve(objective, ProjectedGradient(0.99 * limit), mode="FAST_COMPILE", start=np.ones(M), tol=1e-9)
    assert (np.diff(solution.trace["W"]) <= 1e-14).all()


def test_free_inputs_are_given_by_name():
    lam, target, C = pt.dvector("lam"), pt.dvector("target"), pt.dscalar("C")
    objective = Objective(((lam - target) ** 2).sum(), variable=lam, upper=C)
    program = compile(objective, ProjectedGradient(0.5), mode="FAST_COMPILE")
    for bound in (1.0, 2.0):  # one compilation serves both
        solution = program.run(np.zeros(2), target=[0.5, 5.0], C=bound)
        np.testing.assert_allclose(solution.lam, [0.5, bound])
    with pytest.raises(TypeError, match="'C' is missing"):
        program.run(np.zeros(2), target=[1.0, 2.0])
    with pytest.raises(TypeError, match="'sigma' is unknown"):
        program.run(np.zeros(2), target=[1.0, 2.0], C=1.0, sigma=2.0)


def test_grad_takes_one_variable_or_several():
    x, y = pt.dscalar("x"), pt.dscalar("y")
    gradients = [grad(x * y, x), *grad(x * y, [x, y])]
    assert function([x, y], gradients, mode="FAST_COMPILE")(2.0, 3.0) == [3.0, 3.0, 2.0]


def test_bad_objectives_say_what_is_wrong():
    lam = pt.dvector("lam")
    W = (lam**2).sum()
    for arguments, error, message in [
        ({"W": lam}, ValueError, "W must be a scalar graph, got 1 dimension"),
        ({"variable": np.zeros(2)}, TypeError, "variable must be a symbolic vector"),
        ({"variable": pt.dmatrix()}, TypeError, "variable must be a symbolic vector"),
        ({"lower": 2.0, "upper": 1.0}, ValueError, "lower must not exceed upper"),
        ({"upper": np.nan}, ValueError, "upper must be numbers, got NaN"),
        ({"upper": np.ones((2, 2))}, ValueError, "upper must have at most 1 dimension"),
        ({"equality": np.ones(3)}, TypeError, r"equality must be a pair \(a, c\)"),
        ({"equality": (1.0, 0.0)}, ValueError, "a of equality must be a vector"),
        ({"equality": (np.array([1.0, np.nan]), 0.0)}, ValueError, "a of equality must be numbers, got NaN"),
        ({"equality": (np.ones(2), np.ones(2))}, ValueError, "c of equality must be one number"),
        ({"upper": "high"}, TypeError, "upper must be numbers, got 'high'"),
        ({"W": pt.dvector("x").sum()}, ValueError, "W must depend on the variable lam"),
        ({"variable": lam * 2}, TypeError, "variable must be an input or a shared variable"),
        ({"variable": pt.ivector("i")}, TypeError, "variable must be a symbolic vector of floats"),
    ]:
        with pytest.raises(error, match=message):
            Objective(**{"W": W, "variable": lam} | arguments)
    objective = Objective(W, variable=lam)
    program = compile(objective, ProjectedGradient(0.1), mode="FAST_COMPILE")
    with pytest.raises(TypeError, match="start must be given: lam is an input"):
        program.run()
    with pytest.raises(ValueError, match="start must be a finite vector"):
        program.run([np.nan])
    with pytest.raises(ValueError, match="tol must be positive"):
        program.run([1.0], tol=0)
    with pytest.raises(ValueError, match="max_iter must be at least 0"):
        program.run([1.0], max_iter=-1)
    for name in (None, "tol"):
        with pytest.raises(ValueError, match="every free input of an objective needs a name of its own"):
            compile(Objective(W * pt.dscalar(name), variable=lam), ProjectedGradient(0.1))
    bounded = compile(Objective(W, variable=lam, upper=np.ones(3)), ProjectedGradient(0.1), mode="FAST_COMPILE")
    with pytest.raises(ValueError, match="a constraint has 3 entries, but start has 2"):
        bounded.run([1.0, 1.0])
    for arguments, message in [
        ({"time_limit": "5"}, "time_limit must be a number"),
        ({"callback": 3}, "callback must be a function"),
    ]:
        with pytest.raises(TypeError, match=message):
            program.run([1.0], **arguments)
    with pytest.raises(TypeError, match="or a solver such as"):
        compile(objective, 3)
    with pytest.raises(ValueError, match="solver must be one of .*, got 'pg'"):
        compile(objective, "pg")
    with pytest.raises(TypeError, match="objective must be a symsvm Objective"):
        compile(W, ProjectedGradient(0.1))
    for arguments, message in [
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"alpha": 1.0, "projection": "none"}, "projection must be one of 'exact', 'paper', got 'none'"),
        ({"projection": "paper"}, "alpha=None finds the step size from W and needs beta=0"),
    ]:
        with pytest.raises(ValueError, match=message):
            ProjectedGradient(**arguments)


def test_unknown_and_missing_backends(monkeypatch):
    with pytest.raises(ValueError, match="mode must be one of NUMBA, JAX, .* got 'CUDA'"):
        resolve_mode("CUDA")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"mode='JAX' needs JAX.*pip install 'symsvm\[jax\]'"):
        resolve_mode("JAX")
    assert resolve_mode(resolve_mode("NUMBA")) is resolve_mode(None)
    assert set(BACKENDS) >= {"NUMBA", "JAX"}


def test_the_next_process_finds_the_compiled_graph(monkeypatch):
    x = pt.dvector("x")
    for hits in (0, 1):  # the first may find it as well
        monkeypatch.setattr("symsvm.compiler.functions._COMPILED", {})
        compiled = function([x], pt.sqrt(x**2 + 3.0).sum())
        assert compiled(np.ones(4)) == 8.0
        stats = compiled.function.vm.jit_fn.stats
        assert sum(stats.cache_hits.values()) + sum(stats.cache_misses.values()) == 1
        assert sum(stats.cache_hits.values()) >= hits


def svc(m, C=1.0, kernel=None, dtype="float64"):
    """A symbolic C-SVC and data for it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(m, 3))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=m))
    lam, Xs, ys = pt.vector("lam", dtype=dtype), pt.matrix("X", dtype=dtype), pt.vector("y", dtype=dtype)
    return CSVC(lam, Xs, ys, C, kernel or RBF(1.5)), {"start": np.zeros(m), "X": X, "y": y}


@pytest.mark.parametrize("mode", [*MODES, pytest.param("FAST_COMPILE", marks=pytest.mark.slow)])
def test_a_gram_matrix_that_does_not_fit_is_tiled_and_nothing_else_changes(mode):
    objective, data = svc(1200)
    whole = compile(objective, ProjectedGradient(), mode=mode)
    tiled = compile(objective, ProjectedGradient(), mode=mode, memory=2**22)
    first, second = (program.run(**data, max_iter=20) for program in (whole, tiled))
    np.testing.assert_allclose(second.lam, first.lam, atol=1e-9)
    assert second.W == pytest.approx(first.W, rel=1e-10)
    lam, values = np.zeros(1200), [data["X"], data["y"], *whole._values([])]
    assert whole.functions.fits(lam, values)
    assert not tiled.functions.fits(lam, values)
    graphs = {fits: tiled.functions.plan(fits)[2] for fits in (True, False)}
    ops = {fits: {type(node.op).__name__ for node in toposort(graphs[fits])} for fits in graphs}
    assert "KernelMatvec" in ops[False]
    assert "KernelMatvec" not in ops[True]


def test_a_small_problem_keeps_its_gram_matrix_in_any_memory():
    objective, data = svc(50)
    program = compile(objective, ProjectedGradient(), mode="FAST_COMPILE", memory=2**22)
    assert program.functions.fits(data["start"], [data["X"], data["y"], *program._values([])])


def test_memory_must_hold_a_tile():
    objective, _ = svc(5)
    with pytest.raises(ValueError, match=r"memory must hold at least one tile, 4194304 bytes, got 1000\."):
        compile(objective, ProjectedGradient(), memory=1000)
    with pytest.raises(TypeError, match="memory must be an integer"):
        compile(objective, ProjectedGradient(), memory="1G")


# Numba compiles four graphs for it, half a minute; its loops in float32 are those of every fit of the fast solver.
@pytest.mark.parametrize("mode", ["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_float32_computes_in_float32_and_certifies_in_float64(mode):
    objective, data = svc(60)
    single = compile(objective, ProjectedGradient(), mode=mode, dtype="float32")
    double = compile(objective, ProjectedGradient(), mode=mode)
    first, second = (program.run(**data, tol=1e-2, max_iter=5000) for program in (single, double))
    assert first.lam.dtype == "float32"
    assert {v.dtype for v in ancestors(single.functions.step) if hasattr(v, "dtype")} <= {
        "float32",
        "int8",
        "int64",
        "bool",
    }
    assert first.certificate.status == second.certificate.status == "optimal"
    assert first.W == pytest.approx(second.W, rel=1e-3)
    # The certificate is that of float64 arithmetic at the point, not what float32 saw.
    W, _ = double.exact(first.lam, [data["X"], data["y"]])
    assert first.certificate.W == pytest.approx(W, rel=1e-12)
    assert first.certificate.gap >= 0


def test_float32_does_not_claim_what_float64_denies():
    objective, data = svc(60)
    solution = compile(objective, ProjectedGradient(), mode="FAST_COMPILE", dtype="float32").run(
        **data, tol=1e-9, max_iter=300
    )
    assert solution.certificate.status == "feasible"
    assert solution.stopped == "max_iter"


def test_a_loop_that_stays_computes_in_another_type():
    """A product is no sum, and no pass lifts it; it is looped over in float32, and certified in float64."""
    lam = pt.vector("lam")
    product = reduce(
        lambda x, acc: acc * x, sequences=[lam], outputs_info=[pt.constant(1.0, dtype="float64")], return_updates=False
    )
    objective = Objective(((lam - 0.3) ** 2).sum() + 0.01 * product, variable=lam, upper=1.0)
    program = compile(objective, ProjectedGradient(), mode="FAST_COMPILE", dtype="float32")
    loops = [v.owner.op for v in ancestors(program.functions.step) if v.owner and isinstance(v.owner.op, Scan)]
    assert {v.dtype for loop in loops for v in loop.inner_inputs if v.dtype.startswith("float")} == {"float32"}
    solution = program.run([0.5, 0.9, 0.1], tol=1e-3, max_iter=5)
    assert (solution.lam.dtype, solution.certificate.status) == ("float32", "stationary")
    v = solution.lam.astype("float64")
    assert solution.W == pytest.approx(((v - 0.3) ** 2).sum() + 0.01 * v.prod(), rel=1e-12)
    with pytest.raises(ValueError, match="dtype must be one of"):
        compile(objective, ProjectedGradient(), dtype="int8")


def test_objectives_of_one_structure_share_one_compilation():
    machines, found = set(), []
    for C, sigma in ((1.0, 0.5), (10.0, 2.5)):
        objective, data = svc(40, C, RBF(sigma))
        program = compile(objective, ProjectedGradient(), mode="FAST_COMPILE")
        machines.add(id(program.functions))
        found.append(program.run(**data, max_iter=3).W)
    alone, _ = svc(40, pt.constant(C), RBF(pt.constant(sigma)))
    other = compile(alone, ProjectedGradient(), mode="FAST_COMPILE").run(**data, max_iter=3)
    assert found[1] == pytest.approx(other.W, rel=1e-12)  # the numbers are its own
    assert found[0] != found[1]
    assert len(machines) == 1
    objective, _ = svc(40, kernel=Linear())
    assert id(compile(objective, ProjectedGradient(), mode="FAST_COMPILE").functions) not in machines
    assert id(compile(svc(40)[0], ProjectedGradient(0.1), mode="FAST_COMPILE").functions) not in machines


def test_functions_of_one_structure_share_one_compilation():
    x = pt.vector("x")
    first, second = (function([x], (x * number).sum(), mode="FAST_COMPILE") for number in (3.0, 5.0))
    assert first.function is second.function
    assert (first(np.ones(2)), second(np.ones(2))) == (6.0, 10.0)
    shared = pytensor.shared(np.array([1.0, 2.0]), name="w", shape=(2,))
    dotted = function([x], pt.dot(x, shared), mode="FAST_COMPILE")
    assert dotted(np.ones(2)) == 3.0
    shared.set_value(np.array([5.0, 5.0]))
    assert dotted(np.ones(2)) == 10.0


def test_a_number_that_a_formula_needs_is_not_lifted():
    """log(1 + exp(x)) is stable only for who knows the 1."""
    x = pt.scalar("x")
    assert function([x], pt.log(1.0 + pt.exp(x)), mode="NUMBA")(1000.0) == 1000.0


def test_a_kernel_without_tiles_says_what_it_needs():
    farthest = pair_kernel(lambda x, z: pt.exp(-abs(x - z).max()))
    objective, data = svc(900, kernel=farthest)
    program = compile(objective, ProjectedGradient(), mode="FAST_COMPILE", memory=2**22)
    with pytest.raises(
        ValueError,
        match=r"memory=4194304 is too small: this objective needs an array of \d+ bytes .* Raise memory, or write",
    ):
        program.run(**data)


def test_float32_keeps_the_one_product_of_the_quadratic_form():
    objective, _ = svc(30)
    for dtype in ("float32", "float64"):
        machine = compile(objective, ProjectedGradient(0.1), mode="FAST_COMPILE", dtype=dtype).functions
        _, _, step = machine.plan(True)
        assert sum(isinstance(node.op, Dot) for node in toposort(step)) == 1


def test_a_sum_over_features_needs_room_for_the_matrix_alone():
    """The distances of the Laplacian are (m, m, d) numbers to PyTensor, and none of them to the loops of the kernel."""
    objective, data = svc(600, kernel=Laplacian(0.5))
    values = [data["X"], data["y"], 0.5, 1.0]
    fits = {
        mode: compile(objective, ProjectedGradient(), mode=mode, memory=2**22).functions.fits(data["start"], values)
        for mode in ("NUMBA", "FAST_COMPILE")
    }
    assert fits == {"NUMBA": True, "FAST_COMPILE": False}


def test_a_platform_that_jax_does_not_have_is_named():
    pytest.importorskip("jax")
    code = (
        "import pytensor.tensor as pt\n"
        "from symsvm.compiler.functions import function\n"
        "x = pt.dvector('x')\n"
        "try:\n"
        "    function([x], 2.0 * x, mode='JAX')\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    env = {**os.environ, "JAX_PLATFORMS": "rocm"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert run.stdout.startswith("mode='JAX' found no device with JAX_PLATFORMS=rocm, which "), run.stderr
    assert run.stdout.endswith("Set JAX_PLATFORMS=cpu, install a JAX for the device, or use mode='NUMBA'.\n")
