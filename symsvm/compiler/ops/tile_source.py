"""TileSource: the source of the loops that evaluate a `Form`; see `symsvm.compiler.ops.tiles`."""

import textwrap

__all__ = ["BREAK", "TileSource", "parameters"]

# What is between two functions.
BREAK = "\n# ---\n"
# Columns of a panel, features of a panel, rows of a chunk; a panel and the sums of a wide chunk fit a 512 kB cache.
_COLUMNS, _FEATURES, _ROWS, _WIDE_ROWS = 512, 128, 512, 128
# Chunks that few rows are cut into, so that many cores have something to do.
_CHUNKS = 16
# Entries of a panel that holds all features of sparse points, and of all panels of a group together.
_SPARSE_PANEL, _GROUP = 2**17, 2**22


def parameters(kinds, weights, n_rows, n_columns, n_numbers):
    """The names of the arguments that carry the data, in the order of `compile_tiles`."""
    names = []
    for c, (left, right) in enumerate(kinds):
        for side, kind in (("A", left), ("B", right)):
            names += [f"{side}{c}"] if kind == "dense" else [f"{side}{c}_{part}" for part in ("x", "k", "start")]
        names += [f"d{c}"] if "csr" in (left, right) else []
        names += [f"w{c}_{i}" for i in range(weights[c])]
    names += [f"u{i}" for i in range(n_rows)] + [f"v{i}" for i in range(n_columns)]
    return names + [f"theta{i}" for i in range(n_numbers)]


class _Lines:
    """Lines of source below a head, at a depth."""

    def __init__(self, head):
        self.lines, self.depth = [head], 1

    def add(self, line):
        """One line more."""
        self.lines.append("    " * self.depth + line)

    def __str__(self):
        return "\n".join(self.lines) + "\n"


