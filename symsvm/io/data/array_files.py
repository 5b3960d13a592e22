"""Binary files of arrays: NumPy's .npy and .npz, never unpickled, and IDX, the format of MNIST.

An IDX file has a magic number, the sizes as big-endian integers, then the numbers, big-endian too.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy_format

from symsvm.io.data.byte_streams import ByteSource, check_expansion, open_write
from symsvm.io.file_errors import DataError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Path

__all__ = [
    "IDX_TYPES",
    "cast_floats",
    "is_idx",
    "iter_idx",
    "iter_npy",
    "read_idx",
    "read_npy",
    "read_npz",
    "write_idx",
    "write_npy",
    "write_npz",
]

# The third byte of the magic number -> the type of the numbers.
IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_AXES = 8  # of an IDX file; images of a video have 4


def cast_floats(path: Path, X: Any, dtype: str) -> Any:
    """X, dense or CSR, in another floating type; a number that is too large for it is an error."""
    with np.errstate(over="ignore"):
        result = X.astype(dtype, copy=False)
    data = result.data if hasattr(result, "tocsr") else result
    if np.dtype(dtype).itemsize < X.dtype.itemsize and not np.isfinite(data).all():
        raise DataError(path, f"the file has numbers that are too large for {np.dtype(dtype)}.")
    return result


# ---- NumPy


def _npy_header(path: Path, file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """(shape, Fortran order, type) in the header of a .npy stream, checked against its size in bytes."""
    try:
        version = npy_format.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"version {version} is not known")
        # Version 3 differs from 2 only in the names of fields, which arrays of numbers do not have.
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, kind = read(file)
    except Exception as error:  # NumPy parses the header as a Python literal, which fails in many ways
        raise DataError(path, f"its header is not that of a .npy array ({one_line(error)}).") from None
    if kind.hasobject or kind.kind not in "biufSU":
        raise DataError(path, f"its type {one_line(kind)} is neither numbers nor strings.")
    length, left = math.prod(shape) * kind.itemsize, size - file.tell()
    if any(n < 0 for n in shape) or length != left:
        raise DataError(
            path, f"its shape {one_line(shape)} needs {one_line(length, 30)} bytes, but {left} follow the header."
        )
    return shape, fortran, kind


def _read_array(path: Path, file: Any, size: int) -> Array:
    shape, fortran, kind = _npy_header(path, file, size)
    flat = np.empty(math.prod(shape), dtype=kind)
    if file.readinto(flat.view(np.uint8)) < flat.nbytes or file.read(1):
        raise DataError(path, f"its shape {shape} needs {flat.nbytes} bytes, but another number follows the header.")
    return flat.reshape(shape, order="F" if fortran else "C")


def read_npy(path: Path) -> Array:
    """Read the array of a .npy file."""
    with open(path, "rb") as file:
        return _read_array(path, file, _file_size(file))


def iter_npy(path: Path, rows: int) -> Iterator[Array]:
    """Yield arrays of at most `rows` entries along the first axis of a .npy file, which is mapped, not read."""
    with open(path, "rb") as file:
        shape, fortran, kind = _npy_header(path, file, _file_size(file))
        start = file.tell()
    if 0 in (shape or (0,)):
        raise DataError(path, f"the file has no points; its shape is {shape}.")
    array = np.memmap(path, dtype=kind, mode="r", offset=start, shape=shape, order="F" if fortran else "C")
    for first in range(0, shape[0], rows):
        yield np.array(array[first : first + rows])


def _file_size(file: IO[bytes]) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def read_npz(path: Path) -> dict[str, Array]:
    """Read the arrays of a .npz file, by name."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
                check_expansion(path, os.path.getsize(path), sum(entry.file_size for entry in entries))
                return {entry.filename.removesuffix(".npy"): _read_entry(path, archive, entry) for entry in entries}
        except (DataError, MemoryError):
            raise
        except Exception as error:  # zipfile, zlib and the system have many errors for a damaged archive
            raise DataError(path, f"its zip archive is damaged ({one_line(error)}).") from None


