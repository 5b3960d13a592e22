"""LIBSVM model files: models of LIBSVM and of symsvm give the same predictions in both."""

import ctypes
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import symsvm
from symsvm import RBF, SVC, SVR, Linear, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, Polynomial, Sigmoid
from symsvm.estimators.multiclass import votes
from symsvm.files import ModelFileError

X, y = load_iris(return_X_y=True)
Z = np.random.default_rng(0).normal(size=(200, 4)) * X.std(axis=0) + X.mean(axis=0)
WIDE = sparse.random_array((60, 300), density=0.05, format="csr", rng=np.random.default_rng(0))
KERNELS = {"linear": 0, "polynomial": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}
OURS = {
    "linear": Linear(),
    "polynomial": Polynomial(2, gamma=0.3, coef0=1.0),
    "rbf": RBF.from_gamma(0.3),
    "sigmoid": Sigmoid(gamma=0.02, coef0=-0.5),
    "precomputed": "precomputed",
}
MACHINES = {
    "c_svc": (SVC(C=2.0), "-s 0 -c 2"),
    "nu_svc": (NuSVC(nu=0.6), "-s 1 -n 0.6"),
    "one_class": (OneClassSVM(nu=0.3), "-s 2 -n 0.3"),
    "epsilon_svr": (SVR(C=2.0, epsilon=0.2), "-s 3 -c 2 -p 0.2"),
    "nu_svr": (NuSVR(C=2.0, nu=0.4), "-s 4 -c 2 -n 0.4"),
}
LABELS = {"three": np.array([7, -3, 5])[y], "two": np.where(y == 1, -1, 1), "other two": np.where(y == 0, -1, 1)}


@pytest.fixture(scope="module")
def svmutil():
    return pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")


def rows(A, kernel):
    """Points as LIBSVM's Python interface takes them; a precomputed kernel is that of linear points."""
    if kernel == "precomputed":
        A = A @ X.T
        return [{0: i + 1} | {j + 1: v for j, v in enumerate(row)} for i, row in enumerate(A.tolist())]
    return [{j + 1: v for j, v in enumerate(row)} for row in A.tolist()]


def predicted(svmutil, theirs, A, kernel):
    """Labels and decision values of LIBSVM; the buffer of its own `svm_predict` is too small for a nu_svc."""
    pairs = theirs.get_nr_class() * (theirs.get_nr_class() - 1) // 2
    labels, values, room = [], [], (ctypes.c_double * pairs)()
    for row in rows(A, kernel):
        nodes, _ = svmutil.gen_svm_nodearray(row, isKernel=kernel == "precomputed")
        labels.append(svmutil.libsvm.svm_predict_values(theirs, nodes, room))
        values.append(list(room))
    return np.array(labels), np.array(values)


def values_of(model, A, kernel):
    A = A @ X.T if kernel == "precomputed" else A
    if hasattr(model, "classes_"):
        model.set_params(decision_function_shape="ovo")
    return model.predict(A), (model.decision_function(A) if hasattr(model, "decision_function") else model.predict(A))


def assert_agree(model, theirs, svmutil, kernel, tol=1e-9):
    """Compare values to rounding, and classes but for tied votes: LIBSVM takes its first class, symsvm the sums."""
    labels, values = predicted(svmutil, theirs, Z, kernel)
    found, f = values_of(model, Z, kernel)
    order = theirs.get_labels() if hasattr(model, "classes_") else [1]
    if len(order) == 2:
        values = values if order[0] == model.classes_[1] else -values
    elif len(order) > 2:
        rank = {label: i for i, label in enumerate(model.classes_.tolist())}
        pairs = [(rank[a], rank[b]) for i, a in enumerate(order) for b in order[i + 1 :]]
        columns = sorted(range(len(pairs)), key=lambda p: sorted(pairs[p]))
        values = values[:, columns] * [1.0 if pairs[p][0] < pairs[p][1] else -1.0 for p in columns]
    np.testing.assert_allclose(f.reshape(values.shape), values, rtol=tol, atol=tol * np.abs(values).max())
    if not hasattr(model, "classes_"):
        np.testing.assert_allclose(found, labels, rtol=tol, atol=tol)
        return
    clear = np.abs(f).reshape(len(Z), -1).min(axis=1) > 1e-9
    if len(order) > 2:
        clear &= np.sort(votes(f, len(order)).round())[:, -1] == len(order) - 1
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(found[clear], labels[clear])


def cases():
    for name in MACHINES:
        for kernel in KERNELS:
            for labels in LABELS if name.endswith("svc") else ("three",):
                yield name, kernel, labels


