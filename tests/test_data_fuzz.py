"""The readers of data files under fuzz: slow, and not part of the suite (make fuzz).

Files are made of the pieces that formats are made of, or are good files with a few bytes changed, cut or repeated. What
is asked: a `DataError` of one sentence or a result, the result that a plain reader in Python gives; `chunks` agrees.
"""

import gzip
import io
import re
import struct
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from symsvm.data import DataError, chunks, read
from symsvm.io.data.array_files import IDX_TYPES

pytestmark = [pytest.mark.slow, pytest.mark.fuzz]

SECONDS = 70  # for each reader
FUZZ = settings(
    max_examples=2000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def campaign(test):
    """Run a test of hypothesis again and again until its time is over, with other examples each time."""
    end, runs = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        test()
        runs += 1
    print(f"{runs * FUZZ.max_examples} files")


def outcome(path, **options):
    """The points that `read` and `chunks` give, or None for a `DataError`."""
    try:
        X, y = read(path, **options)
    except DataError as error:
        text = str(error)
        assert text.startswith(str(path)), text
        assert "\n" not in text, text
        assert text.endswith("."), text
        assert len(text) < len(str(path)) + 400, text
        with pytest.raises(DataError):
            list(chunks(path, rows=2, dtype="float64", **options))
        return None
    parts = list(chunks(path, rows=2, dtype="float64", **options))
    A = (
        sparse.vstack([part.X for part in parts]).toarray()
        if sparse.issparse(X)
        else np.concatenate([p.X for p in parts])
    )
    np.testing.assert_array_equal(A, X.toarray() if sparse.issparse(X) else X)
    assert np.isfinite(A).all()
    if y is not None:
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), y)
    return X, y


def finite(field):
    """The number in a field, or None."""
    if not NUMBER.fullmatch(field):
        return None
    value = float(field)
    return value if np.isfinite(value) else None


@st.composite
def changed(draw, content):
    """Some bytes with a few of them changed, cut out, repeated or put in."""
    content = bytearray(content)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content)))
        what = draw(st.sampled_from(["change", "cut", "end", "repeat", "insert"]))
        if what == "change" and at < len(content):
            content[at] = draw(st.integers(0, 255))
        elif what == "cut":
            del content[at : at + draw(st.integers(1, 8))]
        elif what == "end":
            del content[at:]
        elif what == "repeat":
            content[at:at] = content[at : at + draw(st.integers(1, 16))]
        elif what == "insert":
            content[at:at] = draw(st.binary(max_size=4))
    return bytes(content)


TOKENS = st.sampled_from(
    re.split(
        rb"\|",
        b"1|-1|+1|0.5| |  |\t|:|1:1| 2:0.25| 3:-1e-3|\n|\r\n|#|qid:|7| qid:3|nan|inf|1e999|\0|-|.|e|_|"
        b'2147483647:1|,|;|"|x|\xff|0.1234567890123456789|1e-320|,2|,|\n1,2|\n3,4|a,b\n|\xef\xbb\xbf|\x0b|99999999999999999999',
    )
)
TEXT = st.lists(TOKENS, max_size=25).map(b"".join)
LIBSVM = b"1 1:0.5 3:2e-1\n-1 qid:2 2:1 # c\n\n+1 1:.25 7:12345678901234567\n"
CSV = b'a,b,c\n1,2.5,"x, y"\n-3e2,4,z\n\n5,.5, w \n'


def plain_libsvm(content):
    """LIBSVM's text, read line by line: rows of (label, {index: value}), or None."""
    rows = []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = re.split(rb"[ \t\r]+", line.partition(b"#")[0].strip(b" \t\r"))
        if words == [b""]:
            continue
        label = finite(words.pop(0))
        if words and words[0].startswith(b"qid:"):
            query = words.pop(0)[4:]
            if not re.fullmatch(rb"\d+", query) or int(query) > 2**31 - 1:
                return None
        pairs, last = {}, 0
        for word in words:
            index, _, value = word.partition(b":")
            if not re.fullmatch(rb"\d+", index) or not last < int(index) < 2**31 or finite(value) is None:
                return None
            last = int(index)
            pairs[last] = finite(value)
        if label is None:
            return None
        rows.append((label, pairs))
    return rows or None


