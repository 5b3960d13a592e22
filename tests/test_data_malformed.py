"""Malformed data files: one sentence with file and line, bounded memory, no chain of errors."""

import gzip
import io
import re
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from symsvm.data import DataError, chunks, read
from symsvm.io.data.array_files import write_idx
from symsvm.io.data.parquet import write_parquet


def idx(shape, body=b"", code=8):
    return struct.pack(f">4B{len(shape)}I", 0, 0, code, len(shape), *shape) + body


def npy(array=None, header=None, body=b"", version=1):
    file = io.BytesIO()
    if array is not None:
        np.save(file, array, allow_pickle=True)
        return file.getvalue()
    text = header.encode("latin-1")
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + body


def npz(**entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def damaged(content, at, byte=0xFF):
    return content[:at] + bytes([content[at] ^ byte]) + content[at + 1 :]


GOOD = npy(np.ones((3, 2)))
ZIPPED = gzip.compress(b"1 1:2\n" * 1000)
HEAD = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n"

# what is wrong: (name of the file, its bytes, a pattern in the sentence)
CORPUS = {
    "libsvm: empty": ("p.svm", b"", "p.svm: the file has no points"),
    "libsvm: comments only": ("p.svm", b"# nothing\n\n", "p.svm: the file has no points"),
    "libsvm: a word for a label": ("p.svm", b"1 1:2\nspam 1:2\n", "line 2: the label 'spam' is not a number"),
    "libsvm: two labels": ("p.svm", b"1,2 1:2\n", "line 1: the label '1' is not a number"),
    "libsvm: nan for a label": ("p.svm", b"nan 1:2\n", "line 1: the label 'nan' is not finite"),
    "libsvm: truncated in a pair": ("p.svm", b"1 1:2\n1 1:2 3:", "line 2: the value in '3:' is not a number"),
    "libsvm: truncated in an index": ("p.svm", b"1 1:2\n1 1:2 3", "line 2: '3' is not an index:value pair"),
    "libsvm: no index": ("p.svm", b"1 :2\n", "line 1: ':2' is not an index:value pair"),
    "libsvm: NUL bytes": ("p.svm", b"1 1:2\n\x00\x00\n", r"line 2: the label '\\x00\\x00' is not a number"),
    "libsvm: NUL in a value": ("p.svm", b"1 1:2\x00\n", "line 1: the value in .* is not a number"),
    "libsvm: huge index": ("p.svm", b"1 99999999999999999999:1\n", "line 1: the index in .* is larger than 2147483647"),
    "libsvm: large index": ("p.svm", b"1 2147483648:1\n", "line 1: the index in '2147483648:1' is larger"),
    "libsvm: negative index": ("p.svm", b"1 -3:1\n", "line 1: the index in '-3:1' is not a whole number from 1"),
    "libsvm: index 0": ("p.svm", b"1 0:1\n", "line 1: the index in '0:1' is not .* zero_based=True"),
    "libsvm: indices that do not increase": ("p.svm", b"1 3:1 2:1\n", "line 1: the index in '2:1' does not increase"),
    "libsvm: an index twice": ("p.svm", b"1 3:1 3:1\n", "line 1: the index in '3:1' does not increase"),
    "libsvm: nan": ("p.svm", b"1 1:2\n1 1:nan\n", "line 2: the value in '1:nan' is not finite"),
    "libsvm: inf": ("p.svm", b"1 1:-inf\n", "line 1: the value in '1:-inf' is not finite"),
    "libsvm: overflow": ("p.svm", b"1 1:1e999\n", "line 1: the value in '1e999' is not finite"),
    "libsvm: underscores": ("p.svm", b"1 1:1_0\n", "line 1: the value in '1:1_0' is not a number"),
    "libsvm: hexadecimal": ("p.svm", b"1 1:0x10\n", "line 1: the value in '1:0x10' is not a number"),
    "libsvm: qid": ("p.svm", b"1 qid:x 1:2\n", "line 1: the query number in 'qid:x'"),
    "libsvm: large qid": ("p.svm", b"1 qid:99999999999 1:2\n", "line 1: the query number in"),
    "libsvm: UTF-16": ("p.svm", "1 1:2\n".encode("utf-16"), "line 1: the label"),
    "libsvm: vertical tab": ("p.svm", b"\x0b1 1:2\n", "line 1: the label"),
    "libsvm: 10 MB on one line": ("p.svm", b"1 1:2\n1" + b" 1:2" * 2_500_000, "line 2: the line has more than 8 MiB"),
    "libsvm: 10 MB and a line": ("p.svm", b"1" * 10_000_000 + b"\n1 1:2\n", "line 1: the line has more than 8 MiB"),
    "csv: empty": ("p.csv", b"", "p.csv: the file has no points"),
    "csv: blank": ("p.csv", b"\n \n", "p.csv: the file has no points"),
    "csv: header only": ("p.csv", b"a,b\n", "line 1: there is a header and no points"),
    "csv: fewer columns": ("p.csv", b"1,2\n3,4\n5\n", "line 3: the line has fewer than the 2 columns"),
    "csv: more columns": ("p.csv", b"1,2\n3,4,5\n", "line 2: the line has more than the 2 columns"),
    "csv: a word": ("p.csv", b"1,2\n3,4\n5,spam\n", "line 3: column 2 holds 'spam', which is not a number"),
    "csv: half a number": ("p.csv", b"1,2\n3,4\n5,6x\n", "line 3: column 2 holds '6x', which is not a number"),
    "csv: two numbers in a field": ("p.csv", b"1,2\n3 4,5\n", "line 2: column 1 holds '3', which is not a number"),
    "csv: nothing in a field": ("p.csv", b"1,2\n,4\n", "line 2: column 1 is empty"),
    "csv: nothing in the last field": ("p.csv", b"1,2,3\n4,5,\n", "line 2: column 3 is empty"),
    "csv: nan": ("p.csv", b"1,2\n3,NaN\n", "line 2: column 2 holds 'NaN', which is not finite"),
    "csv: overflow": ("p.csv", b"1,2\n3,-1e999\n", "line 2: column 2 holds '-1e999', which is not finite"),
    "csv: an open quote": ("p.csv", b'1,2\n"3,4\n', "line 2: column 1 holds"),
    "csv: NUL bytes": ("p.csv", b"1,2\n\x00,4\n", r"line 2: column 1 holds '\\x00'"),
    "csv: 10 MB on one line": ("p.csv", b"1," * 5_000_000, "line 1: the line has more than 8 MiB"),
    "csv: a wide header": (
        "p.csv",
        b"a," * 100_000 + b"a\n1,2\n",
        "line 2: the line has 2 columns, the header has 100001",
    ),
    "csv: a long field": ("p.csv", b"a" * 200_000 + b",b\n1,2\n3\n", "line 1: the line is not valid CSV|line 3"),
    "idx: empty": ("p.idx", b"", r"it begins with the bytes \(none\), not with the header of an IDX file"),
    "idx: wrong magic": ("p.idx", b"\x00\x00\x07\x01\x00\x00\x00\x01\x01", "it begins with the bytes 00 00 07 01"),
    "idx: text": ("p.idx", b"1 1:2\n", "it begins with the bytes 31 20 31 3a"),
    "idx: truncated in the header": ("p.idx", idx((2, 3))[:9], "the file ends inside its header"),
    "idx: truncated": (
        "p.idx",
        idx((2, 3), b"12345"),
        r"the file is too short: its shape \(2, 3\) needs 6 bytes, but 5 follow",
    ),
    "idx: too long": (
        "p.idx",
        idx((2, 3), b"1234567"),
        "the file is too long: its shape .* needs 6 bytes, but 7 follow",
    ),
    "idx: huge": ("p.idx", idx((2**32 - 1,) * 4, b"1"), "the file is too short: "),
    "idx: huge, gzip": ("p.idx.gz", gzip.compress(idx((2**32 - 1,) * 4, b"1")), "more than 200 times"),
    "idx: truncated, gzip": ("p.idx.gz", gzip.compress(idx((2, 3), b"12345")), "the file is too short: "),
    "idx: too long, gzip": (
        "p.idx.gz",
        gzip.compress(idx((2, 3), b"1234567")),
        "the file is too long: its shape .* needs 6 bytes, more follow",
    ),
    "idx: no points": ("p.idx", idx((0, 3)), "the file has no points"),
    "idx: nan": ("p.idx", idx((2,), struct.pack(">2d", 1, np.nan), 0x0E), "row 2 has a nan"),
    "gzip: truncated": ("p.svm.gz", ZIPPED[:-12], "its gzip stream is damaged or truncated"),
    "gzip: damaged": ("p.svm.gz", damaged(ZIPPED, len(ZIPPED) - 6), "its gzip stream is damaged or truncated"),
    "gzip: header only": ("p.svm.gz", b"\x1f\x8b", "its gzip stream is damaged or truncated"),
    "npy: empty": ("p.npy", b"", "its header is not that of a .npy array"),
    "npy: wrong magic": ("p.npy", damaged(GOOD, 2), "its header is not that of a .npy array"),
    "npy: truncated": ("p.npy", GOOD[:-5], r"its shape \(3, 2\) needs 48 bytes, but 43 follow"),
    "npy: huge": ("p.npy", npy(header=HEAD % f"({2**60}, 8)"), "but 0 follow the header"),
    "npy: many axes": ("p.npy", npy(header=HEAD % f"({'9999, ' * 1000})"), "its shape .* needs .* bytes, but 0 follow"),
    "npy: negative": ("p.npy", npy(header=HEAD % "(-1, -1)", body=bytes(8)), r"its shape \(-1, -1\)"),
    "npy: no header": ("p.npy", npy(header="[" * 5000), "its header is not that of a .npy array"),
    "npy: long header": ("p.npy", npy(header=" " * 100_000, version=2), "its header is not that of a .npy array"),
    "npy: a pickle": ("p.npy", npy(np.array([{}], dtype=object)), "is neither numbers nor strings"),
    "npy: words": ("p.npy", npy(np.array(["a"])), "its type <U1 is not numeric"),
    "npy: a number": ("p.npy", npy(np.array(1.0)), "the file has no points"),
    "npy: nan": ("p.npy", npy(np.array([[1.0], [np.inf]])), "row 2 has a nan or an infinity"),
    "npz: empty": ("p.npz", b"", "its zip archive is damaged"),
    "npz: truncated": ("p.npz", npz(X=GOOD)[:-9], "its zip archive is damaged"),
    "npz: damaged": ("p.npz", damaged(npz(X=GOOD), 60), "its zip archive is damaged|header"),
    "npz: no points": ("p.npz", npz(), "the file has no array; name the points 'X' and the labels 'y'"),
    "npz: which array": ("p.npz", npz(a=GOOD, b=GOOD), "the file has 'a', 'b'; name the points 'X' and the labels 'y'"),
    "npz: other labels": ("p.npz", npz(X=GOOD, y=npy(np.ones(2))), r"the labels have the shape \(2,\)"),
    "npz: a pickle": ("p.npz", npz(X=npy(np.array([{}], dtype=object))), "is neither numbers nor strings"),
    "parquet: empty": ("p.parquet", b"", "it does not begin with PAR1"),
    "parquet: truncated": ("p.parquet", b"PAR1" + bytes(20), "it cannot be read as Parquet"),
}


@pytest.mark.parametrize("case", CORPUS)
def test_malformed_files_give_one_sentence(case, tmp_path):
    name, content, sentence = CORPUS[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=sentence) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < len(str(path)) + 300
    assert text.endswith(".")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    with pytest.raises(DataError, match=sentence):
        list(chunks(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("zeros.svm.gz", bytes(100_000_000)),
        ("labels.svm.gz", b"1\n" * 50_000_000),
        ("rows.csv.gz", b"1,2\n" * 25_000_000),
        ("images.idx.gz", idx((100_000_000,), bytes(100_000_000))),
    ],
)
def test_a_gzip_bomb_is_not_unpacked(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, 9 if len(set(content[:100])) < 3 else 6))
    del content
    _refused(path, "more than 200 times|has more than 8 MiB")


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy(np.zeros((10_000, 1_000))))
    _refused(tmp_path / "p.npz", "more than 200 times")


