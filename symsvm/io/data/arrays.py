"""NumPy's files: .npy with one array, .npz with several; never a pickle."""

import math
import os
import zipfile

import numpy as np
from numpy.lib import format as npy

from symsvm.io.data.errors import DataError, brief
from symsvm.io.data.files import check_expansion, writing

__all__ = ["converted", "pieces", "read_npy", "read_npz", "write_npy", "write_npz"]


def converted(path, X, dtype):
    """X in another floating type, dense or CSR; a number that is too large for it is an error."""
    with np.errstate(over="ignore"):
        result = X.astype(dtype, copy=False)
    data = getattr(result, "data", None) if hasattr(result, "tocsr") else result
    if np.dtype(dtype).itemsize < X.dtype.itemsize and not np.isfinite(data).all():
        raise DataError(path, f"it holds numbers that are too large for {np.dtype(dtype)}.")
    return result


def _header(path, file, size):
    """(shape, fortran order, type) that a .npy stream claims, checked against its size in bytes."""
    try:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"version {version} is not known")
        # Version 3 differs from 2 in the names of fields alone, which arrays of numbers do not have.
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, kind = read(file)
    except Exception as error:  # a header is parsed as Python's literals, which fail in many ways
        raise DataError(path, f"its header is not that of a .npy array ({brief(error)}).") from None
    if kind.hasobject or kind.kind not in "biufSU":
        raise DataError(path, f"its type {brief(kind)} is not one of numbers or words.")
    length, there = math.prod(shape) * kind.itemsize, size - file.tell()
    if any(n < 0 for n in shape) or length != there:
        raise DataError(path, f"its shape {brief(shape)} takes {brief(length, 30)} bytes, and there are {there}.")
    return shape, fortran, kind


def _array(path, file, size):
    shape, fortran, kind = _header(path, file, size)
    flat = np.empty(math.prod(shape), dtype=kind)
    if file.readinto(flat.view(np.uint8)) < flat.nbytes or file.read(1):
        raise DataError(path, f"its shape {shape} takes {flat.nbytes} bytes, and there are others.")
    return flat.reshape(shape, order="F" if fortran else "C")


def read_npy(path):
    """Read the array of a .npy file."""
    with open(path, "rb") as file:
        return _array(path, file, _size(file))


def pieces(path, rows):
    """Yield arrays of at most `rows` entries along the first axis of a .npy file, which is mapped, not read."""
    with open(path, "rb") as file:
        shape, fortran, kind = _header(path, file, _size(file))
        start = file.tell()
    if 0 in (shape or (0,)):
        raise DataError(path, f"it holds no points; its shape is {shape}.")
    whole = np.memmap(path, dtype=kind, mode="r", offset=start, shape=shape, order="F" if fortran else "C")
    for first in range(0, shape[0], rows):
        yield np.array(whole[first : first + rows])


def _size(file):
    size = file.seek(0, 2)
    file.seek(0)
    return size


def read_npz(path):
    """Read the arrays of a .npz file, by name."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
                check_expansion(path, os.path.getsize(path), sum(entry.file_size for entry in entries))
                return {entry.filename.removesuffix(".npy"): _entry(path, archive, entry) for entry in entries}
        except (DataError, MemoryError):
            raise
        except Exception as error:  # what zipfile, zlib and the system say of a damaged archive
            raise DataError(path, f"its zip archive is damaged ({brief(error)}).") from None


def _entry(path, archive, entry):
    with archive.open(entry) as file:
        return _array(f"{path} ({entry.filename})", file, entry.file_size)


def write_npy(path, array):
    """Write an array as a .npy file."""
    with writing(path) as file:
        npy.write_array(file, np.asarray(array), allow_pickle=False)


def write_npz(path, **arrays):
    """Write arrays as a compressed .npz file."""
    with writing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
