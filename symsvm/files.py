"""Model files (.symsvm, LIBSVM, ONNX): the public names of `symsvm.io.models`."""

from symsvm.io.models import *  # noqa: F403
from symsvm.io.models import __all__ as __all__
