"""Equalities that share variables and linear inequalities: projections, multipliers and runs against other solvers."""

import clarabel
import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.gradient import grad
from pytensor.graph.traversal import toposort
from scipy import sparse
from scipy.optimize import linprog

from symsvm import AcceleratedGradient, AdaGrad, Objective, ProjectedGradient, compile, explain
from symsvm.compiler.functions import function
from symsvm.objectives.certificate import PolytopeCertifier, certify, infeasibility
from symsvm.objectives.multipliers import Multipliers, check_feasible
from symsvm.objectives.polytope import PolytopeProjection, nearest_point, polytope_section
from symsvm.objectives.projections import Pi, box_section

# Runs end early here, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped .* above tol=:sklearn.exceptions.ConvergenceWarning")

KINDS = ("equalities", "inequalities", "both", "redundant", "one inequality")


def rows_of(kind, m, rng):
    """Rows A and G with right-hand sides that a point of the box [0, 1] satisfies."""
    n_equal = {"equalities": 3, "inequalities": 0, "one inequality": 0}.get(kind, 2)
    n_below = {"equalities": 0, "one inequality": 1}.get(kind, 3)
    x = np.clip(rng.normal(0.5, 0.5, size=m), 0, 1)
    A, G = rng.normal(size=(n_equal, m)), rng.normal(size=(n_below, m))
    slack = rng.random(n_below) * (rng.random(n_below) < 0.5)
    if kind == "redundant":  # an equality twice, an inequality twice and one with the equality's normal
        A[1], G[1], G[2], slack[2] = -2 * A[0], 3 * G[0], A[0], 0.0
        slack[1] = 3 * slack[0]
    return A, A @ x, G, G @ x + slack


def interior_point(H, q, lower, upper, A, c, G, h):
    """Minimise 1/2 x.Hx + q.x under all constraints by Clarabel."""
    eye, below, above = np.eye(len(q)), np.isfinite(upper), np.isfinite(lower)
    rows, limits = np.vstack([A, G, eye[below], -eye[above]]), np.concatenate([c, h, upper[below], -lower[above]])
    cones = [clarabel.ZeroConeT(len(c))] * bool(len(c)) + [clarabel.NonnegativeConeT(len(limits) - len(c))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    rows = sparse.csc_matrix(rows)
    found = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(H)), q, rows, limits, cones, settings).solve()
    return np.array(found.x)


def smallest_residual(g, below, above, A, G, active):
    """The whole linear program for b and mu, in units of the gradient without multipliers."""
    unit = max(np.max(-g, where=below, initial=0.0), np.max(g, where=above, initial=0.0)) or 1.0
    M = np.vstack([A, G])
    left = np.vstack([-M.T[below], M.T[above]])
    left = np.column_stack([left, -np.ones(len(left))])
    bounds = [(None, None)] * len(A) + [(0, None if each else 0) for each in active] + [(0, None)]
    cost = np.append(np.zeros(len(M)), 1.0)
    return unit * linprog(cost, left, np.concatenate([g[below], -g[above]]) / unit, bounds=bounds).fun


