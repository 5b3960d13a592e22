"""The inner loops: SMO on a matrix, on the candidates alone, and Newton's step for few of them."""

import numpy as np
import pytest

from symsvm.solvers.decomposition.small_newton import CUT, NONE, WHOLE, small_newton
from symsvm.solvers.decomposition.smo import BLOCK, candidates
from symsvm.solvers.decomposition.subproblem import descend


def kernel(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def offsets(z, lower, upper, group, groups, dtype):
    """0 where a variable may rise (may fall) in its group, else inf (-inf)."""
    up, low = np.full((groups, len(z)), np.inf, dtype), np.full((groups, len(z)), -np.inf, dtype)
    here = np.arange(len(z))
    up[group, here] = np.where(z < upper, 0, np.inf)
    low[group, here] = np.where(z > lower, 0, -np.inf)
    return up, low


class Problem:
    """A C-SVC, padded to whole blocks; with two groups, the dual of a nu-SVC."""

    def __init__(self, n, C, *, groups=1, dtype="float32"):
        rng = np.random.default_rng(0)
        size = -(-n // BLOCK) * BLOCK
        self.n, self.groups = n, groups
        self.K = np.zeros((size, size), dtype)
        X = rng.normal(size=(n, 2))
        self.K[:n, :n] = kernel(X, 1.0)
        y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
        self.lower, self.upper, self.z, self.F = np.zeros((4, size))
        self.lower[:n], self.upper[:n] = np.where(y > 0, 0, -C), np.where(y > 0, C, 0)
        self.group = np.zeros(size, "int64")
        if groups == 1:
            self.F[:n] = -y
        else:
            self.group[:n] = y < 0
            for sign in (-1, 1):
                self.z[np.flatnonzero(y == sign)[:10]] = 0.5 * C * sign
            self.F += self.K.astype("float64") @ self.z
        self.up, self.low = offsets(self.z, self.lower, self.upper, self.group, groups, dtype)
        self.up[:, n:], self.low[:, n:] = np.inf, -np.inf

    def solve(self, eps, most_time=1e12):
        ways = np.diagonal(self.K).copy(), self.up, self.low, 1e-12
        return descend(self.K, self.F, self.z, self.lower, self.upper, *ways, eps, most_time, True)

    def violation(self):
        n, worst = self.n, 0.0
        F, z = self.F[:n], self.z[:n]
        for g in range(self.groups):
            here = self.group[:n] == g
            rises, falls = here & (z < self.upper[:n]), here & (z > self.lower[:n])
            worst = max(worst, F[falls].max() - F[rises].min())
        return worst


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("groups", "C"), [(1, 0.1), (1, 30.0), (2, 0.1)])
def test_the_violation_falls_below_what_steps_in_float32_leave(groups, C, dtype):
    problem = Problem(1500, C, groups=groups, dtype=dtype)
    F, z = problem.F.copy(), problem.z.copy()
    steps, spent, violation = problem.solve(1e-6)
    assert steps > 0
    assert spent > 0
    assert violation <= 1e-6
    assert problem.violation() <= 1.2e-6
    change = problem.K.astype("float64") @ (problem.z - z)
    np.testing.assert_allclose(problem.F, F + change, atol=1e-12 * (1 + np.abs(problem.z).sum()))
    assert (problem.lower <= problem.z).all()
    assert (problem.z <= problem.upper).all()
    for g in range(groups):
        here = problem.group == g
        assert abs(problem.z[here].sum() - z[here].sum()) <= 1e-11 * (1 + np.abs(problem.z).sum())
    up, low = offsets(problem.z, problem.lower, problem.upper, problem.group, groups, dtype)
    assert (problem.up[:, : problem.n] == up[:, : problem.n]).all()
    assert (problem.low[:, : problem.n] == low[:, : problem.n]).all()


def test_in_parts_it_is_the_same_descent():
    """An end of its time leaves a feasible point that is no worse, and a run can go on from there."""
    whole, parts = Problem(1000, 30.0), Problem(1000, 30.0)
    whole.solve(1e-4)
    K, p, value = parts.K.astype("float64"), parts.F.copy(), [0.0]
    for _ in range(1000):
        *_, violation = parts.solve(1e-4, most_time=2e5)
        value.append(0.5 * parts.z @ K @ parts.z + p @ parts.z)
        assert value[-1] <= value[-2] + 1e-9
        assert abs(parts.z.sum()) <= 1e-9
        if violation <= 1e-4:
            break
    assert len(value) > 3
    assert value[-1] == pytest.approx(0.5 * whole.z @ K @ whole.z + p @ whole.z, rel=1e-6)


def test_who_is_in_question():
    """Free variables are, and those at a bound that violate optimality by more than a quarter of the most."""
    z = np.array([0.5, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0] + [0.0] * (BLOCK - 7))
    F = np.array([0.0, -2.0, -0.9, 1.0, 2.0, 0.9, -3.0] + [9.0] * (BLOCK - 7))
    up, low = offsets(z, np.zeros(BLOCK), np.ones(BLOCK), np.zeros(BLOCK, "int64"), 1, "float64")
    found = np.empty(BLOCK + 1, "int64")
    size, violation = candidates(F, up, low, found)
    assert violation == 4.0
    assert found[:size].tolist() == [0, 1, 2, 4, 5]  # F below 1 may not rise, above -1 may not fall


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_small_newton_step_solves_the_linear_system(is_tied):
    rng = np.random.default_rng(3)
    K, F, z = kernel(rng.normal(size=(30, 2)), 4.0), rng.normal(size=30), rng.normal(size=30)
    far = np.full(30, 1e6)
    start, before, zero = z.copy(), F.copy(), np.zeros(30)
    assert small_newton(K, F, z, -far, far, zero, zero.copy(), is_tied) == WHOLE
    np.testing.assert_allclose(F, before + K @ (z - start), atol=1e-9)
    if is_tied:
        assert abs((z - start).sum()) <= 1e-10
        F = F - F.mean()
    np.testing.assert_allclose(F, 0, atol=1e-7)


def test_a_small_newton_step_ends_at_the_first_bound():
    rng = np.random.default_rng(4)
    K, F, z = kernel(rng.normal(size=(20, 2)), 4.0), rng.normal(size=20), np.zeros(20)
    start, up, low = F.copy(), np.zeros(20), np.zeros(20)
    assert small_newton(K, F, z, np.full(20, -0.1), np.full(20, 0.1), up, low, True) == CUT
    assert np.count_nonzero(np.abs(z) == 0.1) == 1
    assert np.isinf(up).sum() + np.isinf(low).sum() == 1
    assert 0.5 * z @ K @ z + start @ z < 0
    assert abs(z.sum()) <= 1e-12


def test_no_small_newton_step_where_there_is_none():
    K, zero = np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2)
    bounds = np.full(2, -1.0), np.ones(2)
    z, F = zero.copy(), np.array([1.0, -1.0])
    assert small_newton(K, F, z, *bounds, zero.copy(), zero.copy(), False) == NONE  # an indefinite matrix has no factor
    alone = np.array([0.0, np.inf])
    assert small_newton(np.eye(2), F, z, *bounds, alone, -alone, True) == NONE  # one variable with a given sum
    assert (z == 0).all()
    assert F.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("where", ["F", "K"])
def test_what_is_no_number_ends_it(where):
    problem = Problem(300, 1.0)
    getattr(problem, where)[5:9] = np.nan
    problem.solve(1e-6, most_time=1e8)  # it comes back
    assert (problem.lower <= problem.z).all()
    assert (problem.z <= problem.upper).all()
