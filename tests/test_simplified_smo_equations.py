"""The numbered equations of SMO in documents 001 and 002, as graphs on each backend, against formulas with numbers."""

import numpy as np
import pytensor.tensor as pt
import pytest
from problems import MODES

from symsvm.compiler.functions import function
from symsvm.solvers.textbook.simplified_smo import (
    Point,
    clipped,
    errors,
    limits,
    partner,
    threshold,
    unclipped,
    violates,
)

# Runs end early here, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped .* above tol=:sklearn.exceptions.ConvergenceWarning")

C, B, K_II, K_JJ, K_IJ = 1.5, 0.2, 1.1, 0.9, 0.3
# lam_i, lam_j, y_i, y_j, E_i, E_j: bounds and signs in all combinations.
CASES = [
    (a, b, s, t, e, f)
    for a in (0.0, 0.4, C)
    for b in (0.0, 0.7, C)
    for s in (1.0, -1.0)
    for t in (1.0, -1.0)
    for e, f in ((-0.8, 0.5), (0.9, -0.1))
]


def by_002(a, b, s, t, e, f):
    """The same by the letters of document 002, Eq. 002:7.1 to 002:7.7 but for its thresholds, which it has not."""
    L, H = (max(0, b - a), min(C, C + b - a)) if s != t else (max(0, b + a - C), min(C, b + a))  # 7.1, 7.2
    new = b + t * (e - f) / (K_II + K_JJ - 2 * K_IJ)  # 7.4, with eta of 7.3
    cut = H if new >= H else new if L < new < H else L  # 7.5
    yu = 1 + s * e  # y_i u_i, as E_i = u_i - y_i
    kept = yu >= 1 - 1e-3 if a == 0 else yu <= 1 + 1e-3 if a == C else abs(yu - 1) <= 1e-3  # 7.7
    return not kept, L, H, new, cut, a + s * t * (b - cut)  # 7.6


def loops(a, b, s, t, e, f):
    """The same by the letter of the equations: violates, L, H, lam_j, clipped, lam_i, b."""
    broken = (s * e < -1e-3 and a < C) or (s * e > 1e-3 and a > 0)  # 2 to 4
    L, H = (max(0, b - a), min(C, C + b - a)) if s != t else (max(0, a + b - C), min(C, a + b))  # 5, 6
    new_j = b - t * (e - f) / (2 * K_IJ - K_II - K_JJ)  # 7
    cut = H if new_j > H else L if new_j < L else new_j  # 8
    new_i = a + s * t * (b - cut)  # 9
    b_1 = B - e - s * (new_i - a) * K_II - t * (cut - b) * K_IJ  # 10
    b_2 = B - f - s * (new_i - a) * K_IJ - t * (cut - b) * K_JJ  # 11
    inside = [1e-12 < v < C - 1e-12 for v in (new_i, cut)]
    return broken, L, H, new_j, cut, new_i, b_1 if inside[0] else b_2 if inside[1] else (b_1 + b_2) / 2


@pytest.mark.parametrize("mode", MODES)
def test_graphs_equal_formulas(mode):
    a, b, s, t, e, f = inputs = pt.dvectors("a", "b", "s", "t", "e", "f")
    one, two = Point(a, s, 0.0, C, e), Point(b, t, 0.0, C, f)
    L, H = limits(one, two)
    new_j = unclipped(two, e, pt.constant(2 * K_IJ - K_II - K_JJ))
    cut = clipped(new_j, L, H)
    new_i = partner(one, two, cut)
    outputs = [violates(one, 1e-3), L, H, new_j, cut, new_i, threshold(one, two, new_i, cut, B, K_II, K_JJ, K_IJ)]
    values = function(list(inputs), outputs, mode=mode)(*np.array(CASES).T)
    for value, expected in zip(values, zip(*(loops(*case) for case in CASES), strict=True), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)
    for value, expected in zip(values, zip(*(by_002(*case) for case in CASES), strict=True), strict=False):
        np.testing.assert_allclose(value, expected, atol=1e-12)


def test_errors_follow_from_the_gradient():
    rng = np.random.default_rng(0)
    K = np.cov(rng.normal(size=(5, 20)))
    lam, y = rng.random(5), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    g = y * (K @ (lam * y)) - 1
    graph = errors(pt.as_tensor(g), pt.as_tensor(y), B)
    f = [sum(lam[j] * y[j] * K[j, k] for j in range(5)) + B for k in range(5)]  # 1
    np.testing.assert_allclose(function([], graph, mode="FAST_COMPILE")(), f - y)
