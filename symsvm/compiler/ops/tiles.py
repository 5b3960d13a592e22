"""The source of the loops that evaluate a `KernelForm`.

    for a group of columns, packed into panels:
        for a chunk of rows i:
            for a panel of columns j:
                s_ij = sum_k h(a_ik, b_jk, w_k)       four rows, four features at a time; the panel stays in the cache
                K_ij = e(s_ij, ..., u_i, v_j, theta)  in place
                add or store the result of K_ij       K_ij itself is then discarded

The result is one of `RESULTS`: `block` stores K_ij; `matvec` adds K_ij q_jr to out_ir; `features` adds
K_ij f(a_ik, b_jk) to out_ik. A panel stores its columns side by side, (d, columns), so that every inner loop reads
consecutive entries and is vectorised. Sums over columns are accumulated in float64. The result of a row does not depend
on the other rows or on the number of threads, bit for bit.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numba
import numpy as np

from symsvm.compiler.ops import sparse_distances, vector_math
from symsvm.compiler.ops.scalar_function import DTYPES
from symsvm.compiler.ops.squared_distances import CANCELLATION

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LOOP_OPTIONS", "RESULTS", "SEPARATOR", "TileSource", "loop_globals", "parameter_names"]

RESULTS = ("block", "matvec", "features")

# Between two functions of the source.
SEPARATOR = "\n# ---\n"
# Features of a panel that are added up at a time.
_FEATURES = 128
# The first arguments of the loops: ranges of panels to pack and of chunks to run, the rows of a chunk, the columns of
# the group, and those of a panel.
_RANGES = ("panel", "last_panel", "chunk", "last_chunk", "step", "first", "last", "columns")

# Fused multiply-add is allowed, other reordering is not; no exceptions, since they are branches.
LOOP_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy", "boundscheck": False}


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
        "pack": _pack,
        "pack_csr": _pack_csr,
        "unpack_csr": _unpack_csr,
        "column_norms": sparse_distances.column_norms,
        "distances": sparse_distances.distances,
        "cancellation": np.dtype(dtype).type(CANCELLATION[dtype]),
        **{name: getattr(np, name) for name in DTYPES},
        **{name: getattr(math, name) for name in names},
        **functions,
    }


@numba.njit(**LOOP_OPTIONS)
def _square(x):
    return x * x


@numba.njit(fastmath={"contract", "reassoc"}, error_model="numpy")
def _dot(a, b, n):
    """Return sum_j a_j b_j, in any order, over at most the columns of a panel."""
    total = a.dtype.type(0)
    for j in range(n):
        total += a[j] * b[j]
    return total


@numba.njit(**LOOP_OPTIONS)
def _pack(B, ids, first, panel):
    """Copy the rows `ids` of B, from index `first` on, into a panel (d, columns)."""
    n, d = min(panel.shape[1], ids.shape[0] - first), B.shape[1]
    for j0 in range(0, n, 16):  # blocks of whole cache lines
        for k0 in range(0, d, 16):
            for j in range(j0, min(j0 + 16, n)):
                row = B[ids[first + j]]
                for k in range(k0, min(k0 + 16, d)):
                    panel[k, j] = row[k]


@numba.njit(**LOOP_OPTIONS)
def _pack_csr(x, k, start, ids, first, panel):
    """Copy the rows `ids` of a CSR matrix, from index `first` on, into a panel (d, columns)."""
    panel[:, :] = 0
    for j in range(min(panel.shape[1], ids.shape[0] - first)):
        i = ids[first + j]
        for e in range(start[i], start[i + 1]):
            panel[k[e], j] += x[e]


@numba.njit(**LOOP_OPTIONS)
def _unpack_csr(x, k, start, i, row):
    """Copy the row i of a CSR matrix into a dense row."""
    row[:] = 0
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

    def __init__(self, epilogue, hs, n_rows, n_columns, n_numbers, result, storage, f):
        self.epilogue, self.hs, self.result, self.storage, self.f = epilogue, hs, result, storage, f
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
        return SEPARATOR.join([*parts, self._epilogue(), self._chunk(), self._tiles()])

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
        """Yield the functions that add to the sums of channel c, for four dense rows or one sparse row."""
        h, product = self.hs[c], self.by_product[c]
        if not product:
            yield self._scalar(f"h{c}", h)

        def term(a, b, k):
            return f"{a} * {b}" if product else f"h{c}({a}, {b}{self._w(c, f'[{k}]')})"

        if product and self.storage[c][0] == "csr":
            # Weights of squared differences: sum_k w_k^2 a_ik b_jk.
            x = [f"x[e + {e}]" + f" * square(w{c}_0[k[e + {e}]])" * self.weights[c] for e in range(4)]
            loads = [f"x{e} = {x[e]}; b{e} = panel[k[e + {e}]]" for e in range(4)]
            yield textwrap.dedent(f"""\
                def add{c}(x, k, start, i, panel, s, n{self._w(c)}):
                    for j in range(n):
                        s[j] = number(0)
                    e, end = start[i], start[i + 1]
                    while e + 4 <= end:
                        {"; ".join(loads)}
                        for j in range(n):
                            s[j] += {" + ".join(f"x{e} * b{e}[j]" for e in range(4))}
                        e += 4
                    while e < end:
                        {loads[0].replace("e + 0", "e")}
                        for j in range(n):
                            s[j] += x0 * b0[j]
                        e += 1
                """)
            return
        rows = range(4)
        lines = [f"def add{c}(a0, a1, a2, a3, panel, s, k0, d, n{self._w(c)}):", "    k = 0"]
        for unroll in (4, 1):
            features = range(unroll)
            lines += [f"    while k + {unroll} <= d:"]
            lines += [f"        x{r}{e} = a{r}[k0 + k + {e}]" for r in rows for e in features]
            lines += [f"        b = panel[k : k + {unroll}]", "        for j in range(n):"]
            lines += [f"            y{e} = b[{e}, j]" for e in features]
            for r in rows:
                terms = " + ".join(term(f"x{r}{e}", f"y{e}", f"k0 + k + {e}") for e in features)
                lines += [f"            s[{r}, j] += {terms}"]
            lines += [f"        k += {unroll}"]
        yield "\n".join(lines) + "\n"

    @property
    def names(self):
        """The names of the data arguments."""
        return parameter_names(self.storage, self.weights, self.n_rows, self.n_columns, self.n_numbers)

    def packed_names(self):
        """Return the names of the arrays that hold a group of columns: panels, and for distances their norms and ones.

        The ones are weights, of channels that have none.
        """
        names = []
        for c, is_distance in enumerate(self.is_distance):
            names += [f"packed{c}"] + [f"norms{c}"] * is_distance
            names += [f"ones{c}"] * (is_distance and not self.weights[c])
        return names

    def _tiles(self):
        """Return the outer loops: pack some panels of a group of columns, run some chunks of rows over the group."""
        data = ", ".join(["rows", "ids", *self.names, "q", "out", *self.packed_names()])
        out = _Lines(f"def tiles({', '.join(_RANGES)}, {data}):")
        add = out.add
        add("for t in range(panel, last_panel):")
        for c, (_, right) in enumerate(self.storage):
            B = f"B{c}" if right == "dense" else f"B{c}_x, B{c}_k, B{c}_start"
            pack = "pack" if right == "dense" else "pack_csr"
            add(f"    {pack}({B}, ids, first + t * columns, packed{c}[t])")
            if self.is_distance[c]:
                weights = self._distance_weights(c)
                add(f"    column_norms({B}, ids, first + t * columns, packed{c}[t], {weights}, norms{c}[t])")
        add("for t in range(chunk, last_chunk):")
        add("    low = t * step")
        add(f"    run_chunk(low, min(rows.shape[0], low + step), first, last, columns, {data})")
        return str(out)

    def _chunk(self):
        """Return the loops over the panels of a group and over the rows of one chunk."""
        data = ", ".join(["rows", "ids", *self.names, "q", "out", *self.packed_names()])
        out = _Lines(f"def run_chunk(low, high, first, last, columns, {data}):")
        add = out.add
        add("result = np.empty(columns, number)")
        for c, (left, _) in enumerate(self.storage):
            if self._is_dense(c):
                add(f"d{c} = A{c}.shape[1]")
            add(f"wide{c} = {self._is_dense(c)} and d{c} > {_FEATURES}")
            add(f"sums{c} = np.empty((high - low + 4 if wide{c} else 4, columns), number)")
            if left == "csr" and not self.by_product[c]:
                add(f"dense{c} = np.empty((4, d{c}), number)")
            if self.is_distance[c]:
                add(f"dense{c}, seen{c} = np.zeros(d{c}, number), np.zeros(d{c} + 1, np.int64)")
        for i in range(self.n_columns):
            add(f"column{i} = np.empty(columns, number)")
        add("for j0 in range(first, last, columns):")
        out.depth = 2
        add("nj = min(columns, last - j0)")
        for i in range(self.n_columns):
            add("for j in range(nj):")
            add(f"    column{i}[j] = v{i}[ids[j0 + j]]")
        for c in range(len(self.storage)):
            add(f"panel{c} = packed{c}[(j0 - first) // columns]")
            if self._is_dense(c):
                add(f"if wide{c}:")
                add(f"    sums{c}[:, :] = 0")
                add(f"    for k0 in range(0, d{c}, {_FEATURES}):")
                add("        for i in range(low, high, 4):")
                add(f"            {self._add(c, 'i - low')}")
        add("for i in range(low, high, 4):")
        out.depth = 3
        for c in range(len(self.storage)):
            self._narrow(c, add)
        add("for r in range(min(4, high - i)):")
        out.depth = 4
        add("row = rows[i + r]")
        args = [
            *(f"sums{c}[(i - low if wide{c} else 0) + r]" for c in range(len(self.storage))),
            *(f"u{i}[row]" for i in range(self.n_rows)),
            *(f"column{i}" for i in range(self.n_columns)),
            *(f"theta{i}" for i in range(self.n_numbers)),
        ]
        add(f"epilogue({', '.join(args)}, result, nj)")
        self._store(add)
        return str(out)

    def _distance_weights(self, c):
        return f"w{c}_0" if self.weights[c] else f"ones{c}"

    def _is_dense(self, c):
        return self.storage[c] == ("dense", "dense")

    def _add(self, c, slot):
        """Return the call that adds a group of features, for four rows (the last row is repeated at the end)."""
        quad = ", ".join(f"A{c}[rows[min(i + {r}, high - 1)]]" for r in range(4))
        return f"add{c}({quad}, panel{c}[k0:], sums{c}[{slot}:], k0, min({_FEATURES}, d{c} - k0), nj{self._w(c)})"

    def _narrow(self, c, add):
        """Write the sums of a channel whose features fit one panel, for four rows."""
        left, product = self.storage[c][0], self.by_product[c]
        if left == "csr" and product:
            add("for r in range(min(4, high - i)):")
            add(f"    add{c}(A{c}_x, A{c}_k, A{c}_start, rows[i + r], panel{c}, sums{c}[r], nj{self._w(c)})")
            if self.is_distance[c]:
                A, B = (f"({side}{c}_x, {side}{c}_k, {side}{c}_start)" for side in "AB")
                data = f"{A}, rows[i + r], {B}, ids, j0, panel{c}, {self._distance_weights(c)}"
                norms = f"norms{c}[(j0 - first) // columns], sums{c}[r], nj"
                add(f"    distances({data}, {norms}, cancellation, dense{c}, seen{c})")
        elif left == "csr":
            add("for r in range(4):")
            add(f"    unpack_csr(A{c}_x, A{c}_k, A{c}_start, rows[min(i + r, high - 1)], dense{c}[r])")
            add(f"sums{c}[:, :] = 0")
            quad = ", ".join(f"dense{c}[{r}]" for r in range(4))
            add(f"for k0 in range(0, d{c}, {_FEATURES}):")
            add(f"    add{c}({quad}, panel{c}[k0:], sums{c}, k0, min({_FEATURES}, d{c} - k0), nj{self._w(c)})")
        else:
            add(f"if not wide{c}:")
            add(f"    sums{c}[:, :] = 0")
            add(f"    for k0 in range(0, d{c}, {_FEATURES}):")
            add(f"        {self._add(c, '0')}")

    def _store(self, add):
        """Write the statements that add or store the result of one row and one panel."""
        if self.result == "block":
            add("target = out[i + r]")
            add("for j in range(nj):")
            add("    target[j0 + j] = result[j]")
        elif self.result == "matvec":
            add("for p in range(q.shape[0]):")
            add("    out[i + r, p] += dot(result, q[p, j0:], nj)")
        else:
            assert self.f is not None
            c = self.f[0]
            add(f"for k in range(d{c}):")
            add(f"    b = panel{c}[k]")
            add(f"    a = A{c}[row, k]")
            add("    total = number(0)")
            add("    for j in range(nj):")
            w = self._w(c, "[k]")
            add(f"        total += result[j] * f(a, b[j]{w})")
            add("    out[i + r, k] += total")
