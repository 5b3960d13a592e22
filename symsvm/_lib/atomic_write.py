"""Replacement: a file is written whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["atomic_write"]


@contextlib.contextmanager
def atomic_write(path):
    """A binary file to write to, which takes the place of `path` when all of it is on the disk.

    It is a temporary file in the same directory: a crash, a full disk or an exception leave the old file as it was. A
    device or a pipe takes what is written, and is not replaced.

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
        error.filename = str(path)  # nobody knows the temporary one
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
