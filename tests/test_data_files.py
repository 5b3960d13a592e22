"""Readers and writers of data files: round trips, and agreement with the readers of other libraries."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from datasets import sources, use
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from symsvm.data import DataError, chunks, data_home, read, write
from symsvm.io.data import parquet
from symsvm.io.data.array_files import IDX_TYPES, read_idx, write_idx
from symsvm.io.data.libsvm_data import read_libsvm, write_libsvm
from symsvm.io.data.numeric_text import BLOCK_BYTES, parse

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3)) * 10.0 ** RNG.integers(-9, 9, size=(50, 3))
Y = RNG.integers(0, 3, size=50).astype("float64")
WORDS = np.array(["setosa", "versi, color", 'virgi"nica', "été", "a b"] * 10)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_equals_python_float(value):
    _same(repr(value))
    _same(f"{value:.3e}")
    _same(f"{value:.17g}")


@given(st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_any_syntax_of_a_number(text):
    _same(text)


def _same(text):
    value, end, sure = parse(np.frombuffer(text.encode() + b"\n", dtype=np.uint8), 0)
    assert end == len(text)
    if sure:
        np.testing.assert_array_equal(np.float64(value).view("int64"), np.float64(text).view("int64"))


@pytest.mark.parametrize("text", ["", "-", ".", "e5", "1e", "1e+", "nan", "inf", "x1"])
def test_not_a_number(text):
    assert parse(np.frombuffer(text.encode() + b"\n", dtype=np.uint8), 0)[1] == 0


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.npz", "p.parquet", "p.libsvm", "p.svm.gz", "p"])
def test_round_trip(name, tmp_path):
    path = tmp_path / name
    write(path, X, Y)
    labels = -1 if "csv" in name or "tsv" in name else "label" if "parquet" in name else None
    A, b = read(path, labels)
    np.testing.assert_array_equal(A.toarray() if sparse.issparse(A) else A, X)
    np.testing.assert_array_equal(b, Y)
    parts = list(chunks(path, labels, rows=20, dtype="float64"))
    assert [part.X.shape[0] for part in parts] == [20, 20, 10]
    stack = sparse.vstack([part.X for part in parts]).toarray() if sparse.issparse(A) else None
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]) if stack is None else stack, X)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), Y)
    assert next(chunks(path, labels)).X.dtype == "float32"


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.npz", "p.parquet"])
def test_labels_may_be_strings(name, tmp_path):
    write(tmp_path / name, X, WORDS)
    labels = None if name == "p.npz" else -1
    A, b = read(tmp_path / name, labels)
    np.testing.assert_array_equal(A, X)
    np.testing.assert_array_equal(b, WORDS)
    assert sum(len(part.y) for part in chunks(tmp_path / name, labels, rows=7)) == 50


def test_without_labels(tmp_path):
    for name in ("p.csv", "p.npy", "p.npz", "p.parquet"):
        write(tmp_path / name, X)
        A, b = read(tmp_path / name)
        assert b is None
        np.testing.assert_array_equal(A, X)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_parquet_by_either_library(library, tmp_path, monkeypatch):
    pytest.importorskip(library if library == "polars" else "pyarrow")
    monkeypatch.setattr(parquet, "installed_library", lambda: library)
    for labels in (Y, WORDS):
        write(tmp_path / "p.parquet", X, labels)
        A, b = read(tmp_path / "p.parquet", "label")
        np.testing.assert_array_equal(A, X)
        np.testing.assert_array_equal(b, labels)
        assert [len(part.y) for part in chunks(tmp_path / "p.parquet", -1, rows=20)] == [20, 20, 10]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + bytes(30) + b"PAR1")
    with pytest.raises(DataError, match="bad.parquet: it cannot be read as Parquet"):
        read(tmp_path / "bad.parquet")


@pytest.mark.parametrize("labels", ["y.csv", "y.npy", "y.idx", "y.txt"])
def test_labels_in_a_file_of_their_own(labels, tmp_path):
    write(tmp_path / "p.npy", X)
    numbers = Y.astype("uint8") if labels == "y.idx" else Y
    if labels == "y.txt":
        np.savetxt(tmp_path / labels, Y, header="the classes")
    else:
        write(tmp_path / labels, numbers if labels != "y.csv" else Y[:, None])
    np.testing.assert_array_equal(read(tmp_path / "p.npy", tmp_path / labels).y, Y)
    np.testing.assert_array_equal(read(tmp_path / "p.npy", str(tmp_path / labels)).y, Y)
    parts = list(chunks(tmp_path / "p.npy", tmp_path / labels, rows=30))
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), Y)
    write(tmp_path / "short.npy", X[:49])
    with pytest.raises(DataError, match="50 labels, but .*short.npy has 49 points"):
        read(tmp_path / "short.npy", tmp_path / labels)
    with pytest.raises(DataError, match="50 labels, but .*short.npy has 49 points"):
        list(chunks(tmp_path / "short.npy", tmp_path / labels))


def test_libsvm_file_variants(tmp_path):
    path = tmp_path / "p.svm"
    path.write_bytes(b"# made by hand\n\n+1 qid:3 1:0.5 4:2e-1 # a comment: 7:8\r\n-1\t2:1   \n0.5 qid:4\n1 5:-.5")
    A, y, query = read_libsvm(path, query_id=True)
    np.testing.assert_array_equal(A.toarray(), [[0.5, 0, 0, 0.2, 0], [0, 1, 0, 0, 0], [0] * 5, [0, 0, 0, 0, -0.5]])
    np.testing.assert_array_equal(y, [1, -1, 0.5, 1])
    np.testing.assert_array_equal(query, [3, -1, 4, -1])
    assert read(path, n_features=9).X.shape == (4, 9)
    write_libsvm(path, A, y, query_id=[3, 3, 4, 4])
    np.testing.assert_array_equal(read_libsvm(path, query_id=True)[2], [3, 3, 4, 4])
    write_libsvm(path, A, y, zero_based=True)
    assert path.read_text().splitlines()[0] == "1 0:0.5 3:0.2"
    np.testing.assert_array_equal(read(path, zero_based=True).X.toarray(), A.toarray())


def test_libsvm_file_equals_scikit_learn(tmp_path):
    S = sparse.random(300, 40, density=0.2, random_state=0, format="csr")
    y = RNG.normal(size=300)
    dump_svmlight_file(S, y, str(tmp_path / "theirs"), zero_based=False, comment="of scikit-learn")
    A, b = read(tmp_path / "theirs")
    B, c = load_svmlight_file(str(tmp_path / "theirs"))
    assert (A != B).nnz == 0
    np.testing.assert_array_equal(b, c)
    write(tmp_path / "ours", S, y)
    B, c = load_svmlight_file(str(tmp_path / "ours"))
    assert (S != B).nnz == 0
    np.testing.assert_array_equal(y, c)


NAMED = ("a9a", "svmguide2", "svmguide3", "cadata_scale")


@pytest.mark.parametrize(("name", "source"), [(name, source) for name in NAMED for source in sources(name)])
def test_named_files_equal_scikit_learn(name, source, monkeypatch, tmp_path):
    use(source, name, tmp_path, monkeypatch)
    A, y = read(data_home() / name)
    B, c = load_svmlight_file(str(data_home() / name))
    assert A.shape == B.shape
    assert (A != B).nnz == 0
    np.testing.assert_array_equal(y, c)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        (b"1,2,0\n3,4.5,1\n", False),
        (b"a,b,label\n1,2,0\n3,4.5,1", True),
        (b"\xef\xbb\xbfa;b;label\r\n1;2;0\r\n\r\n3;4.5;1\r\n", True),
        (b"# a comment\n1\t2\t0\n3\t4.5\t1\n", False),
        (b"  1   2  0\n  3 4.5 1 \n", False),
        (b'"a","b, c","label"\n"1","2",0\n3 , 4.5 ,"1"\n', True),
    ],
)
def test_csv_variants(text, header, tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(text)
    for labels in (-1, 2, *(["label"] if header else [])):
        A, y = read(path, labels)
        np.testing.assert_array_equal(A, [[1, 2], [3, 4.5]])
        np.testing.assert_array_equal(y, [0, 1])
    assert read(path).X.shape == (2, 3)


def test_a_damaged_point_is_not_a_header(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("0,1,label\n1,2,0\n3,4.5,1\n")
    with pytest.raises(DataError, match="line 1: the line may be a header or a point; pass header=True"):
        read(path)
    assert read(path, "label", header=True).X.shape == (2, 2)
    with pytest.raises(DataError, match="line 1: column 3 holds 'label', which is not a number"):
        read(path, header=False)
    for first in ("nan,2", "?,2", ",2", "NA,?"):
        path.write_text(f"{first}\n1,2\n")
        with pytest.raises(DataError, match="line 1: column 1"):
            read(path)


def test_csv_string_labels_without_a_header(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n")
    assert list(read(path, -1).y) == ["setosa", "setosa", "versicolor"]
    path.write_text("label,x\nsetosa,1\n")
    assert list(read(path, "label").y) == ["setosa"]
    path.write_text("setosa,1\n")
    assert list(read(path, 0).y) == ["setosa"]


@pytest.mark.parametrize("kind", IDX_TYPES.values())
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_of_every_type(kind, ending, tmp_path):
    array = (RNG.normal(size=(7, 2, 3)) * 50).astype(np.dtype(kind).newbyteorder("="))
    path = tmp_path / f"images.idx3{ending}"
    write_idx(path, array)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == bool(ending)
    back = read_idx(path)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    assert read(path).X.shape == (7, 6)
    path.rename(tmp_path / "no_ending")
    np.testing.assert_array_equal(read(tmp_path / "no_ending").X, array.reshape(7, 6))


def test_idx_byte_layout(tmp_path):
    (tmp_path / "x-ubyte").write_bytes(bytes([0, 0, 0x0B, 2, 0, 0, 0, 2, 0, 0, 0, 1, 1, 0, 255, 254]))
    np.testing.assert_array_equal(read(tmp_path / "x-ubyte").X, [[256], [-2]])


def test_more_than_one_block(tmp_path):
    """Lines, points and line numbers continue over the blocks that a file is read in."""
    line = b"1 " + b" ".join(b"%d:0.12345678901234567" % j for j in range(1, 400)) + b"\n"
    many = 2 * BLOCK_BYTES // len(line) + 3
    path = tmp_path / "p.svm"
    path.write_bytes(gzip.compress(b"\n" + line * many, 1))
    assert read(path).X.shape == (many, 399)
    assert sum(part.X.shape[0] for part in chunks(path, rows=1000, n_features=399)) == many
    path.write_bytes(b"\n" + line * many + b"1 1:x\n")
    with pytest.raises(DataError, match=rf"line {many + 2}: the value in '1:x' is not a number"):
        read(path)
    row = b"1," * 99 + b"x\n"
    many = BLOCK_BYTES // len(row) + 3
    path = tmp_path / "p.csv"
    path.write_bytes(b"a" + b",b" * 98 + b",label\n" + row * many)
    A, y = read(path, "label")
    assert A.shape == (many, 99)
    assert set(y) == {"x"}
    path.write_bytes(row * many + b"1,2\n")
    with pytest.raises(DataError, match=rf"line {many + 1}: the line has fewer than the 100 columns"):
        read(path, -1)


@pytest.mark.parametrize("name", ["p.idx", "p.npy", "p.csv", "p.svm"])
def test_chunks_use_bounded_memory(name, tmp_path):
    """A file of 40 MB needs a few MB of memory."""
    path = tmp_path / name
    if name in ("p.idx", "p.npy"):
        write(path, np.ones((5_000, 1_000)))
    else:
        line = (
            b"1," * 999 + b"1\n" if name == "p.csv" else b"1 " + b" ".join(b"%d:1" % j for j in range(1, 1001)) + b"\n"
        )
        path.write_bytes(line * (40_000_000 // len(line)))
    next(chunks(path, rows=10))  # compiles
    tracemalloc.start()
    total = sum(part.X.sum(dtype="float64") for part in chunks(path, rows=100, n_features=1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total >= 5_000_000
    # In text a block of 4 MiB is parsed at once: 12 bytes of "1:1 1:1 " become 8 + 4, with 24 more for late numbers.
    assert peak < (10 << 20 if name in ("p.idx", "p.npy") else 160 << 20)


def test_float32(tmp_path):
    write(tmp_path / "p.csv", [[0.1, 1e300]])
    with pytest.raises(DataError, match="too large for float32"):
        read(tmp_path / "p.csv", dtype="float32")
    write(tmp_path / "q.csv", [[0.1, 1e30]])
    assert read(tmp_path / "q.csv", dtype="float32").X.dtype == "float32"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "p.csv"
    write(path, X, Y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="the string 'a.nb' has a line break"):
        write(path, X, ["a", "a\nb"] * 25)
    with pytest.raises(ValueError, match="y must hold numbers or strings"):
        write(path, X, [object()] * 50)
    with pytest.raises(ValueError, match="y must hold numbers in libsvm files"):
        write(tmp_path / "p.svm", X, WORDS)
    with pytest.raises(ValueError, match="y must be finite"):
        write(tmp_path / "p.svm", X, Y * np.nan)
    with pytest.raises(ValueError, match="X must hold finite numbers"):
        write(path, X * np.inf, Y)
    with pytest.raises(ValueError, match=r"X must have two dimensions .* got the shape \(50,\)"):
        write(path, Y)
    with pytest.raises(ValueError, match="header must name the 4 columns, got 1 names"):
        write(path, X, Y, header=["a"])
    with pytest.raises(ValueError, match="a label for each of the 50 points"):
        write(path, X, Y[:3])
    with pytest.raises(ValueError, match="X is sparse, and csv files are dense: write a LIBSVM file"):
        write(path, sparse.csr_matrix(X), Y)
    with pytest.raises(ValueError, match="npy files hold one array: write y to a file of its own"):
        write(tmp_path / "p.npy", X, Y)
    with pytest.raises(ValueError, match="IDX holds arrays of uint8"):
        write(tmp_path / "p.idx", X > 0)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]


def test_arguments(tmp_path):
    write(tmp_path / "p.svm", X, Y)
    with pytest.raises(ValueError, match="format must be one of"):
        read(tmp_path / "p.svm", format="xls")
    with pytest.raises(ValueError, match="dtype must be one of 'float64', 'float32', got 'int8'"):
        read(tmp_path / "p.svm", dtype="int8")
    with pytest.raises(ValueError, match="labels=3 is not a file, and libsvm files have no such column"):
        read(tmp_path / "p.svm", 3)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "p.svm", Path("absent.csv"))
    write(tmp_path / "p.csv", X, Y, header=["a", "b", "c", "d"])
    with pytest.raises(DataError, match="there is no column 'z' for the labels; its columns are 'a', 'b', 'c', 'd'"):
        read(tmp_path / "p.csv", "z")
    with pytest.raises(DataError, match="there is no column 4 for the labels; it has 4 columns"):
        read(tmp_path / "p.csv", 4)
