"""Fit cases in a process of its own: JSON lists of cases in, digests of the bits of their models out."""

import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from symsvm._lib.dense import as_dense

__all__ = ["as_json", "digest", "replayed"]


def digest(case):
    """A hash of all bits of a fit: coefficients, intercepts, decision values, the certificates' W and violation."""
    from agreement import raw_values
    from cases import UNTIMED
    from promise import started

    data, outcome = started(case, **UNTIMED)
    if outcome.refusal is not None:
        return f"refused: {type(outcome.refusal).__name__}"
    if outcome.timed_out:
        return None  # the clock ends it
    return digest_of(outcome.model, raw_values(case, outcome.model, data.Z))


def digest_of(model, values):
    """A hash of a fitted model and its values."""
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    names = ("dual_coef_", "support_") if hasattr(model, "support_") else ("coef_",)
    parts = [as_dense(getattr(model, name)) for name in names]
    parts += [model.intercept_, values, [(c.W, c.violation) for c in certificates]]
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(np.ascontiguousarray(part).tobytes())
    return hashed.hexdigest()[:16]


def as_json(cases):
    """The cases as text."""
    return json.dumps([asdict(case) for case in cases])


def replayed(cases, **environment):
    """The digests of cases that another process fits, with further variables in its environment."""
    import os
    import subprocess

    import symsvm

    environment["PYTHONPATH"] = str(Path(symsvm.__file__).parent.parent)  # this package, wherever it is installed
    run = subprocess.run(
        [sys.executable, __file__],
        input=as_json(cases),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


if __name__ == "__main__":
    from cases import Case

    json.dump([digest(Case(**fields)) for fields in json.load(sys.stdin)], sys.stdout)
