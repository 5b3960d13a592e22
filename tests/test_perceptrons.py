"""Perceptrons: what can be separated is, within Novikoff's bound; what cannot is proved."""

import numpy as np
import pytensor.tensor as pt
import pytest
from problems import MODES

from symsvm import (
    RBF,
    SVC,
    KernelDual,
    Linear,
    QuadraticProgram,
    compile,
    fit_kernel_perceptron,
    fit_perceptron,
    hard_margin,
    solve,
)
from symsvm.objectives import PerceptronRisk
from symsvm.solvers import KernelPerceptron, Perceptron
from symsvm.solvers.textbook.perceptron import novikoff

# Runs end early here, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped .* above tol=:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(1)
CORNERS = RNG.normal(size=(80, 2))
PARITY = np.sign(CORNERS[:, 0] * CORNERS[:, 1])
CORNERS += 0.3 * np.sign(CORNERS)  # four groups apart, of which opposite ones belong together


def blobs(n=1000):
    """Two Gaussians of Schmidt's slides, around (5, 6) and (-1, -1), which a line separates."""
    rng = np.random.RandomState(42)
    X = np.concatenate([rng.randn(n, 2) + np.array([5, 6]), rng.randn(n, 2) - 1])
    return X, np.repeat([1.0, -1.0], n)


@pytest.mark.parametrize("mode", MODES)
def test_the_blobs_are_learnt_from_all_thirty_starts(mode):
    X, y = blobs()
    for start in RNG.normal(size=(30, 3)):
        found = fit_perceptron(X, y, start=start, mode=mode)
        assert found.status == "optimal"
        assert (y * (X @ found.theta[:2] + found.theta[2]) > 0).all()
        np.testing.assert_allclose(found.theta[:2], start[:2] + (found.lam * y) @ X)


def test_mistakes_keep_novikoffs_bound():
    X, y = blobs(200)
    found = fit_perceptron(X, y, mode="FAST_COMPILE")
    assert found.mistakes == found.lam.sum()
    # The best margin through 0 of points with a last feature 1: no intercept besides.
    Z = np.hstack([X, np.ones((400, 1))])
    both, signs = np.concatenate([y[:, None] * Z, -y[:, None] * Z]), np.repeat([1.0, -1.0], 400)
    best = hard_margin(both, signs)
    assert abs(best.b) < 1e-8
    bound = novikoff(best.theta, X, y)
    assert 1 <= found.mistakes <= bound <= novikoff(found.theta, X, y)
    with pytest.raises(ValueError, match="theta must separate"):
        novikoff(-found.theta, X, y)


@pytest.mark.parametrize("kernel", [None, Linear()])
def test_it_stops_and_proves_that_nothing_separates(kernel):
    """A solver among the others: `solve` by name, a trace, a certificate that has the proof."""
    name = "perceptron" if kernel is None else "kernel-perceptron"
    solution = solve(PerceptronRisk(CORNERS, PARITY, kernel=kernel), name, mode="FAST_COMPILE", max_iter=19)
    found = solution.certificate
    assert (solution.stopped, found.status, found.separable, found.passes) == ("max_iter", "infeasible", False, 20)
    assert found.mistakes > 20
    assert found.violation > 0
    assert len(solution.trace["W"]) == 20
    assert found.proof.min() >= 0
    assert found.proof.sum() == pytest.approx(1.0)
    np.testing.assert_allclose((found.proof * PARITY) @ np.hstack([CORNERS, np.ones((80, 1))]), 0, atol=1e-8)
    assert "no hyperplane separates the classes" in str(found)
    quick = Perceptron(prove=False) if kernel is None else KernelPerceptron(prove=False)
    found = solve(PerceptronRisk(CORNERS, PARITY, kernel=kernel), quick, mode="FAST_COMPILE", max_iter=2).certificate
    assert (found.status, found.separable, found.proof) == ("feasible", None, None)


