"""LIBSVM's text: a line a point, `label index:value index:value ...`, zeros left out."""

import numpy as np
from numba import njit
from scipy import sparse

from symsvm.io.data.arrays import converted
from symsvm.io.data.errors import DataError, shown
from symsvm.io.data.files import writing
from symsvm.io.data.text import blocks, is_special, line_of, parse, settle, word

__all__ = ["pieces", "read_libsvm", "write_libsvm"]

_LARGEST = 2**31 - 1  # an index that SciPy and LIBSVM can hold

_WRONG = (
    "",
    "the label {} is not a number.",
    "{} is not an index:value pair.",
    "the index in {} is not a whole number from {first}; indices count from 1, or from 0 with zero_based=True.",
    "the index in {} is larger than {largest}.",
    "the index in {} does not ascend; the indices of a line must.",
    "the value in {} is not a number.",
    "the value in {} is not finite.",
    "the query number in {} is not a whole number.",
    "the label {} is not finite.",
)


@njit(cache=True)
def _whole(text, at):
    """The digits at text[at:] as an integer, at most 2^62: (number, end)."""
    n = np.int64(0)
    while 48 <= text[at] <= 57:
        n = min(n * 10 + (text[at] - 48), np.int64(2**58))
        at += 1
    return n, at


@njit(cache=True)
def _blank(text, at):
    while text[at] == 32 or text[at] == 9 or text[at] == 13:
        at += 1
    return at


@njit(cache=True)
def _ends(byte):
    """Blank, end of line, or the start of a comment."""
    return byte == 32 or byte == 9 or byte == 13 or byte == 10 or byte == 35


@njit(cache=True)
def _scan(text, first, y, query, indptr, indices, values, late):
    """Parse whole lines into the arrays: (points, late numbers, what is wrong, where).

    `late` gets (slot, start, end) of the numbers that `settle` must finish: slots of labels are ~i, of values k.
    """
    at, row, k, n_late = 0, 0, 0, 0
    while at < len(text):
        at = _blank(text, at)
        if text[at] != 10 and text[at] != 35:
            value, end, exact = parse(text, at)
            if end == at or not _ends(text[end]):
                return row, n_late, 1, at
            y[row] = value
            if not exact:
                late[n_late, 0], late[n_late, 1], late[n_late, 2] = ~row, at, end
                n_late += 1
            at = _blank(text, end)
            if text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58:  # qid:
                n, end = _whole(text, at + 4)
                if end == at + 4 or not _ends(text[end]) or n > _LARGEST:
                    return row, n_late, 8, at
                query[row] = n
                at = _blank(text, end)
            last = first - 1
            while text[at] != 10 and text[at] != 35:
                n, colon = _whole(text, at)
                if colon == at or text[colon] != 58:
                    signed = (text[at] == 45 or text[at] == 43) and 48 <= text[at + 1] <= 57
                    return row, n_late, 3 if signed else 2, at
                if n < first:
                    return row, n_late, 3, at
                if n > _LARGEST:
                    return row, n_late, 4, at
                if n <= last:
                    return row, n_late, 5, at
                value, end, exact = parse(text, colon + 1)
                if end == colon + 1 or not _ends(text[end]):
                    return row, n_late, 6, at
                indices[k], values[k], last = n - first, value, n
                if not exact:
                    late[n_late, 0], late[n_late, 1], late[n_late, 2] = k, colon + 1, end
                    n_late += 1
                k += 1
                at = _blank(text, end)
            row += 1
            indptr[row] = k
        while text[at] != 10:  # a comment
            at += 1
        at += 1
    return row, n_late, 0, 0


