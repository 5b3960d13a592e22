"""What the passes are worth: W and grad W of the nested reduce, compiled as written and compiled by symsvm.

    python benchmarks/compiler.py [--m 3000] [--d 20]

One run, ratios within it. The yardstick is NumPy with the Gram matrix computed beforehand: K q, then W and the
gradient. The graph as written is timed on fewer points and scaled by m^2, for it takes seconds an evaluation.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytensor

from symsvm import RBF
from symsvm.compiler import hoist, resolve_mode, value_and_grad
from symsvm.objectives import dual


def best(evaluate, repeats):
    """The least time of some evaluations, after one that compiles; JAX's results are waited for."""
    [np.asarray(v) for v in evaluate()]
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        [np.asarray(v) for v in evaluate()]
        times.append(time.perf_counter() - began)
    return min(times)


def problem(m, d):
    """Random points, labels, multipliers, as shared variables with known shapes."""
    rng = np.random.default_rng(0)
    arrays = {"lam": rng.random(m), "X": rng.normal(size=(m, d)), "y": rng.choice([-1.0, 1.0], m)}
    return [pytensor.shared(a, name=name, shape=a.shape) for name, a in arrays.items()]


def as_written(m, d, mode):
    """W and pytensor.grad of it, none of our passes."""
    lam, X, y = problem(m, d)
    W = dual.W(lam, X, y, RBF(3.0))
    return pytensor.function([], [W, pytensor.grad(W, lam)], mode=resolve_mode(mode))


def compiled(m, d, mode):
    """W and grad W by symsvm, with what does not depend on lam taken out, as a Program does."""
    lam, X, y = problem(m, d)
    value = lam.get_value()
    graphs = value_and_grad(dual.W(lam, X, y, RBF(3.0)), lam)
    constants, inputs, outputs = hoist(list(graphs), [lam])
    K = pytensor.function([], constants, mode=resolve_mode(mode))()
    free = lam.type("lam")
    step = pytensor.function([free, *inputs], outputs, givens={lam: free}, mode=resolve_mode(mode))
    step.trust_input = True
    return lambda: step(value, *K)


def by_hand(m, d):
    """The same in NumPy, K given."""
    lam, X, y = (v.get_value() for v in problem(m, d))
    squared = (X**2).sum(1)
    K = np.exp(-np.maximum(squared[:, None] + squared[None] - 2 * X @ X.T, 0) / 18)

    def evaluate():
        q = lam * y
        Kq = K @ q
        return -lam.sum() + 0.5 * q @ Kq, y * Kq - 1

    return evaluate


FIRST = """
import time; began = time.perf_counter()
import numpy as np; from symsvm import SVM_parallel
X = np.random.default_rng(0).normal(size=(500, 5)); y = np.sign(X[:, 0])
SVM_parallel(X, y, 500, 1.0, 2.0, 0.001, random_state=0, mode="{mode}").train_model_full(1)
print(time.perf_counter() - began)
"""


def first_result(mode, cache):
    """Seconds from import to the first result, with PyTensor's compilation cache in a directory."""
    flags = {"PYTENSOR_FLAGS": f"base_compiledir={cache}"}
    command = [sys.executable, "-c", FIRST.format(mode=mode)]
    return float(subprocess.run(command, env=os.environ | flags, capture_output=True, text=True, check=True).stdout)


def main():
    """Print the table, and the time from import to the first result in a fresh process."""
    parser = argparse.ArgumentParser(description="Time W and grad W before and after the passes.")
    parser.add_argument("--m", type=int, default=3000, help="points (default 3000)")
    parser.add_argument("--d", type=int, default=20, help="features (default 20)")
    args = parser.parse_args()
    hand = best(by_hand(args.m, args.d), 50)
    print(f"W and grad W, RBF, m = {args.m}, d = {args.d}, float64; NumPy with K given: {1e3 * hand:.2f} ms")
    few = min(args.m, 600)
    for mode in ("NUMBA", "JAX"):
        ours = best(compiled(args.m, args.d, mode), 50)
        written = best(as_written(few, args.d, mode), 3) * (args.m / few) ** 2
        print(
            f"  {mode:6} symsvm {1e3 * ours:6.2f} ms, {ours / hand:.2f} x NumPy; as written {1e3 * written:8.0f} ms, "
            f"{written / ours:.0f} x symsvm"
        )
    print(f"Import to first result, SVM_parallel with m = 500, fresh processes, PyTensor {pytensor.__version__}:")
    for mode in ("NUMBA", "JAX"):
        with tempfile.TemporaryDirectory() as empty:
            cold, warm = first_result(mode, empty), first_result(mode, empty)
        print(f"  {mode:6} {cold:.1f} s with an empty compilation cache, {warm:.1f} s after that")


if __name__ == "__main__":
    main()
