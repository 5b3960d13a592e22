"""Data: named sets, scaling, labels."""

from symsvm.data.named import DataSet, data_home, load
from symsvm.data.scaling import standardise
from symsvm.validation import signs

__all__ = ["DataSet", "data_home", "load", "signs", "standardise"]
