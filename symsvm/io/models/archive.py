"""JSON and arrays in one zip file, which is also an .npz file, read without trust.

Members are stored, not compressed: a file never needs more memory than its size, and compressed members are refused.
Nothing is unpacked to the disk or unpickled, and an array is allocated only if the bytes that its header announces
follow it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import struct
import zipfile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from symsvm.io.file_errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm._lib.types import Array, Path

__all__ = ["ARRAY_KINDS", "read_archive", "write_archive"]

ARRAY_KINDS = "biufSUMm"  # booleans, numbers, strings, times
_HEAD = "model.json"
_MAX_DIMENSION = 2**48
# The errors of zipfile and NumPy for a file that is not theirs.
_ERRORS = (zipfile.BadZipFile, struct.error, EOFError, OSError, ArithmeticError, LookupError, RuntimeError, ValueError)
# Version 1.0 of NumPy's format: magic and the length of the header, then the header.
_START = struct.Struct("<8sH")
_HEADER = re.compile(
    rb"\{'descr': '([<>|]\w{1,20}(?:\[\w{1,10}\])?)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,20},? ?){0,9})\), \} *\n"
)


def write_archive(file: IO[bytes], head: Any, arrays: dict[str, Array]) -> None:
    """Write the JSON value `head` and the arrays, by name, to a binary file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_info(_HEAD), json.dumps(head, indent=1, allow_nan=False))
        for name, array in arrays.items():
            with archive.open(_info(f"{name}.npy"), "w", force_zip64=array.nbytes > 2**30) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def _info(name: str) -> zipfile.ZipInfo:
    """The entry of a member, without a date: the same model gives the same bytes."""
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o644 << 16
    return info


def read_archive(path: Path) -> tuple[Any, dict[str, Array]]:
    """Return the JSON value and the arrays, by name, of a file."""
    with open(path, "rb") as file:
        size = file.seek(0, io.SEEK_END)
        with _read_errors(path), zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            _check_members(path, infos, size)
            head, arrays = None, {}
            for info in infos:
                with archive.open(info) as member:
                    if info.filename == _HEAD:
                        head = _parse_json(path, member.read())
                    else:
                        arrays[info.filename.removesuffix(".npy")] = _read_array(path, info, member)
    return head, arrays


@contextlib.contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn the errors of zipfile and NumPy into a `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except _ERRORS as error:
        raise ModelFileError(path, f"this is not a .symsvm file, or a damaged one: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    """The message of an error as part of a sentence."""
    return str(error)[:200].rstrip(".") or type(error).__name__


def _check_members(path: Path, infos: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive that this module did not write, before any member is read."""
    names = [info.filename for info in infos]
    if names.count(_HEAD) != 1:
        raise ModelFileError(path, f"a .symsvm file has one {_HEAD}, this one has {names.count(_HEAD)}.")
    for info in infos:
        name = info.filename
        plain = name == _HEAD or (name.endswith(".npy") and not set(name) & set("/\\:\0") and not name.startswith("."))
        if not plain:
            raise ModelFileError(path, f"the archive holds {name[:80]!r}, which is not an array of a model.")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise ModelFileError(path, f"{name!r} is compressed or encrypted; a .symsvm file stores its members as is.")
    if len(set(names)) != len(names):
        raise ModelFileError(path, "two members of the archive have the same name.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError(path, "the members of the archive are larger than the file, according to its directory.")


def _parse_json(path: Path, text: bytes) -> Any:
    def constant(name: str) -> None:
        raise ModelFileError(path, f"{_HEAD} holds {name}, which is not valid JSON.")

    try:
        return json.loads(text, parse_constant=constant)
    except RecursionError:
        raise ModelFileError(path, f"{_HEAD} is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise ModelFileError(path, f"{_HEAD} is not valid JSON: {_reason(error)}.") from None


def _read_array(path: Path, info: zipfile.ZipInfo, member: IO[bytes]) -> Array:
    """The array of a member, allocated after its header agrees with the number of bytes that follow."""
    name = info.filename
    start = member.read(_START.size)
    magic, length = _START.unpack(start) if len(start) == _START.size else (b"", 0)
    found = _HEADER.fullmatch(member.read(length)) if magic == b"\x93NUMPY\x01\x00" else None
    if found is None:
        raise ModelFileError(path, f"{name!r} does not begin with the header of an array of numbers or strings.")
    try:
        dtype, fortran = np.dtype(found[1].decode()), found[2] == b"True"
    except (TypeError, ValueError):
        raise ModelFileError(path, f"{name!r} has the unknown type {found[1].decode()!r}.") from None
    shape = tuple(int(n) for n in found[3].split(b",") if n.strip())
    if dtype.hasobject:
        raise ModelFileError(path, f"{name!r} holds Python objects, which are never unpickled.")
    if dtype.kind not in ARRAY_KINDS or dtype.itemsize == 0:
        raise ModelFileError(path, f"{name!r} must hold numbers or strings, got the type {str(dtype)[:80]}.")
    left = info.file_size - member.tell()
    too_large = len(shape) > 2 or max(shape, default=0) > _MAX_DIMENSION
    if too_large or math.prod(shape) * dtype.itemsize != left:
        raise ModelFileError(path, f"{name!r} has the shape {str(shape)[:80]} of {dtype}, but {left} bytes follow.")
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    flat = array.reshape(-1, order="A").view(np.uint8) if array.size else np.empty(0, np.uint8)
    done = 0
    while done < left:
        count = member.readinto(flat.data[done:])  # pyright: ignore[reportAttributeAccessIssue]
        if not count:
            raise ModelFileError(path, f"{name!r} ends {left - done} bytes early.")
        done += count
    member.read(1)  # at the end of the member zipfile compares its checksum
    return array
