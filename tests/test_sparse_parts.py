"""Sparse points with many features: the same values as dense ones, in memory and time of the entries."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from symsvm import RBF, SVC, Laplacian, Linear, OneClassSVM, Polynomial, pair_kernel
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.sparse_parts import evaluate_sparse_rows

D = 2**20


def text(m, entries=30, d=D, words=2000, seed=0):
    """Rows like those of text: few entries, of which some features are shared by many rows."""
    rng = np.random.default_rng(seed)
    some = rng.choice(d, words, replace=False)
    k = np.sort(np.array([rng.choice(some, entries, replace=False) for _ in range(m)]), axis=1)
    return sp.csr_matrix((rng.random(m * entries), k.ravel(), np.arange(0, m * entries + 1, entries)), shape=(m, d))


def narrow(*matrices):
    """Dense matrices with the features that any of them has."""
    used = np.unique(np.concatenate([X.indices for X in matrices]))
    return [X[:, used].toarray() for X in matrices]


KERNELS = {
    "linear": Linear(),
    "rbf": RBF(2.0),
    "polynomial": Polynomial(degree=2, gamma=0.1, coef0=1.0),
    "laplacian": Laplacian(5.0),
    "sum": RBF(2.0) + 0.5 * Linear(),
}


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(k, id=name, marks=[pytest.mark.slow] * (name in ("sum", "polynomial")))
        for name, k in KERNELS.items()
    ],
)
def test_values_are_those_of_dense_points(kernel):
    X, Z = text(60), text(25, seed=1)
    dense, other = narrow(X, Z)
    evaluator = KernelEvaluator(kernel)
    for found, expected in (
        (evaluator.block(X, X), evaluator.block(dense, dense)),
        (evaluator.block(Z, X), evaluator.block(other, dense)),
        (evaluator.matvec(Z, X, np.arange(60.0)), evaluator.matvec(other, dense, np.arange(60.0))),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kernel", [Linear(), RBF(2.0), Laplacian(5.0)], ids=repr)
def test_the_values_of_a_row_do_not_depend_on_the_rows_beside_it(kernel):
    X = text(40)
    rows = sp.vstack([text(6, seed=1), text(3, entries=900, words=200_000, seed=2)], format="csr")
    evaluator, q = KernelEvaluator(kernel), np.linspace(-1, 1, 40)
    every = evaluator.matvec(rows, X, q)
    alone = [evaluator.matvec(rows[i], X, q)[0] for i in range(rows.shape[0])]
    assert every.tolist() == alone


def test_a_kernel_that_counts_features_keeps_all():
    kernel = pair_kernel(lambda x, z: (x * z).sum() + (x - z + 1.0).sum() / x.shape[0])
    X = text(20)
    K = KernelEvaluator(kernel).block(X, X)
    sums = np.asarray(X.sum(axis=1))
    np.testing.assert_allclose(K, (X @ X.T).toarray() + (sums - sums.T) / D + 1.0, rtol=1e-11)


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="linear"),
        pytest.param(SVC(), marks=pytest.mark.slow),
        pytest.param(OneClassSVM(), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_fit_takes_the_memory_of_the_entries(model):
    """300 rows of 2^20 features would be 2.5 GB."""
    X = text(300)
    y = np.where(np.arange(300) % 2, 1, -1)
    model.fit(X[:50], y[:50])  # compiles
    tracemalloc.start()
    try:
        model.fit(X, y)
        model.predict(X[:20])
        assert model.certificate_.status == "optimal"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**27


def test_rows_are_packed_only_where_the_place_of_a_feature_does_not_matter():
    X = text(30)
    weights = np.linspace(1, 2, D)
    widths = []

    def by_place(A, B):
        widths.append(A.shape)
        return [A @ weights[: A.shape[1]], np.sum(A**2, axis=1)]

    (found, squares) = evaluate_sparse_rows(by_place, (X,), (X,), [], [0, 0])[:2]
    np.testing.assert_allclose(found, X @ weights)
    assert max(rows * width for rows, width in widths) <= 2**22
    same = (X,)
    widths.clear()
    (norms,) = evaluate_sparse_rows(lambda A, B: by_place(A, B)[1:], same, same, [], [0])
    np.testing.assert_allclose(norms, squares)
    assert max(rows * width for rows, width in widths) <= 30 * 64


def test_results_that_depend_on_no_row_or_on_columns_are_returned_as_they_are():
    X, Z = text(10), text(2000, seed=3)

    def compiled(A, B, w):
        return [A.sum(axis=1), B.sum(axis=1), w, np.float64(3.0)]

    w = np.arange(7.0)
    rows, columns, vector, number = evaluate_sparse_rows(compiled, (X,), (Z,), [w], [0, 1, None, None])
    np.testing.assert_allclose(rows, np.asarray(X.sum(axis=1))[:, 0])
    np.testing.assert_allclose(columns, np.asarray(Z.sum(axis=1))[:, 0])
    assert vector.tolist() == w.tolist()
    assert number == 3.0