@pytest.mark.parametrize(("name", "kernel", "labels"), list(cases()))
def test_models_in_both_directions(name, kernel, labels, svmutil, tmp_path):
    ours, options = MACHINES[name]
    target = LABELS[labels] if name.endswith("svc") else X[:, 0] + 0.1 * X[:, 1]
    options += f" -t {KERNELS[kernel]} -d 2 -q " + ("-g 0.02 -r -0.5" if kernel == "sigmoid" else "-g 0.3 -r 1")
    theirs = svmutil.svm_train(target.tolist(), rows(X, kernel), options)
    path = tmp_path / "theirs.libsvm"
    svmutil.svm_save_model(str(path), theirs)
    size = {"n_features": len(X)} if kernel == "precomputed" else {}
    assert_agree(symsvm.load(path, **size), svmutil.svm_load_model(str(path)), svmutil, kernel, 1e-6)

    limit = {"max_iter": 5} if kernel == "sigmoid" else {}
    model = type(ours)(**(ours.get_params() | {"kernel": OURS[kernel]} | limit))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an indefinite kernel need not converge here
        model.fit(X @ X.T if kernel == "precomputed" else X, target)
    symsvm.save(model, tmp_path / "ours.libsvm")
    assert_agree(model, svmutil.svm_load_model(str(tmp_path / "ours.libsvm")), svmutil, kernel)
    again = symsvm.load(tmp_path / "ours.libsvm")
    assert again.n_features_in_ == model.n_features_in_
    for found, expected in zip(values_of(again, Z, kernel), values_of(model, Z, kernel), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("labels", ["two", "other two"])
def test_probabilities_of_two_classes(labels, svmutil, tmp_path):
    target = LABELS[labels]
    theirs = svmutil.svm_train(target.tolist(), rows(X, "rbf"), "-t 2 -g 0.3 -b 1 -q")
    svmutil.svm_save_model(str(tmp_path / "m.libsvm"), theirs)
    model = symsvm.load(tmp_path / "m.libsvm")
    ours = SVC(calibration="sigmoid", random_state=0).fit(X, target)
    symsvm.save(ours, tmp_path / "ours.libsvm")
    for here, there in ((model, theirs), (ours, svmutil.svm_load_model(str(tmp_path / "ours.libsvm")))):
        p = np.array(svmutil.svm_predict([0] * len(Z), rows(Z, "rbf"), there, "-b 1 -q")[2])
        first = there.get_labels().index(here.classes_[0])
        np.testing.assert_allclose(here.predict_proba(Z)[:, 0], p[:, first], atol=1e-6)


def test_probabilities_of_more_classes_are_ignored_with_a_warning(svmutil, tmp_path):
    theirs = svmutil.svm_train(y.tolist(), rows(X, "rbf"), "-t 2 -g 0.3 -b 1 -q")
    svmutil.svm_save_model(str(tmp_path / "m.libsvm"), theirs)
    with pytest.warns(UserWarning, match="more than two classes are ignored"):
        assert symsvm.load(tmp_path / "m.libsvm").calibration is None


def test_empty_columns_stay_columns(tmp_path):
    points = sparse.hstack([WIDE, sparse.csr_array((60, 7))], format="csr")
    model = SVC().fit(points, np.arange(60) % 3)
    symsvm.save(model, tmp_path / "m.libsvm")
    other = symsvm.load(tmp_path / "m.libsvm")
    assert sparse.issparse(other.support_vectors_)
    np.testing.assert_allclose(other.decision_function(points), model.decision_function(points), atol=1e-12)
    assert symsvm.load(tmp_path / "m.libsvm", n_features=400).n_features_in_ == 400


def test_a_file_of_libsvm_becomes_a_native_one(svmutil, tmp_path):
    theirs = svmutil.svm_train(y.tolist(), rows(X, "rbf"), "-s 4 -t 2 -g 0.3 -q")
    svmutil.svm_save_model(str(tmp_path / "m.libsvm"), theirs)
    model = symsvm.load(tmp_path / "m.libsvm")
    assert model.certificate_.status == "unknown"
    symsvm.save(model, tmp_path / "m.symsvm")
    np.testing.assert_array_equal(symsvm.load(tmp_path / "m.symsvm").predict(Z), model.predict(Z))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SVC(multi_class="ovr").fit(X, y), "votes over pairs.*fit 'ovo', or use .symsvm"),
        (lambda: SVC(multi_class="dag").fit(X, y), "votes over pairs"),
        (lambda: SVC(kernel="laplacian").fit(X, y), "no kernel Laplacian.*save as .symsvm"),
        (lambda: SVC(kernel=RBF() + Linear()).fit(X, y), "no kernel"),
        (lambda: make_pipeline(StandardScaler(), SVC()).fit(X, y), "no scaling: save pipeline"),
        (lambda: LinearSVC().fit(X, y), "kernel='linear'"),
        (lambda: LinearSVR(max_iter=-1).fit(X, y), "kernel='linear'"),
        (lambda: SVC().fit(X, np.array(list("abc"))[y]), "labels are integers"),
        (lambda: SVC(calibration="sigmoid").fit(X, y), "sigmoid of two classes only"),
    ],
)
def test_models_that_libsvm_cannot_hold(make, sentence, tmp_path):
    with pytest.raises(ModelFileError, match=sentence):
        symsvm.save(make(), tmp_path / "m.libsvm")


@pytest.mark.skipif(
    not shutil.which("svm-train") or not shutil.which("svm-predict"),
    reason="svm-train and svm-predict are not installed (Debian: libsvm-tools)",
)
def test_the_programs_of_libsvm(tmp_path):
    """Every estimator, with the programs of LIBSVM instead of its Python interface."""
    target = y.astype("float64")
    dump_svmlight_file(X, target, str(tmp_path / "data"), zero_based=False)
    run = {"check": True, "cwd": tmp_path, "capture_output": True}
    for name, (ours, options) in MACHINES.items():
        subprocess.run(["svm-train", *options.split(), "-g", "0.3", "data", "theirs.libsvm"], **run)
        symsvm.save(
            type(ours)(**(ours.get_params() | {"kernel": RBF.from_gamma(0.3)})).fit(X, target), tmp_path / "o.libsvm"
        )
        for file in ("theirs.libsvm", "o.libsvm"):
            subprocess.run(["svm-predict", "data", file, "out"], **run)
            found, printed = symsvm.load(tmp_path / file).predict(X), np.loadtxt(tmp_path / "out")
            np.testing.assert_allclose(found, printed, rtol=1e-4, err_msg=f"{name}, {file}")  # it prints six digits
