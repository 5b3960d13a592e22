"""Formula: terms as text, one line an output, with a line of its own for each part that is shared or has a role."""

from typing import NamedTuple

from symsvm.explanation.terms import Term

__all__ = ["Formula", "Line"]

_LOOP, _COMPARE, _SUM, _MATMUL, _PRODUCT, _POWER, _ATOM = range(7)  # how tightly a text binds
_NAMEABLE = ("sum", "product", "power", "call", "matmul", "form", "tiled", "loop", "lookup", "compare")
_LETTERS = {0: "stcr", 1: "uvwpzg", 2: "ABDEGHMN"}


class Line(NamedTuple):
    """name = text, with the names of the lines and leaves in it."""

    name: str
    text: str
    term: Term
    uses: tuple

    def __str__(self):
        return f"{self.name} = {self.text}"


class Formula:
    """The lines of some terms, those asked for first and then what they use.

    Parameters
    ----------
    outputs : names and terms.
    rows : names that are bound by loops; what holds one cannot leave its loop.
    also : terms that get a line wherever they stand.
    loops : give every loop a line.

    >>> import pytensor.tensor as pt
    >>> from symsvm.explanation.reading import Reader
    >>> x, y = pt.vectors("x", "y")
    >>> print(*Formula({"f": Reader().read(pt.exp(x * y).sum() - (x * y).prod())}).lines, sep="\\n")
    f = sum(exp(u)) - prod(u)
    u = x * y
    """

    def __init__(self, outputs, rows=(), also=(), loops=False):
        self._rows, self._uses = frozenset(rows), {}
        self.names = self._named(outputs, set(also), loops)
        made, queue = {}, list(outputs.items())
        while queue:
            name, term = queue.pop(0)
            if name not in made:
                self._uses = {}
                text = self._write(term)[0]
                made[name] = Line(name, text, term, tuple(self._uses))
                queue += [(used, part) for used, part in self._uses.items() if part is not None]
        self.lines = [made.pop(name) for name in outputs]
        while made:  # a line comes after all that use it
            used = {name for line in made.values() for name in line.uses}
            self.lines.append(made.pop(next(name for name in made if name not in used)))

    def _named(self, outputs, also, loops):
        """Choose the terms that get a line and their names."""
        uses, roles, order, stack = {}, {}, [], list(reversed(outputs.values()))
        seen = set()
        while stack:
            term = stack.pop()
            if term in seen:
                continue
            seen.add(term)
            order.append(term)
            for arg in term.args:
                uses[arg] = uses.get(arg, 0) + 1
            if term.kind in ("form", "tiled") or (term.kind == "matmul" and term.args[1].ndim == 1):
                K, q = term.args
                if K.ndim == 2:
                    roles.setdefault(K, "K")
                    roles.setdefault(q, "q")
                    if term.kind != "form" and (K.kind in _NAMEABLE or K.label == "K"):
                        roles.setdefault(term, "Kq")
            stack += reversed(term.args)
        taken = set().union(*(term.names for term in order)) | set(outputs)
        names = {}
        for term in order:
            bound = term.names & self._rows
            is_loop = loops and term.kind == "loop"
            shared = uses.get(term, 0) > 1 and term.kind != "power"
            role = roles.get(term) if term.kind != "loop" else None
            wanted = shared or role == "K" or (role == "q" and term.kind != "call") or term in also
            if term.kind not in _NAMEABLE or not (is_loop or (wanted and not bound)) or _is_small(term):
                continue
            own = role or ("f" if term.kind == "loop" else None)
            suffix = "".join(sorted(f"_{row.rpartition('_')[2]}" for row in {r.rpartition("_")[2] for r in bound}))
            names[term] = _free(own, term.ndim, taken, suffix)
            taken.add(names[term])
        return names

    def _use(self, name, term=None):
        self._uses.setdefault(name, term)
        return name, _ATOM

    def _write(self, term):
        """The text of a term, and how tightly it binds."""
        return getattr(self, f"_{term.kind}")(term)

    def _part(self, term, rank, subscript=""):
        """The text of an operand: its name if it has one, in parentheses where it binds less tightly."""
        text, own = self._use(self.names[term], term) if term in self.names else self._write(term)
        if own < (_ATOM if subscript else rank):
            text = f"({text})"
        return text + subscript

    def _operands(self, term, rank):
        """The texts of operands that broadcast to the axes of the term."""
        for arg, place in zip(term.args, term.places, strict=True):
            partial = place and len(place) < term.ndim
            axes = ", ".join(":" if i in place else "None" for i in range(term.ndim)) if partial else ""
            yield self._part(arg, rank, f"[{axes}]" if axes else "")

    def _leaf(self, term):
        return self._use(term.label) if term.label not in self._rows else (term.label, _ATOM)

    def _number(self, term):
        return f"{term.label:.12g}", _ATOM if term.label >= 0 else _SUM

    def _sum(self, term):
        texts = self._operands(term, _PRODUCT if term.label == (-1,) else _MATMUL)
        parts, rank = list(zip(term.label, texts, strict=True)), _SUM
        opened = [i for i, arg in enumerate(term.args) if self._is_open(arg)]
        if len(opened) == 1 and len(parts) > 1:  # a loop reaches to the end: it comes last, without parentheses
            sign, text = parts.pop(opened[0])
            parts.append((sign, text[1:-1]))
            rank = _LOOP
        first, *rest = parts
        text = f"-{first[1]}" if first[0] < 0 else first[1]
        return text + "".join(f" {'-' if sign < 0 else '+'} {part}" for sign, part in rest), rank

    def _is_open(self, term):
        """Whether the text of a term ends in a loop, which has no end of its own; one with a line has its name."""
        if term in self.names or term.kind == "loop":
            return term not in self.names
        if term.kind == "sum":
            return len(term.args) > 1 and sum(map(self._is_open, term.args)) == 1
        return term.kind == "product" and term.label == len(term.args) and sum(map(self._is_open, term.args)) == 1

    def _product(self, term):
        term = self._grouped(term)
        texts, n = list(self._operands(term, _POWER)), term.label
        above, below, rank = texts[:n], texts[n:], _PRODUCT
        opened = [i for i in range(n) if self._is_open(term.args[i])]
        if len(opened) == 1 and not below:
            above.append(above.pop(opened[0])[1:-1])
            rank = _LOOP
        text = " * ".join(above)
        if len(below) == 1:
            text += f" / {below[0]}"
        elif below:
            text += f" / ({' * '.join(below)})"
        return text, rank

    def _grouped(self, term):
        """lam * y * u -> q * u where q = lam * y has a line."""
        factors = list(zip(term.args, term.places, strict=True))
        for part in self.names:
            if part is term or part.kind != "product" or part.label != len(part.args) or part.ndim != term.ndim:
                continue
            own = list(zip(part.args, part.places, strict=True))
            if all(factor in factors[: term.label] for factor in own):
                rest = [factor for factor in factors if factor not in own]
                where = min(map(factors.index, own))
                rest.insert(where, (part, tuple(range(term.ndim))))
                args, places = zip(*rest, strict=True)
                return Term("product", term.label - len(own) + 1, args, places, term.ndim, term.names)
        return term

    def _power(self, term):
        base, exponent = term.args
        return f"{self._part(base, _ATOM)}**{self._part(exponent, _ATOM)}", _POWER

    def _compare(self, term):
        return f" {term.label} ".join(self._operands(term, _SUM)), _COMPARE

    def _call(self, term):
        name, axis = term.label
        parts = self._operands(term, _LOOP) if term.places else (self._part(arg, _LOOP) for arg in term.args)
        return f"{name}({', '.join(parts)}{'' if axis is None else f', axis={axis}'})", _ATOM

    def _matmul(self, term):
        left, right = term.args
        return f"{self._part(left, _ATOM)} @ {self._part(right, _ATOM)}", _MATMUL

    _tiled = _matmul

    def _form(self, term):
        K, q = (self._part(arg, _ATOM) for arg in term.args)
        return f"{q} @ {K} @ {q}", _MATMUL

    def _transpose(self, term):
        (source,) = term.args
        text = self._part(source, _ATOM)
        return (f"{text}.T" if term.ndim == 2 else f"transpose({text}, {term.label})"), _ATOM

    def _index(self, term):
        source, *terms = term.args
        entries = ", ".join(term.label).format(*(self._part(arg, _LOOP) for arg in terms))
        return f"{self._part(source, _ATOM)}[{entries}]", _ATOM

    def _place(self, term):
        u, *terms = term.args
        (entry,) = term.label
        return f"place({self._part(u, _LOOP)}, [{entry.format(*(self._part(arg, _LOOP) for arg in terms))}])", _ATOM

    def _lookup(self, term):
        source, *indices = self._operands(term, _LOOP)
        return f"{source}[{', '.join(indices)}]", _ATOM

    def _length(self, term):
        source = self._part(term.args[0], _ATOM)
        return f"len({source})" if term.label == 0 else f"{source}.shape[{term.label}]", _ATOM

    def _loop(self, term):
        label, args = term.label, list(term.args)
        body = args.pop()
        sequences, start = args[: len(label.rows)], args[len(label.rows) :]
        rows = []
        for name, sequence in zip(label.rows, sequences, strict=True):
            source = self._part(sequence, _LOOP)
            rows.append(name if sequence.kind == "leaf" and source.isidentifier() else f"{name} of {source}")
        begin = f", {label.states[0]} from {self._part(start[0], _LOOP)}," if start else ""
        text = f"{label.kind} over the rows ({', '.join(rows)}){begin} of\n{self._part(body, _LOOP)}"
        return text, _LOOP


def _is_small(term):
    """Whether a name would be longer than the thing: -x, 2 * x."""
    return (
        len(term.args) <= 2
        and all(arg.kind in ("leaf", "number") for arg in term.args)
        and (len(term.names) < 2 and term.kind in ("sum", "product", "power"))
    )


def _free(role, ndim, taken, suffix):
    """A name that is not taken."""
    candidates = [role] if role else list(_LETTERS.get(ndim, "TURS"))
    for n in range(1, 1000):
        for name in candidates:
            name = f"{name}{n if n > 1 else ''}{suffix}"
            if name not in taken:
                return name
    raise RuntimeError("more parts than names")
