"""Archive: JSON and arrays in one zip file, which is an .npz too, read without trust.

Members are stored, not compressed: a file never needs more memory than its size, and compressed members are refused.
Nothing is unpacked to the disk, nothing is unpickled, and the shape in a header counts only if the bytes are there.
"""

import contextlib
import io
import json
import math
import re
import struct
import zipfile

import numpy as np

from symsvm.io.models.model_file_error import ModelFileError

__all__ = ["read_archive", "write_archive"]

HEAD = "model.json"
KINDS = "biufSUMm"  # of the arrays: booleans, numbers, strings, times
_LARGEST = 2**48  # a dimension
# What zipfile and NumPy raise for files that are none of theirs.
_ERRORS = (zipfile.BadZipFile, struct.error, EOFError, OSError, ArithmeticError, LookupError, RuntimeError, ValueError)
# What NumPy writes in version 1.0 of its format: magic and the length of the header, then the header.
_START = struct.Struct("<8sH")
_HEADER = re.compile(
    rb"\{'descr': '([<>|]\w{1,20}(?:\[\w{1,10}\])?)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,20},? ?){0,9})\), \} *\n"
)


def write_archive(file, head, arrays):
    """Write the JSON value `head` and the arrays, by name, to a binary file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_info(HEAD), json.dumps(head, indent=1, allow_nan=False))
        for name, array in arrays.items():
            with archive.open(_info(f"{name}.npy"), "w", force_zip64=array.nbytes > 2**30) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def _info(name):
    """No date: the same model gives the same bytes."""
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o644 << 16
    return info


def read_archive(path):
    """Return the JSON value and the arrays, by name, of a file."""
    with open(path, "rb") as file:
        size = file.seek(0, io.SEEK_END)
        with _one_sentence(path, "is no .symsvm file, or a damaged one"), zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            _check(path, infos, size)
            arrays = {}
            for info in infos:
                with archive.open(info) as member:
                    if info.filename == HEAD:
                        head = _json(path, member.read())
                    else:
                        arrays[info.filename.removesuffix(".npy")] = _array(path, info, member)
    return head, arrays


@contextlib.contextmanager
def _one_sentence(path, what):
    """What a reader stumbles over becomes a `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except _ERRORS as error:
        raise ModelFileError(path, f"this {what}: {_line(error)}.") from None


def _line(error):
    """The message of an error as part of a sentence."""
    return str(error)[:200].rstrip(".") or type(error).__name__


def _check(path, infos, size):
    """Refuse an archive that this module did not write, before anything of it is read."""
    names = [info.filename for info in infos]
    if names.count(HEAD) != 1:
        raise ModelFileError(path, f"a .symsvm file holds one {HEAD}, this one {names.count(HEAD)}.")
    for info in infos:
        name = info.filename
        plain = name == HEAD or (name.endswith(".npy") and not set(name) & set("/\\:\0") and not name.startswith("."))
        if not plain:
            raise ModelFileError(path, f"the archive holds {name[:80]!r}, which is no array of a model.")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise ModelFileError(path, f"{name!r} is compressed or encrypted; a .symsvm file stores its members as is.")
    if len(set(names)) != len(names):
        raise ModelFileError(path, "two members of the archive have one name.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError(path, "the members of the archive are said to be larger than the file.")


def _json(path, text):
    def constant(name):
        raise ModelFileError(path, f"{HEAD} holds {name}, which is no JSON.")

    try:
        return json.loads(text, parse_constant=constant)
    except RecursionError:
        raise ModelFileError(path, f"{HEAD} is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise ModelFileError(path, f"{HEAD} is no JSON: {_line(error)}.") from None


def _array(path, info, member):
    """The array of a member, allocated when its header agrees with the number of bytes that follow."""
    name = info.filename
    start = member.read(_START.size)
    magic, length = _START.unpack(start) if len(start) == _START.size else (b"", 0)
    found = _HEADER.fullmatch(member.read(length)) if magic == b"\x93NUMPY\x01\x00" else None
    if found is None:
        raise ModelFileError(path, f"{name!r} has no header of an array of numbers or strings.")
    dtype, fortran = np.dtype(found[1].decode()), found[2] == b"True"
    shape = tuple(int(n) for n in found[3].split(b",") if n.strip())
    if dtype.hasobject:
        raise ModelFileError(path, f"{name!r} holds Python objects, which are never unpickled.")
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise ModelFileError(path, f"{name!r} must hold numbers or strings, got the type {str(dtype)[:80]}.")
    left = info.file_size - member.tell()
    absurd = len(shape) > 2 or max(shape, default=0) > _LARGEST
    if absurd or math.prod(shape) * dtype.itemsize != left:
        shown = str(shape)[:80]
        raise ModelFileError(path, f"{name!r} has the shape {shown} of {dtype}, but {left} bytes follow.")
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    flat = array.reshape(-1, order="A").view(np.uint8) if array.size else np.empty(0, np.uint8)
    done = 0
    while done < left:
        count = member.readinto(memoryview(flat)[done:])
        if not count:
            raise ModelFileError(path, f"{name!r} ends {left - done} bytes early.")
        done += count
    member.read(1)  # the end of the member, where its checksum is compared
    return array
