"""Malformed model files: one sentence with the file (and the line of a text), bounded memory, no chain of errors."""

import io
import json
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import symsvm
from symsvm import SVC
from symsvm.files import ModelFileError

X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The members of a good native file, by name."""
    path = tmp_path_factory.mktemp("good") / "m.symsvm"
    symsvm.save(make_pipeline(StandardScaler(), SVC(calibration="sigmoid", random_state=0)).fit(X, y), path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The text of a good LIBSVM file."""
    path = tmp_path_factory.mktemp("good") / "m.libsvm"
    symsvm.save(SVC(gamma=0.5).fit(X, y), path)
    return path.read_bytes()


def refused(path, sentence):
    """Loading gives one sentence and needs little memory."""
    tracemalloc.start()
    with pytest.raises(ModelFileError) as caught:
        symsvm.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 600 + len(str(path))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert peak < 20 * path.stat().st_size + 2**21
    assert sentence in message
    return message


def packed(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def header(shape, descr="<f8"):
    """The header of an array of this shape, and eight bytes after it."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(8)


class Bomb:
    """An object that fails the test when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


ARRAY = "1.intercept_.npy"
ARRAYS = {
    "objects": (lambda: npy(np.array([Bomb()], dtype=object)), "Python objects, which are never unpickled"),
    "pickle": (lambda: pickle.dumps(Bomb()), "does not begin with the header of an array"),
    "huge": (lambda: header((2**40,)), "bytes follow"),
    "overflow": (lambda: header((2**62, 2**62)), "bytes follow"),
    "negative": (lambda: header((-1,)), "does not begin with the header of an array"),
    "many dimensions": (lambda: header((1,) * 3), "bytes follow"),
    "nothing, wide": (lambda: header((0, 2**62)), "bytes follow"),
    "structure": (lambda: npy(np.zeros(3, dtype="f8,i4")), "array of numbers or strings"),
    "complex": (lambda: npy(np.zeros(3, dtype=complex)), "numbers or strings"),
    "text": (lambda: b"not an array", "does not begin with the header of an array"),
    "no header": (lambda: b"\x93NUMPY\x01\x00\x10\x00((((((((((((((((", "does not begin with the header of an array"),
    "deep header": (lambda: b"\x93NUMPY\x01\x00\x10\x27" + b"(" * 10000, "does not begin with the header of an array"),
    "empty": (lambda: b"", "does not begin with the header of an array"),
    "cut": (lambda: npy(np.zeros(3))[:-1], "bytes follow"),
    "other shape": (lambda: npy(np.zeros(4)), "intercept_ must have the shape (3,), got (4,)"),
    "matrix": (lambda: npy(np.zeros((3, 1))), "intercept_ must have the shape"),
    "integers": (lambda: npy(np.zeros(3, dtype="i8")), "intercept_ must be an array of type 'f'"),
    "nan": (lambda: npy(np.array([0.0, np.nan, 0.0])), "intercept_ must be finite"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name, members, tmp_path):
    make, sentence = ARRAYS[name]
    refused(packed(tmp_path / "m.symsvm", members | {ARRAY: make()}), sentence)


def changed(head, *keys, to):
    """The JSON with one value changed."""
    head = json.loads(head)
    place = head
    for key in keys[:-1]:
        place = place[key]
    if to is KeyError:
        del place[keys[-1]]
    else:
        place[keys[-1]] = to
    return json.dumps(head)


STEP = ("steps", 1)
HEADS = {
    "version": (("version",), 2, "version 2 of the format"),
    "no version": (("version",), KeyError, "version None of the format"),
    "format": (("format",), "other", "must give 'symsvm model' as its format"),
    "no steps": (("steps",), KeyError, "must have a name and a state for every step"),
    "names": (("pipeline",), ["a"], "must have a name and a state for every step"),
    "class": ((*STEP, "class"), "Unpickler", "malformed"),
    "class of a list": ((*STEP, "class"), [1], "malformed"),
    "parameter": ((*STEP, "params", "sigma"), 1.0, "unexpected keyword argument 'sigma'"),
    "no parameters": ((*STEP, "params"), KeyError, "a class, its parameters and its attributes"),
    "attribute": ((*STEP, "fitted", "predict"), 1.0, "has no attribute 'predict'"),
    "missing": ((*STEP, "fitted", "intercept_"), KeyError, "intercept_ is missing"),
    "no array": ((*STEP, "fitted", "intercept_"), 3.0, "intercept_ must be an array"),
    "unknown array": ((*STEP, "fitted", "intercept_"), {"$array": "none"}, "malformed"),
    "unknown kind": ((*STEP, "fitted", "intercept_"), {"$eval": "1"}, "'$eval' is not a kind of value"),
    "private kind": ((*STEP, "fitted", "intercept_"), {"$valid": "1"}, "is not a kind of value"),
    "import": ((*STEP, "params", "kernel"), {"$import": "os:system"}, "if you trust that code"),
    "kernel": ((*STEP, "fitted", "_kernel"), {"$kernel": "object", "params": {}}, "malformed"),
    "kernel's number": ((*STEP, "fitted", "_kernel"), {"$kernel": "RBF", "params": {"sigma": -1}}, "must be positive"),
    "kernel's kernel": ((*STEP, "fitted", "_kernel"), {"$kernel": "Power", "params": {"k1": 1, "n": 2}}, "be a Kernel"),
    "classes": (
        (*STEP, "fitted", "classes_"),
        {"$strings": ["b", "a", "c"], "dtype": "object"},
        "two or more labels, in order",
    ),
    "multi_class": ((*STEP, "params", "multi_class"), "all", "multi_class must be one of"),
    "calibration": ((*STEP, "calibration"), [], "0 maps do not calibrate 3 classes"),
    "scaling": (("steps", 0, "fitted", "mean_"), {"$array": "1.n_support_"}, "mean_ must be 4 finite numbers"),
    "two machines": (("steps", 0), {"class": "SVC", "params": {}, "fitted": {}}, "n_features_in_ is missing"),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads(name, members, tmp_path):
    keys, value, sentence = HEADS[name]
    head = changed(members["model.json"], *keys, to=value)
    refused(packed(tmp_path / "m.symsvm", members | {"model.json": head}), sentence)


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (b"", "is not valid JSON"),
        (b"\xff\xfe\x00", "damaged"),
        (b"{" * 9, "is not valid JSON"),
        (b"[" * 10**6, "nested too deeply"),
        (b"9" * 10**5, "damaged"),
        (b'{"format": NaN}', "holds NaN"),
        (b"[]", "must give 'symsvm model' as its format"),
    ],
)
def test_heads_that_are_not_json(head, sentence, members, tmp_path):
    refused(packed(tmp_path / "m.symsvm", members | {"model.json": head}), sentence)


def test_values_nested_too_deeply(members, tmp_path):
    value = 1
    for _ in range(100):
        value = {"$tuple": [value]}
    head = changed(members["model.json"], *STEP, "params", "C", to=value)
    refused(packed(tmp_path / "m.symsvm", members | {"model.json": head}), "nested more than 64 deep")


def test_archives(members, tmp_path):
    path = tmp_path / "m.symsvm"
    for name in ("../evil.npy", "/etc/evil.npy", "a/b.npy", "C:\\evil.npy", "..\\evil.npy", "evil.py"):
        refused(packed(path, members | {name: npy(np.zeros(1))}), "which is not an array of a model")
    refused(packed(path, {k: v for k, v in members.items() if k != "model.json"}), "has one model.json, this one has 0")
    refused(packed(path, {k: v for k, v in members.items() if k != ARRAY}), "malformed")
    bomb = members | {"bomb.npy": npy(np.zeros(10**7))}
    refused(packed(path, bomb, zipfile.ZIP_DEFLATED), "compressed or encrypted")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", b"{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("model.json", b"{}")
    refused(path, "has one model.json, this one has 2")


def test_members_that_share_their_bytes(members, tmp_path):
    """Many entries of the directory that point to the same data: a bomb without compression."""
    path = tmp_path / "m.symsvm"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", members["model.json"])
        archive.writestr("a.npy", npy(np.zeros(10**5)))
        for i in range(100):
            info = zipfile.ZipInfo(f"a{i}.npy")
            for field in ("header_offset", "file_size", "compress_size", "CRC", "external_attr"):
                setattr(info, field, getattr(archive.getinfo("a.npy"), field))
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
    refused(path, "larger than the file, according to its directory")


def test_bytes(members, tmp_path):
    path = packed(tmp_path / "m.symsvm", members)
    good = path.read_bytes()
    for cut in (0, 1, 10, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:cut])
        refused(path, "is not a .symsvm file, or a damaged one")
    for bad in (b"PK\3\4" + bytes(100), bytes(1000), b"\x80\x04.", b"svm_type c_svc\n"):
        path.write_bytes(bad)
        refused(path, "is not a .symsvm file, or a damaged one")
    place = good.index(members[ARRAY]) + len(members[ARRAY]) - 3
    path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
    refused(path, "CRC")


TEXTS = {
    "empty": (lambda t: b"", 0, "ends before the line SV"),
    "cut in the header": (lambda t: t[:40], 3, "ends before the line SV"),
    "cut in a vector": (lambda t: t[: t.rindex(b"1:")].rstrip(b"\n"), None, "in the middle of a line"),
    "nul": (lambda t: t.replace(b"c_svc", b"c_\0svc"), 1, "NUL byte"),
    "nul below": (lambda t: t + b"\0", None, "NUL byte"),
    "letters": (lambda t: t.replace(b"c_svc", "c_sv\u00e7".encode()), 1, "characters other than ASCII"),
    "no model": (lambda t: b"PK\3\4" + bytes(100), 1, "NUL byte"),
    "machine": (lambda t: t.replace(b"c_svc", b"d_svc"), 1, "svm_type must be one of"),
    "kernel": (lambda t: t.replace(b"rbf", b"rbg"), 2, "kernel_type must be one of"),
    "gamma": (lambda t: t.replace(b"gamma 0.5", b"gamma -0.5"), None, "gamma must be positive"),
    "no gamma": (lambda t: t.replace(b"gamma 0.5\n", b""), None, "ends without gamma"),
    "tiny gamma": (lambda t: t.replace(b"gamma 0.5", b"gamma 1e308"), None, "sigma of RBF"),
    "nan": (lambda t: t.replace(b"gamma 0.5", b"gamma nan"), 3, "finite number, got 'nan'"),
    "two numbers": (lambda t: t.replace(b"gamma 0.5", b"gamma 0.5 2"), 3, "must have a number"),
    "twice": (lambda t: t.replace(b"gamma 0.5", b"gamma 0.5\ngamma 0.5"), 4, "the header has gamma twice"),
    "unknown": (lambda t: t.replace(b"gamma 0.5", b"delta 0.5"), 3, "no line 'delta'"),
    "classes": (lambda t: t.replace(b"nr_class 3", b"nr_class 1"), None, "a c_svc model cannot have nr_class 1"),
    "many classes": (lambda t: t.replace(b"nr_class 3", b"nr_class 2000000000"), None, "rho must have"),
    "huge total": (lambda t: t.replace(b"total_sv ", b"total_sv 9999"), None, "nr_sv must count"),
    "no integer": (lambda t: t.replace(b"nr_class 3", b"nr_class 3.5"), 4, "nr_class must be"),
    "labels": (lambda t: t.replace(b"label 2 1 0", b"label 2 1 1"), None, "labels must differ"),
    "large label": (lambda t: t.replace(b"label 2 1 0", b"label 2 1 99999999999"), None, "integer of 32 bits"),
    "more lines": (lambda t: t + b"1 1 1:1\n", None, "but more lines follow"),
    "fewer": (lambda t: t[: t[:-1].rindex(b"\n")], None, "support vectors follow"),
    "negative index": (lambda t: t.replace(b" 2:", b" -2:", 1), None, "indices that increase"),
    "order": (lambda t: t.replace(b" 2:", b" 1:", 1), None, "indices that increase"),
    "huge index": (lambda t: t.replace(b" 4:", b" 99999999999:", 1), None, "integer of 32 bits"),
    "no value": (lambda t: t.replace(b" 4:", b" 4 ", 1), None, "entries are index:value"),
    "bad value": (lambda t: t.replace(b" 4:", b" 4:x", 1), None, "a value must be a finite number"),
    "underscore": (lambda t: t.replace(b" 4:", b" 4:1_", 1), None, "a value must be a finite number"),
    "one line": (lambda t: t.replace(b"gamma 0.5", b"gamma " + b"5" * 10**7), 3, "finite number"),
    "one word": (lambda t: b"x" * 10**7, 1, "no line"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name, text, tmp_path):
    change, line, sentence = TEXTS[name]
    path = tmp_path / "m.libsvm"
    path.write_bytes(change(text))
    assert change(text) != text
    message = refused(path, sentence)
    assert ", line " in message or name == "tiny gamma"
    if line is not None:
        assert f", line {line}:" in message


def test_a_wide_vector_stays_sparse(text, tmp_path):
    path = tmp_path / "m.libsvm"
    path.write_bytes(text.replace(b" 4:", b" 2147483647:", 1))
    tracemalloc.start()
    model = symsvm.load(path)
    assert tracemalloc.get_traced_memory()[1] < 20 * len(text) + 2**21
    tracemalloc.stop()
    assert model.n_features_in_ == 2**31 - 1


def test_extensions(tmp_path):
    with pytest.raises(ModelFileError, match=r"must be .symsvm, .libsvm or .onnx, got '.pkl'"):
        symsvm.save(SVC().fit(X, y), tmp_path / "m.pkl")
    with pytest.raises(ModelFileError, match=r"must be .symsvm or .libsvm, got ''"):
        symsvm.load(tmp_path / "m")
    with pytest.raises(ModelFileError, match="n_features= applies only to .libsvm files"):
        symsvm.load(tmp_path / "m.symsvm", n_features=3)
    with pytest.raises(FileNotFoundError):
        symsvm.load(tmp_path / "m.symsvm")
