"""The readers of model files under fuzz: slow, and not part of the suite (make fuzz).

What is asked of every file: a `ModelFileError` of one sentence, or a model that predicts.
"""

import copy
import functools
import json
import re
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from test_files_malformed import npy

import symsvm
from symsvm import RBF, SVC, Linear, LinearSVC, NuSVR, OneClassSVM
from symsvm.files import ModelFileError

pytestmark = [pytest.mark.slow, pytest.mark.fuzz]

X, y = load_iris(return_X_y=True)
X, y = X[::3], y[::3]


@functools.cache  # not when the module is collected: every run of the suite does that
def models():
    composed = SVC(calibration="isotonic", random_state=0, kernel=RBF(2.0) + 0.5 * Linear())
    return [
        make_pipeline(StandardScaler(), composed).fit(X, y),
        make_pipeline(MinMaxScaler(), LinearSVC(calibration="sigmoid", random_state=0)).fit(X, y),
        SVC(kernel="precomputed", class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X @ X.T, y),
        SVC(multi_class="dag").fit(sparse.csr_matrix(X), np.array(list("abc"), dtype=object)[y]),
        NuSVR().fit(X, y),
        OneClassSVM(kernel="poly").fit(X),
    ]


ODD = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 1, 2, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, "", "rbf", "precomputed", "ovr", "NUMBA"]
    ),
    st.sampled_from([[], [1], {}, {"$float": "nan"}, {"$tuple": [1, 2]}, {"$dict": [[1, 2]]}, {"$dict": [[[], 2]]}]),
    st.sampled_from([{"$kernel": "RBF", "params": {"sigma": 2}}, {"$kernel": "Power", "params": {"k1": None, "n": 9}}]),
    st.sampled_from(
        [{"$array": "intercept_"}, {"$array": "1.coef_"}, {"$array": []}, {"$csr": [1]}, {"$import": "os:system"}]
    ),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
FUZZ = settings(suppress_health_check=list(HealthCheck), max_examples=4000, phases=PHASES)


def outcome(path):
    """Load, and predict if that succeeds; the name of the outcome."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = symsvm.load(path)
        except ModelFileError as error:
            wrong = error
        else:
            wrong = None
        if wrong is not None:
            assert re.fullmatch(rf"{re.escape(str(path))}(, line \d+)?: [^\n]{{1,600}}\.", str(wrong))
            assert wrong.__cause__ is None
            return "refused"
        d = model.n_features_in_
        sparse_ones = sparse.csr_matrix((np.ones(2), ([0, 1], [0, d - 1])), shape=(2, d))
        points = sparse_ones if d > 1000 else np.ones((2, d))
        if d > 10**5:
            return "wide"
        assert model.predict(points).shape == (2,)
    return "read"


def written(model, suffix):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"m{suffix}"
        symsvm.save(model, path)
        return path.read_bytes()


def unpacked(data):
    with tempfile.TemporaryFile() as file:
        file.write(data)
        with zipfile.ZipFile(file) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


@functools.cache
def natives():
    return [written(model, ".symsvm") for model in models()]


@functools.cache
def unpacked_natives():
    return [unpacked(data) for data in natives()]


@functools.cache
def texts():
    machines = [model for model in models()[2:] if getattr(model, "multi_class", "") != "dag"]
    machines.append(SVC(calibration="sigmoid", random_state=0).fit(X, y == 1))
    return [written(model, ".libsvm") for model in machines]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@settings(FUZZ, max_examples=8000)
@given(data=st.data())
def test_bytes_of_native_files(directory, data):
    good = bytearray(data.draw(st.sampled_from(natives())))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(good)))
        end = data.draw(st.sampled_from([start, start + 1, start + 4, len(good)]))
        good[start:end] = data.draw(st.binary(max_size=8))
    path = directory / "bytes.symsvm"
    path.write_bytes(good)
    event(outcome(path))


def places(value, *at):
    """Every place in a JSON value."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield (*at, key)
            yield from places(item, *at, key)


def odd_array(data):
    shape = data.draw(st.sampled_from([(), (0,), (1,), (3,), (4,), (0, 0), (3, 3), (50, 4), (1, 50)]))
    dtype = data.draw(st.sampled_from(["f8", "f4", "i8", "i4", "u1", "b1", "U3", "M8[s]", ">f8"]))
    array = np.zeros(shape, dtype)
    if array.size and array.dtype.kind in "fi":
        array.flat[-1] = data.draw(
            st.sampled_from([0, 1, -1, 50, 2**30] + [np.nan, np.inf] * (array.dtype.kind == "f"))
        )
    return npy(array)


@FUZZ
@given(data=st.data())
def test_contents_of_native_files(directory, data):
    members = dict(data.draw(st.sampled_from(unpacked_natives())))
    head = json.loads(members["model.json"])
    for _ in range(data.draw(st.integers(0, 3))):
        *at, last = data.draw(st.sampled_from(list(places(head))))
        place = head
        for key in at:
            place = place[key]
        action = data.draw(st.sampled_from(["change", "delete", "copy"]))
        if action == "delete":
            del place[last]
        elif action == "change":
            place[last] = copy.deepcopy(data.draw(ODD))
        else:
            other = head
            for key in data.draw(st.sampled_from(list(places(head)))):
                other = other[key]
            place[last] = copy.deepcopy(other)
        if not list(places(head)):
            break
    members["model.json"] = json.dumps(head)
    for _ in range(data.draw(st.integers(0, 2))):
        name = data.draw(st.sampled_from([name for name in members if name != "model.json"]))
        other = data.draw(st.sampled_from([None, *(n for n in members if n != "model.json")]))
        members[name] = odd_array(data) if other is None else members[other]
    path = directory / "contents.symsvm"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    event(outcome(path))


WORDS = [
    b"",
    b"0",
    b"-1",
    b"1e400",
    b"nan",
    b"9" * 30,
    b"2147483647",
    b"1:1",
    b"0:1",
    b"0:-1",
    b"SV",
    b"\0",
    b"\xff",
    b"1_0",
]
WORDS += [
    b"rbf",
    b"linear",
    b"precomputed",
    b"nu_svc",
    b"one_class",
    b"nr_sv",
    b"probA 1\nprobB 2",
    b"\n",
    b"\r",
    b"0x10",
]


@FUZZ
@given(data=st.data())
def test_libsvm_files(directory, data):
    text = data.draw(st.sampled_from(texts()))
    for _ in range(data.draw(st.integers(1, 4))):
        lines = text.splitlines(keepends=True)
        if not lines:
            break
        number = data.draw(st.integers(0, min(12, len(lines) - 1)) | st.integers(0, len(lines) - 1))
        words = lines[number].split(b" ")
        action = data.draw(st.sampled_from(["word", "drop", "swap", "cut", "bytes", "colon"]))
        if action == "word":
            words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(WORDS))
            lines[number] = b" ".join(words)
        elif action == "drop":
            del lines[number]
        elif action == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[number], lines[other] = lines[other], lines[number]
        elif action == "cut":
            lines = lines[: number + 1]
        elif action == "bytes":
            lines[number] = data.draw(st.binary(max_size=20)) + lines[number]
        else:
            lines[number] = lines[number].replace(b":", data.draw(st.sampled_from([b" ", b"::", b":-", b":1e"])), 1)
        text = b"".join(lines)
    path = directory / "m.libsvm"
    path.write_bytes(text)
    event(outcome(path))
