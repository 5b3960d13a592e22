"""Whether two fits are of the same problem: what their gaps allow them to differ by, and not more.

Each objective is 1-strongly convex in w, so |w - w*| <= sqrt(2 gap), and two decision functions differ by at most
(sqrt(2 gap_1) + sqrt(2 gap_2)) sqrt(K(x, x)); an intercept that follows from the values of the training points differs
by no more than these do.
"""

import extended
import numpy as np
from extended import EPS
from fitted import problems
from promise import demand

from symsvm._lib.dense import as_dense

__all__ = ["agree", "raw_values"]


def raw_values(case, model, Z):
    """The decision values, a column for each problem."""
    if case.family in ("SVR", "NuSVR", "LinearSVR"):
        return model.predict(Z)[:, None]
    if case.family == "LinearSVC" and len(model.classes_) > 2 and model.multi_class == "ovo":
        return (
            np.asarray(Z @ model.coef_.T if hasattr(Z, "tocsr") else np.asarray(Z) @ model.coef_.T) + model.intercept_
        )
    values = model.decision_function(Z)
    return values[:, None] if values.ndim == 1 else values


def agree(case, figures, first, second, sign=1.0):
    """Demand that two (data, outcome) are solutions of one problem; `sign` -1 where its classes are swapped."""
    (data, one), (other_data, two) = first, second
    refusals = [type(outcome.refusal).__name__ for outcome in (one, two)]
    demand(refusals[0] == refusals[1], f"one is refused, the other not: {one.refusal!r}, {two.refusal!r}")
    if one.refusal is not None:
        return
    silent = one.converged, two.converged
    judged = [problems(case, data, one.model), problems(case, other_data, two.model)]
    if any(p.certificate.status in ("diverged", "infeasible") for found in judged for p in found) or not all(silent):
        return
    if case.kernel in ("sigmoid", "precomputed", "function"):
        return  # not convex: there may be several stationary points
    for (_, a), (_, b) in zip(*judged, strict=True):
        allowed = a.gap + b.gap + a.of_W + b.of_W + a.of_gap + b.of_gap + 1e-11 * (abs(a.W) + abs(b.W))
        figures.note("W, difference / allowed", abs(a.W - b.W) / allowed if allowed else 0, case)
        figures.note(
            "W, relative difference", abs(a.W - b.W) / max(abs(a.W), 1e-300) if allowed < abs(a.W) else 0, case
        )
        demand(abs(a.W - b.W) <= allowed, f"W {a.W:.12g} and {b.W:.12g}, which {allowed:.2g} allows")
    if case.is_linear and (one.model.penalty == "l1" or not one.model.penalize_intercept):
        return  # neither the weights nor a free intercept are unique
    Z = data.Z if case.layout == "frame" else data.dense_Z
    values, others = raw_values(case, one.model, Z), sign * raw_values(case, two.model, Z)
    allowed = _allowed(case, data, one.model, judged)
    apart = np.abs(values - others)
    share = apart / np.maximum(allowed, 1e-300)
    figures.note("decision value, difference / allowed", share.max(), case)
    worst = np.unravel_index(np.argmax(share), share.shape)
    limit = np.broadcast_to(allowed, apart.shape)[worst]
    found = f"{values[worst]:.12g} and {others[worst]:.12g}, which {limit:.2g} allows"
    demand((apart <= allowed).all(), f"decision values {found}")


def _allowed(case, data, model, judged):
    """What the decision values at Z may differ by, (n, problems)."""
    gaps = np.array([[float(max(p.truth.gap, 0) + p.truth.of_gap) for p in found] for found in judged])
    rounding = np.array([[float(p.truth.of_violation) for p in found] for found in judged]).sum(axis=0)
    violation = np.array([[float(p.truth.violation) for p in found] for found in judged]).sum(axis=0)
    reach = np.sqrt(2 * gaps).sum(axis=0)
    if case.is_linear:
        s = model.intercept_scaling if model.fit_intercept else 0.0
        sizes = [np.sqrt((extended.as_long(A) ** 2).sum(axis=1) + s**2) for A in (data.dense_Z, data.dense)]
    else:
        sizes = [np.sqrt(_diagonal(case, model, A)) for A in (data.dense_Z, data.dense)]
    if case.family == "LinearSVC" and model.multi_class == "crammer_singer":
        reach = reach * 2  # of two weight vectors
    allowed = reach * (sizes[0][:, None] + sizes[1].max()) + 2 * rounding + violation
    if case.family == "NuSVC":
        allowed = allowed * _margins(model, data)
    coef = np.abs(model.coef_ if case.is_linear else as_dense(model.dual_coef_)).sum()
    return np.asarray(allowed + 64 * EPS * (np.abs(model.intercept_).max() + coef * sizes[0][:, None] ** 2), "float64")


def _diagonal(case, model, A):
    """K(x, x) at each point, with the constant of a penalised intercept."""
    K = np.array([extended.kernel(model.kernel_, row[None], row[None])[0][0, 0] for row in A])
    return np.abs(K) + (model.intercept_scaling**2 if getattr(model, "penalize_intercept", False) else 0.0)


def _margins(model, data):
    """1 / rho and more of each problem of NuSVC, by which its decision function is divided; inf where it is 0."""
    with np.errstate(divide="ignore"):
        scales = [np.abs(s.z).sum() for s in model.solutions_]
    total = np.abs(model.decision_coef_).sum(axis=0)
    factor = total / np.array(scales)
    return factor * (1 + 10 * total)
