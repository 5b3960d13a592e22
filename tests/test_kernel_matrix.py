"""Every implementation of `KernelMatrix` gives the blocks, products and diagonal of one matrix."""

import numpy as np
import pytest
import scipy.sparse

from symsvm import RBF, Precomputed
from symsvm.compiler.reading import PairExpression
from symsvm.evaluation.derived_matrices import ScaledMatrix
from symsvm.evaluation.evaluator import PairEvaluator
from symsvm.evaluation.local import LocalKernelMatrix, PairMatrix
from symsvm.model_selection.shared_matrix import CachedGram, UncachedGram

RNG = np.random.default_rng(0)
# Few points are exact, more are computed in float32 as well.
SIZES = {"few": 60, "many": 1100}
SIGMA = 1.5


def _pairs(X):
    """A `PairMatrix` of the same expression."""
    expression = PairExpression.of_kernel(RBF(SIGMA))
    return PairMatrix(lambda dtype: PairEvaluator(expression, [SIGMA], dtype=dtype), (X,), "H(X)")


def _blocks(X):
    matrix = LocalKernelMatrix(RBF(SIGMA), X)
    matrix.cache_blocks([0, len(X) // 3])
    return matrix


def _given(X):
    return LocalKernelMatrix(Precomputed(gram(X)), Precomputed.points(len(X)))


# name -> the function that makes a matrix of points, and that which gives its values.
MATRICES = {
    "local": (lambda X: LocalKernelMatrix(RBF(SIGMA), X), lambda K: K),
    "local, sparse": (lambda X: LocalKernelMatrix(RBF(SIGMA), scipy.sparse.csr_matrix(X)), lambda K: K),
    "local, given": (_given, lambda K: K),
    "local, cached blocks": (_blocks, lambda K: K),
    "local, on JAX": (lambda X: LocalKernelMatrix(RBF(SIGMA), X, mode="JAX"), lambda K: K),
    "pairs": (_pairs, lambda K: K),
    "submatrix": (lambda X: LocalKernelMatrix(RBF(SIGMA), X).submatrix(order(X)), lambda K: K[np.ix_(*[order(K)] * 2)]),
    "scaled": (
        lambda X: ScaledMatrix(LocalKernelMatrix(RBF(SIGMA), X), factors(X)),
        lambda K: np.outer(factors(K), factors(K)) * K,
    ),
    "cached": (
        lambda X: CachedGram(RBF(SIGMA), X, np.empty(len(X) ** 2)).submatrix(order(X)),
        lambda K: K[np.ix_(*[order(K)] * 2)],
    ),
    "uncached": (
        lambda X: UncachedGram(RBF(SIGMA), X).submatrix(order(X)),
        lambda K: K[np.ix_(*[order(K)] * 2)],
    ),
}


def gram(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * SIGMA**2))


def order(X):
    return np.random.default_rng(1).permutation(len(X))[: len(X) - 7]


def factors(X):
    return np.linspace(0.5, 2.0, len(X))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MATRICES)
def test_blocks_products_and_the_diagonal(name, size):
    X = np.where(RNG.uniform(size=(SIZES[size], 4)) < 0.5, 0.0, RNG.normal(size=(SIZES[size], 4)))
    make, values = MATRICES[name]
    matrix, K = make(X), values(gram(X))
    assert (matrix.m, isinstance(matrix.name, str)) == (len(K), True)
    assert matrix.width > 0
    before = matrix.entries
    rows, columns = RNG.choice(len(K), 33, replace=False), RNG.choice(len(K), 21, replace=False)
    for dtype, tol in (("float32", 1e-5), ("float64", 1e-11)):
        out = np.full((33, 25), -1.0, dtype)
        matrix.block(rows, columns, out)
        np.testing.assert_allclose(out[:, :21], K[np.ix_(rows, columns)], atol=tol)
        assert (out[:, 21:] == -1).all()  # columns beyond the block are left alone
    q = RNG.normal(size=21)
    for exact, tol in ((False, 1e-4), (True, 1e-11)):
        total = np.ones(len(K))
        matrix.product(q, None, columns, total, exact=exact)
        np.testing.assert_allclose(total, 1 + K[:, columns] @ q, atol=tol)
        part = np.ones(33)
        matrix.product(q, rows, columns, part, exact=exact)
        np.testing.assert_allclose(part, 1 + K[np.ix_(rows, columns)] @ q, atol=tol)
    np.testing.assert_allclose(matrix.diagonal(rows), np.diagonal(K)[rows], atol=1e-11)
    assert matrix.entries >= before
    assert matrix.is_exact == (len(K) <= 256)
