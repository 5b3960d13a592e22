"""Conversions of `Machines` and `AdjointMachines` to Numba: the solver and the adjoint systems are called as they are.

The types of the results are given: Numba's own fallback infers them, and compiles for more than a minute. Nothing of a
graph with these Ops is cached on disk, since its code refers to an Op of this process.
"""

from __future__ import annotations

import numba

from symsvm._lib.compat import numba_njit, register_numba
from symsvm.heads.machines import AdjointMachines, Machines

__all__ = ["call_machines", "numba_funcify_adjoint_machines", "numba_funcify_machines"]

# The Ops by number, for as long as the process lives: code in object mode refers to them, and Numba would pickle them.
_OPS: list[Machines | AdjointMachines] = []


def call_machines(key, values):
    """Return the results of `solve` of an Op by its number."""
    return _OPS[key].solve(*values)


def _number(op) -> int:
    if op not in _OPS:
        _OPS.append(op)
    return _OPS.index(op)


@register_numba(Machines)
def numba_funcify_machines(op, node, **kwargs):
    """Convert the solution of machines."""
    key = _number(op)

    @numba_njit
    def machines(K, T, C):
        values = (K, T, C)
        with numba.objmode(q="float64[:, ::1]", b="float64[::1]"):
            q, b = call_machines(key, values)
        return q, b

    return machines, None


@register_numba(AdjointMachines)
def numba_funcify_adjoint_machines(op, node, **kwargs):
    """Convert the solution of the adjoint systems."""
    key = _number(op)

    @numba_njit
    def adjoint(K, T, C, q, gq, gb):
        values = (K, T, C, q, gq, gb)
        with numba.objmode(u="float64[:, ::1]", by_C="float64[:, ::1]"):
            u, by_C = call_machines(key, values)
        return u, by_C

    return adjoint, None
