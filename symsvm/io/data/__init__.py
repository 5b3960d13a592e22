"""Data files and named data sets: readers, writers, chunks, downloads, scaling and labels.

`data_formats` chooses the reader or writer of a format: `libsvm_data`, `csv_data` (both on the parser of
`numeric_text`), `array_files` or `parquet`. `datasets` loads named sets, `scaling` scales columns. `io.models`,
`io.text` and packages below `io` import from here; the public names are also in `symsvm.data`.
"""

from symsvm._lib.validation import signs
from symsvm.io.data.data_formats import Points, chunks, read, write
from symsvm.io.data.datasets import SETS, DataSet, data_home, load
from symsvm.io.data.libsvm_data import read_libsvm
from symsvm.io.data.scaling import Scaling, standardise
from symsvm.io.file_errors import DataError, DownloadError

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
