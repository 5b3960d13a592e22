"""What may not change an answer: points far away, the size of C, copies for weights, the order of rows, other rows."""

import numpy as np
import pytest
import scipy.sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from symsvm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, QuadraticProgram, load, pair_kernel, save
from symsvm._lib.dense import as_dense
from symsvm.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid
from symsvm.objectives.certificate import level

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, 1, -1)


def exact_violation(model, points, y, C, gamma):
    """The largest violation of the KKT conditions of a C-SVC, in extended precision, with distances by differences."""
    E = points.astype(np.longdouble)
    K = np.exp(-np.longdouble(gamma) * ((E[:, None] - E[None]) ** 2).sum(-1))
    z = np.zeros(len(y), dtype=np.longdouble)
    z[model.support_] = as_dense(model.dual_coef_)[0]
    F = K @ z - y
    lower, upper = np.where(y > 0, 0, -C), np.where(y > 0, C, 0)
    return float(F[z > lower].max() - F[z < upper].min())


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("far", [1e8, 1e9, 1e160])
@pytest.mark.parametrize("what", ["outlier", "clusters"])
def test_a_certificate_is_true_with_points_far_away(what, far, storage):
    points = X.copy()
    points[-1 if what == "outlier" else slice(30, None)] += far
    with np.errstate(over="ignore"):
        model = SVC(C=5.0, gamma=0.3).fit(storage(points), Y)
        assert model.certificate_.status == "optimal"
        assert exact_violation(model, points, Y, 5.0, 0.3) <= 1e-3
        assert abs(exact_violation(model, points, Y, 5.0, 0.3) - model.certificate_.violation) <= 1e-12


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "CSR"])
def test_a_certificate_is_true_beyond_the_size_of_small_problems(storage):
    points = np.random.default_rng(1).normal(size=(1100, 3))
    y = np.where(points[:, 0] > 0, 1, -1)
    points[::2] += 1e7
    model = SVC(C=5.0, gamma=0.3).fit(storage(points), y)
    assert model.certificate_.status == "optimal"
    assert exact_violation(model, points, y, 5.0, 0.3) <= 1e-3 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("scale", "options"),
    [(1e5, {"kernel": "linear", "C": 1e6}), (1e9, {"kernel": "linear"}), (1e3, {"kernel": "poly", "gamma": 1.0})],
)
def test_small_multipliers_of_large_kernel_values_are_kept(scale, options):
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    model = SVC(**options).fit(scale * X, y)
    assert model.certificate_.status == "optimal"
    assert model.fit_status_ == 0
    theirs = svm.SVC(**options).fit(scale * X, y)
    np.testing.assert_array_equal(model.predict(scale * X), theirs.predict(scale * X))


def test_rounding_of_z_is_measured_by_z():
    qp = QuadraticProgram.c_svc(np.array([1.0, 1.0, -1.0]), C=1e6)
    z = np.array([1e-12, 1e-30, -1e-12])
    np.testing.assert_array_equal(qp.snap_to_bounds(z), [1e-12, 0.0, -1e-12])


def test_a_fit_that_is_not_optimal_warns():
    """Rounding of values of 1e18 exceeds tol: whatever point is found, nobody can say that it is within tol."""
    with pytest.warns(ConvergenceWarning):
        model = SVC(kernel="linear", time_limit=2.0).fit(1e9 * X, Y)
    assert model.fit_status_ == 1
    assert model.certificate_.status == "feasible"


@pytest.mark.parametrize("seed", range(20))
def test_b_does_not_depend_on_copies_or_order_where_it_is_not_unique(seed):
    rng = np.random.default_rng(seed)
    m = 21
    points, y = rng.normal(size=(m, 3)) + 10, np.where(np.arange(m) < 6, 1, -1)
    weights = rng.integers(1, 4, m)
    options = {"C": 1e-3, "gamma": 0.1, "class_weight": "balanced"}  # every multiplier at its bound
    model = SVC(**options).fit(points, y, sample_weight=weights)
    copies, order = np.repeat(np.arange(m), weights), rng.permutation(m)
    for other in (
        SVC(**options).fit(points[copies], y[copies]),
        SVC(**options).fit(points[order], y[order], sample_weight=weights[order]),
    ):
        assert other.intercept_ == pytest.approx(model.intercept_, abs=1e-12)
        np.testing.assert_allclose(other.decision_function(points), model.decision_function(points), rtol=0, atol=1e-12)


def test_the_unit_of_class_weights_depends_on_no_order_and_no_copies():
    weights = np.random.default_rng(3).integers(1, 4, len(Y))
    order, copies = np.random.default_rng(4).permutation(len(Y)), np.repeat(np.arange(len(Y)), weights)
    for class_weight in ("balanced", {1: 3.0, -1: 2.0}):
        options = {"nu": 0.3, "gamma": 0.3, "class_weight": class_weight}
        W = NuSVC(**options).fit(X, Y, sample_weight=weights).certificate_.W
        assert NuSVC(**options).fit(X[order], Y[order], sample_weight=weights[order]).certificate_.W == pytest.approx(W)
        assert NuSVC(**options).fit(X[copies], Y[copies]).certificate_.W == pytest.approx(W)


