"""Data: files in and out, named sets, scaling, labels."""

from symsvm._lib.validation import signs
from symsvm.io.data.downloads import DownloadError
from symsvm.io.data.errors import DataError
from symsvm.io.data.formats import Points, read, write
from symsvm.io.data.libsvm_text import read_libsvm
from symsvm.io.data.named import DataSet, data_home, load
from symsvm.io.data.registry import SETS
from symsvm.io.data.scaling import Scaling, standardise
from symsvm.io.data.streams import chunks

__all__ = [
    "SETS",
    "DataError",
    "DataSet",
    "DownloadError",
    "Points",
    "Scaling",
    "chunks",
    "data_home",
    "load",
    "read",
    "read_libsvm",
    "signs",
    "standardise",
    "write",
]
