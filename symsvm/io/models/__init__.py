"""Model files: native (.symsvm), LIBSVM's text (.libsvm) and ONNX (.onnx, written only).

    save(model, "model.symsvm")        # an estimator, or scalings and an estimator in a pipeline
    model = load("model.symsvm")       # gives the same predictions, bit for bit; nothing is unpickled
    parity(model, "model.onnx", X)     # how far onnxruntime is from the model

`model_files` chooses the format: `native` (on `archive`, `values`, `estimator_state` and `vectoriser_state`),
`libsvm_model` or `onnx_model`. Packages below `io` import from here; the public names are also in `symsvm.files`.
"""

from symsvm.io.file_errors import ModelFileError
from symsvm.io.models.model_files import Parity, load, parity, save

__all__ = ["ModelFileError", "Parity", "load", "parity", "save"]
