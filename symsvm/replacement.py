"""Replacement: a file is written whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path):
    """A binary file to write to, which takes the place of `path` when all of it is on the disk.

    It is a temporary file in the same directory: a crash, a full disk or an exception leave the old file as it was.

    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "file"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"whole")
    ...     path.read_bytes(), len(os.listdir(directory))
    (b'whole', 1)
    """
    path = Path(path)
    target = path.resolve()  # a link stays a link
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync(target.parent)


def _mode(target):
    """The permissions of the file that is replaced, else those of any new file."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(directory):
    """Put the new name on the disk too, where a directory can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
