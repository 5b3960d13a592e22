"""Perceptrons: what can be separated is, within Novikoff's bound; what cannot is proved."""

import numpy as np
import pytensor.tensor as pt
import pytest
from problems import MODES

from symsvm import RBF, Linear, hard_margin, kernel_perceptron, perceptron
from symsvm.perceptrons import novikoff

RNG = np.random.default_rng(1)
CORNERS = RNG.normal(size=(80, 2))
PARITY = np.sign(CORNERS[:, 0] * CORNERS[:, 1])
CORNERS += 0.3 * np.sign(CORNERS)  # four groups apart, of which opposite ones belong together


def blobs(n=1000):
    """Seed 004's two Gaussians around (5, 6) and (-1, -1), which a line separates."""
    rng = np.random.RandomState(42)
    X = np.concatenate([rng.randn(n, 2) + np.array([5, 6]), rng.randn(n, 2) - 1])
    return X, np.repeat([1.0, -1.0], n)


@pytest.mark.parametrize("mode", MODES)
def test_the_blobs_are_learnt_from_all_thirty_starts(mode):
    X, y = blobs()
    for start in RNG.normal(size=(30, 3)):
        found = perceptron(X, y, start=start, mode=mode)
        assert found.status == "separated"
        assert (y * (X @ found.theta[:2] + found.theta[2]) > 0).all()
        np.testing.assert_allclose(found.theta[:2], start[:2] + (found.lam * y) @ X)


def test_mistakes_keep_novikoffs_bound():
    X, y = blobs(200)
    found = perceptron(X, y)
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


def test_it_stops_and_proves_that_nothing_separates():
    found = perceptron(CORNERS, PARITY, max_passes=20)
    assert (found.status, found.passes) == ("not separable", 20)
    assert found.mistakes > 20
    assert found.proof.min() >= 0
    assert found.proof.sum() == pytest.approx(1.0)
    np.testing.assert_allclose((found.proof * PARITY) @ np.hstack([CORNERS, np.ones((80, 1))]), 0, atol=1e-9)


def test_it_says_when_passes_were_too_few():
    X, y = blobs(50)
    assert perceptron(X, y, start=[-1e3, -1e3, 0.0], max_passes=1).status == "not yet"


def test_features_and_kernels_separate_what_lines_do_not():
    by_features = perceptron(CORNERS, PARITY, features=lambda x: pt.stack([x[0], x[1], x[0] * x[1]]))
    by_kernel = kernel_perceptron(CORNERS, PARITY, RBF(1.0))
    assert by_features.status == by_kernel.status == "separated"
    assert by_kernel.theta is None
    K = np.exp(-((CORNERS[:, None] - CORNERS) ** 2).sum(axis=2) / 2)
    assert (PARITY * ((K + 1) @ (by_kernel.lam * PARITY)) > 0).all()
    assert kernel_perceptron(CORNERS, PARITY, Linear(), max_passes=5).status == "not separable"


def test_the_linear_kernel_makes_the_same_mistakes():
    X, y = blobs(40)
    np.testing.assert_array_equal(perceptron(X, y).lam, kernel_perceptron(X, y, Linear()).lam)


def test_bad_input():
    X, y = blobs(5)
    with pytest.raises(ValueError, match="start must hold 3 weights"):
        perceptron(X, y, start=[1.0])
    with pytest.raises(ValueError, match="max_passes must be at least 1"):
        perceptron(X, y, max_passes=0)