def _read_entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    with archive.open(entry) as file:
        return _read_array(f"{path} ({entry.filename})", file, entry.file_size)


def write_npy(path: Path, array: ArrayLike) -> None:
    """Write an array as a .npy file."""
    with open_write(path) as file:
        npy_format.write_array(file, np.asarray(array), allow_pickle=False)


def write_npz(path: Path, **arrays: ArrayLike) -> None:
    """Write arrays as a compressed .npz file."""
    with open_write(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]


# ---- IDX


def is_idx(head: bytes) -> bool:
    """Whether a file that begins with these bytes may be IDX."""
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in IDX_TYPES and 1 <= head[3] <= _MAX_AXES


def _idx_header(source: ByteSource) -> tuple[np.dtype, tuple[int, ...]]:
    """The type and the shape in the header of a file, checked against the number of bytes."""
    head = source.read(4)
    if not is_idx(head):
        raise DataError(
            source.path, f"it begins with the bytes {head.hex(' ') or '(none)'}, not with the header of an IDX file."
        )
    sizes = source.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise DataError(source.path, f"the file ends inside its header, which should have {head[3]} sizes.")
    kind, shape = np.dtype(IDX_TYPES[head[2]]), struct.unpack(f">{head[3]}I", sizes)
    length = math.prod(shape) * kind.itemsize
    left = None if source.size is None else source.size - 4 - len(sizes)
    if left is not None and left != length:
        raise _length_error(source.path, shape, length, left)
    check_expansion(source.path, source.packed, length)
    if 0 in shape:
        raise DataError(source.path, f"the file has no points; its shape is {shape}.")
    return kind, shape


def _length_error(path: Path, shape: tuple[int, ...], length: int, left: int) -> DataError:
    relation = "short" if left < length else "long"
    return DataError(path, f"the file is too {relation}: its shape {shape} needs {length} bytes, but {left} follow.")


def iter_idx(path: Path, rows: int) -> Iterator[Array]:
    """Yield arrays of at most `rows` entries along the first axis, in the byte order of this machine."""
    with ByteSource(path) as source:
        kind, shape = _idx_header(source)
        step = math.prod(shape[1:]) * kind.itemsize
        for start in range(0, shape[0], rows):
            part = np.empty((min(rows, shape[0] - start), *shape[1:]), dtype=kind)
            got = source.fill(part.reshape(-1).view(np.uint8))
            if got < part.nbytes:
                raise _length_error(source.path, shape, step * shape[0], step * start + got)
            yield part.astype(kind.newbyteorder("="), copy=False)
        if source.read(1):
            length = step * shape[0]
            raise DataError(source.path, f"the file is too long: its shape {shape} needs {length} bytes, more follow.")


def read_idx(path: Path) -> Array:
    """Read an IDX file, plain or gzip, as an array of its own type and shape."""
    with ByteSource(path) as source:
        _, shape = _idx_header(source)
    (array,) = iter_idx(path, shape[0])
    return array


def write_idx(path: Path, array: ArrayLike) -> None:
    """Write an array as IDX; its type must be one of the format's, its sizes below 2^32."""
    array = np.asarray(array)
    codes = {np.dtype(kind).newbyteorder("="): code for code, kind in IDX_TYPES.items()}
    code = codes.get(array.dtype.newbyteorder("="))
    if code is None or not 1 <= array.ndim <= _MAX_AXES:
        names = ", ".join(str(kind) for kind in codes)
        raise ValueError(
            f"IDX holds arrays of {names} with 1 to {_MAX_AXES} axes, not {array.dtype} with {array.ndim}."
        )
    with open_write(path) as file:
        file.write(struct.pack(f">4B{array.ndim}I", 0, 0, code, array.ndim, *array.shape))
        file.write(np.ascontiguousarray(array, dtype=IDX_TYPES[code]).data)
