"""Files as streams of bytes, plain or gzip: what is unpacked is bounded, and what is written is whole."""

import contextlib
import gzip
import os
import zlib
from pathlib import Path

from symsvm._lib.atomic_write import atomic_write
from symsvm.io.data.errors import DataError, brief

__all__ = ["EXPANSION", "Source", "check_expansion", "writing"]

# Real data shrinks 3 to 50 times; what unpacks to more than this, and is not small, is taken for a bomb.
EXPANSION = 200
_SMALL = 1 << 24


def check_expansion(path, packed, unpacked):
    """Refuse a file of `packed` bytes that unpacks to far more than data does."""
    if unpacked > max(EXPANSION * packed, _SMALL):
        raise DataError(
            path,
            f"it unpacks to more than {EXPANSION} times its {packed} bytes; if that is meant, unpack it first.",
        )


class Source:
    """A file open for reading; gzip is told by its first bytes, not by its name.

    `size` is the number of bytes that the file holds, None where only unpacking tells.
    """

    def __init__(self, path):
        self.path = path
        self._file = open(path, "rb")  # noqa: SIM115 (closed by __exit__)
        self.packed = os.fstat(self._file.fileno()).st_size
        zipped = self._file.read(2) == b"\x1f\x8b"
        self._file.seek(0)
        self.size = None if zipped else self.packed
        self._stream = gzip.GzipFile(fileobj=self._file) if zipped else self._file
        self._count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def read(self, size):
        """Up to `size` bytes, fewer only where the file ends."""
        return self._checked(self._stream.read, size)

    def fill(self, buffer):
        """Fill a writable buffer; the number of bytes that were there."""
        view, done = memoryview(buffer).cast("B"), 0
        while done < len(view) and (got := self._checked(self._stream.readinto, view[done : done + (1 << 22)])):
            done += got
        return done

    def _checked(self, read, argument):
        try:
            result = read(argument)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(self.path, f"its gzip stream is damaged or cut off ({brief(error)}).") from None
        self._count += result if isinstance(result, int) else len(result)
        if self.size is None:
            check_expansion(self.path, self.packed, self._count)
        return result


@contextlib.contextmanager
def writing(path):
    """A new file that takes the place of `path` once it is whole; a name that ends in .gz gives a gzip file."""
    with atomic_write(path) as file:
        if Path(path).suffix == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0, compresslevel=6) as packed:
                yield packed
        else:
            yield file
