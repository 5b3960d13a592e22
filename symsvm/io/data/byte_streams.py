"""Files as streams of bytes, plain or gzip, with a limit on what is unpacked and atomic writes."""

from __future__ import annotations

import contextlib
import gzip
import os
import pathlib
import zlib
from typing import IO, TYPE_CHECKING, Any, Self, cast

from symsvm._lib.atomic_write import atomic_write
from symsvm.io.file_errors import DataError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from symsvm._lib.types import Array, Path

__all__ = ["ByteSource", "check_expansion", "open_write"]

# Real data shrinks 3 to 50 times. A file that unpacks to more than this, and to more than _SMALL bytes, is refused.
_EXPANSION = 200
_SMALL = 1 << 24
_READ_BYTES = 1 << 22  # at once, so that the limit is checked often


def check_expansion(path: Path, packed: int, unpacked: int) -> None:
    """Refuse a file of `packed` bytes that unpacks to far more than data does."""
    if unpacked > max(_EXPANSION * packed, _SMALL):
        raise DataError(
            path,
            f"it unpacks to more than {_EXPANSION} times its {packed} bytes; if you trust it, unpack it first.",
        )


class ByteSource:
    """A file open for reading; gzip is detected from its first bytes, not from its name.

    `packed` is the size of the file, and `size` the number of bytes to read: None for gzip, where only unpacking tells.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "rb")  # noqa: SIM115 (closed by __exit__)
        self.packed = os.fstat(self._file.fileno()).st_size
        zipped = self._file.read(2) == b"\x1f\x8b"
        self._file.seek(0)
        self.size = None if zipped else self.packed
        self._stream = gzip.GzipFile(fileobj=self._file) if zipped else self._file
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end of the file."""
        return self._checked(self._stream.read, size)

    def fill(self, buffer: Array) -> int:
        """Fill a contiguous array; return the number of bytes read, fewer than its size only at the end of the file."""
        view, done = buffer.data.cast("B"), 0
        while done < len(view) and (got := self._checked(self._stream.readinto, view[done : done + _READ_BYTES])):
            done += got
        return done

    def _checked(self, read: Callable[[Any], Any], argument: object) -> Any:
        try:
            result = read(argument)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(self.path, f"its gzip stream is damaged or truncated ({one_line(error)}).") from None
        self._count += result if isinstance(result, int) else len(result)
        if self.size is None:
            check_expansion(self.path, self.packed, self._count)
        return result


@contextlib.contextmanager
def open_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `path` when it is complete; a name that ends in .gz gives a gzip file."""
    with atomic_write(path) as file:
        if pathlib.Path(path).suffix == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0, compresslevel=6) as packed:
                yield cast("IO[bytes]", packed)
        else:
            yield file
