"""psvm's report: support vectors, iterations and seconds of each machine, the accuracy, the confusion matrix."""

import itertools

import numpy as np

from symsvm.cli.machine import machine_of

__all__ = ["machine_lines", "matrix_lines"]


def machine_lines(model, found):
    """A line for each machine of a fit, and one for all."""
    machine = machine_of(model)
    total, rows = 0, list(_machines(machine))
    for name, vectors, iterations, seconds in rows:
        total += vectors
        yield f"{name}: {vectors} SVs, {iterations} iterations, {seconds:.3f} s"
    all_of_them = f"{len(rows)} machine{'s' * (len(rows) > 1)}: {total} SVs ({found['support_vectors']} different)"
    yield f"{all_of_them}, {found['iterations']} iterations, {found['seconds']:.3f} s"
    yield f"Certificate: {found['certificate']['status']}, violation {found['certificate']['violation']:.2e}"


def _machines(machine):
    """(name, support vectors, iterations, seconds) of each problem."""
    coef = machine.decision_coef_
    classes = [str(c) for c in getattr(machine, "classes_", ())]
    if len(classes) <= 2:
        names = [" vs ".join(classes) or "machine"]
    elif machine.multi_class == "ovr":
        names = [f"{c} vs rest" for c in classes]
    else:
        names = [f"{a} vs {b}" for a, b in itertools.combinations(classes, 2)]
    for column, (name, solution) in enumerate(zip(names, machine.solutions_, strict=True)):
        yield name, int(np.count_nonzero(coef[:, column])), solution.n_iter, float(solution.trace["seconds"][-1])


def matrix_lines(scores):
    """The accuracy and the confusion matrix, rows true."""
    correct, n = scores["correct"], scores["points"]
    yield f"Model accuracy: {correct}/{n} = {correct / n:.6g}"
    names, matrix = [str(c) for c in scores["classes"]], np.asarray(scores["confusion"])
    width = max(*map(len, names), len(str(matrix.max()))) + 1
    yield "Confusion matrix (rows: true, columns: predicted):"
    yield " " * width + "".join(f"{name:>{width}}" for name in names)
    for name, row in zip(names, matrix.tolist(), strict=True):
        yield f"{name:>{width}}" + "".join(f"{count:>{width}}" for count in row)
