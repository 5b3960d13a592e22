"""Data: scaling, labels, named sets."""

import numpy as np
import pytest

from symsvm.data import data_home, load, signs, standardise


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


def test_a_missing_set_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SYMSVM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="svmguide1 does not exist: download svmguide1 and svmguide1.t"):
        load("svmguide1")
    with pytest.raises(ValueError, match="name must be one of 'svmguide1', 'svmguide3', got 'iris'"):
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


@pytest.mark.parametrize(
    ("name", "train", "test"), [("svmguide1", (3089, 4), (4000, 4)), ("svmguide3", (1243, 22), (41, 22))]
)
def test_the_papers_sets(name, train, test):
    if not (data_home() / name).is_file():
        pytest.skip(f"{name} is not in {data_home()}; set SYMSVM_DATA to the directory that holds it")
    data = load(name)
    assert (data.X.shape, data.X_test.shape) == (train, test)
    if name == "svmguide3":
        assert set(data.y_test) == {1.0}
        assert set(data.y) == {-1.0, 1.0}
