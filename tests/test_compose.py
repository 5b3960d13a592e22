"""The duals of examples/compose.py, read and solved, equal independent solvers at 60 points."""

import importlib.util
from pathlib import Path

import clarabel
import numpy as np
import pytest
from oracles import qp
from scipy import sparse

import symsvm

_SPEC = importlib.util.spec_from_file_location("compose", Path(__file__).parent.parent / "examples" / "compose.py")
compose = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(compose)

M = 60
X, Y, WIDTHS, TASK, BETTER, WORSE = compose.data(M)
GRAM = compose.gaussian(X, X, compose.SIGMA)


def solve(objective, tol=1e-9):
    """Solve by "auto", which must be the decomposition, to an optimum."""
    program = symsvm.compile(objective, "auto")
    assert isinstance(program.solver, symsvm.Decomposition)
    solution = program.run(tol=tol)
    assert solution.certificate.status == "optimal"
    return solution


def check(solution, Q, p, lower, upper, a=None, c=0.0):
    """Compare with Clarabel: the same W, by the plain formula, and the same gradient."""

    def W(v):
        return 0.5 * v @ Q @ v + p @ v

    lam, expected = solution.lam, qp(Q, p, lower, upper, a, c)
    scale = abs(W(expected))
    assert W(lam) == pytest.approx(solution.W, rel=1e-12)
    assert abs(W(lam) - W(expected)) < 1e-8 * scale
    np.testing.assert_allclose(Q @ lam, Q @ expected, atol=1e-6 * np.abs(Q @ expected).max())
    assert (lower <= lam).all()
    assert (lam <= upper).all()


def test_ranking():
    D = GRAM[BETTER] - GRAM[WORSE]
    solution = solve(compose.ranking(X, BETTER, WORSE))
    check(solution, D[:, BETTER] - D[:, WORSE], -np.ones(len(BETTER)), 0.0, compose.C)
    f = GRAM @ (np.bincount(BETTER, solution.lam, M) - np.bincount(WORSE, solution.lam, M))
    np.testing.assert_allclose(solution.decision_function(WORSE[:7], BETTER[:7]), (f[WORSE] - f[BETTER])[:7], atol=1e-9)


def test_smallest_ball():
    solution = solve(compose.smallest_ball(X))
    check(solution, 2 * GRAM, -np.diag(GRAM), 0.0, 1 / (compose.NU * M), np.ones(M), 1.0)
    assert compose.ball_primal(X, solution) == pytest.approx(-solution.W, rel=1e-10)


def test_uncertain_points():
    total, S = WIDTHS[:, None] ** 2 + WIDTHS**2, np.outer(WIDTHS, WIDTHS)
    K = 2 * S / total * np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * total))
    solution = solve(compose.uncertain(X, Y, WIDTHS))
    check(solution, np.outer(Y, Y) * K, -np.ones(M), 0.0, compose.C, Y, 0.0)
    assert compose.uncertain_primal(X, Y, WIDTHS, solution) == pytest.approx(-solution.W, rel=1e-10)


def test_the_decision_function_of_uncertain_points():
    total, S = WIDTHS[:, None] ** 2 + WIDTHS**2, np.outer(WIDTHS, WIDTHS)
    K = 2 * S / total * np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * total))
    solution = solve(compose.uncertain(X, Y, WIDTHS))
    f = K @ (Y * solution.lam) + solution.b
    np.testing.assert_allclose(solution.decision_function(X[:5], WIDTHS[:5]), f[:5], atol=1e-9)


def test_tasks_that_are_unrelated_are_solved_one_by_one():
    solution = solve(compose.many_tasks(X, Y, TASK, np.eye(3)))
    for t in range(3):
        here = np.flatnonzero(TASK == t)
        Q = np.outer(Y[here], Y[here]) * GRAM[np.ix_(here, here)]
        expected = qp(Q, -np.ones(len(here)), 0.0, compose.C)
        np.testing.assert_allclose(Q @ solution.lam[here], Q @ expected, atol=1e-7)


@pytest.mark.parametrize("weights", [(1 / 3, 1 / 3, 1 / 3), (0.7, 0.3, 0.0)])
def test_kernels_with_fixed_weights(weights):
    (d,) = compose.shared(d=np.array(weights))
    K = sum(w * compose.gaussian(X, X, s) for w, s in zip(weights, compose.MULTIPLE, strict=True))
    solution = solve(compose.many_kernels(X, Y, d))
    check(solution, np.outer(Y, Y) * K, -np.ones(M), 0.0, compose.C, Y, 0.0)


def best_weights():
    """The optimum over lam and the weights: minimise t - sum lam, 1/2 q.K_k q <= t for each k, by Clarabel's cones."""
    n = M + 1  # lam and t
    limits = sparse.vstack([sparse.eye(M, n), -sparse.eye(M, n)])
    rows, right = [sparse.csr_matrix(np.append(Y, 0.0)), limits], [np.zeros(1), np.full(M, compose.C), np.zeros(M)]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * M)]
    for s in compose.MULTIPLE:  # |(u, t - 1/2)| <= t + 1/2 with |u|^2 = q.K q
        values, vectors = np.linalg.eigh(compose.gaussian(X, X, s))
        U = (np.sqrt(np.maximum(values, 0.0)) * vectors).T * Y
        block = np.zeros((M + 2, n))
        block[0, -1], block[1:-1, :M], block[-1, -1] = -1.0, -U, -1.0
        rows.append(sparse.csr_matrix(block))
        right.append(np.concatenate([[0.5], np.zeros(M), [-0.5]]))
        cones.append(clarabel.SecondOrderConeT(M + 2))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A, c = sparse.vstack(rows, format="csc"), np.append(-np.ones(M), 1.0)
    solver = clarabel.DefaultSolver(sparse.csc_matrix((n, n)), c, A, np.concatenate(right), cones, settings)
    return -solver.solve().obj_val


def test_weights_of_kernels_that_are_learned():
    solution, d, values, gap = compose.learn_weights(X, Y, rounds=400, tol=1e-9)
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert d.sum() == pytest.approx(1.0, abs=1e-12)
    assert 0 <= gap < 1e-8 * values[-1]
    assert -solution.W == pytest.approx(best_weights(), rel=1e-8)
