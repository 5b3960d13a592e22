"""Tiles: the loops that evaluate a `Form`, generated as source and compiled by Numba.

    for a group of columns, packed into panels:
        for a chunk of rows i (one after another on each core):
            for a panel of columns j:
                s_ij = sum_k h(a_ik, b_jk, w_k)       four rows, four features at a time; the panel stays in the cache
                K_ij = e(s_ij, ..., u_i, v_j, theta)  in place
                what the caller wants of K_ij         nothing of it is kept longer

What is wanted: `block` writes the K_ij; `matvec` adds K_ij q_jr to out_ir; `features` adds K_ij f(a_ik, b_jk) to
out_ik. The columns of a panel lie side by side, (d, columns), so that every inner loop runs over neighbours and is
vectorised. Sums over columns are kept in float64. A row's result depends on no other row, bit for bit, and on no number
of threads.
"""

import functools
import hashlib
import inspect
import math
import sys

import numba
import numpy as np

from symsvm._lib.compat import numba_source
from symsvm.compiler.ops import vector_math
from symsvm.compiler.ops.scalar_function import TYPES
from symsvm.compiler.ops.tile_source import BREAK, TileSource

__all__ = ["WANTS", "compile_tiles"]

WANTS = ("block", "matvec", "features")


def compile_tiles(epilogue, hs, n_rows, n_columns, n_numbers, want, kinds=None, f=None):
    """Return the compiled function of (rows, ids, the data, q, out), and a key that tells it from all others.

    Parameters
    ----------
    epilogue, hs : the `ScalarFunction` e and those of the channels.
    n_rows, n_columns, n_numbers : how many vectors u, vectors v and numbers theta the epilogue takes.
    want : one of `WANTS`.
    kinds : for each channel the storage of A and of B, "dense" or "csr".
    f : for `features`, the index of a channel and the function of (a_ik, b_jk, w_k).
    """
    kinds = (("dense", "dense"),) * len(hs) if kinds is None else kinds
    return _compile(epilogue, tuple(hs), n_rows, n_columns, n_numbers, want, tuple(kinds), f)


@functools.cache
def _compile(epilogue, hs, n_rows, n_columns, n_numbers, want, kinds, f):
    source = TileSource(epilogue, hs, n_rows, n_columns, n_numbers, want, kinds, f).text()
    key = hashlib.sha256((source + _OWN_SOURCE).encode()).hexdigest()
    scope = _scope(epilogue.dtype)
    # Inner functions first: each is compiled into the loop that calls it.
    parts = source.split(BREAK)
    for part in parts[:-1]:
        function = numba_source(part, _defined(part), dict(scope))
        scope[_defined(part)] = numba.njit(function, **_OPTIONS)
    function = numba_source(parts[-1], "tiles", scope, f"symsvm_{key}")
    return numba.njit(function, cache=True, parallel=True, nogil=True, **_OPTIONS), key


_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy", "boundscheck": False}


# What the compiled code depends on beside its own source, as it is now: the functions below and those of vector_math.
_OWN_SOURCE = "".join(inspect.getsource(module) for module in (sys.modules[__name__], vector_math)) + numba.__version__


def _defined(source):
    return source.partition("def ")[2].partition("(")[0]


def _scope(dtype):
    functions = vars(vector_math.FLOATS[dtype])
    names = ("sqrt", "expm1", "log1p", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "erf")
    return {
        "__name__": __name__,  # where Numba's cache looks for globals
        "np": np,
        "prange": numba.prange,
        "number": np.dtype(dtype).type,
        "inf": np.inf,
        "nan": np.nan,
        "where": vector_math.where,
        "floor": np.floor,
        "square": _square,
        "dot": _dot,
        "pack": _pack,
        "pack_csr": _pack_csr,
        "unpack_csr": _unpack_csr,
        **{name: getattr(np, name) for name in TYPES},
        **{name: getattr(math, name) for name in names},
        **functions,
    }


@numba.njit(**_OPTIONS)
def _square(x):
    return x * x


@numba.njit(fastmath={"contract", "reassoc"}, error_model="numpy")
def _dot(a, b, n):
    """sum_j a_j b_j, in any order: the columns of a panel at most."""
    total = a.dtype.type(0)
    for j in range(n):
        total += a[j] * b[j]
    return total


@numba.njit(**_OPTIONS)
def _pack(B, ids, first, panel):
    """The rows `ids` of B, from the first on, as a panel (d, columns)."""
    n, d = min(panel.shape[1], ids.shape[0] - first), B.shape[1]
    for j0 in range(0, n, 16):  # squares of cache lines
        for k0 in range(0, d, 16):
            for j in range(j0, min(j0 + 16, n)):
                row = B[ids[first + j]]
                for k in range(k0, min(k0 + 16, d)):
                    panel[k, j] = row[k]


@numba.njit(**_OPTIONS)
def _pack_csr(x, k, start, ids, first, panel):
    """The rows `ids` of a CSR matrix, from the first on, as a panel (d, columns)."""
    panel[:, :] = 0
    for j in range(min(panel.shape[1], ids.shape[0] - first)):
        i = ids[first + j]
        for e in range(start[i], start[i + 1]):
            panel[k[e], j] += x[e]


@numba.njit(**_OPTIONS)
def _unpack_csr(x, k, start, i, row):
    """The row i of a CSR matrix, written out."""
    row[:] = 0
    for e in range(start[i], start[i + 1]):
        row[k[e]] += x[e]
