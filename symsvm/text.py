"""Text corpora and a TF-IDF classifier: the public names of `symsvm.io.text`."""

from symsvm.io.text import *  # noqa: F403
from symsvm.io.text import __all__ as __all__
