"""Terms, the expressions of a simplified graph, and formulas, their text form.

A `Term` leaves out casts, views and axes of length 1, and `TermFactory` makes equal terms one object. Where an operand
has fewer axes than the result, `operand_axes` says which axes of the result it has, so `u[:, None] + v[None, :]` refers
to the same u and v as the rest of a formula.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Formula", "Line", "Operand", "Term", "TermFactory"]

# Operator precedence, from loose to tight.
_LOOP, _COMPARE, _SUM, _MATMUL, _PRODUCT, _POWER, _ATOM = range(7)
# The kinds of terms that may get a line, and the letters of such lines by number of axes.
_NAMEABLE = ("sum", "product", "power", "call", "matmul", "form", "tiled", "loop", "lookup", "compare")
_LETTERS = {0: "stcr", 1: "uvwpzg", 2: "ABDEGHMN"}


class Term:
    """An expression: its kind, a label that distinguishes it within the kind, its operands and its number of axes.

    Kinds are leaf, number, sum (label: the signs), product (label: how many operands multiply; the rest divide), power,
    compare, call, matmul, form (q.Kq), tiled (K.q in tiles), transpose, index, place (zeros except in a part), lookup,
    length and loop. `names` holds the names of the leaves in the term.
    """

    def __init__(
        self,
        kind: str,
        label: Any,
        args: tuple[Term, ...],
        operand_axes: tuple[tuple[int, ...], ...] | None,
        ndim: int,
        names: frozenset[str],
    ) -> None:
        self.kind, self.label, self.args, self.ndim, self.names = kind, label, args, ndim, names
        self.operand_axes = operand_axes

    def __repr__(self) -> str:
        return f"<{self.kind} {self.label} {list(self.args)}>"


class Operand(NamedTuple):
    """A term, and the axes of the result that its own axes are."""

    term: Term
    axes: tuple[int, ...]


class TermFactory:
    """Makes terms; a term that was made before is returned again."""

    def __init__(self) -> None:
        self._made: dict[tuple, Term] = {}

    def make(
        self,
        kind: str,
        label: Any = None,
        args: Sequence[Term] = (),
        ndim: int = 0,
        operand_axes: tuple[tuple[int, ...], ...] | None = None,
    ) -> Term:
        """Return the term of this kind with this label and these operands."""
        key = kind, label, tuple(map(id, args)), operand_axes, ndim
        if key not in self._made:
            names = frozenset().union(*(term.names for term in args))
            if kind == "leaf":
                names = frozenset([label])
            elif kind == "loop":
                names -= frozenset([*label.rows, *label.states])
            self._made[key] = Term(kind, label, tuple(args), operand_axes, ndim, names)
        return self._made[key]

    def number(self, value: float) -> Term:
        """Return the term of a number."""
        return self.make("number", float(value))

    def elementwise(self, kind: str, label: Any, operands: Sequence[Operand], ndim: int) -> Term:
        """Return a term whose operands broadcast to its axes."""
        return self.make(kind, label, [o.term for o in operands], ndim, tuple(o.axes for o in operands))

    def sum(self, signed: Iterable[tuple[int, Operand]], ndim: int) -> Term:
        """Return the flattened sum of operands with signs, without zeros; negative numbers become subtractions."""
        flat: list[tuple[int, Operand]] = []
        for sign, operand in signed:
            term = operand.term
            if term.kind == "sum" and operand.axes in (tuple(range(ndim)), ()):
                own = zip(term.label, _operands(term), strict=True)
                flat += [(sign * s, _compose(operand, o)) for s, o in own]
            elif term.kind == "number" and term.label < 0:
                flat.append((-sign, Operand(self.number(-term.label), ())))
            elif term.kind != "number" or term.label != 0:
                flat.append((sign, operand))
        if not flat:
            return self.number(0)
        if len(flat) == 1 and flat[0][0] > 0 and flat[0][1].term.ndim == ndim:
            return flat[0][1].term
        if len(flat) == 1 and flat[0][1].term.kind == "number" and not ndim:
            return self.number(-flat[0][1].term.label)
        signs = tuple(sign for sign, _ in flat)
        return self.elementwise("sum", signs, [operand for _, operand in flat], ndim)

    def product(self, above: Iterable[Operand], below: Iterable[Operand], ndim: int) -> Term:
        """Return a flattened quotient of products, numbers first and equal factors as a power."""
        whole, sign = tuple(range(ndim)), 1
        parts: tuple[list[Operand], list[Operand]] = ([], [])
        queue = [(side, operand) for side, operands in enumerate((above, below)) for operand in operands]
        while queue:
            side, operand = queue.pop(0)
            term = operand.term
            if operand.axes in (whole, ()) and term.kind == "product":
                inner = [_compose(operand, o) for o in _operands(term)]
                queue[:0] = [(side if i < term.label else 1 - side, o) for i, o in enumerate(inner)]
            elif term.kind == "sum" and term.label == (-1,) and operand.axes in (whole, ()):
                sign = -sign
                (o,) = _operands(term)
                queue.insert(0, (side, _compose(operand, o)))
            else:
                parts[side].append(operand)
        numbers = [1.0, 1.0]
        for side, operands in enumerate(parts):
            for operand in [o for o in operands if o.term.kind == "number"]:
                numbers[side] *= abs(operand.term.label)
                sign = -sign if operand.term.label < 0 else sign
            parts[side][:] = self._collect_powers([o for o in operands if o.term.kind != "number"])
            if numbers[side] != 1 or (not operands and not side):
                parts[side].insert(0, Operand(self.number(numbers[side]), ()))
        above, below = parts
        if len(above) > 1 and above[0].term.kind == "number" and above[0].term.label == 1:
            above.pop(0)
        if not above:
            above = [Operand(self.number(1), ())]
        if len(above) == 1 and not below and above[0].axes == whole:
            result = above[0].term
        else:
            result = self.elementwise("product", len(above), [*above, *below], ndim)
        return result if sign > 0 else self.sum([(-1, Operand(result, whole))], ndim)

    def _collect_powers(self, operands: Iterable[Operand]) -> list[Operand]:
        """Replace x * x by x**2."""
        counts: dict[Operand, int] = {}
        for operand in operands:
            counts[operand] = counts.get(operand, 0) + 1
        return [o if n == 1 else Operand(self.power(o.term, self.number(n)), o.axes) for o, n in counts.items()]

    def power(self, base: Term, exponent: Term) -> Term:
        """Return base**exponent with a scalar exponent."""
        if exponent.kind == "number" and exponent.label == 1:
            return base
        return self.make("power", None, (base, exponent), base.ndim, (tuple(range(base.ndim)), ()))


def _operands(term: Term) -> list[Operand]:
    return [Operand(arg, axes) for arg, axes in zip(term.args, term.operand_axes or (), strict=True)]


def _compose(outer: Operand, inner: Operand) -> Operand:
    """Return an operand of an operand as an operand of the result."""
    return Operand(inner.term, tuple(outer.axes[i] for i in inner.axes))


class Line(NamedTuple):
    """One line of a formula, `name = text`, with the names of the lines and leaves in it."""

    name: str
    text: str
    term: Term
    uses: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} = {self.text}"


class Formula:
    """Terms as lines of text: the outputs first, then a line for each part that is shared or has a role (K, q, Kq).

    Parameters
    ----------
    outputs : dict of str to Term
        The terms by name.
    loop_variables : collection of str
        Names that loops bind. A term with one of them cannot leave its loop.
    named : iterable of Term
        Terms that always get a line.
    name_loops : bool
        Whether every loop gets a line.

    >>> import pytensor.tensor as pt
    >>> from symsvm.explanation.graph_reader import GraphReader
    >>> x, y = pt.vectors("x", "y")
    >>> print(*Formula({"f": GraphReader().read(pt.exp(x * y).sum() - (x * y).prod())}).lines, sep="\\n")
    f = sum(exp(u)) - prod(u)
    u = x * y
    """

    def __init__(
        self,
        outputs: Mapping[str, Term],
        loop_variables: Collection[str] = (),
        named: Iterable[Term] = (),
        name_loops: bool = False,
    ) -> None:
        self._loop_variables = frozenset(loop_variables)
        self._uses: dict[str, Term | None] = {}
        self.names = self._choose_names(outputs, set(named), name_loops)
        made: dict[str, Line] = {}
        queue: list[tuple[str, Term]] = list(outputs.items())
        while queue:
            name, term = queue.pop(0)
            if name not in made:
                self._uses = {}
                text = self._format(term)[0]
                made[name] = Line(name, text, term, tuple(self._uses))
                queue += [(used, part) for used, part in self._uses.items() if part is not None]
        self.lines = [made.pop(name) for name in outputs]
        while made:  # a line comes after all that use it
            used = {name for line in made.values() for name in line.uses}
            self.lines.append(made.pop(next(name for name in made if name not in used)))

    def _choose_names(self, outputs: Mapping[str, Term], named: set[Term], name_loops: bool) -> dict[Term, str]:
        """Choose the terms that get a line and their names."""
        uses: dict[Term, int] = {}
        roles: dict[Term, str] = {}
        order: list[Term] = []
        stack, seen = list(outputs.values())[::-1], set()
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
        names: dict[Term, str] = {}
        for term in order:
            bound = term.names & self._loop_variables
            is_named_loop = name_loops and term.kind == "loop"
            shared = uses.get(term, 0) > 1 and term.kind != "power"
            role = roles.get(term) if term.kind != "loop" else None
            wanted = shared or role == "K" or (role == "q" and term.kind != "call") or term in named
            if term.kind not in _NAMEABLE or not (is_named_loop or (wanted and not bound)) or _is_short(term):
                continue
            role = role or ("f" if term.kind == "loop" else None)
            suffix = "".join(sorted(f"_{index}" for index in {name.rpartition("_")[2] for name in bound}))
            names[term] = _unused_name(role, term.ndim, taken, suffix)
            taken.add(names[term])
        return names

    def _use(self, name: str, term: Term | None = None) -> tuple[str, int]:
        self._uses.setdefault(name, term)
        return name, _ATOM

    def _format(self, term: Term) -> tuple[str, int]:
        """Return the text of a term and its precedence."""
        return getattr(self, f"_format_{term.kind}")(term)

    def _format_operand(self, term: Term, precedence: int, subscript: str = "") -> str:
        """Return the text of an operand: its name if it has one, in parentheses where it binds less tightly."""
        text, own = self._use(self.names[term], term) if term in self.names else self._format(term)
        if own < (_ATOM if subscript else precedence):
            text = f"({text})"
        return text + subscript

    def _format_operands(self, term: Term, precedence: int) -> Iterator[str]:
        """Yield the texts of operands that broadcast to the axes of the term."""
        for arg, own in _operands(term):
            partial = own and len(own) < term.ndim
            axes = ", ".join(":" if i in own else "None" for i in range(term.ndim)) if partial else ""
            yield self._format_operand(arg, precedence, f"[{axes}]" if axes else "")

    def _format_leaf(self, term: Term) -> tuple[str, int]:
        return self._use(term.label) if term.label not in self._loop_variables else (term.label, _ATOM)

    def _format_number(self, term: Term) -> tuple[str, int]:
        return f"{term.label:.12g}", _ATOM if term.label >= 0 else _SUM

    def _format_sum(self, term: Term) -> tuple[str, int]:
        texts = self._format_operands(term, _PRODUCT if term.label == (-1,) else _MATMUL)
        parts, precedence = list(zip(term.label, texts, strict=True)), _SUM
        loops = [i for i, arg in enumerate(term.args) if self._ends_in_loop(arg)]
        if len(loops) == 1 and len(parts) > 1:  # a loop extends to the end: it comes last, without parentheses
            sign, text = parts.pop(loops[0])
            parts.append((sign, text[1:-1]))
            precedence = _LOOP
        first, *rest = parts
        text = f"-{first[1]}" if first[0] < 0 else first[1]
        return text + "".join(f" {'-' if sign < 0 else '+'} {part}" for sign, part in rest), precedence

    def _ends_in_loop(self, term: Term) -> bool:
        """Whether the text of a term ends in the body of a loop; a loop with its own line is only a name."""
        if term in self.names or term.kind == "loop":
            return term not in self.names
        if term.kind == "sum":
            return len(term.args) > 1 and sum(map(self._ends_in_loop, term.args)) == 1
        return term.kind == "product" and term.label == len(term.args) and sum(map(self._ends_in_loop, term.args)) == 1

    def _format_product(self, term: Term) -> tuple[str, int]:
        term = self._group_factors(term)
        texts, n = list(self._format_operands(term, _POWER)), term.label
        above, below, precedence = texts[:n], texts[n:], _PRODUCT
        loops = [i for i in range(n) if self._ends_in_loop(term.args[i])]
        if len(loops) == 1 and not below:
            above.append(above.pop(loops[0])[1:-1])
            precedence = _LOOP
        text = " * ".join(above)
        if len(below) == 1:
            text += f" / {below[0]}"
        elif below:
            text += f" / ({' * '.join(below)})"
        return text, precedence

    def _group_factors(self, term: Term) -> Term:
        """Replace lam * y * u by q * u where q = lam * y has a line."""
        factors = _operands(term)
        for part in self.names:
            if part is term or part.kind != "product" or part.label != len(part.args) or part.ndim != term.ndim:
                continue
            own = _operands(part)
            if all(factor in factors[: term.label] for factor in own):
                rest = [factor for factor in factors if factor not in own]
                rest.insert(min(map(factors.index, own)), Operand(part, tuple(range(term.ndim))))
                args, axes = zip(*rest, strict=True)
                return Term("product", term.label - len(own) + 1, args, axes, term.ndim, term.names)
        return term

    def _format_power(self, term: Term) -> tuple[str, int]:
        base, exponent = term.args
        return f"{self._format_operand(base, _ATOM)}**{self._format_operand(exponent, _ATOM)}", _POWER

    def _format_compare(self, term: Term) -> tuple[str, int]:
        return f" {term.label} ".join(self._format_operands(term, _SUM)), _COMPARE

    def _format_call(self, term: Term) -> tuple[str, int]:
        name, axis = term.label
        if term.operand_axes:
            parts = self._format_operands(term, _LOOP)
        else:
            parts = (self._format_operand(arg, _LOOP) for arg in term.args)
        return f"{name}({', '.join(parts)}{'' if axis is None else f', axis={axis}'})", _ATOM

    def _format_matmul(self, term: Term) -> tuple[str, int]:
        left, right = term.args
        return f"{self._format_operand(left, _ATOM)} @ {self._format_operand(right, _ATOM)}", _MATMUL

    _format_tiled = _format_matmul

    def _format_form(self, term: Term) -> tuple[str, int]:
        K, q = (self._format_operand(arg, _ATOM) for arg in term.args)
        return f"{q} @ {K} @ {q}", _MATMUL

    def _format_transpose(self, term: Term) -> tuple[str, int]:
        (source,) = term.args
        text = self._format_operand(source, _ATOM)
        return (f"{text}.T" if term.ndim == 2 else f"transpose({text}, {term.label})"), _ATOM

    def _format_index(self, term: Term) -> tuple[str, int]:
        source, *terms = term.args
        entries = ", ".join(term.label).format(*(self._format_operand(arg, _LOOP) for arg in terms))
        return f"{self._format_operand(source, _ATOM)}[{entries}]", _ATOM

    def _format_place(self, term: Term) -> tuple[str, int]:
        u, *terms = term.args
        (entry,) = term.label
        index = entry.format(*(self._format_operand(arg, _LOOP) for arg in terms))
        return f"place({self._format_operand(u, _LOOP)}, [{index}])", _ATOM

    def _format_lookup(self, term: Term) -> tuple[str, int]:
        source, *indices = self._format_operands(term, _LOOP)
        return f"{source}[{', '.join(indices)}]", _ATOM

    def _format_length(self, term: Term) -> tuple[str, int]:
        source = self._format_operand(term.args[0], _ATOM)
        return f"len({source})" if term.label == 0 else f"{source}.shape[{term.label}]", _ATOM

    def _format_loop(self, term: Term) -> tuple[str, int]:
        label, args = term.label, list(term.args)
        body = args.pop()
        sequences, start = args[: len(label.rows)], args[len(label.rows) :]
        rows = []
        for name, sequence in zip(label.rows, sequences, strict=True):
            source = self._format_operand(sequence, _LOOP)
            rows.append(name if sequence.kind == "leaf" and source.isidentifier() else f"{name} of {source}")
        begin = f", {label.states[0]} from {self._format_operand(start[0], _LOOP)}," if start else ""
        text = f"{label.kind} over the rows ({', '.join(rows)}){begin} of\n{self._format_operand(body, _LOOP)}"
        return text, _LOOP


def _is_short(term: Term) -> bool:
    """Whether a term such as -x or 2 * x is too short for a name."""
    return (
        len(term.args) <= 2
        and all(arg.kind in ("leaf", "number") for arg in term.args)
        and (len(term.names) < 2 and term.kind in ("sum", "product", "power"))
    )


def _unused_name(role: str | None, ndim: int, taken: Collection[str], suffix: str) -> str:
    candidates = [role] if role else list(_LETTERS.get(ndim, "TURS"))
    for n in range(1, 1000):
        for candidate in candidates:
            name = f"{candidate}{n if n > 1 else ''}{suffix}"
            if name not in taken:
                return name
    raise RuntimeError("A formula has more parts than there are names for them.")
