"""The cases that parametrised tests share: the only place to add a kernel, a problem, a solver or a mode."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt

from symsvm import (
    RBF,
    AcceleratedGradient,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    ProjectedGradient,
    Sigmoid,
    pair_kernel,
)

MODES = ("NUMBA", "JAX")


def cauchy(x, z, scale):
    """A pair function that symsvm does not have: 1 / (1 + |x - z|^2 / scale)."""
    return 1 / (1 + ((x - z) ** 2).sum() / scale)


WIDTHS = np.array([0.5, 2.0, 1.1])
# name -> (kernel, the same as a NumPy function of one pair)
KERNELS = {
    "linear": (Linear(), lambda x, z: x @ z),
    "rbf": (RBF(sigma=0.8), lambda x, z: np.exp(-((x - z) @ (x - z)) / (2 * 0.8**2))),
    "polynomial": (Polynomial(degree=3, gamma=0.5, coef0=1.0), lambda x, z: (0.5 * x @ z + 1.0) ** 3),
    "homogeneous": (Polynomial(degree=2, gamma=0.7), lambda x, z: (0.7 * x @ z) ** 2),
    "sigmoid": (Sigmoid(gamma=0.3, coef0=-0.1), lambda x, z: np.tanh(0.3 * x @ z - 0.1)),
    "laplacian": (Laplacian(gamma=0.4), lambda x, z: np.exp(-0.4 * np.abs(x - z).sum())),
    "widths": (RBF(sigma=WIDTHS), lambda x, z: np.exp(-(((x - z) / WIDTHS) ** 2).sum() / 2)),
    "custom": (pair_kernel(cauchy, scale=1.7), lambda x, z: 1 / (1 + (x - z) @ (x - z) / 1.7)),
    "composed": (
        0.5 * RBF(sigma=0.8) + Linear() ** 2 * Laplacian(gamma=0.4),
        lambda x, z: (
            0.5 * np.exp(-((x - z) @ (x - z)) / (2 * 0.8**2)) + (x @ z) ** 2 * np.exp(-0.4 * np.abs(x - z).sum())
        ),
    ),
}


WEIGHTS = np.array([0.5, 2.0, 1.1])
# name -> a further pair expression with a form of its own, for points of three positive features.
PAIRS = {
    "cosine": pair_kernel(lambda x, z: (x * z).sum() / pt.sqrt((x**2).sum() * (z**2).sum())),
    "chi-squared": pair_kernel(lambda x, z: pt.exp(-((x - z) ** 2 / (x + z)).sum())),
    "weighted rbf": pair_kernel(lambda x, z, w: pt.exp(-(w * (x - z) ** 2).sum()), w=WEIGHTS),
    "weighted laplacian": pair_kernel(lambda x, z, w: pt.exp(-(w * abs(x - z)).sum()), w=WEIGHTS),
    "rational quadratic": pair_kernel(lambda x, z, a: (1 + ((x - z) ** 2).sum() / (2 * a)) ** -a, a=1.3),
    "intersection": pair_kernel(lambda x, z: pt.minimum(x, z).sum()),
    "rbf by dot": pair_kernel(lambda x, z: pt.exp(-pt.dot(x - z, x - z))),
    "shared product": RBF(sigma=0.8) + Polynomial(degree=2, gamma=0.5, coef0=1.0) * Sigmoid(gamma=0.3, coef0=-0.1),
}


def precomputed(X):
    """The RBF kernel of X as a Gram matrix, with the points that go with it."""
    gram = np.array([[KERNELS["rbf"][1](x, z) for z in X] for x in X])
    return Precomputed(gram), Precomputed.points(len(X))


class Problem(NamedTuple):
    """A small classification problem and a point lam that is feasible for it."""

    X: np.ndarray
    y: np.ndarray
    C: float
    lam: np.ndarray
    Z: np.ndarray


def overlapping(m=12, d=3, seed=0):
    """Two Gaussians that overlap, with some multipliers at 0, some at C and the rest between."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(m, d)) + 0.5 * y[:, None]
    C = 1.5
    lam = rng.uniform(0.2, 1.3, m)
    lam[:4] = [0.0, 0.0, C, C]
    # The first two pairs balance, and so does each further pair: y.lam = 0.
    lam[5::2] = lam[4::2]
    return Problem(X, y, C, lam, rng.normal(size=(5, d)))


def separable(m=20, seed=1):
    """Two Gaussians far apart in the plane: a hard margin exists."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, -1.0], m // 2)
    X = rng.normal(size=(m, 2)) + 3 * y[:, None]
    return Problem(X, y, 10.0, np.zeros(m), rng.normal(size=(5, 2)))


PROBLEMS = {"overlapping": overlapping(), "separable": separable()}

# name -> solver; each must reach the optimum of a small strongly convex problem.
SOLVERS = {
    "projected gradient, alpha found": ProjectedGradient(),
    "projected gradient, alpha fixed": ProjectedGradient(0.1),
    "accelerated gradient": AcceleratedGradient(),
}


def symbols(problem):
    """Inputs with static shapes, as JAX needs for a reduce: lam, X, y, Z."""
    m, d = problem.X.shape
    return (
        pt.tensor("lam", dtype="float64", shape=(m,)),
        pt.tensor("X", dtype="float64", shape=(m, d)),
        pt.tensor("y", dtype="float64", shape=(m,)),
        pt.tensor("Z", dtype="float64", shape=problem.Z.shape),
    )
