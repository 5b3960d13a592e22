"""Damage to model files: bytes, numbers of arrays, headers and JSON. `python tests/model_mutations.py 100000` counts.

Every damaged file must be refused with a `ModelFileError` of one sentence, or give a model that answers with finite
values at the points that the good model was fitted to.
"""

import collections
import copy
import io
import json
import re
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import symsvm
from symsvm import RBF, SVC, SVR, Linear, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from symsvm.data import Scaling
from symsvm.files import ModelFileError

X, Y = load_iris(return_X_y=True)
X, Y = X[::5], Y[::5]
NUMBERS = [0, -1, 1, 2, 3, 50, 2**31, -(2**63), 1e308, -1e308, 1e-320, 1e160, np.nan, np.inf, -np.inf]
VALUES = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    10**400,
    0.5,
    1e308,
    1e-320,
    "",
    "rbf",
    "ovr",
    "ovo",
    "dag",
    "no",
    "JAX",
    [],
    [1],
]
VALUES += [{}, {"$float": "nan"}, {"$float": "inf"}, {"$tuple": [1, 2]}, {"$dict": [[1, 2]]}, {"$array": "intercept_"}]
VALUES += [
    {"$kernel": "RBF", "params": {"sigma": 1e-200}},
    {"$kernel": "Linear", "params": {}},
    {"$import": "os:system"},
]
TYPES = [
    "<f8",
    "<f4",
    "<i8",
    "<i4",
    "|b1",
    "|u1",
    "<U3",
    "|S8",
    "<M8[s]",
    ">f8",
    "<f9",
    "<c16",
    "|V8",
    "|O",
    "<q7",
    "<f2",
]


def models():
    """A model of each kind, with the points it was fitted to."""
    calibrated = SVC(calibration="isotonic", random_state=0, kernel=RBF(2.0) + 0.5 * Linear())
    stream = LinearSVC(loss="hinge", random_state=0).partial_fit(X, Y, classes=[0, 1, 2])
    letters = np.array(list("abc"), dtype=object)[Y]
    return [
        (make_pipeline(StandardScaler(), calibrated).fit(X, Y), X),
        (make_pipeline(MinMaxScaler(), LinearSVC(calibration="sigmoid", random_state=0)).fit(X, Y), X),
        (make_pipeline(MaxAbsScaler(), SVC(kernel="poly")).fit(X, Y == 1), X),
        (make_pipeline(Scaling(), NuSVC(nu=0.3)).fit(X, Y), X),
        (SVC(kernel="precomputed", class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X @ X.T, Y), X @ X.T),
        (SVC(multi_class="dag").fit(sparse.csr_matrix(X), letters), sparse.csr_matrix(X)),
        (SVR(kernel="sigmoid").fit(X, X[:, 0]), X),
        (NuSVR(kernel="laplacian").fit(X, Y), X),
        (OneClassSVM(kernel="linear").fit(X), X),
        (LinearSVR(warm_start=True).fit(X, X[:, 0]), X),
        (LinearSVC(multi_class="crammer_singer").fit(X, Y), X),
        (stream, X),
    ]


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _places(value, *at):
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*at, key)
            yield from _places(item, *at, key)


def _pick(rng, items):
    return items[int(rng.integers(len(items)))]


def _damage_bytes(rng, data):
    """Bytes of the file as they are on the disk: most of this breaks a checksum."""
    bad = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(len(bad)))
        bad[start : start + int(rng.integers(0, 5))] = rng.bytes(int(rng.integers(0, 5)))
    return bytes(bad[: int(rng.integers(len(bad) + 1))] if rng.random() < 0.1 else bad)


