"""The problems that a fitted model solved, judged in extended precision from its attributes and the raw data."""

import itertools
from typing import Any, NamedTuple

import extended
import numpy as np
from extended import Dual, LinearPrimal, as_long

from symsvm._lib.dense import as_dense

__all__ = ["Problem", "decision", "is_definite", "problems"]


class Problem(NamedTuple):
    """One problem of a fit: what its certificate says, and what is true."""

    certificate: Any
    truth: extended.Judgement


def is_definite(model):
    """Whether the kernel is one that can be called optimal: positive semi-definite, not a matrix of numbers."""
    kernel = getattr(model, "kernel_", None)
    return not hasattr(model, "dual_coef_") or (kernel is not None and bool(kernel.is_psd))


def problems(case, data, model):
    """Judge every problem of a fit."""
    find = _linear_problems if case.is_linear else _classifier_problems if case.classifies else _single_problem
    return list(find(case, data, model))


def _certificates(model):
    found = model.certificate_
    return found if isinstance(found, list) else [found]


def _used(case, data):
    """The rows with a weight, and their weights."""
    weight = np.ones(len(data.dense)) if data.weight is None else data.weight
    used = np.flatnonzero(weight)
    return used, weight[used]


def _matrix(case, data, model, rows, columns=None):
    """K between training points, with its rounding; the constant of a penalised intercept belongs to it."""
    columns = rows if columns is None else columns
    if case.kernel == "precomputed":
        K = as_long(data.dense[np.ix_(rows, columns)])
        size = np.zeros_like(K)
    elif case.kernel == "function":
        K = as_long(model.kernel(data.X, data.X))[np.ix_(rows, columns)]
        size = np.abs(K)
    else:
        K, size = extended.kernel(model.kernel_, data.dense[rows], data.dense[columns])
    if getattr(model, "penalize_intercept", False):
        K = K + np.longdouble(model.intercept_scaling) ** 2
        size = size + np.abs(K)
    return K, size


def _snapped(z, bound):
    """z with what is at its bound but for the rounding of a division."""
    return np.where(np.abs(z - bound) <= 4 * extended.EPS * np.abs(bound), bound, z)


def _margin(model, number, coef):
    """The rho by which coefficients of NuSVC were divided: z is rho coef, to the rounding of a division.

    The sum of z over a class is known, but only to the rounding of all steps. A rho from this sum would leave variables
    that are at a bound a few units of the last place below it, and so free.
    """
    return as_long(np.abs(model.solutions_[number].z).max()) / as_long(np.abs(coef).max())


def _classifier_problems(case, data, model):
    used, weight = _used(case, data)
    names = model.classes_
    labels = np.searchsorted(names, data.y[used])
    weight = weight * model.class_weight_[labels]
    place = np.full(len(data.dense), -1)
    place[used] = np.arange(len(used))
    k = len(names)
    full = np.zeros((model.dual_coef_.shape[0], len(used)))
    full[:, place[model.support_]] = as_dense(model.dual_coef_)
    has_pairs = k > 2 and case.machine not in ("SVC ovr", "NuSVC ovr")
    if has_pairs:
        tasks = [(a, b) for a, b in itertools.combinations(range(k), 2)]
    else:
        tasks = [(c, None) for c in (range(k) if k > 2 else (1,))]
    for number, ((a, b), certificate) in enumerate(zip(tasks, _certificates(model), strict=True)):
        if b is None:
            here, coef = np.arange(len(used)), full[number if k > 2 else 0]
        else:
            here = np.flatnonzero((labels == a) | (labels == b))
            coef = np.where(labels == a, full[b - 1], full[a])
        y = np.where(labels[here] == a, 1.0, -1.0)
        K, size = _matrix(case, data, model, used[here])
        z = as_long(coef[here])
        if case.family == "NuSVC":
            z = z * _margin(model, number, z)
        dual, z = _classifier_dual(case, model, K, size, y, weight[here], z)
        yield Problem(certificate, extended.judge(dual, z))


def _classifier_dual(case, model, K, size, y, weight, z):
    """The dual and its point; the bounds of NuSVC with class weights are in units of the least of these."""
    n = len(y)
    if case.family == "SVC":
        bound = y * (model.C * weight)
        totals = (0.0,) if case.machine not in ("SVC without intercept", "SVC, penalised intercept") else ()
        return _boxed(K, size, -y, bound, np.zeros(n, int), totals), _snapped(z, bound)
    nu = model.nu
    if model.class_weight is not None:
        nu = min(nu, 2 * min(weight[y > 0].sum(), weight[y < 0].sum()) / weight.sum())
        weight = weight / model.class_weight_[model.class_weight_ > 0].min()
    bound, half = y * weight, as_long(nu) * as_long(weight).sum() / 2
    dual = _boxed(K, size, np.zeros(n), bound, np.where(y > 0, 0, 1), (half, -half))
    return dual, _snapped(z, bound)


def _boxed(K, size, p, bound, group, totals):
    """One variable a point, between 0 and its bound."""
    return Dual(K, size, p, np.minimum(bound, 0), np.maximum(bound, 0), np.arange(len(p)), group, totals)


