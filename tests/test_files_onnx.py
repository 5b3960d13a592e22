"""ONNX files, run by onnxruntime and compared with the models that they were made from."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, QuantileTransformer, StandardScaler

import symsvm
from symsvm import (
    RBF,
    SVC,
    SVR,
    Laplacian,
    Linear,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Polynomial,
    Sigmoid,
)
from symsvm.data import Scaling
from symsvm.files import ModelFileError, parity

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
Z = np.random.default_rng(0).normal(size=(2000, 4)) * 2 * X.std(axis=0) + X.mean(axis=0)
BOTH = {
    "two": lambda: SVC().fit(X, y == 1),
    "three": lambda: SVC(C=0.05).fit(X, y),
    "strings": lambda: NuSVC(nu=0.4).fit(X, NAMES[y]),
    "objects": lambda: SVC().fit(X, NAMES[y].astype(object)),
    "floats": lambda: SVC().fit(X, y * 2.0),
    "pairs": lambda: SVC(decision_function_shape="ovo").fit(X, y),
    "dag": lambda: SVC(multi_class="dag", C=0.05).fit(X, y),
    "ovr": lambda: SVC(multi_class="ovr", kernel="poly", degree=2, coef0=1.0).fit(X, y),
    "sigmoid kernel": lambda: SVC(kernel=Sigmoid(0.01, -0.5)).fit(X, y),
    "linear kernel": lambda: SVC(kernel="linear").fit(X, y),
    "sigmoid": lambda: SVC(calibration="sigmoid", random_state=0).fit(X, y),
    "two, sigmoid": lambda: SVC(calibration="sigmoid", random_state=0).fit(X, y == 1),
    "isotonic": lambda: LinearSVC(calibration="isotonic", random_state=0).fit(X, y),
    "two, isotonic": lambda: SVC(calibration="isotonic", random_state=0).fit(X, y == 1),
    "svr": lambda: SVR().fit(X, y),
    "nu svr": lambda: NuSVR(kernel=Polynomial(2, coef0=1.0)).fit(X, y),
    "one class": lambda: OneClassSVM(nu=0.3).fit(X),
    "sparse": lambda: SVC().fit(sparse.csr_matrix(X), y),
    "linear": lambda: LinearSVC().fit(X, y),
    "linear pairs": lambda: LinearSVC(multi_class="ovo").fit(X, y),
    "joint": lambda: LinearSVC(multi_class="crammer_singer").fit(X, y),
    "linear svr": lambda: LinearSVR(max_iter=-1).fit(X, y),
    "z-scores": lambda: make_pipeline(StandardScaler(), SVC()).fit(X, y),
    "range": lambda: make_pipeline(Scaling((-1, 1)), SVC()).fit(X, y),
    "ranges": lambda: make_pipeline(MaxAbsScaler(), MinMaxScaler((-1, 1), clip=True), SVR()).fit(X, y),
}
FLOAT64 = {
    "laplacian": lambda: SVC(kernel=Laplacian(0.5)).fit(X, y),
    "widths": lambda: SVC(kernel=RBF([0.5, 1.0, 2.0, 0.3]) + Laplacian.from_sigma([1.0, 2.0, 3.0, 4.0])).fit(X, y),
    "widths far apart": lambda: SVC(kernel=RBF([0.5, 1.0, 2.0, 0.3])).fit(np.vstack([X, X + 1e7]), np.tile(y, 2)),
    "scaled": lambda: SVR(kernel=0.1 * Linear() + 0.3 * Sigmoid(0.01)).fit(X, y),
    "composed": lambda: SVC(kernel=0.5 * RBF(1.0) * (Linear() + 1.0) ** 2 + 0.1).fit(X, y),
    "far apart": lambda: SVC(gamma=0.5).fit(np.vstack([X, X + 1e7]), np.tile(y, 2)),
}


@pytest.mark.parametrize("name", [*BOTH, *FLOAT64])
def test_float64_equals_the_model(name, tmp_path, capsys):
    model = (BOTH | FLOAT64)[name]()
    symsvm.save(model, tmp_path / "m.onnx")
    report = parity(model, tmp_path / "m.onnx", Z)
    assert (report.dtype, report.points) == ("float64", len(Z))
    assert not report.labels
    for difference, size in report.differences.values():
        assert difference <= 1e-10 * max(size, 1.0)
    print(report)
    assert "largest difference" in capsys.readouterr().out


@pytest.mark.parametrize("name", BOTH)
def test_float32_is_close(name, tmp_path):
    model = BOTH[name]()
    symsvm.save(model, tmp_path / "m.onnx", precision="float32")
    report = parity(model, tmp_path / "m.onnx", Z)
    assert report.dtype == "float32"
    assert (report.labels or 0) <= 2
    if not report.labels:  # a vote that rounding gives to another class is a whole one
        for difference, size in report.differences.values():
            assert difference <= 1e-2 * max(size, 1.0)


def test_a_precomputed_kernel(tmp_path):
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    symsvm.save(model, tmp_path / "m.onnx")
    assert parity(model, tmp_path / "m.onnx", Z @ X.T).labels == 0


def test_ten_classes_vote_alike(tmp_path):
    digits, labels = load_digits(return_X_y=True)
    model = SVC(C=0.01, gamma=0.001).fit(digits[:600], labels[:600])  # many ties
    points = digits + np.random.default_rng(0).normal(size=digits.shape) * 6
    for precision in ("float64", "float32"):
        symsvm.save(model, tmp_path / "m.onnx", precision=precision)
        assert parity(model, tmp_path / "m.onnx", points).labels == 0


@pytest.mark.parametrize(
    ("make", "precision", "sentence"),
    [
        (FLOAT64["laplacian"], "float32", "no kernel Laplacian.*precision='float64'"),
        (FLOAT64["widths far apart"], "float32", r"no kernel RBF\(sigma=\[0.5, .*precision='float64'"),
        (lambda: SVC(kernel=lambda A, B: A @ B.T).fit(X, y), "float64", "Python function cannot be exported"),
        (lambda: SVC(kernel=symsvm.pair_kernel(lambda x, z: (x * z).sum())).fit(X, y), "float64", "no operators"),
        (
            lambda: make_pipeline(QuantileTransformer(n_quantiles=9), SVC()).fit(X, y),
            "float64",
            "QuantileTransformer cannot be exported: use Scaling",
        ),
        (BOTH["two"], "float16", "precision must be one of"),
    ],
)
def test_models_that_onnx_cannot_hold(make, precision, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        symsvm.save(make(), tmp_path / "m.onnx", precision=precision)
    assert not list(tmp_path.iterdir())


def test_onnx_cannot_be_loaded(tmp_path):
    symsvm.save(BOTH["two"](), tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match="ONNX files cannot be loaded"):
        symsvm.load(tmp_path / "m.onnx")
