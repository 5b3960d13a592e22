"""The estimators: scikit-learn's own checks, agreement with its results, and further features."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import symsvm
from symsvm import RBF, SVC, SVR, Linear, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, pair_kernel
from symsvm.data import Scaling

ESTIMATORS = {"SVC": SVC, "NuSVC": NuSVC, "SVR": SVR, "NuSVR": NuSVR, "OneClassSVM": OneClassSVM}
IRIS = load_iris(return_X_y=True)
MOONS = make_moons(120, noise=0.25, random_state=0)


DEFAULT_ESTIMATORS = (SVC(), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM(), LinearSVC(), LinearSVR())


def checks():
    """All checks but that of the array API, which has a test of its own."""
    for make in DEFAULT_ESTIMATORS:
        for estimator, check in estimator_checks_generator(make, mark="skip"):
            name = check.func.__name__ if hasattr(check, "func") else str(check)
            if name != "check_array_api_input":
                yield pytest.param(estimator, check, id=f"{type(make).__name__}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_scikit_learns_check_of_the_array_api():
    """It runs in another process: SCIPY_ARRAY_API must be set before SciPy is imported, and changes SciPy.

    With dispatch enabled, estimators and scalings give the same results for NumPy arrays.
    """
    code = """
import sys, warnings
warnings.simplefilter("ignore")
from sklearn.utils.estimator_checks import check_array_api_input
from symsvm import *
from symsvm.data import Scaling
for estimator in eval(sys.argv[1]):
    check_array_api_input(type(estimator).__name__, estimator, "numpy", check_values=True)
    print(estimator)
