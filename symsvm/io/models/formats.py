"""Formats: `save` and `load`, which choose one by the extension."""

import os
from pathlib import Path

from symsvm.io.models.libsvm import read_libsvm, write_libsvm
from symsvm.io.models.model_file_error import ModelFileError
from symsvm.io.models.native import read_native, write_native

__all__ = ["load", "save"]


def save(model, path, *, precision=None):
    """Write a fitted model to a file, whole or not at all; the extension is the format.

    Parameters
    ----------
    model : an estimator, or (but for .libsvm) a pipeline of scalings and an estimator; for .symsvm also one of texts.
    path : `.symsvm` holds everything, `.libsvm` is LIBSVM's model file, `.onnx` needs the extra symsvm[onnx].
    precision : of .onnx: "float64" (the default), a graph of plain operators, or "float32", the operators for support
        vector machines.
    """
    path = Path(os.fspath(path))
    if precision is not None and path.suffix != ".onnx":
        raise ModelFileError(path, f"precision={precision!r} belongs to .onnx; other files hold every bit.")
    if path.suffix == ".symsvm":
        write_native(model, path)
    elif path.suffix == ".libsvm":
        write_libsvm(model, path)
    elif path.suffix == ".onnx":
        from symsvm.io.models.onnx_file import write_onnx  # which needs onnx

        write_onnx(model, path, precision or "float64")
    else:
        raise ModelFileError(path, f"the extension must be .symsvm, .libsvm or .onnx, got {path.suffix!r}.")


def load(path, *, trusted=(), n_features=None):
    """Read a model from a file; the extension is the format.

    Parameters
    ----------
    path : a `.symsvm` or a `.libsvm` file.
    trusted : names "module:name" of kernels that a .symsvm file may import; importing runs their code.
    n_features : of a .libsvm file, which names only columns that a support vector has an entry in.
    """
    path = Path(os.fspath(path))
    if isinstance(trusted, str):
        raise TypeError(f"trusted must be a list of names, got {trusted!r}.")
    if trusted and path.suffix != ".symsvm":
        raise ModelFileError(path, "trusted= belongs to .symsvm; other files name no code.")
    if n_features is not None and path.suffix != ".libsvm":
        raise ModelFileError(path, "n_features= belongs to .libsvm; other files know it.")
    if path.suffix == ".symsvm":
        return read_native(path, frozenset(trusted))
    if path.suffix == ".libsvm":
        return read_libsvm(path, n_features)
    if path.suffix == ".onnx":
        raise ModelFileError(path, "ONNX files are written only: onnxruntime runs them; load the .symsvm file.")
    raise ModelFileError(path, f"the extension must be .symsvm or .libsvm, got {path.suffix!r}.")
