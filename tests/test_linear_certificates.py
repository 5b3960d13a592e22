"""Certificates of linear machines where rounding matters: badly scaled points, targets that a constant fits."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from symsvm import LinearSVR
from symsvm.linear import solve_crammer_singer, solve_linear
from symsvm.linear.compensated import compensated_combination, compensated_margins
from symsvm.linear.linear_problem import LinearProblem
from symsvm.linear.rows import Rows

SCALES = {
    "columns from 1e-8 to 1e8": lambda X, rng: X * 10.0 ** rng.uniform(-8, 8, X.shape[1]),
    "far from the origin": lambda X, rng: X + 1e6,
    "farther": lambda X, rng: X + 1e9,
    "one row of 1e6": lambda X, rng: np.vstack([X[:1] * 1e6, X[1:]]),
    "plain": lambda X, rng: X,
}


def exact(array):
    return [[Fraction(float(x)) for x in row] for row in array]


def exact_primal(solution, X, y, C):
    """P at the weights of a solution in rational arithmetic: 1/2 |u|^2 + sum_i C_i max_m (e_im + f_im - f_iy)."""
    W, s = exact(solution.w), Fraction(float(solution.s))
    b = [Fraction(float(x)) for x in (solution.b if solution.b is not None else np.zeros(solution.w.shape[1]))]
    value = sum(x * x for row in [*W, b] for x in row) / 2
    for x, own, c in zip(exact(X), y.tolist(), C.tolist(), strict=True):
        f = [sum(a * W[j][m] for j, a in enumerate(x)) + s * b[m] for m in range(len(b))]
        value += Fraction(c) * max(f[m] + (m != own) - f[own] for m in range(len(b)))
    return value


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("scale", SCALES)
def test_the_primal_of_crammer_singer_is_that_of_its_weights(scale, layout):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, k = 10, 2 + seed % 3
        y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
        X = SCALES[scale](rng.normal(size=(n, 4)), rng)
        C = 10.0 ** rng.uniform(-3, 8) * (rng.random(n) < 0.8)
        C[:k] = C.max() or 1.0
        solution = solve_crammer_singer(layout(X), y, C, max_iter=3000, intercept=seed % 2 == 0)
        certificate = solution.certificate
        P = exact_primal(solution, X, y, C)
        assert abs(Fraction(certificate.primal) - P) <= Fraction(1e-12) * P
        assert certificate.primal - certificate.dual >= -1e-10 * certificate.primal
        assert abs(certificate.primal - certificate.dual - certificate.gap) <= 1e-9 * certificate.primal
        assert (solution.stopped == "tol") <= (certificate.status == "optimal")


def test_compensated_products_are_those_of_rational_arithmetic():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6)) * 10.0 ** rng.uniform(-12, 12, (20, 6))
    u, z = rng.normal(size=(7, 3)) * 1e6, rng.normal(size=(20, 3))
    u[0] -= X[0, 1:] @ u[1:6] / X[0, 0]  # the first scores nearly cancel
    for points in (X, sparse.csr_matrix(X)):
        rows = Rows(points, 0.5)
        A = exact(np.column_stack([X, np.full(20, 0.5)]))
        scores = [[sum(a * x for a, x in zip(row, column, strict=True)) for column in exact(u.T)] for row in A]
        y = np.arange(20) % 3
        margins = [[f - row[own] + (m != own) for m, f in enumerate(row)] for row, own in zip(scores, y, strict=True)]
        assert np.array_equal(compensated_margins(rows, u, y), np.array(margins, dtype="float64"))
        sums = [[sum(a[j] * x for a, x in zip(A, column, strict=True)) for column in exact(z.T)] for j in range(7)]
        assert np.array_equal(compensated_combination(rows, z), np.array(sums, dtype="float64"))


def test_crammer_singer_says_so_where_its_weights_do_not_reach_tol():
    """Points 1e12 from the origin leave no digit of a margin: a certificate that is not optimal comes with a warning."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)) + 1e12, np.arange(20) % 3
    with pytest.warns(ConvergenceWarning):
        solution = solve_crammer_singer(X, y, 1.0, max_iter=200)
    assert solution.stopped != "tol"


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.05])
def test_targets_that_a_constant_fits_are_solved(epsilon):
    """Residuals are rounding errors of one sign: nothing of them may make the dual infeasible or the gap relative to 0."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 200))
        X, y = rng.normal(size=(n, 3)), np.full(n, rng.normal() * 10.0 ** rng.uniform(-3, 3))
        weights = rng.uniform(0, 1, n) * (rng.random(n) < 0.6)
        weights[0] = 1.0
        options = {"loss": "squared_epsilon_insensitive", "penalty": "l1", "epsilon": epsilon}
        options["penalize_intercept"] = False
        found = LinearSVR(**options).fit(X, y, sample_weight=weights)
        for solution in (found.solutions_[0], solve_linear(X, y, weights, **options)):
            assert (solution.stopped, solution.certificate.status) == ("tol", "optimal")
            assert np.abs(solution.w).max() <= 1e-8 and abs(solution.b - y[0]) <= epsilon + 1e-8 * abs(y[0])


def test_a_sum_of_variables_of_nearly_one_sign_is_balanced_to_rounding():
    rng = np.random.default_rng(1)
    for n in (5, 100, 3000):
        rows = Rows(rng.normal(size=(n, 2)), 1.0)
        problem = LinearProblem(
            rows, rng.normal(size=n), 1.0, loss="squared_epsilon_insensitive", penalty="l1", free=True
        )
        z = np.abs(rng.normal(size=n)) * (rng.random(n) < 0.7)
        for tiny in (0.0, 1e-16, 1e-9):
            z[0] = -tiny
            balanced = problem.balance(z)
            assert abs(balanced.sum()) <= 1e-14 * np.abs(balanced).sum()
