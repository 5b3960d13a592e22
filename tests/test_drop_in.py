"""A program written for scikit-learn's machines runs on ours: parameters, attributes, containers, callbacks, words."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.fixes import parse_version

from symsvm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM, load, save
from symsvm.data import Scaling

ROOT = Path(__file__).parent.parent
IRIS = load_iris(return_X_y=True)
MOONS = make_moons(80, noise=0.25, random_state=0)
IS_19 = parse_version(sklearn.__version__) >= parse_version("1.9")
needs_19 = pytest.mark.skipif(not IS_19, reason="scikit-learn before 1.9 has no callbacks, and other tests")
KERNEL_MACHINES = (SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM())


@needs_19
def test_scikit_learns_own_tests_pass_but_for_those_that_the_docs_name():
    """About half of them; `python tools/sklearn_tests.py` runs all."""
    part = "not lil and not csr_matrix and not sigmoid"
    line = [sys.executable, str(ROOT / "tools" / "sklearn_tests.py"), "-k", part]
    run = subprocess.run(line, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "FAILED" not in run.stdout
    passed, total = (int(word) for word in run.stdout.splitlines()[-1].split(" tests")[0].split(" of "))
    assert total > 120
    assert total - passed <= 9  # what fails by intention is in this half


# ---- probability


@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_probability_fits_sigmoids_and_leaves_predictions(make):
    X, y = MOONS
    with pytest.warns(FutureWarning, match="probability.+parameter.+deprecated"):
        model = make(probability=True, random_state=0).fit(X, y)
    assert model.calibration is None  # a fit changes no parameter
    np.testing.assert_array_equal(model.predict(X), make().fit(X, y).predict(X))
    calibrated = make(calibration="sigmoid", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), calibrated.predict_proba(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    for name, column in (("probA_", 0), ("probB_", 1)):
        with pytest.warns(FutureWarning, match=f"Attribute `{name}` was deprecated"):
            assert getattr(model, name)[0] == model.calibration_.maps[0][column]


def test_probabilities_come_with_a_fit_not_with_the_parameter():
    model = SVC().fit(*MOONS)
    assert not hasattr(model, "predict_proba")
    model.probability = True
    with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
        model.predict_proba(MOONS[0])
    with pytest.raises(ValueError, match="probability must be True or False, got 'yes'"):
        SVC(probability="yes").fit(*MOONS)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_class_of_one_point_has_a_probability():
    X, y = np.array([[0.0], [1.0], [2.0], [2.2], [5.0]]), [1, 2, 2, 2, 3]
    with pytest.warns(UserWarning, match="2 of the 3 classes have one point each"):
        p = SVC(probability=True, random_state=0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="at least two points of each class"):
        SVC(calibration="sigmoid").fit(X, y)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_file_keeps_the_probabilities(tmp_path):
    model = SVC(probability=True, random_state=0).fit(*IRIS)
    save(model, tmp_path / "model.symsvm")
    other = load(tmp_path / "model.symsvm")
    np.testing.assert_array_equal(other.predict_proba(IRIS[0]), model.predict_proba(IRIS[0]))
    np.testing.assert_array_equal(other.predict(IRIS[0]), model.predict(IRIS[0]))


# ---- attributes


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.lil_matrix])
@pytest.mark.parametrize("model", KERNEL_MACHINES, ids=lambda model: type(model).__name__)
def test_sparse_points_give_sparse_attributes(model, container, tmp_path):
    X, y = IRIS[0][::3], IRIS[1][::3]
    dense, other = clone(model).set_params(kernel="linear"), clone(model).set_params(kernel="linear")
    dense.fit(X, y)
    other.fit(container(X), y)
    for name in ("support_vectors_", "dual_coef_", "coef_"):
        assert sparse.issparse(getattr(other, name)), name
        np.testing.assert_allclose(getattr(other, name).toarray(), getattr(dense, name), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.predict(X), dense.predict(X), atol=1e-8)
    for again in (pickle.loads(pickle.dumps(other)), copy.deepcopy(other)):
        assert (again.dual_coef_ != other.dual_coef_).nnz == 0
    save(other, tmp_path / "model.symsvm")
    assert (load(tmp_path / "model.symsvm").dual_coef_ != other.dual_coef_).nnz == 0


@pytest.mark.parametrize("make", [sparse.csr_array, np.asarray])
def test_coef_cannot_be_written_to(make):
    model = SVC(kernel="linear").fit(make(MOONS[0]), MOONS[1])
    with pytest.raises(ValueError, match="read-only"):
        (model.coef_.data if sparse.issparse(model.coef_) else model.coef_)[0] = 1.0


def test_sparsified_weights_predict_the_same(tmp_path):
    X, y = IRIS
    model = LinearSVC(penalty="l1", C=0.1).fit(X, y)
    values = model.decision_function(X)
    assert sparse.issparse(model.sparsify().coef_)
    for points in (X, sparse.csr_matrix(X)):
        np.testing.assert_allclose(model.decision_function(points), values, rtol=1e-12)
    save(model, tmp_path / "model.symsvm")
    np.testing.assert_array_equal(load(tmp_path / "model.symsvm").coef_, model.densify().coef_)


def test_gamma_is_where_converters_look_for_it():
    X = np.array([[0.0], [1.0]])
    assert SVC().fit(X, [0, 1])._gamma == pytest.approx(4.0)
    assert SVC(kernel="poly", gamma=0.5).fit(X, [0, 1])._gamma == 0.5


# ---- votes


@pytest.mark.parametrize("break_ties", [False, True])
def test_ties_of_votes_go_to_the_same_class_as_in_scikit_learn(break_ties):
    X, y = make_blobs(60, centers=[[0, 0], [1, 0], [0.5, 0.8]], cluster_std=0.3, random_state=0)
    Z = np.stack(np.meshgrid(np.linspace(-1, 2, 60), np.linspace(-1, 2, 60)), axis=-1).reshape(-1, 2)
    options = {"C": 10.0, "gamma": 2.0, "tol": 1e-8, "break_ties": break_ties}
    ours, theirs = SVC(**options).fit(X, y), sklearn.svm.SVC(**options).fit(X, y)
    values = theirs.set_params(decision_function_shape="ovo").decision_function(Z)
    theirs.set_params(decision_function_shape="ovr")
    clear = np.abs(values).min(axis=1) > 1e-6
    ties = clear & (np.round(theirs.decision_function(Z)).max(axis=1) < 2)
    assert ties.sum() > 5
    np.testing.assert_array_equal(ours.predict(Z)[clear], theirs.predict(Z)[clear])
    best = np.argmax(ours.decision_function(Z[ties]), axis=1)
    assert np.array_equal(best, ours.predict(Z[ties])) is break_ties


def test_ties_of_pairs_of_values_cannot_be_broken():
    model = SVC(decision_function_shape="ovo", break_ties=True).fit(*IRIS)
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        model.predict(IRIS[0])


# ---- weights and penalties


def test_negative_weights_leave_points_out():
    X, y = MOONS
    weights = np.where(np.arange(len(y)) % 7 == 0, -0.5, 1.0)
    for make in (SVC, SVR, LinearSVC):
        with pytest.warns(UserWarning, match=f"sample_weight has {(weights < 0).sum()} negative weights"):
            model = make().fit(X, y, sample_weight=weights)
        without = make().fit(X, y, sample_weight=np.maximum(weights, 0.0))
        np.testing.assert_array_equal(model.predict(X), without.predict(X))
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        SVC().fit(X, y, sample_weight=-1.0)
    with pytest.raises(ValueError, match="all samples with positive weights belong to the same class, 1"):
        SVC().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC().fit(X, y, sample_weight=y)


def test_an_infinite_C_is_a_hard_margin():
    X, y = MOONS
    hard, large = SVC(C=np.inf, gamma=20.0).fit(X, y), SVC(C=1e10, gamma=20.0).fit(X, y)
    np.testing.assert_allclose(hard.decision_function(X), large.decision_function(X), atol=1e-9)
    assert (hard.decision_function(X) * (2 * y - 1)).min() > 1 - 1e-6
    assert hard.get_params()["C"] == np.inf
    with pytest.raises(ValueError, match="C=inf asks for a fit without errors"):
        SVC(C=np.inf, kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="C must be finite"):
        LinearSVC(C=np.inf).fit(X, y)


# ---- containers


def strings(A, B):
    return np.array([[float(a.count("A") * b.count("A") + a.count("B") * b.count("B")) for b in B] for a in A])


def test_a_function_takes_points_that_are_not_numbers():
    words, y = ["A A", "A", "B", "B B", "A B", "B A A"], np.array([1, 1, 2, 2, 1, 2])
    X = np.array([[word.count("A"), word.count("B")] for word in words], dtype="float64")
    weights = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    for make in (SVC, SVR):
        by_words = make(kernel=strings).fit(words, y, sample_weight=weights)
        by_numbers = make(kernel="linear").fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(by_words.predict(words), by_numbers.predict(X), atol=1e-9)
        for container in (np.array(words), np.array(words, dtype=object), pd.Series(words)):
            np.testing.assert_array_equal(clone(by_words).fit(words, y).predict(container[:2]).shape, (2,))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(kernel=strings).fit(words, y[:3])
    with pytest.raises(ValueError, match="must be a matrix between 6 and 6 points"):
        SVC(kernel=lambda A, B: np.ones((1, 1))).fit(words, y)


class OnlyDLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


NAMES = ["a", "b", "c", "d"]
CONTAINERS = {
    "pandas": (lambda X: pd.DataFrame(X, columns=NAMES), pd.Series),
    "polars": (lambda X: pl.DataFrame(X, schema=NAMES), pl.Series),
    "arrow": (lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))), pa.array),
    "jax": (jax.numpy.asarray, jax.numpy.asarray),
    "dlpack": (OnlyDLPack, OnlyDLPack),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers(kind):
    X, y = IRIS[0].astype("float32"), IRIS[1]
    points, labels = (make(values) for make, values in zip(CONTAINERS[kind], (X, y), strict=True))
    for make in (SVC, LinearSVC, OneClassSVM):
        model, expected = make().fit(points, labels), make().fit(X, y)
        found = model.predict(points)
        np.testing.assert_array_equal(np.asarray(found), expected.predict(X))
        assert isinstance(found, jax.Array) is (kind == "jax")
        assert hasattr(model, "feature_names_in_") is (kind in ("pandas", "polars", "arrow"))


def test_jax_arrays_are_answered_by_jax_arrays():
    X, y = MOONS
    model = SVC(calibration="sigmoid", random_state=0).fit(jax.numpy.asarray(X), y)
    Z = jax.numpy.asarray(X[:5], dtype="float32")
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        found = getattr(model, name)(Z)
        assert isinstance(found, jax.Array)
        np.testing.assert_allclose(found, getattr(model, name)(np.asarray(Z)), rtol=1e-6)
    words = SVC().fit(X, np.where(y == 1, "yes", "no"))
    assert isinstance(words.predict(Z), np.ndarray)
    assert words.score(Z, np.where(y[:5] == 1, "yes", "no")) <= 1.0


def test_output_of_scalings_and_the_link_of_the_picture():
    frame = pd.DataFrame(IRIS[0], columns=NAMES)
    assert list(Scaling().set_output(transform="pandas").fit_transform(frame).columns) == NAMES
    assert "symsvm/blob/main/docs/estimators.md" in SVC()._repr_html_()


# ---- callbacks


class Recorder:
    """A callback that keeps the tasks, and stops after some of them."""

    def __init__(self, stop=()):
        self.stop, self.events, self.fitted, self.infos, self.X = stop, [], [], [], None

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, metadata=None, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        self.X = X
        if "info" in metadata:
            self.infos.append(metadata["info"])
        if fitted_estimator is not None:
            self.fitted.append(fitted_estimator)
        return (context.task_name, context.task_id) in self.stop


@needs_19
@pytest.mark.parametrize("model", [SVC(), LinearSVC(), SVR(), OneClassSVM()], ids=lambda model: type(model).__name__)
def test_callbacks_see_the_tasks_of_a_fit(model):
    X, y = IRIS
    recorder = Recorder()
    fitted = clone(model.set_callbacks(recorder)).fit(X, y)  # a clone keeps them
    model.set_callbacks()
    problems = len(fitted.solutions_)
    events = recorder.events
    assert (events[0], events[1], events[-2], events[-1]) == ("setup", ("begin", "fit"), ("end", "fit"), "teardown")
    assert events.count(("begin", "problem")) == events.count(("end", "problem")) == problems
    assert {info.problem for info in recorder.infos} <= set(range(problems))
    assert len(recorder.infos) >= problems
    assert recorder.X is X
    np.testing.assert_array_equal(recorder.fitted[0].predict(X), fitted.predict(X))
    assert not {"_monitor", "_callback_fit_ctx", "_skl_callbacks_to_teardown"} & set(vars(fitted))


@needs_19
def test_a_callback_stops_a_fit_and_watching_still_works():
    recorder, seen = Recorder(stop=[("problem", 0)]), []
    model = SVC().set_callbacks(recorder)
    with model.watching(seen.append):
        model.fit(*IRIS)
    assert [solution.stopped for solution in model.solutions_] == ["tol", "callback", "callback"]
    assert {info.problem for info in seen} == {0}
    recorder = Recorder(stop=[("iteration", 0)])
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        model = SVC(C=100.0).set_callbacks(recorder).fit(*make_moons(900, noise=0.3, random_state=0))
    assert model.solutions_[0].stopped == "callback"
    assert recorder.events[-1] == "teardown"
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[np.nan], [1.0]], [0, 1])
    assert recorder.events[-1] == "teardown"


@needs_19
def test_a_calibration_has_callbacks_of_its_own_task_only():
    recorder = Recorder()
    model = SVC(calibration="sigmoid", random_state=0).set_callbacks(recorder).fit(*MOONS)
    assert recorder.events.count("setup") == 1
    model.calibrate(*MOONS, "isotonic")
    assert recorder.events[-3:] == [("begin", "calibrate"), ("end", "calibrate"), "teardown"]


# ---- messages


def test_verbose_prints_a_line_for_each_problem(capsys):
    for model in (LinearSVC(verbose=1), LinearSVC(verbose=True, multi_class="crammer_singer"), SVC(verbose=True)):
        model.fit(*IRIS)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == len(model.solutions_)
        assert all(line.startswith("symsvm: iteration") for line in lines)


def test_messages_begin_with_scikit_learns_words():
    with pytest.warns(ConvergenceWarning, match=r"^Solver terminated early \(max_iter=1\)"):
        SVC(C=1e4, tol=1e-10, max_iter=1).fit(*make_moons(800, noise=0.4, random_state=0))
    with pytest.raises(ValueError, match="Unsupported set of arguments.*penalty='l1'.*loss='hinge'.*dual='auto'"):
        LinearSVC(penalty="l1", loss="hinge").fit(*MOONS)
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        SVC(kernel="precomputed").fit(sparse.eye(4, format="csr"), [0, 0, 1, 1])
