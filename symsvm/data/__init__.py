"""Data: files in and out, named sets, scaling, labels."""

from symsvm.data.downloads import DownloadError
from symsvm.data.errors import DataError
from symsvm.data.formats import Points, read, write
from symsvm.data.libsvm_text import read_libsvm
from symsvm.data.named import DataSet, data_home, load
from symsvm.data.registry import SETS
from symsvm.data.scaling import Scaling, standardise
from symsvm.data.streams import chunks
from symsvm.validation import signs

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
