"""Certificates: what they say at the optimum, near it, and off the feasible set."""

import numpy as np
import oracles
import pytest
from campaigns import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KERNELS, PROBLEMS

from symsvm.objectives.certificate import certify, certify_svc, multiplier

PROBLEM = PROBLEMS["overlapping"]
K = oracles.gram(PROBLEM.X, PROBLEM.X, KERNELS["rbf"][1])


def optimum(K, y, C):
    """The QP solver's point, moved to the bounds it is near and onto the hyperplane by one free variable."""
    lam = oracles.qp(K * np.outer(y, y), -np.ones(len(y)), 0.0, C, y)
    lam = np.where(lam < 1e-6 * C, 0.0, np.where(lam > C * (1 - 1e-6), C, lam))
    free = np.flatnonzero((lam > 0) & (lam < C))[0]
    lam[free] -= y[free] * (y @ lam)
    return lam


def balanced(lam, y, C):
    """Shrink the heavier class until y.lam = 0."""
    plus, minus = lam[y > 0].sum(), lam[y < 0].sum()
    lam = lam.copy()
    lam[y > 0] *= min(plus, minus) / plus if plus else 1
    lam[y < 0] *= min(plus, minus) / minus if minus else 1
    return lam


def test_at_the_optimum_the_gap_closes_and_b_is_the_intercept():
    y, C = PROBLEM.y, PROBLEM.C
    lam = optimum(K, y, C)
    certificate = certify_svc(lam, K @ (lam * y), y, C, tol=1e-4, is_psd=True)
    assert certificate.status == "optimal"
    assert abs(certificate.gap) < 1e-4
    assert certificate.relative_gap == pytest.approx(certificate.gap / max(abs(certificate.primal), 1))
    free = (lam > 0) & (lam < C)
    assert certificate.b == pytest.approx((y - K @ (lam * y))[free].mean())
    assert str(certificate).startswith("optimal: W = ")


@settings(max_examples=examples(200))
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3))
def test_weak_duality(seed, scale):
    """P - D >= 0 for every feasible point, with weights too."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 15))
    X = rng.normal(size=(m, 2))
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    C = scale * rng.uniform(0.1, 2, m)
    lam = balanced(C * rng.random(m), y, C)
    K = oracles.gram(X, X, KERNELS["rbf"][1])
    certificate = certify_svc(lam, K @ (lam * y), y, C, tol=1e-3, is_psd=True)
    assert certificate.status in ("feasible", "optimal")
    assert certificate.gap >= -1e-12 * (1 + abs(certificate.primal))


def test_an_infeasible_point_has_no_gap_whatever_its_violation():
    y, C = PROBLEM.y, PROBLEM.C
    lam = optimum(K, y, C)
    lam[np.flatnonzero((lam > 0) & (lam < C))[0]] += 1e-6
    certificate = certify_svc(lam, K @ (lam * y), y, C, tol=1e-2, is_psd=True)
    assert certificate.status == "infeasible"
    assert (certificate.gap, certificate.relative_gap, certificate.primal) == (None, None, None)
    assert certificate.infeasibility >= 9e-7
    assert certificate.violation < 1e-2
    assert "gap" not in str(certificate)


def test_nothing_is_optimal_without_a_convex_kernel():
    y, C = PROBLEM.y, PROBLEM.C
    lam = optimum(K, y, C)
    for known in (None, False):
        assert certify_svc(lam, K @ (lam * y), y, C, tol=1e-3, is_psd=known).status == "stationary"


def test_far_from_the_optimum_is_only_feasible():
    y = PROBLEM.y
    certificate = certify_svc(np.zeros(12), np.zeros(12), y, 1.0, tol=1e-3, is_psd=True)
    assert certificate.status == "feasible"
    assert certificate.violation == 2.0  # LIBSVM's first violation, y = +1 against y = -1
    assert (certificate.W, certificate.primal, certificate.gap) == (0.0, 12.0, 12.0)


def test_float32_points_are_feasible_to_their_own_rounding():
    y = PROBLEM.y
    lam = balanced(PROBLEM.lam, y, PROBLEM.C).astype("float32")
    assert certify_svc(lam, K @ (lam * y), y, PROBLEM.C, tol=1e-3, is_psd=True).status == "feasible"


def test_nothing_that_is_not_finite_is_certified():
    y = PROBLEM.y
    nan = np.full(12, np.nan)
    zero = np.zeros(12)
    for lam, Kq in ((nan, zero), (zero, nan), (np.where(np.arange(12) == 3, np.nan, 0.0), zero)):
        assert certify_svc(lam, Kq, y, 1.0, tol=1e-3, is_psd=True).status == "diverged"
        assert certify(lam, 0.0, Kq, 0.0, 1.0, (y, 0.0), tol=1e-3, is_convex=True).status == "diverged"
    assert certify(zero, np.nan, zero, 0.0, 1.0, tol=1e-3, is_convex=True).status == "diverged"


def test_a_hard_margin_has_an_infinite_primal_until_it_is_met():
    y = PROBLEM.y
    certificate = certify_svc(np.zeros(12), np.zeros(12), y, np.inf, tol=1e-3, is_psd=True)
    assert certificate.primal == certificate.relative_gap == np.inf


def test_multiplier_without_free_variables_is_the_middle():
    y = np.array([1.0, -1.0])
    # Both at 0, r = -g / y: the first asks b >= -1, the second b <= 3.
    b, violation = multiplier(np.zeros(2), np.array([1.0, 3.0]), 0.0, 1.0, y)
    assert (b, violation) == (1.0, 0.0)
    b, violation = multiplier(np.zeros(2), np.array([-5.0, -1.0]), 0.0, 1.0, y)
    assert violation == 6.0
    # One class only: nothing bounds b from above.
    b, violation = multiplier(np.zeros(2), np.array([1.0, 2.0]), 0.0, 1.0, np.ones(2))
    assert (b, violation) == (-1.0, 0.0)


def test_without_an_equality_the_violation_is_the_projected_gradient():
    lam, g = np.array([0.0, 0.0, 0.5, 1.0, 1.0]), np.array([3.0, -0.2, 0.4, -2.0, 0.1])
    assert multiplier(lam, g, 0.0, 1.0) == (None, pytest.approx(0.4))
    certificate = certify(lam, 1.0, g, 0.0, 1.0, tol=0.5, is_convex=True)
    assert (certificate.status, certificate.gap, certificate.b) == ("optimal", None, None)
