"""Model files: save and load, LIBSVM's text, ONNX. (Public names of `symsvm.io.models`.)"""

from symsvm.io.models import *  # noqa: F403
from symsvm.io.models import __all__ as __all__
