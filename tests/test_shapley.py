"""Exact Shapley values of features: beside their definition over all subsets, for every kernel that has them."""

import numpy as np
import pytest
from scipy import sparse
from shapley_games import shapley_by_definition
from sklearn.datasets import load_iris, make_classification
from sklearn.pipeline import make_pipeline

from symsvm import RBF, SVC, SVR, Laplacian, Linear, NuSVC, OneClassSVM, Polynomial, contributions, plot
from symsvm.data import Scaling
from symsvm.inspection.shapley import shapley_values

X, Y = make_classification(60, 6, n_informative=4, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True)
WIDTHS = np.linspace(0.8, 4.0, 6)
KERNELS = (
    RBF(2.0),
    RBF(WIDTHS),
    Laplacian(0.3),
    Laplacian(1 / WIDTHS),
    RBF(3.0) * Laplacian(0.1),
    RBF(3.0) + 0.5 * Laplacian(0.2) + 0.1,
    (RBF(3.0) + 0.2) ** 2,
    0.3 * RBF(2.0) + 0.2 * Linear(),
)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_those_of_all_subsets(kernel):
    model = SVC(kernel=kernel).fit(X, Y)
    references = X[3:5]
    for x in X[:3]:
        (found,) = contributions(model, x, by="features", background=references)
        phi = np.mean([shapley_by_definition(model.decision_function, x, r) for r in references], axis=0)
        order = [int(name[1:]) for name in found.names]
        np.testing.assert_allclose(found.contributions, phi[order], atol=1e-10)
        assert found.intercept == pytest.approx(model.decision_function(references).mean(), abs=1e-12)
        assert found.intercept + found.contributions.sum() == pytest.approx(found.decision, abs=1e-10)
        assert found.by == "features"


@pytest.mark.parametrize("model", [SVR(), OneClassSVM(nu=0.2), NuSVC(nu=0.3), SVC(penalize_intercept=True)], ids=str)
def test_machines(model):
    model.fit(X, Y)
    reference = model.support_vectors_.mean(axis=0)  # the default
    decide = model.predict if isinstance(model, SVR) else model.decision_function
    (found,) = contributions(model, X[0], by="features")
    phi = shapley_by_definition(decide, X[0], reference)
    np.testing.assert_allclose(found.contributions, phi[[int(name[1:]) for name in found.names]], atol=1e-10)


def test_pairs_of_classes_pipelines_names_and_sparse_points():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(IRIS, columns=["a", "b", "c", "d"])
    model = make_pipeline(Scaling("z-score"), SVC(decision_function_shape="ovo")).fit(table, KINDS)
    found = contributions(model, table[60:61], by="features", background=table[::30])

    def decide(points):
        return model.decision_function(pandas.DataFrame(points, columns=table.columns))

    phi = np.mean([shapley_by_definition(decide, IRIS[60], r) for r in IRIS[::30]], axis=0)
    for column, one in enumerate(found):
        assert sorted(one.names) == ["a", "b", "c", "d"]
        np.testing.assert_allclose(
            one.contributions, phi[["abcd".index(name) for name in one.names], column], atol=1e-9
        )
    rows = sparse.csr_matrix(np.where(X > 0.3, X, 0.0))
    dense, other = (contributions(SVC().fit(A, Y), A[:1], by="features")[0] for A in (rows.toarray(), rows))
    np.testing.assert_allclose(dense.contributions, other.contributions, atol=1e-9)


def test_far_points_and_many_features_lose_no_digits():
    """Factors that are 0 in float64, and the sum of the values, which is known for any number of features."""
    rng = np.random.default_rng(0)
    V, x, r = rng.normal(size=(50, 100)), rng.normal(size=100), rng.normal(size=100)
    coef = rng.normal(size=(50, 2))
    for points, kernel in ((x, RBF(20.0)), (x * 1e4, RBF(1.0)), (np.where(np.arange(100) < 3, 1e200, x), RBF(5.0))):
        phi = shapley_values(kernel, points, r[None], V, coef)
        with np.errstate(over="ignore"):
            sides = [np.exp(-(((z - V) / kernel.sigma) ** 2).sum(axis=1) / 2) @ coef for z in (points, r)]
        np.testing.assert_allclose(phi.sum(axis=1), sides[0] - sides[1], rtol=1e-10, atol=1e-300)
        assert np.isfinite(phi).all()


def test_features_that_do_not_differ_have_no_share():
    model = SVC().fit(X, Y)
    x = X[0].copy()
    (found,) = contributions(model, x, by="features", background=np.where(np.arange(6) < 4, x, x + 1)[None])
    assert set(found.names) == {"x4", "x5"}


def test_what_has_no_shapley_values():
    with pytest.raises(ValueError, match="needs a kernel that is a product over the features"):
        contributions(SVC(kernel=Polynomial(2)).fit(X, Y), X[0], by="features")
    with pytest.raises(ValueError, match="takes Linear in sums, not in products"):
        contributions(SVC(kernel=RBF(1.0) * Linear()).fit(X, Y), X[0], by="features")
    with pytest.raises(ValueError, match="more than 64 terms"):
        contributions(SVC(kernel=(RBF(1.0) + 1.0) ** 8).fit(X, Y), X[0], by="features")
    with pytest.raises(ValueError, match="needs a kernel with an expression"):
        contributions(SVC(kernel=lambda A, B: A @ B.T).fit(X, Y), X[0], by="features")
    with pytest.raises(ValueError, match="background is for the features of a kernel"):
        contributions(SVC().fit(X, Y), X[0], background=X)


def test_the_picture_of_a_model_in_place_of_its_contributions_is_refused():
    with pytest.raises(TypeError, match="found must be an element of what .* returns, got SVC"):
        plot.contributions(SVC())
