"""What `explain` says about the reading of a W, and about the last fit of an estimator."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.compiler.reading import UnreadableError, leaves_of, read
from symsvm.explanation.formula import Formula
from symsvm.explanation.graph_reader import GraphReader
from symsvm.objectives import KernelDual

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm.compiler.reading import Reading
    from symsvm.objectives import Objective

__all__ = ["describe_fit", "describe_reading"]


def describe_reading(objective: Objective) -> list[str]:
    """Return lines that say how W is read: the sum over pairs, the sum over points, and the solver that takes it.

    Parameters
    ----------
    objective : Objective
        The problem.

    Returns
    -------
    list of str
        The lines; formulas are in the symbols of the objective.
    """
    if objective.problem not in ("dual", "smooth"):
        return []
    if isinstance(objective, KernelDual):
        return ["A quadratic program over a kernel as it stands: 'auto' takes Decomposition."]
    if objective.is_grouped is False:
        return ["Its constraints are not sums over groups of variables: 'auto' takes AcceleratedGradient."]
    try:
        reading = read(objective)
    except UnreadableError as error:
        return [f"Not as a sum over pairs and points: {error}. 'auto' takes AcceleratedGradient."]
    return [*_formulas(reading, objective), *_sentences(reading)]


def _formulas(reading: Reading, objective: Objective) -> list[str]:
    names: dict[Any, Any] = {reading.v: reading.name}
    values = [getattr(v, "data", None) for v in leaves_of(objective)] + list(reading.fixed)
    for k, (x, value) in enumerate(zip(reading.inputs, values, strict=True)):
        number = None if value is None or np.size(value) != 1 else float(np.ravel(value)[0])
        names[x] = (x.name or f"a{k}") if number is None else number
    reader = GraphReader(names)
    graphs: dict[str, Any] = {"s": reading.scale, "H": reading.matrix}
    several = len(reading.parts) > 1
    for k, c in enumerate(reading.factors):
        if c is not None:
            graphs[f"c{k}" if several else "c"] = c
    for name, terms in (("p", reading.p), ("D", reading.diagonal), ("eps", reading.width)):
        for k, (part, graph) in enumerate(terms):
            of = "" if part is reading.v else f" of {_short(reader, part)}"
            graphs[f"{name}{k if len(terms) > 1 else ''}{of}"] = graph
    for k, (_, _, graph) in enumerate(reading.smooth):
        graphs[f"f{k if len(reading.smooth) > 1 else ''}(u)"] = graph
    lines = Formula({name: reader.read(graph) for name, graph in graphs.items()}, reader.loop_variables).lines
    return [_head(reading, reader), *(" ".join(str(line).split()) for line in lines)]


def _short(reader: GraphReader, part: Any) -> str:
    (line, *_) = Formula({"part": reader.read(part)}, reader.loop_variables).lines
    return str(line).partition(" = ")[2]


def _head(reading: Reading, reader: GraphReader) -> str:
    """The form of W, with the terms that it has."""
    name, parts = reading.name, []
    for k, (part, sign, c) in enumerate(zip(reading.parts, reading.signs, reading.factors, strict=True)):
        factor = "" if c is None else f"c{k if len(reading.parts) > 1 else ''}_i "
        entry = f"{name}_i" if part is reading.v else f"{_short(reader, part)}_i"
        parts.append(f"{'- ' if sign < 0 else '+ ' if parts else ''}{factor}{entry}")
    points = [f"p_i {name}_i"] * bool(reading.p) + [f"D_i {name}_i^2 / 2"] * bool(reading.diagonal)
    points += [f"eps_i |{name}_i|"] * bool(reading.width) + [f"f_i({name}_i)"] * bool(reading.smooth)
    sum_over_points = f" + sum_i ({' + '.join(points)})" if points else ""
    return f"W = s/2 sum_ij q_i q_j H_ij{sum_over_points}, q_i = {' '.join(parts)}"


def _sentences(reading: Reading) -> list[str]:
    if reading.pairs is None:
        return ["H is a matrix that is given as a whole. 'auto' takes Decomposition."]
    expression = reading.pairs.expression
    form = expression.form()
    if form is None:
        how = "its graph is evaluated a tile at a time"
    else:
        products = sum(channel.h.is_product for channel in form.channels)
        sums = len(form.channels) - products
        kinds = [f"{n} {word}{'s' if n > 1 else ''}" for n, word in ((products, "matrix product"), (sums, "sum")) if n]
        how = f"tiles of {' and '.join(kinds)} over features and a function of each entry"
    proofs = ["symmetric"] * expression.is_symmetric + ["positive semi-definite"] * expression.has_psd_proof
    proof = f"its expression proves it {' and '.join(proofs)}" if proofs else "its symmetry is tested by numbers"
    return [f"H is never stored: {how}; {proof}. 'auto' takes Decomposition."]


def describe_fit(solutions: Sequence[Any]) -> list[str]:
    """Return lines about what the last fit of an estimator computed.

    Parameters
    ----------
    solutions : sequence of Solution
        The solutions of its problems.

    Returns
    -------
    list of str
        The lines; none if the fit kept no traces.
    """
    known = [s for s in solutions if getattr(s, "trace", None) and "rows" in s.trace]
    if not known:
        return []
    last = [{name: values[-1] for name, values in s.trace.items()} for s in known]
    reasons = ", ".join(f"{n} by {why}" for why, n in Counter(s.stopped for s in known).items())
    return [
        f"{len(known)} problem{'s' if len(known) > 1 else ''} solved by Decomposition, stopped: {reasons}",
        f"{sum(s.n_iter for s in known)} iterations in {sum(each['seconds'] for each in last):.3g} s, the largest "
        f"violation {max(each['violation'] for each in last):.1e}",
        f"{max(each['rows'] for each in last):.3g} rows of the kernel matrix computed at most in one problem, "
        f"{sum(int(each['free']) for each in last)} free and {sum(int(each['bounded']) for each in last)} bounded "
        "support vectors",
    ]
