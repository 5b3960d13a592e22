"""Conversions to Numba of the Ops of `argmin`: the solver and the adjoint system are called as they are.

The types of their results are given: Numba's own fallback infers them, and compiles for more than a minute. Nothing of
a graph with these Ops is cached on disk, since its code refers to an Op of this process.
"""

from __future__ import annotations

import weakref
from typing import Any

import numba
import numpy as np

from symsvm._lib.compat import numba_njit, register_numba
from symsvm.implicit.argmin import AdjointSolve, Argmin
from symsvm.implicit.sparse_rows import DenseRows, SparseRows
from symsvm.implicit.support import Support

__all__ = [
    "call_op",
    "numba_funcify_adjoint",
    "numba_funcify_argmin",
    "numba_funcify_dense_rows",
    "numba_funcify_sparse_rows",
    "numba_funcify_support",
]

# The Ops by number: Numba pickles what code in object mode refers to, and an Op holds locks.
_OPS: weakref.WeakValueDictionary[int, Argmin | AdjointSolve | SparseRows | DenseRows] = weakref.WeakValueDictionary()


def call_op(key: int, values: tuple) -> Any:
    """Return the results of `solve` of an Op by its number."""
    return _OPS[key].solve(*values)


def _key(op):
    _OPS[id(op)] = op
    return id(op)


@register_numba(Argmin)
def numba_funcify_argmin(op, node, **kwargs):
    """Convert a call of the solver."""
    key = _key(op)

    @numba_njit
    def argmin(*values):
        with numba.objmode(v="float64[::1]", b="float64[::1]", F="float64[::1]"):
            v, b, F = call_op(key, values)
        return v, b, F

    return argmin, None


@register_numba(AdjointSolve)
def numba_funcify_adjoint(op, node, **kwargs):
    """Convert a solution of the adjoint system."""
    key = _key(op)

    @numba_njit
    def adjoint(*values):
        with numba.objmode(
            u="float64[::1]", w="float64[::1]", b="float64[::1]", lower="float64[::1]", upper="float64[::1]"
        ):
            u, w, b, lower, upper = call_op(key, values)
        return u, w, b, lower, upper

    return adjoint, None


@register_numba(Support)
def numba_funcify_support(op, node, **kwargs):
    """Convert the search for entries that are not 0."""

    @numba_njit
    def support(x):
        return np.flatnonzero(x)

    return support, f"{__name__}.support"


@register_numba(SparseRows)
def numba_funcify_sparse_rows(op, node, **kwargs):
    """Convert the choice of rows of a CSR matrix."""
    key = _key(op)

    @numba_njit
    def sparse_rows(*values):
        with numba.objmode(x="float64[::1]", k="int64[::1]", start="int64[::1]"):
            x, k, start = call_op(key, values)
        return x, k, start

    return sparse_rows, None


@register_numba(DenseRows)
def numba_funcify_dense_rows(op, node, **kwargs):
    """Convert the choice of rows of a CSR matrix, written out."""
    key = _key(op)

    @numba_njit
    def dense_rows(*values):
        with numba.objmode(rows="float64[:, ::1]"):
            rows = call_op(key, values)
        return rows

    return dense_rows, None