def test_gamma_scale_of_sparse_points_far_from_0():
    dense = SVC().fit(X + 1e6, Y)
    assert SVC().fit(scipy.sparse.csr_matrix(X + 1e6), Y).kernel_.sigma == pytest.approx(dense.kernel_.sigma, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_gamma_scale_beyond_float64_is_refused(scale):
    for points in (scale * X, scipy.sparse.csr_matrix(scale * X)):
        with pytest.raises(ValueError, match="gamma='scale' is beyond float64"):
            SVC().fit(points, Y)


def test_decision_values_of_points_in_float32_are_float64():
    """A score is rounded after the offset is subtracted, not before."""
    model = OneClassSVM(gamma=0.3).fit(X.astype("float32"))
    exact = model.decision_function(X.astype("float32").astype("float64"))
    np.testing.assert_allclose(model.decision_function(X.astype("float32")), exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("model", [SVR(), NuSVR(), LinearSVR()], ids=lambda model: type(model).__name__)
def test_targets_of_none_are_refused(model):
    with pytest.raises(ValueError, match="y must be finite"):
        model.fit(X, [None] * len(X))


@pytest.mark.parametrize("model", [SVR(), NuSVR()], ids=repr)
def test_targets_at_the_end_of_float64_are_refused(model):
    with pytest.raises(ValueError, match=r"y must be at most 1e\+300 in size, got 1e\+308"):
        model.fit(np.arange(3.0)[:, None], [1e308, -1e308, 1e308])


def test_b_of_gradients_at_the_end_of_float64():
    F, all_of_them = np.array([-1.5e308, 1.5e308, 1.5e308, 1e308]), np.ones(4, dtype=bool)
    assert level(F, all_of_them, -1.5e308, 1.5e308, np.ones(4)) == pytest.approx(0.625e308, rel=1e-14)


def test_a_model_of_large_decision_values_is_saved_and_loaded(tmp_path):
    points = np.array([[1e80, 1e81], [3e80, 2e81], [-2e80, 3e81], [5e80, 1.5e81]])
    model = OneClassSVM(kernel="linear", nu=0.5).fit(points)
    assert np.abs(model.decision_function(points)).max() > 1e154
    save(model, tmp_path / "model.symsvm")
    loaded = load(tmp_path / "model.symsvm")
    assert np.array_equal(loaded.decision_function(points), model.decision_function(points))


def test_a_model_of_large_coefficients_is_saved_and_loaded(tmp_path):
    points = np.array([[-7.8e-126], [1.3e-125], [-2.9e-125]])
    model = NuSVC(kernel="linear", nu=0.6).fit(points, [0, 1, 0])
    assert np.abs(as_dense(model.dual_coef_)).max() > 1e200
    save(model, tmp_path / "model.symsvm")
    loaded = load(tmp_path / "model.symsvm")
    assert np.array_equal(loaded.decision_function(points), model.decision_function(points))


def test_a_large_intercept_is_saved_and_loaded(tmp_path):
    model = SVR(kernel="linear", C=1e-3).fit(1e-150 * X, 1e160 * Y)
    save(model, tmp_path / "model.symsvm")
    assert load(tmp_path / "model.symsvm").intercept_ == model.intercept_


MODELS = {
    "linear": SVC(kernel="linear"),
    "RBF": SVC(gamma=0.3),
    "Laplacian": SVC(kernel=Laplacian(0.5)),
    "polynomial": SVR(kernel=Polynomial(2, coef0=1.0)),
    "sigmoid": SVR(kernel=Sigmoid(0.1)),
    "sum": SVC(kernel=RBF(2.0) + 0.1 * Linear()),
    "one-class": OneClassSVM(gamma=0.3),
    "graph": SVC(kernel=pair_kernel(lambda x, z: (x[:2] * z[:2]).cumsum().sum() + 1.0)),
    "precomputed": SVC(kernel="precomputed"),
    "linear machine": LinearSVC(),
    "linear regression": LinearSVR(),
}


@pytest.mark.parametrize("m", [60, 400])
@pytest.mark.parametrize("name", MODELS)
def test_predictions_do_not_depend_on_the_rows_beside_a_row(name, m):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(m, 80 if m > 60 else 3))  # with a small model and with one that is not
    model = MODELS[name]
    value = model.predict if isinstance(model, (SVR, LinearSVR)) else model.decision_function
    if name == "precomputed":
        points = points @ points.T
    model.fit(points, np.where(rng.normal(size=m) > 0, 1, -1))
    every = value(points)
    for rows in ([3], [7, 3], list(range(50, 0, -1)), list(range(17))):
        np.testing.assert_array_equal(value(points[rows]), every[rows])
    if name != "precomputed":
        many = np.tile(points, (30, 1))
        np.testing.assert_array_equal(value(many), np.tile(every, 30))


@pytest.mark.parametrize("m", [60, 300])
def test_predictions_of_the_support_vectors_themselves_are_those_of_their_copies(m):
    X = np.random.default_rng(m).normal(size=(m, 3))
    model = SVC(C=0.5, gamma=0.7).fit(X, X[:, 0] + X[:, 1] ** 2 > 1)
    of_themselves = model.decision_function(model.support_vectors_)
    copies = model.support_vectors_.copy()
    one_by_one = np.concatenate([model.decision_function(copies[i : i + 1]) for i in range(len(copies))])
    assert np.array_equal(of_themselves, one_by_one)
    assert np.array_equal(of_themselves, model.decision_function(copies))
