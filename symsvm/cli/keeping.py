"""Keeping: where a model goes, looked at before the work and written after it, whole or not at all."""

import importlib.util
import os
from pathlib import Path

from symsvm.cli.errors import BadData, Refused

__all__ = ["check_path", "check_target", "keep", "opened", "size_of"]

_ENDINGS = (".symsvm", ".libsvm", ".onnx")


def check_target(path, *, scaled=False, linear=False):
    """Refuse, before any work, a name that a model cannot be written to."""
    if path is None:
        return
    path = Path(path)
    if path.suffix not in _ENDINGS:
        raise Refused(
            f"{path}: the ending must be {', '.join(_ENDINGS[:2])} or {_ENDINGS[2]}, got {path.suffix or 'none'!r}."
        )
    if path.suffix == ".libsvm" and (scaled or linear):
        what = "no scaling" if scaled else "kernel machines only"
        raise Refused(f"{path}: LIBSVM's model file holds {what}: write .symsvm, or convert that to .onnx.")
    if path.suffix == ".onnx" and importlib.util.find_spec("onnx") is None:
        raise Refused(f"{path}: ONNX needs the extra symsvm[onnx].")
    check_path(path)


def check_path(path):
    """Refuse, before any work, a path that nothing can be written to."""
    if path is None:
        return
    if path == "-":
        raise Refused("'-' is no file to write to; what goes to stdout does so without -o.")
    path = Path(path)
    if path.is_dir():
        raise Refused(f"{path} is a directory: give the name of a file.")
    if not path.parent.is_dir():
        raise Refused(f"{path}: there is no directory {path.parent}.")
    if not os.access(path.parent, os.W_OK):
        raise BadData(f"{path}: the directory {path.parent} cannot be written to.")


def keep(model, path, *, rescue=False, **options):
    """Write a model; what fails leaves the file that was there as it was.

    `rescue` keeps a model that was trained for long, and that the format cannot hold, in a native file.
    """
    from symsvm.io.models import ModelFileError, save

    try:
        save(model, path, **options)
    except ModelFileError as error:
        elsewhere = _rescued(model, Path(path)) if rescue else ""
        raise Refused(f"{error}{elsewhere}") from None  # the model is fine: the format is not for it
    except OSError as error:
        old = "; the file that was there is as it was" if os.path.exists(path) else ""
        raise BadData(f"{path}: the model could not be written ({error.strerror}){old}.") from None


def _rescued(model, path):
    """Write a model to a native file, where there is none of that name, and say so."""
    from symsvm.io.models import save

    other = path.with_suffix(".symsvm")
    if path.suffix == ".symsvm" or other.exists():
        return ""
    save(model, other)
    return f" The model is in {other} instead."


def opened(path, trusted=(), n_features=None):
    """Read a model."""
    from symsvm.io.models import load

    return load(path, trusted=trusted, n_features=n_features)


def size_of(path):
    """The size of a file, in words."""
    size = os.path.getsize(path)
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
