"""The names of the classes do not matter: another name with the same order gives the same bits, the other order -f."""

import numpy as np
import pytest
from agreement import agree, raw_values
from cases import MACHINES, UNTIMED, Case, Data, build, fit, make, tame
from promise import Promise, demand

CLASSIFIERS = tuple(name for name, (family, _) in MACHINES.items() if family.endswith("SVC"))


def sample(rng, kernels=None):
    """A classifier."""
    return tame(rng, machines=CLASSIFIERS, kernels=kernels).but(class_weight=[None, "balanced"][int(rng.integers(2))])


def check(case, figures):
    """Fit with other names in the same order, and in the opposite order."""
    data = make(case)
    labels = np.unique(data.y, return_inverse=True)[1]
    first = fit(build(case, **UNTIMED), data.X, data.y, data.weight)
    names = np.array([f"class {c}" for c in range(case.classes)])
    renamed = fit(build(case, **UNTIMED), data.X, names[labels], data.weight)
    demand((first.refusal is None) == (renamed.refusal is None), "one is refused, the other not")
    if first.refusal is not None:
        return
    if not (first.timed_out or renamed.timed_out):
        one, two = (raw_values(case, outcome.model, data.Z) for outcome in (first, renamed))
        demand(np.array_equal(one, two, equal_nan=True), f"other bits, by up to {np.abs(one - two).max():.2g}")
        known = {name: c for c, name in enumerate(np.unique(data.y).tolist())}
        predicted = [known[name] for name in first.model.predict(data.Z).tolist()]
        demand(np.array_equal(names[predicted], renamed.model.predict(data.Z)), "other predictions")
    if case.classes == 2:
        swapped = Data(data.X, data.dense, 1 - labels, data.weight, data.Z, data.dense_Z)
        outcome = fit(build(case), swapped.X, swapped.y, swapped.weight)
        agree(case, figures, (data, first), (swapped, outcome), sign=-1.0)


PROMISE = Promise(
    "names of classes",
    check,
    sample,
    fixed=(
        Case(log_C=-3.0, class_weight="balanced"),
        Case(machine="LinearSVC crammer_singer", kernel="linear", classes=3),
    ),
    examples=10,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_names_of_classes_do_not_matter(number):
    PROMISE.keep(PROMISE.example(number))