def _single_problem(case, data, model):
    used, weight = _used(case, data)
    n = len(used)
    K, size = _matrix(case, data, model, used)
    place = np.full(len(data.dense), -1)
    place[used] = np.arange(n)
    beta = np.zeros(n)
    beta[place[model.support_]] = as_dense(model.dual_coef_)[0]
    (certificate,) = _certificates(model)
    if case.family == "OneClassSVM":
        total = as_long(model.nu) * as_long(weight).sum()
        dual = Dual(K, size, np.zeros(n), np.zeros(n), weight, np.arange(n), np.zeros(n, int), (total,))
        yield Problem(certificate, extended.judge(dual, _snapped(beta, weight)))
        return
    z = model.solutions_[0].z  # alpha and -alpha', of which dual_coef_ is the sum
    assert np.array_equal(z[:n] + z[n:], beta), "dual_coef_ is not alpha - alpha'"
    y, C = data.y[used].astype("float64"), model.C * weight
    sides = np.repeat([0, 1], n)
    lower, upper = np.where(sides == 0, 0.0, -np.tile(C, 2)), np.where(sides == 0, np.tile(C, 2), 0.0)
    if case.family == "SVR":
        p = np.concatenate([model.epsilon - y, -model.epsilon - y])
        totals = (0.0,) if case.machine == "SVR" else ()
        group = np.zeros(2 * n, int)
    else:
        half = as_long(model.nu) * as_long(C).sum() / 2
        p, totals, group = np.tile(-y, 2), (half, -half), sides
    yield Problem(certificate, extended.judge(Dual(K, size, p, lower, upper, np.arange(2 * n) % n, group, totals), z))


def _linear_problems(case, data, model):
    used, weight = _used(case, data)
    X, s = data.dense[used], float(model.intercept_scaling if model.fit_intercept else 0.0)
    options = {"penalty": model.penalty, "free": bool(model.fit_intercept and not model.penalize_intercept)}
    certificates = _certificates(model)
    if case.family == "LinearSVR":
        problem = LinearPrimal(X, data.y[used], model.C * weight, s, model.loss, epsilon=model.epsilon, **options)
        z = model.solutions_[0].dual
        yield Problem(certificates[0], extended.judge_linear(problem, model.coef_, model.intercept_[0], z))
        return
    names = model.classes_
    labels = np.searchsorted(names, data.y[used])
    C, k = model.C * (weight * _class_factors(case, model, names, labels, weight)[labels]), len(names)
    if case.machine == "LinearSVC crammer_singer":
        w, b, z = model.coef_, model.intercept_, model.solutions_[0].dual
        if k == 2:  # both weight vectors sum to 0
            w, b = np.stack([-w[0] / 2, w[0] / 2]), np.array([-b[0] / 2, b[0] / 2])
        yield Problem(certificates[0], extended.judge_classes(X, labels, C, s, w, b, z))
        return
    pairs = model.multi_class == "ovo" and k > 2
    tasks = itertools.combinations(range(k), 2) if pairs else ((c, None) for c in (range(k) if k > 2 else (1,)))
    for number, (a, b) in enumerate(tasks):
        here = np.arange(len(used)) if b is None else np.flatnonzero((labels == a) | (labels == b))
        y = np.where(labels[here] == a, 1.0, -1.0)
        problem = LinearPrimal(X[here], y, C[here], s, model.loss, epsilon=0.0, **options)
        w, intercept, z = model.coef_[number], model.intercept_[number], model.solutions_[number].dual
        yield Problem(certificates[number], extended.judge_linear(problem, w, intercept, z))


def _class_factors(case, model, names, labels, weight):
    if case.class_weight is None:
        return np.ones(len(names))
    if case.class_weight == "balanced":
        return weight.sum() / (len(names) * np.bincount(labels, weight, len(names)))
    return np.array([model.class_weight.get(name, 1.0) for name in names.tolist()])


def decision(case, data, model):
    """The decision values of one problem at Z, what rounding may change of them, and the sums of absolute terms."""
    if case.is_linear:
        w, b = as_long(np.atleast_2d(model.coef_)), as_long(model.intercept_)
        values = as_long(data.dense_Z) @ w.T + b
        size = np.abs(as_long(data.dense_Z)) @ np.abs(w).T + np.abs(b)
        return values[:, 0], extended.EPS * (data.dense_Z.shape[1] + 4) * size[:, 0], size[:, 0]
    if case.kernel == "precomputed":
        K = as_long(data.dense_Z)[:, model.support_]
        size = np.zeros_like(K)
    elif case.kernel == "function":
        K = as_long(model.kernel(data.Z, data.X))[:, model.support_]
        size = np.abs(K)
    else:
        K, size = extended.kernel(model.kernel_, data.dense_Z, data.dense[model.support_])
    coef, b = as_long(as_dense(model.dual_coef_)[0]), as_long(model.intercept_[0])
    values = K @ coef + b
    total = np.abs(K) @ np.abs(coef) + abs(b)
    return values, extended.EPS * (size @ np.abs(coef) + (len(coef) + 4) * total), total
