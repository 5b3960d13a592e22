"""IDX, the format of MNIST: a magic number, the sizes as big-endian integers, then the numbers, big-endian."""

import math
import struct

import numpy as np

from symsvm.io.data.errors import DataError
from symsvm.io.data.files import Source, check_expansion, writing

__all__ = ["TYPES", "is_idx", "pieces", "read_idx", "write_idx"]

# The third byte of the magic number -> the type of the numbers.
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_AXES = 8  # images of a video have 4


def is_idx(head):
    """Say whether a file that begins with these bytes may be IDX."""
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in TYPES and 1 <= head[3] <= _AXES


def _header(source):
    """The type and the shape that a file claims, checked against the bytes it has."""
    head = source.read(4)
    if not is_idx(head):
        raise DataError(source.path, f"it begins with the bytes {head.hex(' ') or '(none)'}, which no IDX file does.")
    sizes = source.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise DataError(source.path, f"it ends inside its header, which says that there are {head[3]} sizes.")
    kind, shape = np.dtype(TYPES[head[2]]), struct.unpack(f">{head[3]}I", sizes)
    length = math.prod(shape) * kind.itemsize
    there = None if source.size is None else source.size - 4 - len(sizes)
    if there is not None and there != length:
        raise _size(source.path, shape, length, there)
    check_expansion(source.path, source.packed, length)
    if 0 in shape:
        raise DataError(source.path, f"it holds no points; its shape is {shape}.")
    return kind, shape


def _size(path, shape, length, there):
    relation = "ends early" if there < length else "goes on"
    return DataError(path, f"it {relation}: its shape {shape} takes {length} bytes, and there are {there}.")


def pieces(path, rows):
    """Yield arrays of at most `rows` entries along the first axis, in the byte order of this machine."""
    with Source(path) as source:
        kind, shape = _header(source)
        step = math.prod(shape[1:]) * kind.itemsize
        for start in range(0, shape[0], rows):
            part = np.empty((min(rows, shape[0] - start), *shape[1:]), dtype=kind)
            got = source.fill(part.reshape(-1).view(np.uint8))
            if got < part.nbytes:
                raise _size(source.path, shape, step * shape[0], step * start + got)
            yield part.astype(kind.newbyteorder("="), copy=False)
        if source.read(1):
            raise DataError(source.path, f"it goes on after the {step * shape[0]} bytes of its shape {shape}.")


def read_idx(path):
    """Read an IDX file as an array of its own type and shape; gzip is unpacked."""
    with Source(path) as source:
        _, shape = _header(source)
    (whole,) = pieces(path, shape[0])
    return whole


def write_idx(path, array):
    """Write an array as IDX; its type must be one of the format's, its sizes below 2^32."""
    array = np.asarray(array)
    codes = {np.dtype(kind).newbyteorder("="): code for code, kind in TYPES.items()}
    code = codes.get(array.dtype.newbyteorder("="))
    if code is None or not 1 <= array.ndim <= _AXES:
        names = ", ".join(str(kind) for kind in codes)
        raise ValueError(f"IDX holds arrays of {names} with 1 to {_AXES} axes, not {array.dtype} with {array.ndim}.")
    with writing(path) as file:
        file.write(struct.pack(f">4B{array.ndim}I", 0, 0, code, array.ndim, *array.shape))
        file.write(np.ascontiguousarray(array, dtype=TYPES[code]).data)
