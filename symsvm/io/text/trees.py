"""Trees: the files of a folder, a tar archive (plain or gzip) or a zip archive, in memory.

Nothing is unpacked to the disk, no link in an archive is followed, and what an archive may unpack to is bounded.
"""

import os
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

from symsvm.io.data import DataError
from symsvm.io.data.errors import brief
from symsvm.io.data.files import Source, check_expansion

__all__ = ["folder_files", "tar_files", "zip_files"]

_TEXT = 1 << 26  # the most bytes of a text
_ALL = 1 << 32  # of all of them


def folder_files(path):
    """Pairs of the parts of a path and the bytes, for each regular file below a folder; links to folders stay shut."""
    root, total = Path(path), 0
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder, name)
            if file.is_file():
                size = file.stat().st_size
                total = _counted(root, str(file.relative_to(root)), size, total)
                yield file.relative_to(root).parts, file.read_bytes()


def tar_files(path):
    """The same for a .tar, .tar.gz or .tgz file, read once from its beginning to its end."""
    total = 0
    try:
        with Source(path) as source, tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                if member.isdir():
                    continue
                parts = _parts(path, member.name)
                if not member.isreg():
                    raise DataError(path, f"{brief(member.name)!r} is a link or a device, which is not followed.")
                total = _counted(path, member.name, member.size, total)
                yield parts, archive.extractfile(member).read()
    except DataError:
        raise
    except (tarfile.TarError, EOFError, ValueError, OverflowError, struct.error) as error:
        raise DataError(path, f"it is no tar archive, or a damaged one ({brief(error)}).") from None


def zip_files(path):
    """The same for a .zip file."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield from _zip_members(path, archive)
        except DataError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, struct.error) as error:
            raise DataError(path, f"it is no zip archive that can be read ({brief(error)}).") from None


def _zip_members(path, archive):
    check_expansion(path, os.path.getsize(path), sum(info.file_size for info in archive.infolist()))
    total = 0
    for info in archive.infolist():
        if info.is_dir():
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            raise DataError(path, f"{brief(info.filename)!r} is a link, which is not followed.")
        if info.flag_bits & 1:
            raise DataError(path, f"{brief(info.filename)!r} is encrypted: unpack it to a folder first.")
        total = _counted(path, info.filename, info.file_size, total)
        yield _parts(path, info.filename), archive.read(info)


def _counted(path, name, size, total):
    """The bytes so far with these, unless they are too many."""
    if size > _TEXT:
        raise DataError(path, f"{brief(name)!r} has {size} bytes; a text has at most {_TEXT >> 20} MiB.")
    if total + size > _ALL:
        raise DataError(path, f"its texts have more than {_ALL >> 30} GiB, which are not read into memory at once.")
    return total + size


def _parts(path, name):
    """The parts of a member's path; one that leaves the archive is refused."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or not parts:
        raise DataError(path, f"the member {brief(name)!r} is no path inside the archive.")
    return parts
