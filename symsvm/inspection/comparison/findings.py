"""Findings: what the seeds say of the algorithms, held against the entries of a comparison."""

import numpy as np

__all__ = ["findings"]

_RELAXED = "adagrad on the Lagrangian dual"


def findings(entries):
    """Sentences, each with the figures it rests on: whether what a seed found holds here.

    Seed 002 reports that the Lagrangian dual makes nearly all points support vectors, that LIBSVM beats a general QP
    solver, which its own SMO did not, and that an embedded bias scores better under the Lagrangian relaxation.
    """
    problems = list(dict.fromkeys(e.problem.name for e in entries))
    by = {(e.problem.name, e.model.bias, e.algorithm): e for e in entries}
    found = [
        _nearly_all(by, problems),
        _against_qp(by, problems, "libsvm", "LIBSVM is faster than the general QP solver"),
        _against_qp(by, problems, "smo", "SMO, written as symbolic steps, is not faster than it", faster=False),
        _embedded(by, problems),
    ]
    return [sentence for sentence in found if sentence]


def _said(what, cases):
    """The sentence of a claim and its cases, (holds, figures) each."""
    if not cases:
        return None
    n = sum(holds for holds, _ in cases)
    verdict = "holds" if n == len(cases) else "does not hold" if not n else f"holds on {n} of {len(cases)}"
    return f"{what}: {verdict} ({'; '.join(figures for _, figures in cases)})."


def _nearly_all(by, problems):
    cases = []
    for name in problems:
        exact, relaxed = by.get((name, "free", "decomposition")), by.get((name, "free", _RELAXED))
        if exact and relaxed:
            figures = f"{name} {100 * relaxed.vectors:.0f} % of the points, {100 * exact.vectors:.0f} % at the optimum"
            cases.append((relaxed.vectors >= 0.9, figures))
    return _said("The Lagrangian dual makes nearly all points support vectors", cases)


def _against_qp(by, problems, name, what, *, faster=True):
    cases = []
    for problem in problems:
        one, qp = by.get((problem, "free", name)), by.get((problem, "free", "qp"))
        if one and qp:
            cases.append(
                ((one.seconds < qp.seconds) == faster, f"{problem} {one.seconds:.2g} s and {qp.seconds:.2g} s")
            )
    return _said(what, cases)


def _embedded(by, problems):
    cases = []
    for name in problems:
        free, embedded = (by.get((name, bias, _RELAXED)) for bias in ("free", "embedded"))
        if free and embedded:
            better = embedded.score > free.score or np.isnan(free.score)
            cases.append((better, f"{name} {embedded.score:.3f} and {free.score:.3f}"))
    return _said("An embedded bias scores better under the Lagrangian relaxation than a free one", cases)
