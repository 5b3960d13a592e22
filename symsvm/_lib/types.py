"""Types for annotations. Import them under `TYPE_CHECKING`: nothing here is needed at run time."""

from os import PathLike
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable
from scipy.sparse import csr_array, csr_matrix, sparray, spmatrix

__all__ = ["Array", "Graph", "Path", "Points", "PointsLike", "Scalar", "ScalarOrVector"]

# An array of numbers; docstrings give its shape.
Array: TypeAlias = np.ndarray
# Points, one per row: dense (m, d) or CSR.
Points: TypeAlias = np.ndarray | csr_matrix | csr_array
# What users give as points: an array, a table of numbers or a sparse matrix.
PointsLike: TypeAlias = ArrayLike | spmatrix | sparray
# A symbolic expression: an input, a shared variable, or a variable computed from them.
Graph: TypeAlias = TensorVariable
# A number, or a graph of one; `pytensor.shared` declares that it returns a variable, not a tensor.
Scalar: TypeAlias = float | Variable
# The same, or a number for each feature.
ScalarOrVector: TypeAlias = ArrayLike | Variable
# The name of a file.
Path: TypeAlias = str | PathLike[str]