def quadratic(kind, m, seed, rank=None):
    """A problem with an optimum at some bounds, and the arguments of an `Objective`."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(rank or m, m)) / np.sqrt(m)
    H, q = B.T @ B + 0.1 * np.eye(m), rng.normal(size=m)
    A, c, G, h = rows_of(kind, m, rng)
    lam = pt.vector("lam")
    constraints = {"equality": (A, c)} if len(A) else {}
    constraints |= {"inequality": (G, h) if len(G) > 1 else (G[0], h[0])} if len(G) else {}
    W = 0.5 * lam @ (pt.constant(H) @ lam) + (q * lam).sum()
    objective = Objective(W, lam, upper=1.0, is_convex=True, **constraints)
    expected = interior_point(H, q, np.zeros(m), np.ones(m), A, c, G, h)
    return objective, expected, lambda x: H @ x + q, (A, c, G, h)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [4, 30, 500])
def test_the_projection_is_that_of_an_interior_point_method(kind, m):
    for seed in range(8 if m < 500 else 1):
        rng = np.random.default_rng(seed)
        A, c, G, h = rows_of(kind, m, rng)
        lower, upper = np.where(rng.random(m) < 0.2, -np.inf, 0.0), np.where(rng.random(m) < 0.2, np.inf, 1.0)
        scale = 10 ** rng.normal(size=m) if seed % 2 else np.ones(m)
        v = rng.normal(0.5, 3, size=m)
        M, r = np.vstack([A, G]), np.concatenate([c, h])
        p, nu = nearest_point(v, lower, upper, scale, M, r, len(A), np.zeros(len(r)))
        assert infeasibility(p, lower, upper, (A, c) if len(A) else None, (G, h) if len(G) else None) < 1e-10
        # The conditions that define it: the form of the minimiser, signs, complementarity.
        np.testing.assert_allclose(p, np.clip(v - scale * (nu @ M), lower, upper), atol=1e-9)
        assert np.all(nu[len(A) :] >= 0)
        assert np.all(np.abs(np.minimum(nu, r - M @ p)[len(A) :]) < 1e-9)
        expected = interior_point(np.diag(1 / scale), -v / scale, lower, upper, A, c, G, h)
        assert np.sum((p - v) ** 2 / scale) <= np.sum((expected - v) ** 2 / scale) * (1 + 1e-7) + 1e-7


@pytest.mark.parametrize("size", [1e-3, 1e6])
def test_the_projection_of_points_near_and_far_is_exact(size):
    rng = np.random.default_rng(1)
    A, c, G, h = rows_of("both", 50, rng)
    M, r, ones = np.vstack([A, G]), np.concatenate([c, h]), np.ones(50)
    p, _ = nearest_point(size * rng.normal(size=50), 0 * ones, ones, ones, M, r, 2, np.zeros(5))
    assert infeasibility(p, 0.0, 1.0, (A, c), (G, h)) < 1e-12
    again, _ = nearest_point(p, 0 * ones, ones, ones, M, r, 2, np.zeros(5))
    np.testing.assert_allclose(again, p, atol=1e-12)


def test_rows_without_entries_and_infinite_limits_do_nothing():
    rng, ones = np.random.default_rng(2), np.ones(20)
    A, c, G, h = rows_of("both", 20, rng)
    v = rng.normal(size=20)
    plain, _ = nearest_point(v, 0 * ones, ones, ones, np.vstack([A, G]), np.append(c, h), 2, np.zeros(5))
    M = np.vstack([A, 0 * A[:1], G, G[:1] - 1.0, 0 * A[:1]])
    r = np.concatenate([c, [0.0], h, [np.inf], [1.0]])
    p, nu = nearest_point(v, 0 * ones, ones, ones, M, r, 3, np.zeros(8))
    np.testing.assert_allclose(p, plain, atol=1e-14)
    assert nu[[2, 6, 7]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA", "JAX"])
def test_the_projection_and_its_gradient_are_the_same_on_every_backend(mode):
    rng = np.random.default_rng(3)
    A, c, G, h = rows_of("both", 30, rng)
    M, r, ones, y = np.vstack([A, G]), np.append(c, h), np.ones(30), rng.normal(size=30)
    scale, value = 10 ** rng.normal(size=30), rng.normal(0.5, 1, size=30)
    v = pt.vector("v")
    p = polytope_section(v, M, r, 2, 1.0, scale)
    found, gradient = function([v], [p, grad((p * y).sum(), v)], mode=mode)(value)
    expected = nearest_point(value, 0 * ones, ones, scale, M, r, 2, np.zeros(5))[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)

    def along(x):
        return nearest_point(x, 0 * ones, ones, scale, M, r, 2, np.zeros(5))[0] @ y

    steps = 1e-6 * np.eye(30)
    differences = [(along(value + step) - along(value - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, differences, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_violation_is_the_optimum_of_the_linear_program(kind, seed):
    """At a feasible point with the given coordinates at bounds, and for gradients far from and near to stationary."""
    rng = np.random.default_rng(seed)
    m = 60
    A, c, G, h = rows_of(kind, m, rng)
    lam, _ = nearest_point(
        rng.normal(0.5, 2, size=m), np.zeros(m), np.ones(m), np.ones(m), np.vstack([A, G]), np.append(c, h), len(A),
        np.zeros(len(A) + len(G)),
    )  # fmt: skip
    active = h - G @ lam <= 1e-12
    b, mu = rng.normal(size=len(A)), rng.random(len(G)) * active
    equality, inequality = (A, c) if len(A) else None, (G, h) if len(G) else None
    for noise in (1.0, 1e-3, 1e-6):
        outward = np.where(lam == 0, rng.random(m), np.where(lam == 1, -rng.random(m), 0.0))
        g = outward - b @ A - mu @ G + noise * rng.normal(size=m)
        found = certify(lam, 0.0, g, 0.0, 1.0, equality, inequality, tol=1e-3, is_convex=True)
        s = g + (0 if found.b is None else found.b @ A) + (0 if found.mu is None else found.mu @ G)
        below, above = lam < 1, lam > 0
        # The multipliers have this residual, are of the right sign, and no others have a smaller one.
        own = max(np.max(-s, where=below, initial=0.0), np.max(s, where=above, initial=0.0))
        assert found.infeasibility < 1e-12
        if len(A) or active.any():
            np.testing.assert_allclose(own, found.violation, rtol=1e-9)
        if found.mu is not None:
            assert np.all(found.mu >= 0)
            assert not found.mu[~active].any()
        expected = smallest_residual(g, below, above, A, G, active)
        np.testing.assert_allclose(found.violation, expected, rtol=1e-4, atol=1e-6)
        every = np.append(np.ones(len(A), dtype=bool), active)
        _, least, most = Multipliers(np.vstack([A, G]), len(A)).estimate(g, below, above, every)
        assert least * (1 - 1e-9) <= found.violation <= most * (1 + 1e-9)
        assert found.status == ("optimal" if found.violation <= 1e-3 else "feasible")


def test_a_multiplier_belongs_to_an_active_inequality_only():
    """lam = (1, 1) minimises W under lam_1 + lam_2 <= 2; under <= 3 the same point is not stationary."""
    lam, g, row = np.ones(2), -np.ones(2), np.ones(2)
    active = certify(lam, 0.0, g, 0.0, 9.0, None, (row, 2.0), tol=1e-6, is_convex=True)
    assert (active.status, active.mu.round(12).tolist(), active.violation) == ("optimal", [1.0], 0.0)
    slack = certify(lam, 0.0, g, 0.0, 9.0, None, (row, 3.0), tol=1e-6, is_convex=True)
    assert (slack.status, slack.mu.tolist(), slack.violation) == ("feasible", [0.0], 1.0)
    wrong = certify(lam, 0.0, -g, 0.0, 9.0, None, (row, 2.0), tol=1e-6, is_convex=True)
    assert (wrong.status, wrong.violation) == ("feasible", 1.0)
    outside = certify(lam, 0.0, g, 0.0, 9.0, None, (row, 1.5), tol=1e-6, is_convex=True)
    assert (outside.status, outside.infeasibility) == ("infeasible", 0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [6, 60])
def test_the_gradient_solver_and_qp_meet_the_optimum(kind, m):
    for seed in range(3):
        objective, expected, gradient, (A, _, G, h) = quadratic(kind, m, seed)
        solution = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE").run(np.zeros(m), tol=1e-8)
        whole = compile(objective, "qp").run(tol=1e-7)
        for found in (solution, whole):
            assert (found.stopped, found.certificate.status) == ("tol", "optimal")
            np.testing.assert_allclose(found.lam, expected, atol=2e-6)
            active = h - G @ found.lam <= 1e-10
            violation = smallest_residual(gradient(found.lam), found.lam < 1, found.lam > 0, A, G, active)
            assert violation <= found.certificate.violation * (1 + 1e-4) + 1e-7


def test_large_problems():
    objective, expected, _, _ = quadratic("both", 500, 0, rank=100)
    found = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE").run(np.zeros(500), tol=1e-6, max_iter=3000)
    whole = compile(objective, "qp").run(tol=1e-6)
    assert found.certificate.status == whole.certificate.status == "optimal"
    np.testing.assert_allclose(found.lam, expected, atol=1e-4)
    np.testing.assert_allclose(whole.lam, expected, atol=1e-6)


@pytest.mark.parametrize("solver", [ProjectedGradient(), AdaGrad()], ids=["projected", "adagrad"])
def test_other_gradient_solvers_take_the_constraints(solver):
    objective, expected, _, _ = quadratic("both", 20, 1)
    found = compile(objective, solver, mode="FAST_COMPILE").run(np.zeros(20), tol=1e-4, max_iter=20000)
    assert found.certificate.status == "optimal"
    np.testing.assert_allclose(found.lam, expected, atol=1e-3)


@pytest.mark.parametrize("mode", ["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_compiled_steps_meet_the_optimum(mode):
    objective, expected, _, _ = quadratic("both", 40, 2)
    found = compile(objective, AcceleratedGradient(), mode=mode).run(np.zeros(40), tol=1e-8)
    assert found.certificate.status == "optimal"
    np.testing.assert_allclose(found.lam, expected, atol=1e-6)


def test_float32_is_certified_in_float64():
    objective, expected, _, _ = quadratic("both", 40, 2)
    found = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE", dtype="float32").run(np.zeros(40), tol=1e-3)
    assert found.lam.dtype == "float32"
    assert found.certificate.status == "optimal"
    np.testing.assert_allclose(found.lam, expected, atol=1e-2)


def test_a_run_that_stops_early_has_the_smallest_residual():
    objective, _, gradient, (A, _, G, h) = quadratic("both", 40, 3)
    violations = []
    found = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE").run(
        np.zeros(40), tol=1e-9, max_iter=10, callback=lambda info: violations.append(info.violation)
    )
    active = h - G @ found.lam <= 1e-10
    expected = smallest_residual(gradient(found.lam), found.lam < 1, found.lam > 0, A, G, active)
    np.testing.assert_allclose(found.certificate.violation, expected, rtol=1e-5)
    assert found.certificate.status == "feasible"
    assert found.certificate.violation <= violations[-1]  # an upper bound while the point is far from optimal


@pytest.mark.parametrize("with_equality", [False, True])
def test_an_inequality_that_the_box_implies_changes_nothing(with_equality):
    rng = np.random.default_rng(4)
    m = 30
    B, q, a, G = rng.normal(size=(m, m)), rng.normal(size=m), rng.normal(size=m), rng.normal(size=(3, m))
    lam = pt.vector("lam")
    W = 0.5 * ((pt.constant(B) @ lam) ** 2).sum() + (q * lam).sum()
    equality = {"equality": (a, 0.3)} if with_equality else {}
    limits = np.maximum(G, 0).sum(axis=1) + 0.1  # the most that G lam can be, and more
    runs = []
    for each in ({}, {"inequality": (G, limits)}):
        objective = Objective(W, lam, upper=1.0, is_convex=True, **equality, **each)
        runs.append(compile(objective, AcceleratedGradient(), mode="JAX").run(np.zeros(m), tol=1e-6))
    plain, implied = runs
    assert plain.n_iter == implied.n_iter
    np.testing.assert_allclose(implied.lam, plain.lam, atol=0 if not with_equality else 1e-9)  # of rounding alone
    np.testing.assert_allclose(implied.certificate.violation, plain.certificate.violation, atol=1e-8)
    assert implied.certificate.mu.tolist() == [0, 0, 0]
    if with_equality:
        assert implied.b == pytest.approx(plain.b, abs=1e-8)


def test_permuted_and_scaled_rows_give_the_same_point():
    rng = np.random.default_rng(5)
    A, c, G, h = rows_of("both", 25, rng)
    lam, q = pt.vector("lam"), rng.normal(size=25)
    W = ((lam - q) ** 2).sum()
    first = compile(Objective(W, lam, upper=1.0, equality=(A, c), inequality=(G, h), is_convex=True), "qp").run()
    order, s = [2, 0, 1], np.array([1e-3, 1.0, 1e3])
    others = {"equality": (-10 * A[::-1], -10 * c[::-1]), "inequality": ((s[:, None] * G)[order], (s * h)[order])}
    second = compile(Objective(W, lam, upper=1.0, is_convex=True, **others), "qp").run()
    np.testing.assert_allclose(second.lam, first.lam, atol=1e-9)
    assert first.certificate.status == second.certificate.status == "optimal"


# No point has a sum of 3 in a box whose corners sum to 2; no point is on two parallel hyperplanes.
INFEASIBLE = {
    "box": {"inequality": (-np.ones(2), -3.0)},
    "parallel": {"equality": (np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([1.0, 3.0]))},
    "both": {"equality": (np.ones(2), 1.0), "inequality": (-np.eye(2), np.array([-0.6, -0.6]))},
}


@pytest.mark.parametrize("name", INFEASIBLE)
@pytest.mark.parametrize("solver", ["accelerated-gradient", "projected-gradient", "qp"])
def test_infeasible_constraints_are_refused(name, solver):
    lam = pt.vector("lam", shape=(2,))
    objective = Objective(((lam - 2.0) ** 2).sum(), lam, upper=1.0, is_convex=True, **INFEASIBLE[name])
    start = {} if solver == "qp" else {"start": np.zeros(2)}
    with pytest.raises(ValueError, match=r"the constraints are infeasible: no point between lower and upper"):
        compile(objective, solver, mode="FAST_COMPILE").run(**start)


def test_feasible_constraints_with_a_single_point_are_not_refused():
    corner = np.array([[1.0, 1.0], [1.0, -1.0]])
    check_feasible(0.0, 1.0, corner, np.array([2.0, 0.0]), 2)
    lam = pt.vector("lam")
    objective = Objective((lam**2).sum(), lam, upper=1.0, equality=(corner, np.array([2.0, 0.0])), is_convex=True)
    found = compile(objective, "accelerated-gradient", mode="FAST_COMPILE").run(np.zeros(2))
    assert found.lam.tolist() == [1.0, 1.0]
    assert found.certificate.status == "optimal"


def test_rows_that_share_no_variable_are_projected_as_before():
    """Constant rows by the graph of box sections alone; symbolic ones give the same bits."""
    rng = np.random.default_rng(6)
    members = rng.integers(0, 3, size=40)
    A = np.where(members == np.arange(2)[:, None], rng.normal(size=40), 0.0)
    c = A @ rng.random(40)
    v, rows = pt.vector("v"), pt.matrix("A", shape=(2, None))
    nearest = Pi(v, 1.0)
    for k in range(2):
        section = box_section(v, pt.constant(A)[k], 1.0, c=pt.constant(c)[k])
        nearest = pt.switch(pt.neq(pt.constant(A)[k], 0), section, nearest)
    constant = Objective((v**2).sum(), v, upper=1.0, equality=(A, c))
    symbolic = Objective((v**2).sum(), v, upper=1.0, equality=(rows, c))
    assert (constant.rows_overlap, constant.has_shared_constraints, symbolic.rows_overlap) == (False, False, None)
    graph = constant.project(v)
    assert not any(isinstance(node.op, PolytopeProjection) for node in toposort([graph]))
    value = rng.normal(size=40)
    expected = function([v], nearest, mode="FAST_COMPILE")(value)
    assert np.array_equal(function([v], graph, mode="FAST_COMPILE")(value), expected)
    of_rows = function([v, rows], symbolic.project(v), mode="FAST_COMPILE")
    assert np.array_equal(of_rows(value, A), expected)
    shared = A + 0.1
    found = of_rows(value, shared)
    assert infeasibility(found, 0.0, 1.0, (shared, c)) < 1e-12


def test_symbolic_rows_take_the_values_of_a_run():
    rng = np.random.default_rng(7)
    lam, y = pt.vector("lam"), pt.vector("y")
    rows = pt.stack([y, pt.ones_like(y)])
    q = rng.normal(size=12)
    objective = Objective(((lam - q) ** 2).sum(), lam, upper=1.0, equality=(rows, np.array([0.0, 3.0])), is_convex=True)
    value = np.where(rng.random(12) < 0.5, 1.0, -1.0)
    found = compile(objective, "accelerated-gradient", mode="FAST_COMPILE").run(np.zeros(12), y=value, tol=1e-9)
    whole = compile(objective, "qp").run(y=value, tol=1e-7)
    expected = interior_point(
        2 * np.eye(12), -2 * q, np.zeros(12), np.ones(12), np.stack([value, np.ones(12)]), np.array([0.0, 3.0]),
        np.zeros((0, 12)), np.zeros(0),
    )  # fmt: skip
    for each in (found, whole):
        assert each.certificate.status == "optimal"
        np.testing.assert_allclose(each.lam, expected, atol=1e-7)


def test_an_equality_and_an_inequality_do_not_share_a_compilation():
    lam, row = pt.vector("lam"), np.ones(3)
    W = ((lam - 0.1) ** 2).sum()
    equal, below = Objective(W, lam, equality=(row, 2.0)), Objective(W, lam, inequality=(row, 2.0))
    ends = [compile(each, AcceleratedGradient(), mode="FAST_COMPILE").run(np.zeros(3)).lam for each in (equal, below)]
    np.testing.assert_allclose(ends, [[2 / 3] * 3, [0.1] * 3], atol=1e-3)


def test_qp_takes_an_equality_over_some_of_the_variables():
    lam = pt.vector("lam")
    W = ((lam - np.array([3.0, 1.0, 0.5])) ** 2).sum()
    objective = Objective(W, lam, upper=2.0, equality=(np.array([1.0, -1.0, 0.0]), 0.0), is_convex=True)
    found = compile(objective, "qp").run(tol=1e-6)
    np.testing.assert_allclose(found.lam, [2.0, 2.0, 0.5], atol=1e-8)
    assert found.certificate.status == "optimal"


def test_what_is_refused():
    lam, two = pt.vector("lam"), np.ones((2, 3))
    W = (lam**2).sum()
    with pytest.raises(TypeError, match=r"inequality must be a pair \(a, c\) for a\.lam <= c"):
        Objective(W, lam, inequality=3.0)
    with pytest.raises(ValueError, match="c of inequality must be one number for each row"):
        Objective(W, lam, inequality=(two, 1.0))
    with pytest.raises(ValueError, match="the number of inequalities, the rows of a, must be known"):
        Objective(W, lam, inequality=(pt.matrix("G"), pt.vector("h")))
    objective = Objective(W, lam, inequality=(two, np.ones(2)))
    with pytest.raises(ValueError, match="projection='exact'"):
        compile(objective, ProjectedGradient(0.1, projection="paper"), mode="FAST_COMPILE")
    program = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE")
    with pytest.raises(ValueError, match="a constraint has 3 entries, but start has 4"):
        program.run(np.zeros(4))
    with pytest.raises(ValueError, match=r"one entry per variable, got \[3, 4\]"):
        Objective(W, lam, equality=(np.ones(4), 1.0), inequality=(two, np.ones(2)))
    with pytest.raises(TypeError, match="'qp' needs a W that is quadratic in lam: use 'accelerated-gradient'"):
        compile(Objective((lam**4).sum(), lam, inequality=(two, np.ones(2))), "qp").run()
    with pytest.raises(
        ValueError, match=r"eigenvalue -2: use 'accelerated-gradient', which ends at a stationary point"
    ):
        compile(Objective(-W, lam, upper=1.0, inequality=(two, np.ones(2))), "qp").run()
    with pytest.raises(ValueError, match="memory=100 does not hold"):
        compile(objective, "qp", memory=100).run()
    with pytest.raises(TypeError, match="qp takes neither a start nor a callback"):
        compile(objective, "qp").run(np.zeros(3))


def test_a_point_where_the_gradient_is_not_finite_has_diverged():
    certifier = PolytopeCertifier(0.0, 1.0, None, (np.ones((1, 2)), np.ones(1)), 1e-3, True)
    assert certifier(np.zeros(2), np.inf, np.full(2, np.nan)).status == "diverged"


def test_repr_and_explain_name_the_inequality():
    lam = pt.vector("lam")
    W = (lam**2).sum()
    assert repr(Objective(W, lam, inequality=(np.ones(3), 2.0))) == "Objective(W of lam, 0 <= lam <= inf, g.lam <= 2)"
    several = Objective(W, lam, upper=1.0, equality=(np.ones(3), 1.0), inequality=(np.eye(3), np.ones(3)))
    assert repr(several) == "Objective(W of lam, 0 <= lam <= 1, a.lam = 1, G lam <= vector of 3)"
    assert "G lam <= vector of 3" in str(explain(several))
    assert several.has_shared_constraints