def test_it_says_when_passes_were_too_few():
    X, y = blobs(50)
    found = fit_perceptron(X, y, start=[-1e3, -1e3, 0.0], max_passes=1, mode="FAST_COMPILE")
    assert (found.status, found.separable, found.proof) == ("feasible", True, None)


def product(x):
    return pt.stack([x[0], x[1], x[0] * x[1]])


@pytest.mark.parametrize("mode", ["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_features_and_kernels_separate_what_lines_do_not(mode):
    by_features = fit_perceptron(CORNERS, PARITY, features=product, mode=mode)
    by_kernel = fit_kernel_perceptron(CORNERS, PARITY, RBF(1.0), mode=mode)
    assert by_features.status == by_kernel.status == "optimal"
    assert by_kernel.theta is None
    Phi = np.column_stack([CORNERS, CORNERS[:, 0] * CORNERS[:, 1], np.ones(80)])
    assert (PARITY * (Phi @ by_features.theta) > 0).all()
    K = np.exp(-((CORNERS[:, None] - CORNERS) ** 2).sum(axis=2) / 2)
    assert (PARITY * ((K + 1) @ (by_kernel.lam * PARITY)) > 0).all()


@pytest.mark.parametrize("features", [None, product])
def test_passes_are_the_loops_of_the_slides(features):
    """The pseudo code of the slides: its starting point, its order and its rule, and the risk before each pass."""
    Z = CORNERS if features is None else np.column_stack([CORNERS, CORNERS[:, 0] * CORNERS[:, 1]])
    Z = np.column_stack([Z, np.ones(80)])
    program = compile(PerceptronRisk(CORNERS, PARITY, features=features), "perceptron", mode="FAST_COMPILE")
    theta = np.zeros(Z.shape[1])
    for (before, W, wrong, after), _ in zip(program.steps(program.initial_state()), range(4), strict=False):
        np.testing.assert_allclose(before, theta, atol=1e-12)
        assert pytest.approx(sum(max(0.0, -y * (theta @ z)) for z, y in zip(Z, PARITY, strict=True))) == W
        missed = []
        for z, y in zip(Z, PARITY, strict=True):
            missed.append(y * (theta @ z) <= 0)
            if missed[-1]:
                theta = theta + y * z
        np.testing.assert_array_equal(wrong, missed)
        np.testing.assert_allclose(after, theta, atol=1e-12)


def test_the_linear_kernel_makes_the_same_mistakes():
    X, y = blobs(40)
    first, second = (
        fit_perceptron(X, y, mode="FAST_COMPILE"),
        fit_kernel_perceptron(X, y, Linear(), mode="FAST_COMPILE"),
    )
    np.testing.assert_array_equal(first.lam, second.lam)


def test_bad_input_and_bad_pairs():
    X, y = blobs(5)
    with pytest.raises(ValueError, match="start must hold 3 weights"):
        fit_perceptron(X, y, start=[1.0])
    with pytest.raises(ValueError, match="max_passes must be at least 1"):
        fit_perceptron(X, y, max_passes=0)
    with pytest.raises(ValueError, match="features or a kernel, not both"):
        PerceptronRisk(X, y, features=product, kernel=Linear())
    with pytest.raises(ValueError, match="a vector of known length"):
        PerceptronRisk(X, y, features=lambda x: x[x > 0])
    with pytest.raises(ValueError, match="counts its mistakes in float64"):
        compile(PerceptronRisk(X, y), "perceptron", dtype="float32")
    with pytest.raises(ValueError, match="'perceptron' is for separation problems.*use 'kernel-perceptron'"):
        solve(PerceptronRisk(X, y, kernel=Linear()), "perceptron")
    with pytest.raises(ValueError, match="'perceptron' is for separation problems.*use 'decomposition' or"):
        solve(KernelDual(QuadraticProgram.c_svc(y, 1.0), X, Linear()), "perceptron")
    with pytest.raises(ValueError, match="'perceptron' is for separation problems"):
        SVC(solver="perceptron").fit(X, y)
