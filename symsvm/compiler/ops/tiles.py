"""The source of the loops that evaluate a `KernelForm`.

    for a group of columns, packed into `panels`:
        for a chunk of rows i:
            for a panel of columns j:
                s_ij = sum_k h(a_ik, b_jk, w_k)       four rows at a time; the panel stays in the cache
                K_ij = e(s_ij, ..., u_i, v_j, theta)  in place
                add or store what is wanted of K_ij   K_ij itself is then discarded

Wanted is K_ij in `block`, K_ij q_jr added to `total_ir`, or, if there is an f, K_ij f(a_ik, b_jk) added to `total_ik`.
Every inner loop reads consecutive entries of a panel and is vectorised. Sums over columns are accumulated in float64.
The result of a row does not depend on the other rows or on the number of threads, bit for bit.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numba
import numpy as np

from symsvm.compiler.ops import feature_sums, product_distances, scratch, vector_math
from symsvm.compiler.ops.scalar_function import DTYPES
from symsvm.compiler.ops.sparse_sums import STRIP, add_entries
from symsvm.compiler.ops.squared_distances import CANCELLATION

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FEATURES", "INNER", "SEPARATOR", "TileSource", "loop_globals", "parameter_names"]

# Between two functions of the source.
SEPARATOR = "\n# ---\n"
# Features of a panel that are added up at a time: those of the columns whose sums are in registers fit the first cache.
FEATURES = 64
# The first arguments of the loops: a range of chunks, the rows of a chunk, the columns of the group, those of a panel,
# and the features of strips that are added up at a time.
_RANGES = ("chunk", "last_chunk", "step", "first", "last", "columns", "features")

# Of functions that only compiled code calls. Fused multiply-add is allowed, other reordering is not; no exceptions,
# since they are branches.
INNER = {
    "fastmath": {"contract"},
    "error_model": "numpy",
    "boundscheck": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def loop_globals(dtype: str) -> dict[str, object]:
    """Return the global names of the generated source, for one floating type."""
    functions = vars(vector_math.FLOATS[dtype])
    names = ("sqrt", "expm1", "log1p", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "erf")
    return {
        "__name__": __name__,  # the module in which Numba's cache looks up globals
        "np": np,
        "number": np.dtype(dtype).type,
        "inf": np.inf,
        "nan": np.nan,
        "where": vector_math.where,
        "floor": np.floor,
        "square": _square,
        "dot": _dot,
        "vector": scratch.vector,
        "matrix": scratch.matrix,
        "indices": scratch.indices,
        "add_entries": add_entries,
        "clear": _clear,
        "unpack_csr": _unpack_csr,
        "add_products": feature_sums.add_products,
        "add_squares": feature_sums.add_squares,
        "add_weighted_squares": feature_sums.add_weighted_squares,
        "distances": product_distances.distances,
        "repair": product_distances.repair,
        "repair_dense": product_distances.repair_dense,
        "cancellation": np.dtype(dtype).type(CANCELLATION[dtype]),
        **{name: getattr(np, name) for name in DTYPES},
        **{name: getattr(math, name) for name in names},
        **functions,
    }


@numba.njit(**INNER)
def _square(x):
    return x * x


@numba.njit(**{**INNER, "fastmath": {"contract", "reassoc"}})
def _dot(a, b, n):
    """Return sum_j a_j b_j, in any order, over at most the columns of a panel."""
    total = a.dtype.type(0)
    for j in range(n):
        total += a[j] * b[j]
    return total


@numba.njit(**INNER)
def _clear(sums, rows, n):
    """Set the first n entries of some rows to zero."""
    for r in range(rows):
        row = sums[r]
        for j in range(n):
            row[j] = 0


@numba.njit(**INNER)
def _unpack_csr(x, k, start, i, row):
    """Copy the row i of a CSR matrix into a dense row."""
    for j in range(len(row)):
        row[j] = 0
    for e in range(start[i], start[i + 1]):
        row[k[e]] += x[e]


def parameter_names(
    storage: Sequence[tuple[str, str]], weights: Sequence[int], n_rows: int, n_columns: int, n_numbers: int
) -> list[str]:
    """Return the names of the data arguments of the loops, in their order."""
    names = []
    for c, (left, right) in enumerate(storage):
        for side, kind in (("A", left), ("B", right)):
            names += [f"{side}{c}"] if kind == "dense" else [f"{side}{c}_{part}" for part in ("x", "k", "start")]
        names += [f"d{c}"] if "csr" in (left, right) else []
        names += [f"w{c}_{i}" for i in range(weights[c])]
    names += [f"u{i}" for i in range(n_rows)] + [f"v{i}" for i in range(n_columns)]
    return names + [f"theta{i}" for i in range(n_numbers)]


class _Lines:
    """Indented lines of source below a `def` line."""

    def __init__(self, head):
        self.lines, self.depth = [head], 1

    def add(self, line):
        """Add a line at the current depth."""
        self.lines.append("    " * self.depth + line)

    def __str__(self):
        return "\n".join(self.lines) + "\n"


class TileSource:
    """The source of the loops of one Op; see `tile_loops.compile_tiles` for the parameters."""

    def __init__(self, epilogue, hs, n_rows, n_columns, n_numbers, storage, f, multiplied):
        self.epilogue, self.hs, self.storage, self.f, self.multiplied = epilogue, hs, storage, f, multiplied
        self.n_rows, self.n_columns, self.n_numbers = n_rows, n_columns, n_numbers
        self.weights = [len(h.inputs) - 2 for h in hs]
        # Differences of all features would be too many for sparse points: distances are computed from products.
        self.is_distance = [h.is_squared_difference and s == ("csr", "csr") for h, s in zip(hs, storage, strict=True)]
        self.by_product = [h.is_product or d for h, d in zip(hs, self.is_distance, strict=True)]

    def text(self):
        """Return the functions, inner ones first; the last is `tiles`."""
        parts = [part for c in range(len(self.hs)) for part in self._channel(c)]
        if self.f is not None:
            parts += [self._scalar("f", self.f[1])]
        return SEPARATOR.join([*parts, self._epilogue(), self._tiles()])

    def _w(self, c, index=""):
        return "".join(f", w{c}_{i}{index}" for i in range(self.weights[c]))

    def _scalar(self, name, h):
        names = ["a", "b", *(f"w{i}" for i in range(len(h.inputs) - 2))]
        body = textwrap.indent(h.source(names, "y"), "    ")
        return f"def {name}({', '.join(names)}):\n{body}\n    return y\n"

    def _epilogue(self):
        c, r, v, t = len(self.hs), self.n_rows, self.n_columns, self.n_numbers
        names = [f"s{i}[j]" for i in range(c)] + [f"u{i}" for i in range(r)] + [f"v{i}[j]" for i in range(v)]
        args = [name.removesuffix("[j]") for name in names] + [f"theta{i}" for i in range(t)]
        body = textwrap.indent(self.epilogue.source([*names, *args[c + r + v :]], "y"), " " * 8)
        return f"def epilogue({', '.join(args)}, result, n):\n    for j in range(n):\n{body}\n        result[j] = y\n"

    def _channel(self, c):
        """Yield the functions that add to the sums of channel c, for four rows, where `feature_sums` has none."""
        if self.by_product[c] or self.hs[c].is_squared_difference:
            return
        yield self._scalar(f"h{c}", self.hs[c])
        rows = range(feature_sums.ROWS)
        ids = ", ".join(f"i{r}" for r in rows)
        lines = [f"def add{c}(A, {ids}, panel, k0, k1, s, low, first, last{self._w(c)}):"]
        lines += ["    if k0 == 0:", f"        clear(s[low:], {len(rows)}, last)"]
        lines += [f"    a{r} = A[i{r}]" for r in rows]
        lines += ["    k = k0"]
        for unroll in (4, 1):
            features = range(unroll)
            lines += [f"    while k + {unroll} <= k1:"]
            lines += [f"        x{r}{e} = a{r}[k + {e}]" for r in rows for e in features]
            lines += [f"        b = panel[k - k0 : k - k0 + {unroll}]", "        for j in range(first, last):"]
            lines += [f"            y{e} = b[{e}, j]" for e in features]
            for r in rows:
                terms = " + ".join(f"h{c}(x{r}{e}, y{e}{self._w(c, f'[k + {e}]')})" for e in features)
                lines += [f"            s[low + {r}, j] += {terms}"]
            lines += [f"        k += {unroll}"]
        yield "\n".join(lines) + "\n"

    @property
    def names(self):
        """The names of the data arguments."""
        return parameter_names(self.storage, self.weights, self.n_rows, self.n_columns, self.n_numbers)

    def packed_names(self):
        """Return the names of the arrays of a group of columns: panels, and for distances their norms and ones.

        The ones are weights, of channels that have none; `values` are the entries of sparse rows, times their squared
        weights, and `sizes` the norms of all rows.
        """
        names = []
        for c, is_distance in enumerate(self.is_distance):
            names += [f"packed{c}"] + [f"values{c}"] * self.has_strips(c)
            names += [f"norms{c}", f"sizes{c}"] * (is_distance or c in self.multiplied)
            names += [f"ones{c}"] * (is_distance and not self.weights[c])
        return names

    def _tiles(self):
        """Return the loops over chunks of rows and over the panels of a group of columns."""
        data = ["rows", "ids", *self.names, "q", "block", "total", *self.packed_names()]
        out = _Lines(f"def tiles({', '.join([*_RANGES, *data])}):")
        add, channels = out.add, range(len(self.storage))
        for c in channels:
            if self.is_dense(c):
                add(f"d{c} = A{c}.shape[1]")
        # With more features than are added up at a time, those of all rows of a chunk are added before the next ones.
        wide = [f"d{c} > {FEATURES}" for c in channels if self.is_dense(c)]
        wide += ["True"] * any(map(self.has_strips, channels))
        add(f"height = step if {' or '.join(wide) or 'False'} else 4")
        add("result = vector(columns, q)")
        for c, (left, _) in enumerate(self.storage):
            add(f"sums{c} = matrix(height, columns, q)")
            if self.has_strips(c):
                add(f"at{c} = indices(height)")
            if left == "csr" and not self.by_product[c]:
                add(f"dense{c} = matrix(4, d{c}, q)")
            if self.is_distance[c]:
                add(f"dense{c}, seen{c} = np.zeros(d{c}, number), np.zeros(d{c} + 1, np.int64)")
        for i in range(self.n_columns):
            add(f"column{i} = vector(columns, q)")
        add("for t in range(chunk, last_chunk):")
        add("    high = min(rows.shape[0], (t + 1) * step)")
        add("    for j0 in range(first, last, columns):")
        out.depth = 3
        add("nj = min(columns, last - j0)")
        for i in range(self.n_columns):
            add("for j in range(nj):")
            add(f"    column{i}[j] = v{i}[ids[j0 + j]]")
        for c in channels:
            if not self.has_strips(c):
                add(f"panel{c} = packed{c}[(j0 - first) // columns]")
        add("for low in range(t * step, high, height):")
        out.depth = 4
        add("end = min(high, low + height)")
        for c in channels:
            self._sums(c, add)
        add("for i in range(low, end):")
        out.depth = 5
        add("row = rows[i]")
        args = [
            *(f"sums{c}[i - low]" for c in channels),
            *(f"u{i}[row]" for i in range(self.n_rows)),
            *(f"column{i}" for i in range(self.n_columns)),
            *(f"theta{i}" for i in range(self.n_numbers)),
        ]
        add(f"epilogue({', '.join(args)}, result, nj)")
        self._use(add)
        return str(out)

    def has_strips(self, c):
        """Whether the panels of a channel are strips, for products with sparse rows."""
        return self.storage[c][0] == "csr" and self.by_product[c]

    def is_dense(self, c):
        """Whether both sides of a channel are dense."""
        return self.storage[c] == ("dense", "dense")

    def _sums(self, c, add):
        """Write the sums of a channel, for the rows from low to end; of four rows, the last one is repeated."""
        left = self.storage[c][0]
        if self.has_strips(c):
            strips = f"packed{c}[(j0 - first) // columns]"
            add(f"clear(sums{c}, height, columns)")
            add(f"for p in range(-(-nj // {STRIP})):")
            add(f"    strip = {strips}[p]")
            add("    for i in range(low, end):")
            add(f"        at{c}[i - low] = A{c}_start[rows[i]]")
            add(f"    for k0 in range(0, d{c}, features):")
            add("        for i in range(low, end):")
            entries = f"values{c}, A{c}_k, at{c}[i - low], A{c}_start[rows[i] + 1], k0 + features, strip"
            add(f"            at{c}[i - low] = add_entries({entries}, sums{c}[i - low, p * {STRIP} :])")
            if self.is_distance[c]:
                add("for i in range(low, end):")
                A, B = (f"({side}{c}_x, {side}{c}_k, {side}{c}_start)" for side in "AB")
                weights = f"w{c}_0" if self.weights[c] else f"ones{c}"
                norms = f"sizes{c}[rows[i]], norms{c}[(j0 - first) // columns], sums{c}[i - low], nj, cancellation"
                add(f"    if distances({norms}):")
                points = f"{A}, rows[i], {B}, ids, j0, {strips}, {weights}"
                add(f"        repair({points}, {norms}, dense{c}, seen{c})")
            return
        is_long = c in self.multiplied
        product, distance = self.by_product[c] or is_long, self.hs[c].is_squared_difference
        squares = "add_weighted_squares" if self.weights[c] else "add_squares"
        sums = "add_products" if product else squares if distance else f"add{c}"
        step = feature_sums.column_step(np.dtype(self.epilogue.dtype).itemsize)
        has_steps = (product or distance) and left == "dense"
        add(f"for k0 in range(0, max(1, d{c}), {FEATURES}):")  # of no features, the sums are 0
        add(f"    k1 = min(d{c}, k0 + {FEATURES})")
        # Four rows with few features read all columns; many rows read those whose sums are in registers, in turn.
        add(f"    width = {step} if height > {feature_sums.ROWS} else nj" if has_steps else "    width = nj")
        add("    for j1 in range(0, nj, width):")
        add("        for i in range(low, end, 4):")
        if left == "csr":
            add("            for r in range(4):")
            add(f"                unpack_csr(A{c}_x, A{c}_k, A{c}_start, rows[min(i + r, end - 1)], dense{c}[r])")
        ids = [str(r) if left == "csr" else f"rows[min(i + {r}, end - 1)]" for r in range(4)]
        points = f"dense{c}" if left == "csr" else f"A{c}"
        where = f"panel{c}[k0:k1], k0, k1, sums{c}, i - low, j1, min(nj, j1 + width)"
        add(f"            {sums}({points}, {', '.join(ids)}, {where}{self._w(c)})")
        if is_long:
            norms = f"sizes{c}[rows[i]], norms{c}[(j0 - first) // columns], sums{c}[i - low], nj, cancellation"
            add("for i in range(low, end):")
            add(f"    if distances({norms}):")
            add(f"        repair_dense(A{c}[rows[i]], B{c}, ids, j0, {norms})")

    def _use(self, add):
        """Write the statements that add or store what is wanted of one row and one panel."""
        if self.f is None:
            add("if block.shape[0]:")
            add("    target = block[i, j0 : j0 + nj]")  # where an index might be negative, no loop is vectorised
            add("    for j in range(nj):")
            add("        target[j] = result[j]")
            add("for p in range(q.shape[0]):")
            add("    total[i, p] += dot(result, q[p, j0:], nj)")
        else:
            c = self.f[0]
            add(f"for k in range(d{c}):")
            add(f"    b = panel{c}[k]")
            add(f"    a = A{c}[row, k]")
            add("    product = number(0)")
            add("    for j in range(nj):")
            w = self._w(c, "[k]")
            add(f"        product += result[j] * f(a, b[j]{w})")
            add("    total[i, k] += product")
