"""Native model files: bit for bit round trips, nothing is unpickled, writes are atomic."""

import errno
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import symsvm
from symsvm import RBF, SVC, SVR, Kernel, Laplacian, Linear, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from symsvm.data import Scaling
from symsvm.files import ModelFileError

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
WIDE = sparse.random_array((60, 300), density=0.05, format="csr", rng=np.random.default_rng(0))


def cosine(x, z, floor=1.0):
    """A kernel's function that can be imported."""
    return (x * z).sum() / (floor + (x * x).sum() * (z * z).sum()) ** 0.5


class Cauchy(Kernel):
    """A kernel's class that can be imported."""

    positive = ("width",)

    def __init__(self, width=1.0):
        self.width = width

    def pair(self, x, z):
        """1 / (1 + |x - z|^2 / width)."""
        return 1 / (1 + ((x - z) ** 2).sum() / self.scalar("width", x))


def matrix(A, B):
    """A kernel as a function of matrices."""
    return (1 + A @ B.T) ** 2


MODELS = {
    "svc": lambda: SVC(class_weight={0: 1.0, 1: 2.0, 2: 3}).fit(X, y),
    "two classes": lambda: SVC(kernel="poly", coef0=1.0).fit(X, y == 1),
    "strings": lambda: SVC().fit(X, NAMES[y]),
    "objects": lambda: SVC().fit(X, NAMES[y].astype(object)),
    "floats": lambda: SVC().fit(X, y * 2.0),
    "ovr": lambda: SVC(multi_class="ovr").fit(X, y),
    "dag": lambda: SVC(multi_class="dag", kernel=RBF(1.0) + 0.1 * Linear() ** 2).fit(X, y),
    "pairs": lambda: SVC(decision_function_shape="ovo", kernel=Laplacian(0.5)).fit(X, y),
    "sigmoid": lambda: SVC(calibration="sigmoid", random_state=0).fit(X, y),
    "isotonic": lambda: SVC(calibration="isotonic", random_state=0).fit(X, y),
    "two, isotonic": lambda: SVC(calibration="isotonic", random_state=0).fit(X[:, :1], y == 1),
    "penalised": lambda: SVC(penalize_intercept=True, kernel="sigmoid", gamma=0.01).fit(X, y),
    "float32": lambda: SVC().fit(X.astype("float32"), y),
    "sparse": lambda: SVC().fit(WIDE, y[::-1][:60]),
    "sparse matrix": lambda: NuSVR().fit(sparse.csr_matrix(WIDE), np.arange(60.0)),
    "nu": lambda: NuSVC(nu=0.3).fit(X, y),
    "svr": lambda: SVR(kernel=(RBF(2.0) * Linear() + 0.5)).fit(X, y),
    "nu svr": lambda: NuSVR().fit(X, y),
    "one class": lambda: OneClassSVM(nu=0.2).fit(X),
    "precomputed": lambda: SVC(kernel="precomputed").fit(X @ X.T, y),
    "linear": lambda: LinearSVC().fit(X, y),
    "linear pairs": lambda: LinearSVC(multi_class="ovo", calibration="sigmoid").fit(X, y),
    "joint": lambda: LinearSVC(multi_class="crammer_singer").fit(X, y),
    "linear, two": lambda: LinearSVC(loss="hinge").fit(WIDE, np.arange(60) % 2),
    "linear svr": lambda: LinearSVR(epsilon=0.1, max_iter=-1).fit(X, y),
    "z-scores": lambda: make_pipeline(StandardScaler(), SVC()).fit(X, y),
    "range": lambda: make_pipeline(Scaling((-1, 1)), SVC()).fit(X, y),
    "no mean": lambda: make_pipeline(StandardScaler(with_mean=False), SVR()).fit(WIDE, np.arange(60.0)),
    "ranges": lambda: make_pipeline(MinMaxScaler((-1, 1), clip=True), MaxAbsScaler(), LinearSVC()).fit(X, y),
}
IMPORTED = {
    "function": lambda: SVC(kernel=symsvm.pair_kernel(cosine, floor=0.5)).fit(X, y),
    "class": lambda: SVC(kernel=0.5 * Cauchy(2.0)).fit(X, y),
    "matrix": lambda: SVC(kernel=matrix).fit(X, y),
}
TRUSTED = [f"{__name__}:{name}" for name in ("cosine", "Cauchy", "matrix")]


def points(model):
    if getattr(model, "kernel", None) == "precomputed":
        return X @ X.T
    return WIDE if model.n_features_in_ == WIDE.shape[1] else X[:, : model.n_features_in_]


def assert_same(model, other):
    Z = points(model)
    assert type(other) is type(model)
    for method in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, method):
            expected, found = getattr(model, method)(Z), getattr(other, method)(Z)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [*MODELS, *IMPORTED])
