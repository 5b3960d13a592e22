"""The text of LIBSVM's model files: a header of lines `name values`, then one line for each support vector.

    svm_type c_svc          nr_class 2          rho 0.3             nr_sv 2 1
    kernel_type rbf         total_sv 3          label 1 -1          SV
    gamma 0.5                                                       1.0 1:0.5 3:-1

The vectors of a class are consecutive, in the order of `label`. A vector has k - 1 coefficients, one for each other
class; class i wins against a later class j where sum coefficient K(x_s, x) - rho > 0.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from symsvm.io.file_errors import ModelFileError

if TYPE_CHECKING:
    from symsvm._lib.types import Path

__all__ = ["LibsvmModelText", "read_model_text", "write_model_text"]

_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
_KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
_NUMBERS = ("degree", "gamma", "coef0", "nr_class", "total_sv")  # lines with one number
_LISTS = ("rho", "label", "probA", "probB", "nr_sv", "prob_density_marks")  # lines with several
_INTEGERS = ("degree", "nr_class", "total_sv", "label", "nr_sv")
_MAX_INT = 2**31 - 1  # of an int in LIBSVM


@dataclass
class LibsvmModelText:
    """The values of a file; `vectors` are CSR, or the numbers of training points (from 1) for a precomputed kernel."""

    svm_type: str = ""
    kernel_type: str = ""
    # Numbers, None where a file has no such line.
    degree: Any = None
    gamma: Any = None
    coef0: Any = None
    nr_class: Any = None
    total_sv: Any = None
    rho: list[float] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    probA: list[float] = field(default_factory=list)
    probB: list[float] = field(default_factory=list)
    prob_density_marks: list[float] = field(default_factory=list)
    nr_sv: list[int] = field(default_factory=list)
    coef: Any = None  # an array (total_sv, nr_class - 1)
    vectors: Any = None
    columns: int = 0


def write_model_text(text: LibsvmModelText, file: IO[bytes]) -> None:
    """Write the text to a binary file; reading restores every number exactly."""

    def line(name: str, *values: Any) -> None:
        words = [repr(value) if isinstance(value, float) else str(value) for value in values]
        file.write(f"{name} {' '.join(words)}\n".encode("ascii"))

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
        file.write(f"{' '.join(map(repr, coef))} {_format_vector(text, s)}\n".encode("ascii"))


def _format_vector(text: LibsvmModelText, s: int) -> str:
    """The entries of a vector; the first one has an entry in the last column, so that the file tells their number."""
    if text.kernel_type == "precomputed":
        entries, last = [f"0:{text.vectors[s]}"], text.vectors.max()
    else:
        start, end = text.vectors.indptr[s : s + 2]
        row = zip(text.vectors.indices[start:end].tolist(), text.vectors.data[start:end].tolist(), strict=True)
        entries, last = [f"{j + 1}:{value!r}" for j, value in row], text.vectors.indices.max(initial=-1) + 1
    return " ".join(entries if s or last == text.columns else [*entries, f"{text.columns}:0"])


def read_model_text(path: Path) -> LibsvmModelText:
    """Read the text of a model file; every number is finite, and there are as many as the header says."""
    text, rows, seen = LibsvmModelText(), _SupportVectorLines(), set()
    with open(path, "rb") as file:
        number, line = 0, b""
        for number, line in enumerate(file, 1):
            try:
                if "SV" in seen:
                    rows.add(line, text)
                else:
                    seen.add(_read_header_line(text, line, seen))
                    if "SV" in seen:
                        _check_header(text)
            except _LineError as error:
                raise ModelFileError(path, str(error), line=number) from None
    if "SV" not in seen:
        raise ModelFileError(path, "the file ends before the line SV.", line=number)
    if len(rows.coef) != text.total_sv:
        raise ModelFileError(
            path, f"total_sv is {text.total_sv}, but {len(rows.coef)} support vectors follow.", line=number
        )
    if not line.endswith(b"\n"):
        raise ModelFileError(path, "the file ends in the middle of a line.", line=number)
    rows.store(text)
    return text


class _LineError(Exception):
    """An error in a line; the message says what is wrong."""


def _read_header_line(text: LibsvmModelText, line: bytes, seen: set[str]) -> str:
    """Store the values of a line of the header; return its name."""
    name, *values = _words(line) or [""]
    if name in seen:
        raise _LineError(f"the header has {name} twice.")
    if name in ("svm_type", "kernel_type"):
        known = _TYPES if name == "svm_type" else _KERNELS
        if len(values) != 1 or values[0] not in known:
            raise _LineError(f"{name} must be one of {', '.join(known)}, got {' '.join(values)[:80]!r}.")
        setattr(text, name, values[0])
    elif name in _NUMBERS or name in _LISTS:
        if not values or (name in _NUMBERS and len(values) > 1):
            raise _LineError(f"{name} must have {'a number' if name in _NUMBERS else 'numbers'}, got {len(values)}.")
        numbers = [_number(value, name, integer=name in _INTEGERS) for value in values]
        setattr(text, name, numbers[0] if name in _NUMBERS else numbers)
    elif name != "SV" or values:
        raise _LineError(f"a LIBSVM model file has no line {name[:80]!r} before SV.")
    return name


def _words(line: bytes) -> list[str]:
    if b"\0" in line:
        raise _LineError("the line has a NUL byte, so the file is not a text file.")
    if not line.isascii():
        raise _LineError("the line has characters other than ASCII.")
    return line.decode("ascii").split()


def _number(word: str, name: str, *, integer: bool = False) -> Any:
    """A finite number, as C reads one."""
    try:
        value = int(word) if integer and len(word) < 20 else float(word)
    except ValueError:
        value = None
    if value is None or "_" in word or not math.isfinite(value):
        raise _LineError(f"{name} must be a finite number, got {word[:80]!r}.")
    if integer and (not isinstance(value, int) or abs(value) > _MAX_INT):
        raise _LineError(f"{name} must be an integer of 32 bits, got {word[:80]!r}.")
    return value


def _check_header(text: LibsvmModelText) -> None:
    """Raise unless the header is complete and its lists have the right lengths."""
    needed = {"polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
    for name in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho", *needed.get(text.kernel_type, ())):
        if getattr(text, name) in ("", None, []):
            raise _LineError(f"the header ends without {name}.")
    k, classifies = text.nr_class, text.svm_type.endswith("_svc")
    if k < 2 or text.total_sv < 0 or (not classifies and k != 2):
        raise _LineError(f"a {text.svm_type} model cannot have nr_class {k} and total_sv {text.total_sv}.")
    if text.kernel_type in needed and text.gamma <= 0:
        raise _LineError(f"gamma must be positive, got {text.gamma}.")
    if text.kernel_type == "polynomial" and text.degree < 1:
        raise _LineError(f"degree must be at least 1, got {text.degree}.")
    pairs = k * (k - 1) // 2
    lengths = {"rho": pairs} | ({"label": k, "nr_sv": k} if classifies else {})
    lengths |= {name: pairs for name in ("probA", "probB") if getattr(text, name)}
    for name, length in lengths.items():
        if len(getattr(text, name)) != length:
            raise _LineError(f"{name} must have {length} numbers for {k} classes, got {len(getattr(text, name))}.")
    if classifies and (len(set(text.label)) != k or min(text.nr_sv) < 0 or sum(text.nr_sv) != text.total_sv):
        raise _LineError("labels must differ, and nr_sv must count total_sv support vectors.")


def _entries(words: list[str], first: int) -> tuple[list[int], list[float]]:
    """The indices, which increase from `first`, and the values of words index:value."""
    indices, values = [], []
    try:
        pairs = [word.split(":") for word in words]
        indices, values = [int(index) for index, _ in pairs], [float(value) for _, value in pairs]
        valid = all(map(operator.lt, [first - 1, *indices], indices)) and all(map(math.isfinite, values))
    except ValueError:
        valid = False
    if valid and "_" not in "".join(words) and (not indices or indices[-1] <= _MAX_INT):
        return indices, values
    last = first - 1  # find the wrong one, for the message
    for word in words:
        index, colon, value = word.partition(":")
        index = _number(index, "an index", integer=True)
        if not colon or index <= last:
            raise _LineError(f"entries are index:value with indices that increase from {last + 1}, got {word[:80]!r}.")
        _number(value, "a value")
        last = index
    raise _LineError("entries are index:value.")


class _SupportVectorLines:
    """Collects the lines below SV."""

    def __init__(self) -> None:
        self.coef: list[list[float]] = []
        self.indices: list[int] = []
        self.data: list[float] = []
        self.indptr = [0]

    def add(self, line: bytes, text: LibsvmModelText) -> None:
        """Add a support vector."""
        words = _words(line)
        width = text.nr_class - 1
        if len(self.coef) == text.total_sv:
            raise _LineError(f"total_sv is {text.total_sv}, but more lines follow.")
        if len(words) < width or any(":" in word for word in words[:width]):
            raise _LineError(f"a support vector begins with {width} coefficient(s).")
        self.coef.append([_number(word, "a coefficient") for word in words[:width]])
        first = 0 if text.kernel_type == "precomputed" else 1
        indices, values = _entries(words[width:], first)
        self.indices += indices
        self.data += values
        if text.kernel_type == "precomputed" and not self._has_point_number(width, words):
            raise _LineError(
                "a support vector of a precomputed kernel must be 0:number, where number counts the points from 1."
            )
        self.indptr.append(len(self.indices))
        text.columns = max([text.columns, *indices[-1:]])

    def _has_point_number(self, width: int, words: list[str]) -> bool:
        """Whether the entries of the last line begin with the number of a training point."""
        if len(words) == width:
            return False
        first = self.indptr[-1]
        number = self.data[first]
        return self.indices[first] == 0 and number == int(number) and 1 <= number <= _MAX_INT

    def store(self, text: LibsvmModelText) -> None:
        """Set the coefficients and the vectors of the text."""
        text.coef = np.array(self.coef, dtype="float64").reshape(len(self.coef), text.nr_class - 1)
        if text.kernel_type == "precomputed":
            text.vectors = np.array([self.data[first] for first in self.indptr[:-1]], dtype="int64")
            text.columns = max(text.columns, int(text.vectors.max(initial=0)))
            return
        indices = np.array(self.indices, dtype="int32") - 1
        data, shape = np.array(self.data, dtype="float64"), (len(self.coef), text.columns)
        text.vectors = sparse.csr_matrix((data, indices, np.array(self.indptr, dtype="int32")), shape=shape)
        text.vectors.eliminate_zeros()
