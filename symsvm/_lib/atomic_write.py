"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["atomic_write"]


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` once all of it is on the disk.

    It is a temporary file in the same directory: a crash, a full disk or an exception leave the old file unchanged. A
    device or a pipe is written to directly.

    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "file"
    ...     with atomic_write(path) as file:
    ...         _ = file.write(b"whole")
    ...     path.read_bytes(), len(os.listdir(directory))
    (b'whole', 1)
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    target = path.resolve()  # a link stays a link
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        error.filename = str(path)  # instead of the temporary file's name
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and error.filename in (None, name):
            error.filename = str(path)
        raise
    _sync(target.parent)


def _mode(target):
    """Return the permissions of the file that is replaced, else those of a new file."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(directory):
    """Write the new name to the disk too, where the system can open a directory."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