def _refused(path, sentence):
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=sentence):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
    finally:
        tracemalloc.stop()


def test_a_small_file_may_be_highly_compressed(tmp_path):
    write_idx(tmp_path / "blank.idx.gz", np.zeros((1000, 784), dtype="uint8"))
    assert read(tmp_path / "blank.idx.gz").X.shape == (1000, 784)


def test_parquet_errors(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "p.parquet"
    polars.DataFrame({"a": [1.0, None], "b": ["x", "y"]}).write_parquet(path)
    with pytest.raises(DataError, match="column 'a' is not finite, or missing, in row 2"):
        read(path, "b")
    polars.DataFrame({"b": ["x", "y"]}).write_parquet(path)
    with pytest.raises(DataError, match="column 'b' does not hold numbers"):
        read(path)
    with pytest.raises(DataError, match="there is no column 'z' for the labels; its columns are b"):
        read(path, "z")


def test_a_damaged_parquet_file_is_a_sentence_and_no_panic(tmp_path, capfd):
    """Neither an exception of the library, nor a message of its own on stderr, nor the end of the process."""
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    path = tmp_path / "p.parquet"
    write_parquet(path, rng.normal(size=(50, 4)), rng.integers(0, 2, 50))
    good, errors = path.read_bytes(), []
    for _ in range(600):
        damaged = bytearray(good)
        for _ in range(rng.integers(1, 5)):  # mostly in the description at the end of the file
            first = 0 if rng.random() < 0.4 else len(good) - 700
            damaged[rng.integers(first, len(good))] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(4, len(good))] if rng.random() < 0.1 else damaged)
        try:
            read(path, "label")
        except DataError as error:
            errors.append(error)
    assert len(errors) > 300
    assert all(re.fullmatch(rf"{re.escape(str(path))}: [^\n]{{1,600}}\.", str(error)) for error in errors)
    assert all(error.__cause__ is None for error in errors)
    assert capfd.readouterr().err == ""
