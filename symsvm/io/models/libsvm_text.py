"""LIBSVM's model file as text: a header of lines `name values`, then a line for each support vector.

    svm_type c_svc          nr_class 2          rho 0.3             nr_sv 2 1
    kernel_type rbf         total_sv 3          label 1 -1          SV
    gamma 0.5                                                       1.0 1:0.5 3:-1

The vectors of a class stand together, in the order of `label`. A vector has k - 1 coefficients, one for each other
class; class i wins against a later class j where sum coefficient K(x_s, x) - rho > 0.
"""

import math
import operator
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from symsvm.io.models.model_file_error import ModelFileError

__all__ = ["KERNELS", "TYPES", "LibsvmText", "read_libsvm_text", "write_libsvm_text"]

TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
_NUMBERS = ("degree", "gamma", "coef0", "nr_class", "total_sv")  # one a line
_LISTS = ("rho", "label", "probA", "probB", "nr_sv", "prob_density_marks")  # many
_WHOLE = ("degree", "nr_class", "total_sv", "label", "nr_sv")
_LARGEST = 2**31 - 1  # of an int in LIBSVM


@dataclass
class LibsvmText:
    """What a file says; `vectors` are CSR, or the numbers of training points (from 1) for a precomputed kernel."""

    svm_type: str = ""
    kernel_type: str = ""
    degree: int | None = None
    gamma: float | None = None
    coef0: float | None = None
    nr_class: int | None = None
    total_sv: int | None = None
    rho: list = field(default_factory=list)
    label: list = field(default_factory=list)
    probA: list = field(default_factory=list)  # noqa: N815
    probB: list = field(default_factory=list)  # noqa: N815
    prob_density_marks: list = field(default_factory=list)
    nr_sv: list = field(default_factory=list)
    coef: np.ndarray | None = None
    vectors: object = None
    columns: int = 0


def write_libsvm_text(text, file):
    """Write a `LibsvmText` to a binary file, numbers so that they come back exactly."""

    def line(name, *values):
        file.write(f"{name} {' '.join(map(_shown, values))}\n".encode("ascii"))

    line("svm_type", text.svm_type)
    line("kernel_type", text.kernel_type)
    for name in _NUMBERS:
        if getattr(text, name) is not None:
            line(name, getattr(text, name))
    for name in _LISTS:
        if getattr(text, name):
            line(name, *getattr(text, name))
    file.write(b"SV\n")
    for s, coef in enumerate(text.coef.tolist()):
        file.write(f"{' '.join(map(repr, coef))} {_vector(text, s)}\n".encode("ascii"))


def _shown(value):
    return repr(value) if isinstance(value, float) else str(value)


def _vector(text, s):
    """The entries of a vector; the first one names the last column too, else it would be lost where it is empty."""
    if text.kernel_type == "precomputed":
        entries, last = [f"0:{text.vectors[s]}"], text.vectors.max()
    else:
        start, end = text.vectors.indptr[s : s + 2]
        row = zip(text.vectors.indices[start:end].tolist(), text.vectors.data[start:end].tolist(), strict=True)
        entries, last = [f"{j + 1}:{value!r}" for j, value in row], text.vectors.indices.max(initial=-1) + 1
    return " ".join(entries if s or last == text.columns else [*entries, f"{text.columns}:0"])


def read_libsvm_text(path):
    """Read the text of a model file; every number in it is finite, and there are as many as it says."""
    text, rows, seen = LibsvmText(), _Rows(), set()
    with open(path, "rb") as file:
        number = 0
        for number, line in enumerate(file, 1):
            try:
                if "SV" in seen:
                    rows.add(line, text)
                else:
                    seen.add(_header(text, line, seen))
                    if "SV" in seen:
                        _check_header(text)
            except _Wrong as wrong:
                raise ModelFileError(path, str(wrong), line=number) from None
    if "SV" not in seen:
        raise ModelFileError(path, "the file ends before the line SV.", line=number)
    if len(rows.coef) != text.total_sv:
        raise ModelFileError(
            path, f"total_sv is {text.total_sv}, but {len(rows.coef)} support vectors follow.", line=number
        )
    if not line.endswith(b"\n"):
        raise ModelFileError(path, "the file ends in the middle of a line.", line=number)
    rows.close(text)
    return text


class _Wrong(Exception):
    """What is wrong with a line."""


def _header(text, line, seen):
    """Take a line of the header in; return its name."""
    name, *values = _words(line) or [""]
    if name in seen:
        raise _Wrong(f"{name} stands there twice.")
    if name in ("svm_type", "kernel_type"):
        known = TYPES if name == "svm_type" else KERNELS
        if len(values) != 1 or values[0] not in known:
            raise _Wrong(f"{name} must be one of {', '.join(known)}, got {' '.join(values)[:80]!r}.")
        setattr(text, name, values[0])
    elif name in _NUMBERS or name in _LISTS:
        if not values or (name in _NUMBERS and len(values) > 1):
            raise _Wrong(f"{name} must have {'a number' if name in _NUMBERS else 'numbers'}, got {len(values)}.")
        values = [_number(value, name, whole=name in _WHOLE) for value in values]
        setattr(text, name, values[0] if name in _NUMBERS else values)
    elif name != "SV" or values:
        raise _Wrong(f"a LIBSVM model file has no line {name[:80]!r} before SV.")
    return name