def test_a_model_is_restored_bit_for_bit(name, tmp_path):
    model = (MODELS | IMPORTED)[name]()
    path = tmp_path / "model.symsvm"
    symsvm.save(model, path)
    other = symsvm.load(path, trusted=TRUSTED)
    assert_same(model, other)
    last, mine = (m[-1] if hasattr(m, "steps") else m for m in (other, model))
    assert set(vars(last)) == set(vars(mine)), "an attribute that estimator_state does not know"
    assert str(last.certificate_) == str(mine.certificate_)
    assert repr(other) == repr(model)
    assert_same(model, pickle.loads(pickle.dumps(other)))
    symsvm.save(other, tmp_path / "again.symsvm")
    assert (tmp_path / "again.symsvm").read_bytes() == path.read_bytes()


def test_a_loaded_model_has_a_warm_start(tmp_path):
    model = LinearSVC(warm_start=True).fit(X, y)
    symsvm.save(model, tmp_path / "m.symsvm")
    other = symsvm.load(tmp_path / "m.symsvm").fit(X, y)
    assert other.n_iter_ <= model.n_iter_
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-3, atol=1e-4)


def test_a_loaded_stream_continues(tmp_path):
    model = LinearSVC(loss="hinge", stream_size=len(X)).partial_fit(X[::2], y[::2], classes=[0, 1, 2])
    symsvm.save(model, tmp_path / "m.symsvm")
    other = symsvm.load(tmp_path / "m.symsvm")
    assert set(vars(other)) == set(vars(model))
    assert_same(model, other)
    assert_same(model.partial_fit(X, y), other.partial_fit(X, y))


def test_columns_keep_their_names(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), SVC()).fit(table, y)
    symsvm.save(model, tmp_path / "m.symsvm")
    other = symsvm.load(tmp_path / "m.symsvm")
    np.testing.assert_array_equal(other.predict(table), model.predict(table))
    assert other.feature_names_in_.tolist() == list("abcd")


def test_the_file_is_json_and_arrays(tmp_path):
    symsvm.save(SVC(kernel=RBF(0.5)).fit(X, y), tmp_path / "m.symsvm")
    with zipfile.ZipFile(tmp_path / "m.symsvm") as archive:
        head = json.loads(archive.read("model.json"))
    assert (head["format"], head["version"], head["symsvm"]) == ("symsvm model", 1, symsvm.__version__)
    assert head["steps"][0]["params"]["kernel"] == {"$kernel": "RBF", "params": {"sigma": 0.5}}
    with np.load(tmp_path / "m.symsvm", allow_pickle=False) as arrays:
        assert arrays["support_vectors_"].shape[1] == 4


def test_files_have_the_keys_of_the_first_version(tmp_path):
    keys = {}
    for model in (SVC().fit(X, y), LinearSVC().fit(X, y)):
        symsvm.save(model, tmp_path / "m.symsvm")
        with zipfile.ZipFile(tmp_path / "m.symsvm") as archive:
            (step,) = json.loads(archive.read("model.json"))["steps"]
        keys[step["class"]] = set(step["fitted"])
    assert {"_kernel", "_fitted", "_coef"} < keys["SVC"]
    assert "_fit_points" in keys["LinearSVC"]
    assert not (keys["SVC"] | keys["LinearSVC"]) & {"kernel_", "X_fit_", "problem_coef_", "n_samples_fit_"}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SVC(kernel=symsvm.pair_kernel(lambda x, z: (x * z).sum())).fit(X, y), "holds no code"),
        (lambda: SVC(kernel=lambda A, B: A @ B.T).fit(X, y), "holds no code"),
        (lambda: SVC(random_state=np.random.RandomState(0)).fit(X, y), "random_state"),
        (lambda: GridSearchCV(SVC(), {"C": [1.0]}).fit(X, y), "GridSearchCV cannot be stored"),
        (lambda: SVC(), "not fitted"),
    ],
    ids=["lambda", "function", "generator", "search", "unfitted"],
)
def test_models_that_a_file_cannot_hold(make, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        symsvm.save(make(), tmp_path / "m.symsvm")
    assert not os.listdir(tmp_path)


def test_only_trusted_names_are_imported(tmp_path):
    symsvm.save(IMPORTED["function"](), tmp_path / "m.symsvm")
    with pytest.raises(ModelFileError, match=r"load\(path, trusted=\['test_files:cosine'\]\)"):
        symsvm.load(tmp_path / "m.symsvm", trusted=["test_files:matrix"])


class _Full:
    """A disk that is full after some bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("failure", ["full disk", "crash before the replacement", "no permission"])
def test_a_failed_save_leaves_the_old_file(failure, tmp_path, monkeypatch):
    path = tmp_path / "m.symsvm"
    model = SVC().fit(X, y)
    symsvm.save(model, path)
    before = path.read_bytes()
    if failure == "full disk":
        start = zipfile.ZipFile.__init__
        monkeypatch.setattr(
            zipfile.ZipFile, "__init__", lambda self, file, *args: start(self, _Full(file, 3000), *args)
        )
    else:
        name = "fsync" if failure.startswith("crash") else "replace"
        monkeypatch.setattr(os, name, lambda *args: (_ for _ in ()).throw(OSError(errno.EIO, "stopped")))
    with pytest.raises(OSError, match="No space|stopped"):
        symsvm.save(LinearSVC().fit(X, y) if failure == "no permission" else SVC(C=2.0).fit(X, y), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.symsvm"]
    assert_same(model, symsvm.load(path))
