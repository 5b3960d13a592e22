"""A fit that fails leaves the fitted model as it was: attributes, decision values, certificate."""

import numpy as np
import pytest
from cases import Case, build, draw, fit, make
from promise import Promise, demand

# name -> parameters that a fit must refuse; those that an estimator does not have are left out
BAD = {
    "C": (-1.0, np.nan, "1", np.inf, None),
    "tol": (-1.0, np.nan, "small", 0),
    "kernel": ("rfb", 3),
    "gamma": (-1.0, "scales"),
    "nu": (0.0, 1.5, "half"),
    "epsilon": (-0.1, "wide"),
    "loss": ("hinges",),
    "penalty": ("l3",),
    "multi_class": ("all",),
    "class_weight": ("equal", {"none of them": 1.0}, {}.keys()),
    "intercept_scaling": (0.0, -1.0),
    "max_iter": (-7, 0.5),
    "time_limit": (-1.0, "1"),
    "fit_intercept": ("no",),
    "solver": ("fastest",),
    "decision_function_shape": ("ovx",),
    "calibration": ("platt",),
}


def check(case, figures):
    """Fit; change one thing for the worse; fit again; compare."""
    data, model = make(case), build(case)
    if fit(model, data.X, data.y, data.weight).refusal is not None:
        return
    before = state(model, data)
    rng = np.random.default_rng(case.seed)
    for what, parameters, arguments in rng.permutation(np.array(_worse(case, data, model), dtype=object))[:6]:
        kept = {name: getattr(model, name) for name in parameters}
        model.set_params(**parameters)
        again = fit(model, *arguments)
        model.set_params(**kept)
        if again.refusal is None:
            demand(not parameters, f"a fit with {what} is not refused")
            model, before = again.model, None
            fit(model, data.X, data.y, data.weight)
            before = state(model, data)
            continue
        after = state(model, data)
        changed = [name for name in before if name not in after or not _same(before[name], after[name])]
        changed += [name for name in after if name not in before]
        demand(not changed, f"a refused fit with {what} changes {', '.join(sorted(changed))} ({again.refusal})")


def _worse(case, data, model):
    """(a name, parameters, arguments of fit): each is wrong in one way."""
    right = data.X, data.y, data.weight
    known = model.get_params(deep=False)
    found = [
        (f"{name}={value!r}", {name: value}, right)
        for name, values in BAD.items()
        if name in known and not (name == "gamma" and case.kernel not in ("rbf", "poly", "sigmoid"))
        for value in values
    ]
    holes = data.dense.copy()
    holes[0, 0] = np.nan
    found.append(("NaN in X", {}, (holes, data.y, data.weight)))
    found.append(("NaN in X of other columns", {}, (np.hstack([holes, holes]), data.y, data.weight)))
    found.append(("no rows", {}, (data.dense[:0], None if data.y is None else data.y[:0], None)))
    found.append(("negative weights", {}, (data.X, data.y, -np.ones(case.m))))
    if data.y is not None:
        found.append(("fewer labels", {}, (data.X, data.y[:-1], data.weight)))
    if case.classifies:
        found.append(("one class", {}, (data.X, np.full(case.m, data.y[0]), data.weight)))
    return found


def state(model, data):
    """All that a fitted model has, and what it answers."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    decide = getattr(model, "decision_function", model.predict)
    return fitted | {"decision values": decide(data.Z), "predictions": model.predict(data.Z)}


def _same(a, b):
    if a is b:
        return True
    if hasattr(a, "tocsr") or hasattr(b, "tocsr"):
        return hasattr(a, "tocsr") and hasattr(b, "tocsr") and a.shape == b.shape and abs(a - b).nnz == 0
    if isinstance(a, np.ndarray):
        kind = {"equal_nan": True} if a.dtype.kind == "f" else {}
        return np.array_equal(a, b, **kind)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
    return bool(a == b)


PROMISE = Promise(
    "refits",
    check,
    draw,
    fixed=(Case(), Case(machine="SVR"), Case(machine="LinearSVC", kernel="linear"), Case(machine="OneClassSVM")),
    examples=8,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_a_refused_fit_changes_nothing(number):
    PROMISE.keep(PROMISE.example(number))