def _words(line):
    if b"\0" in line:
        raise _Wrong("there is a NUL byte, so this is no text.")
    if not line.isascii():
        raise _Wrong("there are letters other than ASCII's.")
    return line.decode("ascii").split()


def _number(word, name, *, whole=False):
    """A finite number, as C reads one."""
    try:
        value = int(word) if whole and len(word) < 20 else float(word)
    except ValueError:
        value = None
    if value is None or "_" in word or not math.isfinite(value):
        raise _Wrong(f"{name} must be a finite number, got {word[:80]!r}.")
    if whole and (not isinstance(value, int) or abs(value) > _LARGEST):
        raise _Wrong(f"{name} must be an integer of 32 bits, got {word[:80]!r}.")
    return value


def _check_header(text):
    """Raise unless the header is complete, and its lists are as long as it says."""
    needed = {"polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
    for name in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho", *needed.get(text.kernel_type, ())):
        if getattr(text, name) in ("", None, []):
            raise _Wrong(f"the header ends without {name}.")
    k, classifies = text.nr_class, text.svm_type.endswith("_svc")
    if k < 2 or text.total_sv < 0 or (not classifies and k != 2):
        raise _Wrong(f"nr_class {k} and total_sv {text.total_sv} are no {text.svm_type} model.")
    if text.kernel_type in needed and text.gamma <= 0:
        raise _Wrong(f"gamma must be positive, got {text.gamma}.")
    if text.kernel_type == "polynomial" and text.degree < 1:
        raise _Wrong(f"degree must be at least 1, got {text.degree}.")
    pairs = k * (k - 1) // 2
    lengths = {"rho": pairs} | ({"label": k, "nr_sv": k} if classifies else {})
    lengths |= {name: pairs for name in ("probA", "probB") if getattr(text, name)}
    for name, length in lengths.items():
        if len(getattr(text, name)) != length:
            raise _Wrong(f"{name} must have {length} numbers for {k} classes, got {len(getattr(text, name))}.")
    if classifies and (len(set(text.label)) != k or min(text.nr_sv) < 0 or sum(text.nr_sv) != text.total_sv):
        raise _Wrong("labels must differ, and nr_sv must count total_sv support vectors.")


def _entries(words, first):
    """The indices and values of words index:value, in order from `first`."""
    try:
        pairs = [word.split(":") for word in words]
        indices, values = [int(index) for index, _ in pairs], [float(value) for _, value in pairs]
        good = all(map(operator.lt, [first - 1, *indices], indices)) and all(map(math.isfinite, values))
    except ValueError:
        good = False
    if good and "_" not in "".join(words) and (not indices or indices[-1] <= _LARGEST):
        return indices, values
    last = first - 1  # one after the other, to say which one it is
    for word in words:
        index, colon, value = word.partition(":")
        index = _number(index, "an index", whole=True)
        if not colon or index <= last:
            raise _Wrong(f"entries are index:value with indices that increase from {last + 1}, got {word[:80]!r}.")
        _number(value, "a value")
        last = index
    raise _Wrong("entries are index:value.")


class _Rows:
    """The lines below SV, one after the other."""

    def __init__(self):
        self.coef, self.indices, self.data, self.indptr = [], [], [], [0]

    def add(self, line, text):
        """Take a support vector in."""
        words = _words(line)
        width = text.nr_class - 1
        if len(self.coef) == text.total_sv:
            raise _Wrong(f"total_sv is {text.total_sv}, but more lines follow.")
        if len(words) < width or any(":" in word for word in words[:width]):
            raise _Wrong(f"a support vector begins with {width} coefficient(s).")
        self.coef.append([_number(word, "a coefficient") for word in words[:width]])
        first = 0 if text.kernel_type == "precomputed" else 1
        indices, values = _entries(words[width:], first)
        self.indices += indices
        self.data += values
        if text.kernel_type == "precomputed" and not self._is_serial(width, words):
            raise _Wrong("a support vector of a precomputed kernel is 0:number, counted from 1.")
        self.indptr.append(len(self.indices))
        text.columns = max([text.columns, *indices[-1:]])

    def _is_serial(self, width, words):
        """Whether the entries of the last line begin with the number of a training point."""
        if len(words) == width:
            return False
        first = self.indptr[-1]
        number = self.data[first]
        return self.indices[first] == 0 and number == int(number) and 1 <= number <= _LARGEST

    def close(self, text):
        """Hand the coefficients and the vectors over."""
        text.coef = np.array(self.coef, dtype="float64").reshape(len(self.coef), text.nr_class - 1)
        if text.kernel_type == "precomputed":
            text.vectors = np.array([self.data[first] for first in self.indptr[:-1]], dtype="int64")
            text.columns = max(text.columns, int(text.vectors.max(initial=0)))
            return
        indices = np.array(self.indices, dtype="int32") - 1
        data, shape = np.array(self.data, dtype="float64"), (len(self.coef), text.columns)
        text.vectors = sparse.csr_matrix((data, indices, np.array(self.indptr, dtype="int32")), shape=shape)
        text.vectors.eliminate_zeros()
