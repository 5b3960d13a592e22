"""Conversions to Numba of the Ops of `argmin`: the solver and the adjoint system are called as they are.

The types of their results are given: Numba's own fallback infers them, and compiles for more than a minute. Nothing of
a graph with these Ops is cached on disk, since its code refers to an Op of this process.
"""

from __future__ import annotations

import weakref

import numba
import numpy as np

from symsvm._lib.compat import numba_njit, register_numba
from symsvm.implicit.argmin import AdjointSolve, Argmin, Support

__all__ = ["call_op", "numba_funcify_adjoint", "numba_funcify_argmin", "numba_funcify_support"]

# The Ops by number: Numba pickles what code in object mode refers to, and an Op holds locks.
_OPS: weakref.WeakValueDictionary[int, Argmin | AdjointSolve] = weakref.WeakValueDictionary()


def call_op(key, values):
    """Return the results of `solve` of an Op by its number."""
    return _OPS[key].solve(*values)


@register_numba(Argmin)
def numba_funcify_argmin(op, node, **kwargs):
    """Convert a call of the solver."""
    key = id(op)
    _OPS[key] = op

    @numba_njit
    def argmin(*values):
        with numba.objmode(v="float64[::1]", b="float64[::1]", F="float64[::1]"):
            v, b, F = call_op(key, values)
        return v, b, F

    return argmin, None


@register_numba(AdjointSolve)
def numba_funcify_adjoint(op, node, **kwargs):
    """Convert a solution of the adjoint system."""
    key = id(op)
    _OPS[key] = op

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

    return support, "support"
