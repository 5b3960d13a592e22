"""Texts: corpora in, a TF-IDF classifier out. (Public names of `symsvm.io.text`.)"""

from symsvm.io.text import *  # noqa: F403
from symsvm.io.text import __all__ as __all__
