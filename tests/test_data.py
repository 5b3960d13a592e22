"""Scaling, labels and named data sets."""

import hashlib
import io
import tarfile

import numpy as np
import pytest
from datasets import missing, reason, small, use
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from symsvm.data import SETS, Scaling, data_home, load, signs, standardise
from symsvm.io.data.datasets import FILES


def test_standardise_takes_its_statistics_from_the_first_set():
    rng = np.random.default_rng(0)
    X, Z = 5 + 3 * rng.normal(size=(50, 3)), rng.normal(size=(7, 3))
    X[:, 1] = 0.1  # a constant column, whose deviation is of rounding size
    A, B = standardise(X, Z)
    np.testing.assert_allclose(A.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(A.std(axis=0), [1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(B[:, 0], (Z[:, 0] - X[:, 0].mean()) / X[:, 0].std())
    assert (B[:, 1] == 0).all()


def test_signs_orders_labels():
    np.testing.assert_array_equal(signs([2, 4, 2]), [-1, 1, -1])
    np.testing.assert_array_equal(signs([True, False]), [1, -1])


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="name must be one of 'svmguide1', 'svmguide2', .*, got 'iris'"):
        load("iris")


def test_a_set_from_files(monkeypatch, tmp_path):
    """A row may leave out features; the test file may have fewer columns."""
    (tmp_path / "svmguide1").write_text("1 1:0.5 4:2\n0 2:1\n")
    (tmp_path / "svmguide1.t").write_text("1 1:3\n")
    monkeypatch.setenv("SYMSVM_DATA", str(tmp_path))
    data = load("svmguide1")
    np.testing.assert_array_equal(data.X, [[0.5, 0, 0, 2], [0, 1, 0, 0]])
    np.testing.assert_array_equal(data.X_test, [[3, 0, 0, 0]])
    np.testing.assert_array_equal(data.y, [1, 0])


SHAPES = {
    "svmguide1": ((3089, 4), (4000, 4)),
    "svmguide2": ((391, 20), None),
    "svmguide3": ((1243, 22), (41, 22)),
    "heart_scale": ((270, 13), None),
    "diabetes_scale": ((768, 8), None),
    "a9a": ((32561, 123), (16281, 123)),
    "abalone_scale": ((4177, 8), None),
    "cpusmall_scale": ((8192, 12), None),
    "cadata_scale": ((20640, 8), None),
    "housing_scale": ((506, 13), None),
    "mnist": ((60000, 784), (10000, 784)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_named_sets(name, monkeypatch, tmp_path):
    """Small files with the names of the real ones are read exactly, with the right number of features."""
    use("small", name, tmp_path, monkeypatch)
    expected, data = small(name), load(name)
    for found, wanted in zip(data, expected, strict=True):
        if wanted is None:
            assert found is None
            continue
        assert sparse.issparse(found) == (name == "a9a" and wanted.ndim == 2)
        found = found.toarray() if sparse.issparse(found) else found
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    shapes = [None if X is None else X.shape[1] for X in (data.X, data.X_test)]
    assert shapes == [None if shape is None else shape[1] for shape in SHAPES[name]]


def test_the_real_files():
    """The real files that are present: checksums of text files, and shapes and labels of each set.

    A compressed file may have been packed anew, and `cadata_scale` is made by its user: their bytes may differ.
    """
    for file, (url, sha256) in FILES.items():
        path = data_home() / file
        if path.is_file() and path.suffix != ".gz" and url is not None:
            assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256, file
    for name in SHAPES:
        if missing(name):
            continue
        data = load(name)
        shapes = data.X.shape, None if data.X_test is None else data.X_test.shape
        assert (name, shapes) == (name, SHAPES[name])
        assert len(data.y) == data.X.shape[0], name
        if name == "svmguide3":
            assert set(data.y_test) == {1.0}
            assert set(data.y) == {-1.0, 1.0}
    if absent := missing(*SETS):
        pytest.skip(reason(absent))


def test_posts(monkeypatch, tmp_path):
    monkeypatch.setenv("SYMSVM_DATA", str(tmp_path))
    with tarfile.open(tmp_path / "20news-bydate.tar.gz", "w:gz") as archive:
        for part, group, number in (("train", "sci.med", 1), ("train", "sci.space", 2), ("test", "sci.med", 3)):
            text = f"Subject: \xe9 {number}".encode("latin-1")
            member = tarfile.TarInfo(f"20news-bydate-{part}/{group}/{number}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    data = load("20news")
    assert data.X == ["Subject: \xe9 1", "Subject: \xe9 2"]
    assert list(data.y) == ["sci.med", "sci.space"]
    assert (data.X_test, list(data.y_test)) == (["Subject: \xe9 3"], ["sci.med"])


RNG = np.random.default_rng(1)
POINTS = RNG.normal(size=(30, 4)) * [1, 100, 1e-3, 1] + [0, 5, 0, 7]
POINTS[:, 3] = 0.1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("to", "middle"), [((0, 1), 0.5), ((-1, 1), 0), ("z-score", 0), ("max-abs", 0)])
def test_scaling(to, middle, dtype):
    X = POINTS.astype(dtype)
    scaling = Scaling(to).fit(X)
    Z = scaling.transform(X)
    assert Z.dtype == dtype
    near = 1e-12 if dtype == "float64" else 1e-5
    if to == "z-score":
        np.testing.assert_allclose(Z[:, :3].mean(axis=0), 0, atol=near)
        np.testing.assert_allclose(Z[:, :3].std(axis=0), 1, atol=near)
    elif to == "max-abs":
        np.testing.assert_allclose(np.abs(Z[:, :3]).max(axis=0), 1, atol=near)
    else:
        np.testing.assert_allclose(Z[:, :3].min(axis=0), to[0], atol=near)
        np.testing.assert_allclose(Z[:, :3].max(axis=0), to[1], atol=near)
    other = X + 1
    assert (scaling.transform(other)[:, 3] == middle).all(), (
        "a constant column goes to the middle, also for other values"
    )
    np.testing.assert_allclose(scaling.inverse_transform(Z), X, rtol=1e3 * near, atol=10 * near)
    again = Scaling.restore(to, scaling.shift_, scaling.scale_, scaling.offset_)
    np.testing.assert_array_equal(again.transform(other), scaling.transform(other))


def test_scaling_equals_scikit_learn():
    X, Z = POINTS[:20, :3], POINTS[20:, :3]
    for ours, theirs in (
        (Scaling(), StandardScaler()),
        (Scaling((-1, 1)), MinMaxScaler((-1, 1))),
        (Scaling("max-abs"), MaxAbsScaler()),
    ):
        np.testing.assert_allclose(ours.fit(X).transform(Z), theirs.fit(X).transform(Z), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("to", [(0, 1), "max-abs"])
def test_sparse_stays_sparse(to):
    dense = np.maximum(POINTS, 0)
    dense[0] = 0
    X = sparse.csr_matrix(dense)
    Z = Scaling(to).fit_transform(X)
    assert sparse.issparse(Z)
    np.testing.assert_allclose(Z.toarray(), Scaling(to).fit_transform(dense), rtol=1e-15)
    np.testing.assert_allclose(Scaling(to).fit(X).inverse_transform(Z).toarray(), dense, rtol=1e-14)
    for fills in ((-1, 1), "z-score"):
        with pytest.raises(ValueError, match="X is sparse, and scaling to .* would fill the zeros of 4 columns"):
            Scaling(fills).fit(X)


def test_scaling_errors():
    for to in ("minmax", (1, 0), (0, np.inf), 3, (0, 1, 2)):
        with pytest.raises(ValueError, match="to must be 'z-score', 'max-abs' or a range such as"):
            Scaling(to).fit(POINTS)
    with pytest.raises(ValueError, match="column 1 that are too large"):
        Scaling().fit([[1.0, 1e200], [2.0, -1e200]])
    with pytest.raises(ValueError, match="finite vectors of one length"):
        Scaling.restore("z-score", [0.0], [1.0, 1.0], [0.0])


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{to}-{getattr(check, 'func', check).__name__}")
        for to in ("z-score", (0, 1), "max-abs")
        for estimator, check in estimator_checks_generator(Scaling(to), mark="skip")
        if getattr(check, "func", check).__name__ != "check_array_api_input"
    ],
)
def test_scaling_is_a_transformer(estimator, check):
    """All but the check of the array API, which `test_estimators` runs in a process of its own."""
    check(estimator)
