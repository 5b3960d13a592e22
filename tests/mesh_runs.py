"""What `test_meshes` runs in other processes, since JAX reads the number of virtual devices once; prints JSON.

python mesh_runs.py CASE ...           the cases of `CASES` on four virtual devices
python mesh_runs.py --rank RANK PORT   one of two processes with two devices each
"""

import json
import os
import re
import sys

IS_ONE_OF_TWO = sys.argv[1] == "--rank"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={2 if IS_ONE_OF_TWO else 4}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402

if IS_ONE_OF_TWO:
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[3]}", 2, int(sys.argv[2]), initialization_timeout=60)

import numpy as np  # noqa: E402
import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402

import symsvm  # noqa: E402
from symsvm import CSVC, RBF, Laplacian, Linear, Objective  # noqa: E402
from symsvm.compiler import function, grad, kernel_matvec, value_and_grad  # noqa: E402
from symsvm.objectives import KernelDual, QuadraticProgram  # noqa: E402
from symsvm.objectives.dual import W, decisions  # noqa: E402

COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")
MESH = jax.make_mesh((jax.device_count(),), ("rows",))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(103, 3))
Z = RNG.normal(size=(9, 3))
y = np.where(X[:, 0] + 0.3 * RNG.normal(size=103) > 0, 1.0, -1.0)


def collectives(compiled, *values):
    """How often a compiled function sends data between devices, by the name of the operation."""
    lowered = compiled.function.vm.jit_fn.lower(*values, *compiled.numbers, *(v.get_value() for v in compiled.shared))
    found = re.findall(rf"= \S+ ({'|'.join(COLLECTIVES)})(?:-start)?\(", lowered.compile().as_text())
    return {name: found.count(name) for name in set(found)}


def difference(one, many):
    """The largest difference of two arrays, relative to the largest entry."""
    return float(np.abs(np.asarray(one) - np.asarray(many)).max() / np.abs(one).max())


def compare_graphs(kernel, m, mesh):
    """The differences of W, its gradients, products and predictions; the collectives of W and its gradient."""
    lam, Xs, ys, Zs = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y"), pt.dmatrix("Z")
    value = W(lam, Xs, ys, kernel)
    both = value_and_grad(value, lam)
    outputs = [*both, grad(value, Xs), kernel_matvec(kernel, Zs, Xs, pt.stack([lam, 2 * lam], axis=1))]
    outputs.append(decisions(Zs, lam, Xs, ys, kernel, 0.1))
    inputs, values = [lam, Xs, ys, Zs], [np.abs(RNG.normal(size=m)), X[:m], y[:m], Z]
    one = function(inputs, outputs, mode="JAX")(*values)
    many = function(inputs, outputs, mode="JAX", mesh=mesh)(*values)
    sent = collectives(function(inputs[:3], both, mode="JAX", mesh=mesh), *values[:3])
    return {"differences": [difference(*pair) for pair in zip(one, many, strict=True)], "sent": sent}


def compare_runs(objective, memory=None, **options):
    """The runs of FISTA on one device and on all, and what a step sends."""
    one = symsvm.solve(objective, "accelerated-gradient", mode="JAX", **options)
    program = symsvm.compile(objective, "auto", mode="JAX", mesh=MESH, memory=memory, dtype=options.pop("dtype", None))
    many = program.run(**options)
    values = program.functions.to_device(program._values([]))
    state = [*program.initial_state(), *program.solver.start()]
    prepare, step = program.functions.compiled(np.asarray(state[0]), values)
    constants = prepare(*values)
    return {
        "difference": difference(one.lam, many.lam),
        "n_iter": [one.n_iter, many.n_iter],
        "status": many.certificate.status,
        "sent": [collectives(prepare, *values), collectives(step, *state, *constants, *values)],
        "rows": [len(part.data) for K in constants if K.ndim == 2 for part in K.addressable_shards],
    }


def csvc(m, kernel):
    """A classifier of m points, drawn for this size."""
    lam = pytensor.shared(np.zeros(m), name="lam")
    points = np.random.default_rng(m).normal(size=(m, 3))
    labels = np.where(points[:, 0] + 0.5 * points[:, 1] ** 2 > 0.3, 1.0, -1.0)
    return CSVC(lam, pytensor.shared(points, name="X"), pytensor.shared(labels, name="y"), 1.0, kernel)


def ball(m):
    """The dual of a classifier without an intercept: a box, whose projection compiles in no time."""
    whole = csvc(m, RBF(1.0))
    return Objective(whole.value, whole.variable, 0.0, 1.0, is_convex=True)


CASES = {
    "rbf": lambda: compare_graphs(RBF(1.3), 103, MESH),
    "two axes": lambda: compare_graphs(RBF(1.3), 103, jax.make_mesh((2, 2), ("hosts", "devices"))),
    "laplacian": lambda: compare_graphs(Laplacian(2.0), 102, MESH),
    "linear": lambda: compare_graphs(Linear(), 101, MESH),
    "fewer rows than devices": lambda: compare_graphs(RBF(1.3), 3, MESH),
    "stored": lambda: compare_runs(csvc(103, RBF(1.0)), tol=1e-6),
    "tiled": lambda: compare_runs(ball(1603), memory=2**22, tol=1e-2),
    "regression": lambda: compare_runs(KernelDual(QuadraticProgram.svr(y, 1.0, 0.1), X, RBF(1.0)), tol=1e-4),
    "float32": lambda: compare_runs(ball(103), tol=1e-3, dtype="float32"),
}


def on_two_hosts():
    """What each of two processes finds: a fit, predictions, and an argument that they cannot have."""
    lam = pt.dvector("lam")
    solution = symsvm.solve(ball(53), mode="JAX", mesh=MESH, tol=1e-4)
    rows = pt.dmatrix("Z")
    points, labels = (pytensor.shared(values[:53]) for values in (X, y))
    predict = function([rows, lam], decisions(rows, lam, points, labels, RBF(1.0)), mode="JAX", mesh=MESH)
    try:
        symsvm.solve(ball(53), mode="JAX", mesh=MESH, time_limit=10.0)
        error = ""
    except ValueError as raised:
        error = str(raised)
    return {
        "lam": solution.lam.tolist(),
        "status": solution.certificate.status,
        "decisions": np.asarray(predict(Z, solution.lam)).tolist(),
        "processes": jax.process_count(),
        "devices": jax.device_count(),
        "error": error,
    }


print(json.dumps(on_two_hosts() if IS_ONE_OF_TWO else {name: CASES[name]() for name in sys.argv[1:]}))