def _damage_array(rng, members):
    """Numbers, bits, types and shapes of an array, with a right checksum."""
    name = _pick(rng, [name for name in members if name != "model.json"])
    content = members[name]
    action = rng.integers(5)
    if action == 0:  # bits after the header
        bad = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            bad[int(rng.integers(10, len(bad)))] ^= 1 << int(rng.integers(8))
        members[name] = bytes(bad)
    elif action == 1:  # the type of its header
        text = re.sub(rb"'descr': '[^']*'", f"'descr': '{_pick(rng, TYPES)}'".encode(), content[:128])
        members[name] = text + content[128:]
    elif action == 2:
        members[name] = members[_pick(rng, [other for other in members if other != "model.json"])]
    else:
        try:
            array = np.load(io.BytesIO(content)).copy()
        except Exception:  # damaged before
            return
        if array.size and array.dtype.kind in "fiu" and action == 3:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(rng.integers(1, 4)):
                    array.flat[int(rng.integers(array.size))] = np.array(_pick(rng, NUMBERS)).astype(array.dtype)
        elif array.ndim:
            array = _pick(rng, [array[:-1], array[::-1], np.concatenate([array, array]), array[..., None], array.T])
        file = io.BytesIO()
        np.lib.format.write_array(file, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
        members[name] = file.getvalue()


def _damage_json(rng, members):
    head = json.loads(members["model.json"])
    for _ in range(rng.integers(1, 4)):
        places = list(_places(head))
        if not places:
            break
        *at, last = _pick(rng, places)
        place = head
        for key in at:
            place = place[key]
        action = rng.integers(4)
        if action == 0:
            del place[last]
        elif action == 1:
            other = head
            for key in _pick(rng, places):
                other = other[key]
            place[last] = copy.deepcopy(other)
        else:
            place[last] = copy.deepcopy(_pick(rng, VALUES))
    members["model.json"] = json.dumps(head).encode()


def damaged(rng, data):
    """A damaged copy of a native file."""
    kind = rng.integers(10)
    if kind < 2:
        return _damage_bytes(rng, data)
    members = members_of(data)
    for _ in range(rng.integers(1, 3)):
        (_damage_array if kind < 6 else _damage_json)(rng, members)
    return packed(members)


def outcome(path, points):
    """The name of what happens to a file: refused, read, or what must not be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = symsvm.load(path)
        except ModelFileError as error:
            whole = re.fullmatch(rf"{re.escape(str(path))}: [^\n]{{1,600}}\.", str(error))
            return "refused" if whole and error.__cause__ is None else f"not one sentence: {str(error)[-150:]!r}"
        except Exception as error:
            return f"load: {type(error).__name__}: {str(error)[:150]}"
        if model.n_features_in_ != points.shape[1]:
            return "read, of other features"
        for name in ("predict", "decision_function", "predict_proba", "score_samples"):
            try:
                values = getattr(model, name, lambda X: np.zeros(1))(points)
            except Exception as error:
                return f"{name}: {type(error).__name__}: {str(error)[:150]}"
            if values.dtype.kind == "f" and name != "predict" and not np.isfinite(values).all():
                return f"{name} is not finite"
            if name == "predict" and not hasattr(model, "classes_") and not np.isfinite(values).all():
                return "predict is not finite"
        try:
            _ = getattr(model, "certificate_", None), repr(model)
        except Exception as error:
            return f"certificate_: {type(error).__name__}: {str(error)[:150]}"
    return "read"


def campaign(count, seed, directory):
    """Try so many damaged files; return the number of each outcome, and the first file of each that must not be."""
    rng, counts, first = np.random.default_rng(seed), collections.Counter(), {}
    good = []
    for i, (model, points) in enumerate(models()):
        path = Path(directory) / f"{i}.symsvm"
        symsvm.save(model, path)
        good.append((path.read_bytes(), points))
    path = Path(directory) / "bad.symsvm"
    for _ in range(count):
        data, points = _pick(rng, good)
        bad = damaged(rng, data)
        path.write_bytes(bad)
        found = outcome(path, points)
        counts[found] += 1
        if not found.startswith(("refused", "read")):
            first.setdefault(found, bad)
    return counts, first


if __name__ == "__main__":
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        counts, first = campaign(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, directory)
    for found, number in counts.most_common():
        print(f"{number:8d}  {found}")
    print(f"{sum(counts.values()):8d}  in {time.perf_counter() - began:.0f} s")
    for number, bad in enumerate(first.values()):
        Path(f"found-{number}.symsvm").write_bytes(bad)
