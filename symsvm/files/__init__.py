"""Model files: native (.symsvm), LIBSVM's text (.libsvm) and ONNX (.onnx, to write only)."""

from symsvm.files.formats import load, save
from symsvm.files.model_file_error import ModelFileError

__all__ = ["ModelFileError", "load", "save"]
