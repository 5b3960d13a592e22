"""Damaged model files are refused in a sentence, or answer with finite values; `model_mutations` has the damage."""

import io
import json

import numpy as np
import pytest
from model_mutations import campaign, members_of, packed
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import symsvm
from symsvm import SVC, LinearSVC, LinearSVR
from symsvm.data import Scaling
from symsvm.files import ModelFileError

X, Y = load_iris(return_X_y=True)
X, Y = X[::5], Y[::5]


def test_random_damage(tmp_path):
    counts, _ = campaign(400, 0, tmp_path)
    assert {found.split(",")[0] for found in counts} == {"refused", "read"}
    assert counts["refused"] > 250


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(4))
def test_much_random_damage(tmp_path, seed):
    counts, _ = campaign(10_000, 1000 + seed, tmp_path)
    assert {found.split(",")[0] for found in counts} == {"refused", "read"}


def damaged(path, model, change):
    """Save a model, and let `change` alter its members."""
    symsvm.save(model, path)
    members = members_of(path.read_bytes())
    change(members)
    path.write_bytes(packed(members))
    return path


def refusal(path):
    with pytest.raises(ModelFileError) as caught:
        symsvm.load(path)
    return str(caught.value)


def write(members, name, array):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version=(1, 0))
    members[name] = file.getvalue()


def read(members, name):
    return np.load(io.BytesIO(members[name]))


def test_an_unknown_type_in_a_header(tmp_path):
    def change(members):
        members["coef_.npy"] = members["coef_.npy"].replace(b"<f8", b"<f9")

    message = refusal(damaged(tmp_path / "m.symsvm", LinearSVC().fit(X, Y), change))
    assert message.endswith("'coef_.npy' has the unknown type '<f9'.")


@pytest.mark.parametrize("pointers", [[0, 10**6, 0], [0, -5, 0], [3, 2, 1], [0, 1, 2]])
def test_pointers_of_sparse_support_vectors(tmp_path, pointers):
    """A last pointer of 0 with others beyond the arrays: SciPy reads, and writes, memory that is not its own."""

    def change(members):
        name = "support_vectors_.indptr.npy"
        indptr = np.zeros_like(read(members, name))
        indptr[:3] = pointers
        indptr[-1] = 0
        write(members, name, indptr)

    model = SVC().fit(sparse.csr_matrix(X), Y)
    assert "the pointers of rows must rise" in refusal(damaged(tmp_path / "m.symsvm", model, change))


LARGE = {
    "coef_": (LinearSVC(), "coef_ is too large"),
    "intercept_": (LinearSVR(), "intercept_ is too large"),
    "dual_coef_": (SVC(), "dual_coef_ is too large"),
    "support_vectors_": (SVC(kernel="poly"), "the decision values at its support vectors are not finite"),
}


@pytest.mark.parametrize("name", LARGE)
def test_numbers_that_no_fit_leaves(tmp_path, name):
    model, sentence = LARGE[name]

    def change(members):
        array = read(members, f"{name}.npy").copy()
        array.flat[0] = 1e308
        write(members, f"{name}.npy", array)

    assert sentence in refusal(damaged(tmp_path / "m.symsvm", model.fit(X, Y), change))


SCALERS = [
    (StandardScaler(), "scale_", 0.0, "scale_ must be positive"),
    (StandardScaler(), "scale_", 1e-300, "scale_ must be the root of var_, or 1"),
    (StandardScaler(), "mean_", 1e300, "its statistics are too large"),
    (MaxAbsScaler(), "scale_", -1.0, "scale_ must be positive"),
    (MinMaxScaler(), "min_", 1e200, "min_ and scale_ must map the data to the range"),
    (Scaling(), "scale_", 1e300, "its statistics are too large"),
]


@pytest.mark.parametrize(("scaler", "name", "value", "sentence"), SCALERS, ids=lambda value: str(value)[:20])
def test_statistics_of_scalings(tmp_path, scaler, name, value, sentence):
    def change(members):
        array = read(members, f"0.{name}.npy").copy()
        array[0] = value
        write(members, f"0.{name}.npy", array)

    model = make_pipeline(scaler, LinearSVC()).fit(X, Y)
    assert sentence in refusal(damaged(tmp_path / "m.symsvm", model, change))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda step: step["params"].update(fit_intercept="no"), "fit_intercept must be True or False"),
        (lambda step: step["params"].update(C=-1.0), "C must be positive"),
        (lambda step: step["solutions"].pop(), "a solution for each of the 3 problems"),
        (lambda step: step["solutions"].append(None), "a solution for each of the 3 problems"),
    ],
)
def test_parameters_and_solutions(tmp_path, change, sentence):
    def change_json(members):
        head = json.loads(members["model.json"])
        change(head["steps"][0])
        members["model.json"] = json.dumps(head).encode()

    assert sentence in refusal(damaged(tmp_path / "m.symsvm", LinearSVC().fit(X, Y), change_json))


def test_what_is_saved_is_read_at_every_scale(tmp_path):
    """The checks refuse nothing that a fit leaves: points from 1e-150 to 1e150, constant columns, all scalings."""
    for scale in (1e-150, 1e-8, 1.0, 1e8, 1e150):
        for step in (None, StandardScaler(), MinMaxScaler((-1, 3)), MaxAbsScaler(), Scaling(), Scaling("max-abs")):
            points = np.column_stack([X * scale, np.full(len(X), scale)])
            model = LinearSVC() if scale == 1 or step is not None else SVC()
            if scale == 1e150 and isinstance(step, StandardScaler):
                points = points[:, :1] / 1e10  # its variance overflows otherwise
            model = model if step is None else make_pipeline(step, model)
            path = tmp_path / "m.symsvm"
            symsvm.save(model.fit(points, Y), path)
            assert np.array_equal(symsvm.load(path).predict(points), model.predict(points))
