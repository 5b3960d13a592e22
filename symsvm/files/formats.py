"""Formats: `save` and `load`, which choose one by the extension."""

import os
from pathlib import Path

from symsvm.files.native import read_native, write_native

__all__ = ["load", "save"]


def save(model, path):
    """Write a fitted model to a file, whole or not at all."""
    write_native(model, Path(os.fspath(path)))


def load(path, *, trusted=()):
    """Read a model."""
    return read_native(Path(os.fspath(path)), trusted)