"""
    estimators = [*DEFAULT_ESTIMATORS, Scaling(), Scaling((0, 1)), Scaling("max-abs")]
    run = subprocess.run(
        [sys.executable, "-c", code, repr(estimators)],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [repr(estimator) for estimator in estimators]


def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=100)


# The sigmoid kernel is indefinite and has several optima: only the layout of SVC is compared.
LAYOUTS = [(name, kernel) for name in ESTIMATORS for kernel in ("rbf", "linear", "poly")] + [("SVC", "sigmoid")]


@pytest.mark.parametrize(("name", "kernel"), LAYOUTS)
def test_attributes_are_scikit_learns(name, kernel):
    X, y = regression() if "SVR" in name else IRIS
    options = {"kernel": kernel, "tol": 1e-6}
    options |= {"gamma": 0.05, "coef0": -1.0} if kernel == "sigmoid" else {"coef0": 1.0}
    if kernel == "poly":
        options["degree"] = 2
    ours, theirs = ESTIMATORS[name](**options).fit(X, y), getattr(sklearn.svm, name)(**options).fit(X, y)
    assert ours.dual_coef_.shape[0] == theirs.dual_coef_.shape[0]
    assert ours.n_support_.shape == theirs.n_support_.shape
    assert ours.support_.dtype == theirs.support_.dtype
    assert ours.intercept_.shape == theirs.intercept_.shape
    scale = np.abs(theirs.predict(X)).max() if "SVR" in name else 1.0
    if "SVR" in name:
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3 * scale)
    else:
        a, b = (model.set_params(decision_function_shape="ovo") if "SVC" in name else model for model in (ours, theirs))
        values = a.decision_function(X)
        np.testing.assert_allclose(values, b.decision_function(X), atol=2e-3)
        clear = np.abs(values.reshape(len(X), -1)).min(axis=1) > 2e-3  # the others are ties
        if "SVC" in name:
            clear &= theirs.set_params(decision_function_shape="ovr").decision_function(X).round().max(1) >= 2
        np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
        ours.set_params(decision_function_shape="ovr") if "SVC" in name else None
    if kernel == "linear" and name != "OneClassSVM":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    if kernel == "rbf" and name == "SVC":
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
        votes = [model.decision_function(X) for model in (ours, theirs)]
        np.testing.assert_allclose(*votes, atol=1e-4)


def test_a_model_does_not_change_with_the_array_that_it_was_fitted_to():
    X, y = make_moons(30, noise=0.2, random_state=0)
    for kernel in ("rbf", lambda A, B: (1 + A @ B.T) ** 2):
        mine = X.copy()
        model = SVC(kernel=kernel).fit(mine, y)
        expected = model.decision_function(X)
        mine[:] = 0.0
        np.testing.assert_array_equal(model.decision_function(X), expected)


def test_kernel_objects_strings_functions_and_matrices_agree():
    X, y = MOONS
    K = np.exp(-2.0 * ((X[:, None] - X[None]) ** 2).sum(-1))
    by_name = SVC(gamma=2.0, tol=1e-8).fit(X, y)
    by_object = SVC(kernel=RBF.from_gamma(2.0), tol=1e-8).fit(X, y)
    by_hand = SVC(kernel=pair_kernel(lambda x, z: (-2.0 * ((x - z) ** 2).sum()).exp()), tol=1e-8).fit(X, y)
    matrix = SVC(kernel="precomputed", tol=1e-8).fit(K, y)
    function = SVC(kernel=lambda A, B: np.exp(-2.0 * ((A[:, None] - B[None]) ** 2).sum(-1)), tol=1e-8).fit(X, y)
    expected = by_name.decision_function(X)
    for model, points in ((by_object, X), (by_hand, X), (matrix, K), (function, X)):
        np.testing.assert_allclose(model.decision_function(points), expected, atol=1e-7)
    assert by_name.certificate_.status == by_object.certificate_.status == "optimal"
    assert matrix.certificate_.status == "stationary"
    with pytest.raises(ValueError, match="gamma belongs to kernels named by a string"):
        SVC(kernel=RBF(1.0), gamma=2.0).fit(X, y)
    with pytest.raises(ValueError, match="'rbf'"):
        SVC(kernel="rfb").fit(X, y)
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(K[:, :50], y)
    with pytest.raises(ValueError, match="symmetric"):
        SVC(kernel="precomputed").fit(K + np.triu(K, 1), y)


def test_a_grid_over_a_kernels_parameters_a_pipeline_and_clones():
    X, y = MOONS
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC(kernel=RBF(1.0) + 0.1 * Linear())),
        {"svc__kernel__k1__sigma": [0.3, 1.0], "svc__C": [1.0, 10.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.8
    assert "svc__kernel__k1__sigma" in search.best_params_
    model = SVC(kernel=RBF(0.5))
    copy = clone(model).set_params(kernel__sigma=2.0)
    assert (model.kernel.sigma, copy.kernel.sigma) == (0.5, 2.0)
    assert cross_val_score(CalibratedClassifierCV(SVC(), cv=3), X, y, cv=3).mean() > 0.75
    fitted = SVC(kernel=RBF(0.5)).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.certificate_.status == "optimal"
    assert "SVC" in fitted._repr_html_()


@pytest.mark.parametrize("make", [SVC, NuSVC, LinearSVC])
def test_weights_are_routed_to_steps_that_request_them(make):
    X, y = MOONS
    weights = np.where(y == y[0], 1.5, 0.8)
    scaled = StandardScaler().fit_transform(X)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        asked = make().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        line = make_pipeline(scaler, asked).fit(X, y, sample_weight=weights)
        search = GridSearchCV(asked, {}, cv=2).fit(scaled, y, sample_weight=weights)
        with pytest.raises(ValueError, match=make.__name__):
            make_pipeline(scaler, make()).fit(X, y, sample_weight=weights)
    values = make().fit(scaled, y, sample_weight=weights).decision_function(scaled)
    for found in (line.decision_function(X), search.decision_function(scaled)):
        np.testing.assert_allclose(found, values, rtol=1e-9)
    assert np.abs(values - make().fit(scaled, y).decision_function(scaled)).max() > 1e-3


def test_a_diagram_shows_a_model_and_its_kernel():
    with sklearn.config_context(display="diagram"):
        page = make_pipeline(StandardScaler(), SVC(kernel=RBF(0.5)))._repr_html_()
    assert "StandardScaler" in page
    assert "RBF(sigma=0.5)" in page


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "dag"])
@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_multi_class_schemes(make, scheme):
    X, y = load_digits(n_class=5, return_X_y=True)
    options = {"nu": 0.1} if make is NuSVC else {"C": 5.0}
    model = make(multi_class=scheme, **options).fit(X[:300], y[:300])
    assert model.score(X[300:600], y[300:600]) > 0.95
    assert model.decision_function(X[:7]).shape == (7, 5)
    if scheme != "ovr":
        assert model.set_params(decision_function_shape="ovo").decision_function(X[:7]).shape == (7, 10)
        assert len(model.certificate_) == 10
    else:
        np.testing.assert_array_equal(
            model.predict(X[:50]), model.classes_[np.argmax(model.decision_function(X[:50]), axis=1)]
        )
        with pytest.raises(ValueError, match="has no pairs"):
            make(multi_class="ovr", decision_function_shape="ovo", **options).fit(X[:300], y[:300])
    assert all(certificate.status == "optimal" for certificate in model.certificate_)


def test_dag_makes_k_minus_1_decisions_per_point(monkeypatch):
    X, y = load_digits(n_class=6, return_X_y=True)
    model = SVC(multi_class="dag").fit(X[:300], y[:300])
    asked = []
    values = SVC.expansion
    monkeypatch.setattr(SVC, "expansion", lambda self, X, coef: asked.append(len(X)) or values(self, X, coef))
    model.predict(X[300:400])
    assert sum(asked) == 5 * 100


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "OneClassSVM"])
def test_a_weight_of_k_equals_k_copies(name):
    X, y = regression()
    if "SVC" in name:
        y = np.digitize(y, [-0.5, 0.5])
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    options = {"nu": 0.2} if name in ("NuSVC", "OneClassSVM") else {}
    options |= {"class_weight": "balanced"} if name == "SVC" else {}
    weighted, repeated = ESTIMATORS[name](**options), ESTIMATORS[name](**options)
    weighted.fit(X, y, sample_weight=weights)
    repeated.fit(X[copies], y[copies])
    method = "predict" if name == "SVR" else "decision_function"
    np.testing.assert_allclose(getattr(weighted, method)(X), getattr(repeated, method)(X), atol=1e-7)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_agree_with_predictions(method, classes):
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, n_classes=classes, random_state=0)
    model = SVC(calibration=method, random_state=0).fit(X[:200], y[:200])
    p = model.predict_proba(X[200:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[np.argmax(p, axis=1)], model.predict(X[200:]))
    loss = -np.mean(np.log(np.maximum(p[np.arange(100), y[200:]], 1e-3)))
    assert loss < 0.9 * np.log(classes)
    np.testing.assert_array_equal(
        p, SVC(calibration=method, random_state=0).fit(X[:200], y[:200]).predict_proba(X[200:])
    )
    plain = SVC().fit(X[:200], y[:200])
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        plain.predict_proba(X)


def test_one_number_as_the_weight_of_all_points_is_calibrated_like_a_vector():
    X, y = MOONS
    one, each = (
        SVC(calibration="sigmoid", random_state=0).fit(X, y, sample_weight=weight).predict_proba(X)
        for weight in (2.0, np.full(len(y), 2.0))
    )
    np.testing.assert_array_equal(one, each)


def test_modes_of_the_intercept():
    X, y = MOONS
    free = SVC(kernel="linear", tol=1e-8).fit(X + 1.0, y)
    none = SVC(kernel="linear", fit_intercept=False, tol=1e-8).fit(X + 1.0, y)
    embedded = SVC(kernel="linear", penalize_intercept=True, tol=1e-8).fit(X + 1.0, y)
    wide = SVC(kernel="linear", penalize_intercept=True, intercept_scaling=100.0, tol=1e-8).fit(X + 1.0, y)
    assert none.intercept_[0] == 0.0
    augmented = SVC(kernel="linear", fit_intercept=False, tol=1e-8).fit(np.column_stack([X + 1.0, np.ones(len(y))]), y)
    np.testing.assert_allclose(embedded.intercept_[0], augmented.coef_[0, -1], atol=1e-7)
    np.testing.assert_allclose(embedded.coef_[0], augmented.coef_[0, :-1], atol=1e-7)
    np.testing.assert_allclose(wide.intercept_, free.intercept_, rtol=1e-3)  # hardly penalised
    liblinear = sklearn.svm.LinearSVC(loss="hinge", tol=1e-10, max_iter=10**6, dual=True).fit(X + 1.0, y)
    np.testing.assert_allclose(embedded.coef_, liblinear.coef_, atol=1e-3)
    np.testing.assert_allclose(embedded.intercept_, liblinear.intercept_, atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"penalty": "l1"}, {"fit_intercept": False}])
@pytest.mark.parametrize("data", ["two", "three"])
def test_linear_classifiers_agree_with_liblinear(data, options):
    X, y = IRIS if data == "three" else (IRIS[0][50:], IRIS[1][50:])
    theirs = sklearn.svm.LinearSVC(
        dual=options.get("penalty") != "l1", tol=1e-8, max_iter=10**6, random_state=0, **options
    )
    ours = LinearSVC(tol=1e-7, max_iter=-1, **options).fit(X, y)
    theirs.fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    certificates = ours.certificate_ if isinstance(ours.certificate_, list) else [ours.certificate_]
    assert all(certificate.relative_gap < 1e-6 for certificate in certificates)


def test_linear_and_kernel_estimators_reach_the_same_optimum():
    X, y = MOONS
    for penalize in (True, False):
        linear = LinearSVC(loss="hinge", penalize_intercept=penalize, tol=1e-8, max_iter=-1).fit(X, y)
        kernel = SVC(kernel="linear", penalize_intercept=penalize, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(linear.coef_, kernel.coef_, atol=1e-4)
        np.testing.assert_allclose(linear.intercept_, kernel.intercept_, atol=1e-4)
        assert linear.certificate_.primal == pytest.approx(kernel.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("scheme", ["ovr", "ovo", "crammer_singer"])
def test_linear_multi_class_schemes(scheme):
    X, y = load_digits(n_class=5, return_X_y=True)
    X = X / 16
    model = LinearSVC(multi_class=scheme, C=0.1).fit(sparse.csr_matrix(X[:400]), y[:400])
    assert model.score(X[400:800], y[400:800]) > 0.95
    assert model.decision_function(X[:5]).shape == (5, 5)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_warm_start_of_linear_estimators():
    X, y = MOONS
    model = LinearSVC(warm_start=True, C=1.0).fit(X, y)
    model.set_params(C=1.1).fit(X, y)
    np.testing.assert_allclose(model.coef_, LinearSVC(C=1.1).fit(X, y).coef_, atol=1e-3)
    other = LinearSVC(C=1.1)
    other.start_from(model.solutions_)
    assert other.fit(X, y).n_iter_ <= LinearSVC(C=1.1).fit(X, y).n_iter_
    regressor = LinearSVR(warm_start=True).fit(X, y)
    assert regressor.fit(X, y).score(X, y) == pytest.approx(LinearSVR().fit(X, y).score(X, y), abs=1e-3)


def test_other_solvers_and_backends_reach_the_same_optimum():
    X, y = MOONS
    exact = SVC(tol=1e-6).fit(X, y)
    for options in ({"solver": "accelerated-gradient", "mode": "JAX"}, {"mode": "JAX"}):
        model = SVC(tol=1e-4, **options).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=5e-3)
        assert model.certificate_.status == "optimal"
    with pytest.raises(ValueError, match="solver must be one of"):
        SVC(solver="fastest").fit(X, y)


def test_frames_sparse_matrices_and_float32():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = MOONS
    expected = SVC().fit(X, y)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = SVC().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.predict(frame), expected.predict(X))
    other = polars.DataFrame(X, schema=["a", "b"])
    np.testing.assert_array_equal(SVC().fit(other, y).predict(other), expected.predict(X))
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array):
        matrix = kind(X)
        if matrix.format == "csr":
            matrix.indices, matrix.indptr = matrix.indices.astype("int64"), matrix.indptr.astype("int64")
        sparse_model = SVC().fit(matrix, y)
        np.testing.assert_allclose(sparse_model.decision_function(matrix), expected.decision_function(X), atol=1e-6)
    small = SVC().fit(X.astype("float32"), y)
    assert small.decision_function(X.astype("float32")).dtype == np.float32
    assert SVR().fit(X.astype("float32"), y).predict(X.astype("float32")).dtype == np.float32


def test_a_prediction_does_not_depend_on_other_rows():
    X, y = load_digits(return_X_y=True)
    model = SVC().fit(X[:500], y[:500])
    whole = model.decision_function(X)
    alone = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(0, 60)])
    np.testing.assert_allclose(alone, whole[:60], atol=1e-10)


def test_certificates_traces_and_explanations():
    X, y = MOONS
    model = SVC(C=5.0).fit(X, y)
    assert model.certificate_.violation <= 1e-3
    assert len(model.trace_["W"]) == model.n_iter_[0] + 1
    assert "Eq. 21" in model.explain()
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="max_iter=1"):
        short = SVC(C=1e4, tol=1e-10, max_iter=1).fit(*make_moons(800, noise=0.4, random_state=0))
    assert short.fit_status_ == 1
    assert short.certificate_.status in ("feasible", "optimal")


def test_errors_say_what_is_wrong():
    X, y = MOONS
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        SVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="nu must be at most 0.2"):
        NuSVC(nu=0.5).fit(X[:20], np.arange(20) < 2)
    with pytest.raises(ValueError, match="C must be positive"):
        SVC(C=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="class_weight names 7"):
        SVC(class_weight={7: 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        SVC().fit(X, y, sample_weight=-np.ones(len(y)))


def test_the_estimators_are_lazy_names_of_symsvm():
    assert symsvm.SVC is SVC
    assert "SVC" in dir(symsvm)
    with pytest.raises(AttributeError, match="no attribute 'SVX'"):
        _ = symsvm.SVX


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (SVC(), "symsvm.estimators.kernel_source.solve_dual"),
        (LinearSVC(), "symsvm.estimators.linear_classifier.solve_linear"),
    ],
    ids=["SVC", "LinearSVC"],
)
def test_ctrl_c_in_one_of_many_problems_ends_the_fit_with_feasible_solutions(model, name, monkeypatch):
    X, y = load_iris(return_X_y=True)
    module, _, function = name.rpartition(".")
    original, calls = getattr(sys.modules[module], function), []

    def solve(*args, callback=None, **options):
        calls.append(callback)
        return original(*args, callback=_ctrl_c if len(calls) == 2 else callback, **options)

    monkeypatch.setattr(name, solve)
    with pytest.warns(ConvergenceWarning, match="by an interrupt") as caught:
        model = clone(model).fit(X, y)
    assert len(caught) == 1
    assert [solution.stopped for solution in model.solutions_] == ["tol", "interrupt", "interrupt"]
    assert all(certificate.infeasibility <= 1e-12 for certificate in model.certificate_)
    assert np.isfinite(model.decision_function(X)).all()


def _ctrl_c(info):
    raise KeyboardInterrupt


@pytest.mark.parametrize("model", [SVC(), LinearSVC()], ids=["SVC", "LinearSVC"])
def test_watching_a_fit(model):
    X, y = load_iris(return_X_y=True)
    model, seen = clone(model), []
    with model.watching(seen.append) as watching:
        model.fit(X, y)
        assert (watching.problem, watching.is_solving) == (2, False)
        assert "_monitor" not in vars(copy.deepcopy(model))
    assert "_monitor" not in vars(model)
    iterations = [[info.iteration for info in seen if info.problem == k] for k in range(3)]
    assert iterations == [trace["iteration"].tolist() for trace in model.trace_]
    with model.watching(lambda info: info.problem == 1), pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert "by the callback" in str(caught[0].message)
    assert [solution.stopped for solution in model.solutions_] == ["tol", "callback", "callback"]
    assert all(certificate.infeasibility <= 1e-12 for certificate in model.certificate_)
    assert [s.stopped for s in model.fit(X, y).solutions_] == ["tol"] * 3
    with pytest.raises(TypeError, match="callback must be a function of an Info, got 3"), model.watching(3):
        pass


def test_interrupted_work_that_cannot_be_repeated_ends_a_fit(monkeypatch):
    errors = [KeyboardInterrupt(), AttributeError("partially initialized module")]

    def solve(*args, **options):
        raise errors.pop(0)

    monkeypatch.setattr("symsvm.estimators.kernel_source.solve_dual", solve)
    model = SVC()
    with model.watching(lambda info: False), pytest.raises(KeyboardInterrupt):
        model.fit(*load_iris(return_X_y=True))


def test_ctrl_c_before_the_first_iteration_raises_only_without_a_callback(monkeypatch):
    X, y = load_iris(return_X_y=True)
    original, calls = sys.modules["symsvm.estimators.kernel_source"].solve_dual, []

    def solve(*args, **options):
        calls.append(0)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr("symsvm.estimators.kernel_source.solve_dual", solve)
    with pytest.raises(KeyboardInterrupt):
        SVC().fit(X, y)
    calls.clear()
    model = SVC()
    with model.watching(lambda info: False), pytest.warns(ConvergenceWarning, match="by an interrupt") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert [solution.stopped for solution in model.solutions_] == ["interrupt"] * 3
    assert [certificate.infeasibility for certificate in model.certificate_] == [0.0] * 3


def test_the_solver_qp_calls_no_callback():
    pytest.importorskip("clarabel")
    X, y = MOONS
    model, seen = SVC(solver="qp"), []
    with model.watching(seen.append):
        model.fit(X, y)
    assert seen == []
    assert model.certificate_.status == "optimal"
