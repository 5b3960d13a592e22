"""Types for annotations. Import them under `TYPE_CHECKING`: nothing here is needed at run time."""

from os import PathLike
from typing import TypeAlias

import numpy as np
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array, csr_matrix

__all__ = ["Array", "Graph", "Path", "Points", "Scalar"]

# An array of numbers; docstrings give its shape.
Array: TypeAlias = np.ndarray
# Points, one per row: dense (m, d) or CSR.
Points: TypeAlias = np.ndarray | csr_matrix | csr_array
# A symbolic expression: an input, a shared variable, or a variable computed from them.
Graph: TypeAlias = TensorVariable
# A number, or the graph of one.
Scalar: TypeAlias = float | TensorVariable
# The name of a file.
Path: TypeAlias = str | PathLike[str]
