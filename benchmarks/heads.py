"""The exact kernel layer: milliseconds of a step, beside one `argmin` for each machine.

    OPENBLAS_NUM_THREADS=1 python benchmarks/heads.py [--points 125] [--classes 10]

Ten machines of a class against the rest over the features of a batch, on Numba: the solutions over a kernel matrix and
their gradients (`solve_machines`), the layer with the kernel and the gradients by features, sigma and C
(`kernel_machines`), and the same solutions by ten `argmin`s over the same matrix, which certify what they solve.
Medians of 50 calls, by turns, after compilation.
"""

import argparse
import time

import numpy as np
import pytensor
import pytensor.tensor as pt

import symsvm
from symsvm import RBF, Objective, heads

REPEATS = 50


def batch(m, k, d=64):
    """Return features around k centres, their classes, and as many points to decide."""
    rng = np.random.default_rng(0)
    centres, y = 0.5 * rng.normal(size=(k, d)), rng.integers(0, k, (2, m))
    return centres[y[0]] + rng.normal(size=(m, d)), y[0], centres[y[1]] + rng.normal(size=(m, d))


def functions(k, n):
    """Return the functions to time, by name: each of (K, T, C) or of (X, y, Z, sigma, C)."""
    K, T, C, sigma = pt.dmatrix("K"), pt.dmatrix("T"), pt.dscalar("C"), pt.dscalar("sigma")
    X, y, Z, lam, t = pt.dmatrix("X"), pt.lvector("y"), pt.dmatrix("Z"), pt.dvector("lam"), pt.dvector("t")
    weights = np.random.default_rng(1).normal(size=(n, k))

    def both(name, inputs, loss, wrt):
        gradients = [loss, *pytensor.grad(loss, wrt)]
        return {name: pytensor.function(inputs, loss), f"{name}, with gradients": pytensor.function(inputs, gradients)}

    q, b = heads.solve_machines(K, T, C, is_psd=True)
    of_matrix = both("solve_machines", [K, T, C], (q * weights.T).sum() + b.sum(), [K, C])
    f = heads.kernel_machines(X, y, Z, RBF(sigma), n_classes=k, C=C)
    layer = both("kernel_machines", [X, y, Z, sigma, C], (f * weights).sum(), [X, Z, sigma, C])
    W = 0.5 * (lam * t) @ K @ (lam * t) - lam.sum()
    solution, b = symsvm.argmin(Objective(W, lam, upper=C, equality=(t, 0.0), is_convex=True))
    one = both("argmin", [K, t, C], (solution * t * weights[:, 0]).sum() + b, [K, C])

    def of_all(run):
        return lambda K, T, C: [run(K, row, C) for row in T]

    return of_matrix | {f"{k} x {name}": of_all(run) for name, run in one.items()}, layer


def medians(functions, arguments):
    """Return the median milliseconds of each function; they take turns."""
    times = {name: [] for name in functions}
    for turn in range(REPEATS + 1):
        for name, run in functions.items():
            began = time.perf_counter()
            run(*arguments)
            if turn:  # the first call compiles
                times[name].append(1000 * (time.perf_counter() - began))
    return {name: float(np.median(some)) for name, some in times.items()}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=125, help="points of a batch (default 125)")
    parser.add_argument("--classes", type=int, default=10, help="machines (default 10)")
    args = parser.parse_args()
    m, k = args.points, args.classes
    X, y, Z = batch(m, k)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 128)
    of_matrix, layer = functions(k, m)
    T = np.where(y == np.arange(k)[:, None], 1.0, -1.0)
    found = medians(of_matrix, (K, T, 1.0)) | medians(layer, (X, y, Z, 8.0, 1.0))
    print(f"{k} machines of {m} points, milliseconds\n")
    for name, milliseconds in found.items():
        print(f"{name:36}{milliseconds:8.2f}", flush=True)


if __name__ == "__main__":
    main()