def _pieces(path, zero_based=False):
    """Yield (y, query, indptr, indices, values) for block after block of a file; query is -1 where a line has none."""
    first = 0 if zero_based else 1
    for block, line in blocks(path):
        text = np.frombuffer(block, dtype=np.uint8)
        lines, pairs = block.count(b"\n"), block.count(b":")
        y, query = np.empty(lines), np.full(lines, -1, dtype=np.int32)
        indptr, indices, values = np.zeros(lines + 1, dtype=np.int64), np.empty(pairs, dtype=np.int32), np.empty(pairs)
        late = np.empty((lines + pairs, 3), dtype=np.int64)
        rows, n_late, wrong, at = _scan(text, first, y, query, indptr, indices, values, late)
        if wrong:
            raise _error(path, block, line, wrong, at, first)
        if infinite := settle(block, late[:n_late], values, y):
            raise _error(path, block, line, 7 if infinite[0] >= 0 else 9, infinite[1], first)
        count = indptr[rows]
        yield y[:rows], query[:rows], indptr[: rows + 1], indices[:count], values[:count]


def _error(path, block, line, wrong, at, first):
    found = word(block, at)
    if wrong in (1, 6) and is_special(found.partition(b":")[2] or found):
        wrong = {1: 9, 6: 7}[wrong]
    what = _WRONG[wrong].format(shown(found), first=first, largest=_LARGEST)
    return DataError(path, what, line_of(block, at, line))


def read_libsvm(path, *, dtype="float64", n_features=None, zero_based=False, query_id=False):
    """Read a file of LIBSVM's text: X (CSR), y, and with `query_id` the numbers after `qid:`.

    Indices count from 1 (from 0 with `zero_based`) and ascend; what is left out is 0. Blank lines and what follows a #
    are skipped. `n_features` widens X, for a file whose last features are all 0.
    """
    X, y, query = _joined(path, list(_pieces(path, zero_based)), dtype, n_features)
    if not len(y):
        raise DataError(path, "it holds no points.")
    return (X, y, query) if query_id else (X, y)


def pieces(path, *, dtype="float64", n_features=None, zero_based=False):
    """Yield (X, y) for block after block; a first pass finds the number of features unless it is given."""
    if n_features is None:
        n_features = max((int(part[3].max(initial=-1)) + 1 for part in _pieces(path, zero_based)), default=0)
    for part in _pieces(path, zero_based):
        yield _joined(path, [part], dtype, n_features)[:2]


def _joined(path, parts, dtype, n_features):
    """X, y and the query numbers of some blocks."""
    if not parts:
        return sparse.csr_matrix((0, n_features or 0), dtype=dtype), np.empty(0), np.empty(0, dtype=np.int32)
    y, query, _, indices, _ = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    values = converted(path, np.concatenate([part[4] for part in parts]), dtype)
    widest = int(indices.max(initial=-1)) + 1
    if n_features is not None and widest > n_features:
        raise DataError(path, f"it has {widest} features, more than n_features={n_features}.")
    kind = np.int32 if len(indices) <= _LARGEST else np.int64
    indptr = np.zeros(len(y) + 1, dtype=kind)
    np.cumsum(np.concatenate([np.diff(part[2]) for part in parts]), out=indptr[1:])
    shape = (len(y), widest if n_features is None else n_features)
    return sparse.csr_matrix((values, indices.astype(kind, copy=False), indptr), shape=shape), y, query


def write_libsvm(path, X, y, *, query_id=None, zero_based=False):
    """Write points as LIBSVM's text, zeros left out, each number with the fewest digits that give it back."""
    X = sparse.csr_matrix(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    first = 0 if zero_based else 1
    labels = [_short(label) for label in np.asarray(y).tolist()]
    if query_id is not None:
        labels = [f"{label} qid:{query}" for label, query in zip(labels, np.asarray(query_id).tolist(), strict=True)]
    with writing(path) as file:
        for i, label in enumerate(labels):
            row = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip((X.indices[row] + first).tolist(), X.data[row].tolist(), strict=True)
            line = " ".join([label, *(f"{j}:{_short(value)}" for j, value in pairs)])
            file.write(line.encode("ascii") + b"\n")


def _short(value):
    """A number as text; 3.0 as 3."""
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