def test_libsvm_text(tmp_path):
    path = tmp_path / "p.svm"

    @FUZZ
    @given(st.one_of(TEXT, changed(LIBSVM), st.binary(max_size=40)))
    def check(content):
        path.write_bytes(content)
        expected = plain_libsvm(content) if not content.startswith(b"\x1f\x8b") else None
        if expected and max((max(pairs, default=0) for _, pairs in expected)) > 1000:
            return  # `outcome` makes it dense
        found = outcome(path)
        assert (found is None) == (expected is None), (found, expected)
        if found:
            assert list(found[1]) == [label for label, _ in expected]
            rows = [{j + 1: v for j, v in zip(row.indices, row.data, strict=True)} for row in found[0]]
            assert rows == [pairs for _, pairs in expected]

    campaign(check)


def plain_csv(content):
    """A table of numbers between commas without quotes, read line by line, or None."""
    lines = [line.strip(b" \t\r") for line in content.split(b"\n")]
    rows = [[finite(field.strip(b" \t\r")) for field in line.split(b",")] for line in lines if line]
    width = {len(row) for row in rows}
    return rows if len(width) == 1 and all(None not in row for row in rows) else None


def test_csv(tmp_path):
    path = tmp_path / "p.csv"

    @FUZZ
    @given(
        st.one_of(TEXT, changed(CSV), changed(b"1,2\n3,4\n5,6.5\n"), st.binary(max_size=40)),
        st.sampled_from([None, 0, -1]),
    )
    def check(content, labels):
        path.write_bytes(content)
        found = outcome(path, labels=labels)
        if labels is None and re.fullmatch(rb"[-+.,eE0-9\n\r]*", content) and b"," in content.strip().split(b"\n")[0]:
            expected = plain_csv(content)
            if expected is not None:
                np.testing.assert_array_equal(found[0], expected)
            elif plain_csv(content.strip().split(b"\n")[0]):
                assert found is None, "the first line is one of numbers, and another one is not"

    campaign(check)


@st.composite
def idx_files(draw):
    """A good IDX file, changed, in gzip or not."""
    code = draw(st.sampled_from(sorted(IDX_TYPES)))
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    length = int(np.prod(shape)) * np.dtype(IDX_TYPES[code]).itemsize
    body = draw(st.binary(min_size=length, max_size=length))
    content = draw(changed(struct.pack(f">4B{len(shape)}I", 0, 0, code, len(shape), *shape) + body))
    return draw(changed(gzip.compress(content, mtime=0))) if draw(st.booleans()) else content


def test_idx(tmp_path):
    path = tmp_path / "p.idx"

    @FUZZ
    @given(st.one_of(idx_files(), st.binary(max_size=60)))
    def check(content):
        path.write_bytes(content)
        found = outcome(path)
        if found and content[:2] != b"\x1f\x8b":
            kind, axes = IDX_TYPES[content[2]], content[3]
            numbers = np.frombuffer(content, dtype=kind, offset=4 + 4 * axes)
            np.testing.assert_array_equal(found[0].reshape(-1), numbers)

    campaign(check)


def test_arrays(tmp_path):
    one, several = io.BytesIO(), io.BytesIO()
    np.save(one, np.arange(6.0).reshape(3, 2))
    np.savez_compressed(several, X=np.arange(6.0).reshape(3, 2), y=np.array(["a", "b", "a"]))

    @FUZZ
    @given(
        st.one_of(
            st.tuples(st.just("p.npy"), changed(one.getvalue())),
            st.tuples(st.just("p.npz"), changed(several.getvalue())),
        )
    )
    def check(file):
        name, content = file
        (tmp_path / name).write_bytes(content)
        outcome(tmp_path / name)

    campaign(check)
