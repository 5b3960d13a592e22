"""Measure what linear constraints add to a step of accelerated gradient.

    OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/constraints.py [--m 2000] [--rows 1 3 10]

Milliseconds of processor time per step, with its certificate: for the dual of a C-SVC with an RBF kernel, whose step is
a product with K, and for a separable W, whose gradient costs nothing. The median step of the best of some runs counts.
"""

import argparse
import time

import numpy as np
import pytensor.tensor as pt

from symsvm import RBF, AcceleratedGradient, Objective, compile


def milliseconds(objective, mode, data, m, steps=60, runs=4):
    """Return the processor time of a step."""
    program = compile(objective, AcceleratedGradient(), mode=mode)
    found, marks = [], []
    for _ in range(runs + 1):  # the first one compiles
        marks.clear()
        run = {"tol": 1e-12, "max_iter": steps, "callback": lambda _: marks.append(time.process_time())}
        program.run(np.zeros(m), **run, **data)
        found.append(1e3 * float(np.median(np.diff(marks))))
    return min(found[1:])


def main():
    """Print a line for each set of constraints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m", type=int, default=2000)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 3, 10])
    parser.add_argument("--mode", default="NUMBA")
    args = parser.parse_args()
    m, rng = args.m, np.random.default_rng(0)
    points = rng.normal(size=(m, 10))
    labels = np.where(points[:, 0] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
    lam, X, y = pt.vector("lam"), pt.matrix("X"), pt.vector("y")
    q = lam * y
    weights, target = 10 ** rng.uniform(-3, 0, size=m), rng.normal(0.3, 1, size=m)
    problems = {
        "RBF dual": (0.5 * q @ (RBF(2.0)(X, X) @ q) - lam.sum(), {"X": points, "y": labels}),
        "separable W": (0.5 * (weights * (lam - target) ** 2).sum(), {}),
    }
    for name, (W, data) in problems.items():
        normal = y if data else labels
        sets = {"box": {}, "1 equality": {"equality": (normal, 0.0)}}
        for k in args.rows:
            G = rng.random((k, m))
            sets[f"1 equality, {k} inequalities"] = {"equality": (normal, 0.0), "inequality": (G, G.sum(axis=1) / 8)}
        for k in (k for k in args.rows if k > 1):
            A = rng.normal(size=(k, m))
            sets[f"{k} shared equalities"] = {"equality": (A, A @ (0.3 * rng.random(m)))}
        for label, constraints in sets.items():
            time_of_step = milliseconds(Objective(W, lam, upper=1.0, is_convex=True, **constraints), args.mode, data, m)
            print(f"{name:12} {label:28} {time_of_step:7.2f} ms  {1e3 / time_of_step:7.0f} steps/s", flush=True)


if __name__ == "__main__":
    main()
