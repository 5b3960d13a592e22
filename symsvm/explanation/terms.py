"""Terms: the mathematics of a graph without its bookkeeping (casts, axes of length 1, views), equal parts made one.

A `Term` knows its operands; where one of them has fewer axes than the result, `places` says which of them it has, so
that `u[:, None] + v[None, :]` holds the same u and v that stand elsewhere as they are.
"""

from typing import NamedTuple

__all__ = ["Operand", "Term", "Terms"]


class Term:
    """An expression: its kind, what tells it from others of this kind, its operands and how many axes it has.

    Kinds are leaf, number, sum (label: the signs), product (label: how many operands multiply, the rest divide), power,
    compare, call, matmul, form (q.Kq), tiled (K.q in tiles), transpose, index, place (zeros but for a
    part), length and loop.
    """

    def __init__(self, kind, label, args, places, ndim, names):
        self.kind, self.label, self.args, self.places, self.ndim = kind, label, args, places, ndim
        self.names = names  # of the leaves in it

    def __repr__(self):
        return f"<{self.kind} {self.label} {list(self.args)}>"


class Operand(NamedTuple):
    """A term, and which axes of the result its own axes are."""

    term: Term
    place: tuple


class Terms:
    """The terms that were made, each of them once."""

    def __init__(self):
        self._made = {}

    def make(self, kind, label=None, args=(), ndim=0, places=None):
        """Return the term, the one that was made before if there is one."""
        key = kind, label, tuple(map(id, args)), places, ndim
        if key not in self._made:
            names = frozenset().union(*(term.names for term in args))
            if kind == "leaf":
                names = frozenset([label])
            elif kind == "loop":
                names -= frozenset([*label.rows, *label.states])
            self._made[key] = Term(kind, label, tuple(args), places, ndim, names)
        return self._made[key]

    def number(self, value):
        """A number."""
        return self.make("number", float(value))

    def elementwise(self, kind, label, operands, ndim):
        """A term whose operands broadcast to its axes."""
        return self.make(kind, label, [o.term for o in operands], ndim, tuple(o.place for o in operands))

    def sum(self, signed, ndim):
        """The sum of operands with signs, flat, without zeros; numbers and products carry their sign outside."""
        flat = []
        for sign, operand in signed:
            term = operand.term
            if term.kind == "sum" and operand.place in (tuple(range(ndim)), ()):
                own = zip(term.label, _operands(term), strict=True)
                flat += [(sign * s, Operand(o.term, tuple(operand.place[i] for i in o.place))) for s, o in own]
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

    def product(self, above, below, ndim):
        """The product of operands over the product of others, flat, numbers first and equal factors as a power."""
        whole, sign, parts = tuple(range(ndim)), 1, ([], [])
        queue = [(side, operand) for side, operands in enumerate((above, below)) for operand in operands]
        while queue:
            side, operand = queue.pop(0)
            term = operand.term
            if operand.place in (whole, ()) and term.kind == "product":
                inner = [Operand(o.term, tuple(operand.place[i] for i in o.place)) for o in _operands(term)]
                queue[:0] = [(side if i < term.label else 1 - side, o) for i, o in enumerate(inner)]
            elif term.kind == "sum" and term.label == (-1,) and operand.place in (whole, ()):
                sign = -sign
                (o,) = _operands(term)
                queue.insert(0, (side, Operand(o.term, tuple(operand.place[i] for i in o.place))))
            else:
                parts[side].append(operand)
        numbers = [1.0, 1.0]
        for side, operands in enumerate(parts):
            for operand in [o for o in operands if o.term.kind == "number"]:
                numbers[side] *= abs(operand.term.label)
                sign = -sign if operand.term.label < 0 else sign
            parts[side][:] = self._powers([o for o in operands if o.term.kind != "number"])
            if numbers[side] != 1 or (not operands and not side):
                parts[side].insert(0, Operand(self.number(numbers[side]), ()))
        above, below = parts
        if len(above) > 1 and above[0].term.kind == "number" and above[0].term.label == 1:
            above.pop(0)
        if not above:
            above = [Operand(self.number(1), ())]
        if len(above) == 1 and not below and above[0].place == whole:
            result = above[0].term
        else:
            result = self.elementwise("product", len(above), [*above, *below], ndim)
        return result if sign > 0 else self.sum([(-1, Operand(result, whole))], ndim)

    def _powers(self, operands):
        """x * x -> x**2."""
        counts = {}
        for operand in operands:
            counts[operand] = counts.get(operand, 0) + 1
        return [o if n == 1 else Operand(self.power(o.term, self.number(n)), o.place) for o, n in counts.items()]

    def power(self, base, exponent):
        """base**exponent with a scalar exponent."""
        if exponent.kind == "number" and exponent.label == 1:
            return base
        places = (tuple(range(base.ndim)), ())
        return self.make("power", None, (base, exponent), base.ndim, places)


def _operands(term):
    return [Operand(arg, place) for arg, place in zip(term.args, term.places, strict=True)]