class TileSource:
    """The source of one set of loops."""

    def __init__(self, epilogue, hs, n_rows, n_columns, n_numbers, want, kinds, f):
        self.epilogue, self.hs, self.want, self.kinds, self.f = epilogue, hs, want, kinds, f
        self.n_rows, self.n_columns, self.n_numbers = n_rows, n_columns, n_numbers
        self.weights = [len(h.inputs) - 2 for h in hs]

    def text(self):
        """The functions, inner ones first; the last is `tiles`."""
        parts = [part for c in range(len(self.hs)) for part in self._channel(c)]
        if self.f is not None:
            parts += [self._scalar("f", self.f[1])]
        return BREAK.join([*parts, self._epilogue(), self._chunk(), self._tiles()])

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
        """The functions that add to the sums of channel c, those of four rows or of a sparse one."""
        h = self.hs[c]
        product = h.is_product
        if not product:
            yield self._scalar(f"h{c}", h)

        def term(a, b, k):
            return f"{a} * {b}" if product else f"h{c}({a}, {b}{self._w(c, f'[{k}]')})"

        if product and self.kinds[c][0] == "csr":
            loads = [f"x{e} = x[e + {e}]; b{e} = panel[k[e + {e}]]" for e in range(4)]
            yield textwrap.dedent(f"""\
                def add{c}(x, k, start, i, panel, s, n):
                    for j in range(n):
                        s[j] = number(0)
                    e, end = start[i], start[i + 1]
                    while e + 4 <= end:
                        {"; ".join(loads)}
                        for j in range(n):
                            s[j] += {" + ".join(f"x{e} * b{e}[j]" for e in range(4))}
                        e += 4
                    while e < end:
                        x0 = x[e]; b0 = panel[k[e]]
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
    def _names(self):
        return parameters(self.kinds, self.weights, self.n_rows, self.n_columns, self.n_numbers)

    def _tiles(self):
        """The outer loops, over groups of columns and, on all cores, chunks of rows."""
        sparse = [f"d{c}" for c, kind in enumerate(self.kinds) if "csr" in kind]
        out = _Lines(f"def tiles(rows, ids, {', '.join(self._names)}, q, out):")
        add = out.add
        add("m, n = rows.shape[0], ids.shape[0]")
        for c in range(len(self.kinds)):
            if self._dense(c):
                add(f"d{c} = A{c}.shape[1]")
        wide = " or ".join([f"d{c} > {_FEATURES}" for c in range(len(self.kinds)) if self._dense(c)] or ["False"])
        add(f"most = {_WIDE_ROWS} if {wide} else {_ROWS}")
        add(f"step = min(most, max(4, 4 * ((m + {4 * _CHUNKS - 1}) // {4 * _CHUNKS})))")
        # A panel of all features where one side is sparse; else features in groups that fit the cache.
        columns = f"max(8, min({_COLUMNS}, {_SPARSE_PANEL} // max(1, {', '.join(sparse)})))" if sparse else _COLUMNS
        add(f"columns = {columns}")
        width = " + ".join(f"d{c}" for c in range(len(self.kinds))) or "1"
        add(f"panels = max(1, min((n + columns - 1) // columns, {_GROUP} // max(1, columns * ({width}))))")
        for c in range(len(self.kinds)):
            add(f"packed{c} = np.empty((panels, d{c}, columns), number)")
        add("for first in range(0, n, panels * columns):")
        out.depth += 1
        add("last = min(n, first + panels * columns)")
        add("for t in prange((last - first + columns - 1) // columns):")
        for c, (_, right) in enumerate(self.kinds):
            B = f"B{c}" if right == "dense" else f"B{c}_x, B{c}_k, B{c}_start"
            pack = "pack" if right == "dense" else "pack_csr"
            add(f"    {pack}({B}, ids, first + t * columns, packed{c}[t])")
        packed = [f"packed{c}" for c in range(len(self.kinds))]
        args = ", ".join(["rows", "ids", *self._names, "q", "out", *packed])
        add("for t in prange((m + step - 1) // step):")
        add(f"    chunk(t * step, min(m, t * step + step), first, last, columns, {args})")
        return str(out)

    def _chunk(self):
        """The loops over the panels of a group and over the rows of one chunk."""
        packed = "".join(f", packed{c}" for c in range(len(self.kinds)))
        out = _Lines(
            f"def chunk(low, high, first, last, columns, rows, ids, {', '.join(self._names)}, q, out{packed}):"
        )
        add = out.add
        add("result = np.empty(columns, number)")
        for c, (left, _) in enumerate(self.kinds):
            if self._dense(c):
                add(f"d{c} = A{c}.shape[1]")
            add(f"wide{c} = {self._dense(c)} and d{c} > {_FEATURES}")
            add(f"sums{c} = np.empty((high - low + 4 if wide{c} else 4, columns), number)")
            if left == "csr" and not self.hs[c].is_product:
                add(f"dense{c} = np.empty((4, d{c}), number)")
        for i in range(self.n_columns):
            add(f"column{i} = np.empty(columns, number)")
        add("for j0 in range(first, last, columns):")
        out.depth = 2
        add("nj = min(columns, last - j0)")
        for i in range(self.n_columns):
            add("for j in range(nj):")
            add(f"    column{i}[j] = v{i}[ids[j0 + j]]")
        for c in range(len(self.kinds)):
            add(f"panel{c} = packed{c}[(j0 - first) // columns]")
            if self._dense(c):
                add(f"if wide{c}:")
                add(f"    sums{c}[:, :] = 0")
                add(f"    for k0 in range(0, d{c}, {_FEATURES}):")
                add("        for i in range(low, high, 4):")
                add(f"            {self._add(c, 'i - low')}")
        add("for i in range(low, high, 4):")
        out.depth = 3
        for c in range(len(self.kinds)):
            self._narrow(c, add)
        add("for r in range(min(4, high - i)):")
        out.depth = 4
        add("row = rows[i + r]")
        args = [
            *(f"sums{c}[(i - low if wide{c} else 0) + r]" for c in range(len(self.kinds))),
            *(f"u{i}[row]" for i in range(self.n_rows)),
            *(f"column{i}" for i in range(self.n_columns)),
            *(f"theta{i}" for i in range(self.n_numbers)),
        ]
        add(f"epilogue({', '.join(args)}, result, nj)")
        self._sink(add)
        return str(out)

    def _dense(self, c):
        return self.kinds[c] == ("dense", "dense")

    def _add(self, c, slot):
        """Add a group of features, for four rows (the last one again where there are fewer)."""
        quad = ", ".join(f"A{c}[rows[min(i + {r}, high - 1)]]" for r in range(4))
        return f"add{c}({quad}, panel{c}[k0:], sums{c}[{slot}:], k0, min({_FEATURES}, d{c} - k0), nj{self._w(c)})"

    def _narrow(self, c, add):
        """Sum a channel that fits one panel, for four rows."""
        left, product = self.kinds[c][0], self.hs[c].is_product
        if left == "csr" and product:
            add("for r in range(min(4, high - i)):")
            add(f"    add{c}(A{c}_x, A{c}_k, A{c}_start, rows[i + r], panel{c}, sums{c}[r], nj)")
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

    def _sink(self, add):
        if self.want == "block":
            add("target = out[i + r]")
            add("for j in range(nj):")
            add("    target[j0 + j] = result[j]")
        elif self.want == "matvec":
            add("for p in range(q.shape[0]):")
            add("    out[i + r, p] += dot(result, q[p, j0:], nj)")
        else:
            c = self.f[0]
            add(f"for k in range(d{c}):")
            add(f"    b = panel{c}[k]")
            add(f"    a = A{c}[row, k]")
            add("    total = number(0)")
            add("    for j in range(nj):")
            w = self._w(c, "[k]")
            add(f"        total += result[j] * f(a, b[j]{w})")
            add("    out[i + r, k] += total")
