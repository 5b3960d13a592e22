"""Model files: native (.symsvm), LIBSVM's text (.libsvm) and ONNX (.onnx, to write only).

save(model, "model.symsvm")        # an estimator, or scalings and an estimator in a pipeline
model = load("model.symsvm")       # predicts bit for bit as before; nothing is unpickled
parity(model, "model.onnx", X)     # how far onnxruntime is from the model
"""

from symsvm.io.models.formats import load, save
from symsvm.io.models.model_file_error import ModelFileError
from symsvm.io.models.parity import Parity, parity

__all__ = ["ModelFileError", "Parity", "load", "parity", "save"]
