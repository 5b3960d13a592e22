"""A model that is saved and loaded has the same bits."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from agreement import raw_values
from cases import Case, draw
from promise import Promise, demand, started

import symsvm


def check(case, figures):
    """Save, load, compare."""
    data, outcome = started(case)
    if outcome.refusal is not None:
        return
    model = outcome.model
    values, predictions = raw_values(case, model, data.Z), model.predict(data.Z)
    if not np.isfinite(values).all():
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.symsvm")
        symsvm.save(model, path)
        figures.note("bytes", path.stat().st_size, case)
        loaded = symsvm.load(path, trusted=("cases:cauchy", "cases:gram"))
    demand(np.array_equal(raw_values(case, loaded, data.Z), values), "other decision values")
    demand(np.array_equal(loaded.predict(data.Z), predictions), "other predictions")
    one, two = model.certificate_, loaded.certificate_
    demand(_said(one) == _said(two), f"another certificate: {one}, {two}")
    demand(repr(loaded) == repr(model), f"other parameters: {loaded!r} for {model!r}")


def _said(certificates):
    certificates = certificates if isinstance(certificates, list) else [certificates]
    return [(c.W, c.violation, c.gap, c.status) for c in certificates]


PROMISE = Promise(
    "round trip",
    check,
    draw,
    fixed=(Case(kernel="pair"), Case(kernel="precomputed"), Case(kernel="widths", d=5)),
    examples=8,
)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_a_model_survives_its_file(number):
    PROMISE.keep(PROMISE.example(number))
