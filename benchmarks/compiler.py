"""Measure the compiler: the passes, the tiles, one compilation for many parameters, and the time to the first result.

    python benchmarks/compiler.py [--m 3000] [--n 20000] [--d 20]
    python benchmarks/compiler.py --only first          # only the time to the first result

All ratios are of times from one run. The entries take turns, and the best turn of each counts. For W and its gradient
the reference is NumPy with a precomputed Gram matrix; the graph as written takes seconds per evaluation, so it is timed
on fewer points and scaled by m^2. For products with a Gram matrix that is not stored, the references are JAX written by
hand (a map over tiles of 500 rows) and NumPy, which stores the matrix.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace

from symsvm import CSVC, RBF, Laplacian, Polynomial, ProjectedGradient, Sigmoid, compile, kernel_matvec
from symsvm.compiler.functions import function, hoist, resolve_mode, value_and_grad
from symsvm.objectives import dual


def best(evaluate, repeats):
    """Return the least time of some evaluations, after one that compiles; includes waiting for the results of JAX."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        [np.asarray(v) for v in evaluate()]
        times.append(time.perf_counter() - began)
    return min(times[1:])


def problem(m, d):
    """Return random multipliers, points and labels as shared variables with known shapes."""
    rng = np.random.default_rng(0)
    arrays = {"lam": rng.random(m), "X": rng.normal(size=(m, d)), "y": rng.choice([-1.0, 1.0], m)}
    return [pytensor.shared(a, name=name, shape=a.shape) for name, a in arrays.items()]


def as_written(m, d, mode):
    """Compile W and its pytensor.grad without the passes of symsvm."""
    lam, X, y = problem(m, d)
    W = dual.W(lam, X, y, RBF(3.0))
    return pytensor.function([], [W, pytensor.grad(W, lam)], mode=resolve_mode(mode))


def compiled(m, d, mode):
    """Compile W and grad W by symsvm, with the parts that do not depend on lam hoisted, as in a Program."""
    lam, X, y = problem(m, d)
    value = lam.get_value()
    graphs = value_and_grad(dual.W(lam, X, y, RBF(3.0)), lam)
    constants, inputs, outputs = hoist(list(graphs), [lam])
    K = function([], constants, mode=mode)()
    free = lam.type("lam")
    step = function([free, *inputs], clone_replace(outputs, {lam: free}), mode=mode, trust_input=True)
    return lambda: step(value, *K)


def by_hand(m, d):
    """Return the same in NumPy with K precomputed."""
    lam, X, y = (v.get_value() for v in problem(m, d))
    squared = (X**2).sum(1)
    K = np.exp(-np.maximum(squared[:, None] + squared[None] - 2 * X @ X.T, 0) / 18)

    def evaluate():
        q = lam * y
        Kq = K @ q
        return -lam.sum() + 0.5 * q @ Kq, y * Kq - 1

    return evaluate


def time_in_turns(entries, repeats, rounds=3):
    """Return the least time of each entry; the entries take turns of some evaluations each.

    Threads of the previous entry may still be busy when a turn begins, so its first evaluation does not count.
    """
    times = dict.fromkeys(entries, np.inf)
    for _ in range(rounds):
        for name, evaluate in entries.items():
            time.sleep(0.2)
            times[name] = min(times[name], best(evaluate, repeats))
    return times


def jax_by_hand(X, q, sigma):
    """Return sum_j K(x_i, x_j) q_j written in JAX, as a map over tiles of 500 rows."""
    import jax
    import jax.numpy as jnp

    X, q = jnp.asarray(X), jnp.asarray(q)

    @jax.jit
    def matvec(X, q):
        squared = (X * X).sum(1)

        def tile(part):
            rows, norms = part
            distances = norms[:, None] + squared[None, :] - 2 * rows @ X.T
            return jnp.exp(-jnp.maximum(distances, 0) / (2 * sigma**2)) @ q

        return jax.lax.map(tile, (X.reshape(-1, 500, X.shape[1]), squared.reshape(-1, 500))).ravel()

    return lambda: [matvec(X, q)]


def numpy_by_hand(X, q, sigma):
    """Return the same in NumPy with the matrix stored, computed in place where possible."""

    def matvec():
        squared = (X * X).sum(1)
        K = X @ X.T
        K *= -2
        K += squared[:, None]
        K += squared[None, :]
        np.maximum(K, 0, out=K)
        K *= -1 / (2 * sigma**2)
        np.exp(K, out=K)
        return [K @ q]

    return matvec


def by_symsvm(kernel, X, q, mode):
    """Compile `kernel_matvec`."""
    Xs, qs = pt.tensor("X", dtype=X.dtype, shape=(None, None)), pt.tensor("q", dtype=q.dtype, shape=(None,))
    compiled = function([Xs, qs], kernel_matvec(kernel, Xs, Xs, qs), mode=mode)
    if mode == "JAX":
        import jax.numpy as jnp

        X, q = jnp.asarray(X), jnp.asarray(q)
    return lambda: [compiled(X, q)]


def points(n, d, dtype="float32"):
    """Return random points and weights."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(dtype), rng.normal(size=n).astype(dtype)


def tiles(n, d):
    """Print products with K for several kernels and backends."""
    X, q = points(n, d)
    sigma = float(np.sqrt(d))
    composed = RBF(sigma) + Polynomial(2, gamma=1 / d) * Sigmoid(gamma=1 / d)
    entries = {
        "JAX by hand": jax_by_hand(X, q, sigma),
        "NumPy by hand": numpy_by_hand(X, q, sigma),
        "RBF": by_symsvm(RBF(sigma), X, q, "NUMBA"),
        "RBF on JAX": by_symsvm(RBF(sigma), X, q, "JAX"),
        "RBF + Polynomial * Sigmoid": by_symsvm(composed, X, q, "NUMBA"),
        "RBF + Laplacian": by_symsvm(RBF(sigma) + Laplacian(1 / d), X, q, "NUMBA"),
    }
    values = [np.asarray(evaluate()[0]) for evaluate in list(entries.values())[:4]]
    worst = max(np.abs(v - values[1]).max() for v in values) / np.abs(values[1]).max()
    times = time_in_turns(entries, 3)
    hand, rbf = times["JAX by hand"], times["RBF"]
    print(f"sum_j K(x_i, x_j) q_j, m = n = {n}, d = {d}, float32; the four RBFs agree to {worst:.0e} of the largest")
    for name, seconds in times.items():
        print(
            f"  {name:28}{1e3 * seconds:8.0f} ms{1e9 * seconds / n**2:7.2f} ns an entry; "
            f"{seconds / hand:5.2f} x JAX by hand, {seconds / rbf:5.2f} x RBF"
        )


PEAK = """
import numpy as np
from compiler import RBF, by_symsvm, points
X, q = points({n}, {d})
matvec = by_symsvm(RBF(4.0), X[:600], q[:600], "{mode}"); matvec()
def status(name): return int(open("/proc/self/status").read().split(name + ":")[1].split()[0])
matvec = by_symsvm(RBF(4.0), X, q, "{mode}")
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS"); [np.asarray(v) for v in matvec()]; print((status("VmHWM") - before) / 1e3)
"""


def peak(mode, n, d):
    """Return the megabytes that a product needs beyond the data, in a new process; None if the system does not say."""
    if not os.path.exists("/proc/self/clear_refs"):
        return None
    command = [sys.executable, "-c", PEAK.format(n=n, d=d, mode=mode)]
    here = os.path.dirname(os.path.abspath(__file__))
    return float(subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout)


def grid(m):
    """Print the cost of 25 runs over a grid of C and sigma without their steps."""
    X, _ = points(m, 5, "float64")
    y = np.sign(X[:, 0])
    lam, C, sigma = pt.vector("lam"), pt.scalar("C"), pt.scalar("sigma")
    began = time.perf_counter()
    program = compile(CSVC(lam, pt.matrix("X"), pt.vector("y"), C, RBF(sigma)), ProjectedGradient())
    program.run(np.zeros(m), X=X, y=y, C=1.0, sigma=1.0, max_iter=0)
    first = time.perf_counter() - began
    runs = []
    for C in (0.1, 1.0, 10.0, 100.0, 1000.0):
        for sigma in (0.5, 1.0, 2.0, 4.0, 8.0):
            began = time.perf_counter()
            program.run(np.zeros(m), X=X, y=y, C=C, sigma=sigma, max_iter=0)
            runs.append(time.perf_counter() - began)
    print(
        f"A grid of 5 x 5 over C and sigma, m = {m}: compiled once with the first run in {first:.1f} s, then a run "
        f"without steps (checks, Gram matrix, certificate) takes {1e3 * np.median(runs):.1f} ms, "
        f"{1e3 * max(runs):.1f} at most"
    )


FIRST = """
import os, time; began = time.perf_counter()
import numpy as np; from symsvm import SVM_parallel
X = np.random.default_rng(0).normal(size=(500, 5)); y = np.sign(X[:, 0])
SVM_parallel(X, y, 500, 1.0, 2.0, 0.001, random_state=0, mode="{mode}").train_model_full(1)
print(time.perf_counter() - began, os.times().user)
"""


def in_cache(directory):
    """Return the settings that keep all compiled code in a directory."""
    return {"PYTENSOR_FLAGS": f"base_compiledir={directory}", "NUMBA_CACHE_DIR": f"{directory}/numba"}


def first_result(mode, cache):
    """Return the seconds from import to the first result, and the CPU seconds, with this compilation cache."""
    command = [sys.executable, "-c", FIRST.format(mode=mode)]
    out = subprocess.run(command, env=os.environ | in_cache(cache), capture_output=True, text=True, check=True).stdout
    return [float(seconds) for seconds in out.split()]


FIRST_FIT = """
import time; began = time.perf_counter()
import numpy as np; from {library} import SVC
rng = np.random.default_rng(0); X = rng.normal(size=(2000, 20))
y = np.sign(X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=2000))
SVC().fit(X, y); print(time.perf_counter() - began)
"""


def first_fits(rounds=3):
    """Print the time of import and first fit of SVC in new processes, with everything cached on disk, and nothing."""
    times = {"symsvm": [], "sklearn.svm": []}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(rounds + 1):  # the first round fills the cache
            for library, found in times.items():
                command = [sys.executable, "-c", FIRST_FIT.format(library=library)]
                env = os.environ | in_cache(cache)
                found.append(float(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout))
    cold = times["symsvm"][0]
    ours, theirs = (min(found[1:]) for found in times.values())
    print(
        f"Import and first SVC().fit of 2000 x 20 points, new processes: {ours:.2f} s, scikit-learn {theirs:.2f} s, "
        f"{ours - theirs:.2f} s more; with an empty cache {cold:.1f} s"
    )


def main():
    """Print the tables, and the time from import to the first result in a new process."""
    parser = argparse.ArgumentParser(description="Time compiled sums and kernels.")
    parser.add_argument("--m", type=int, default=3000, help="points whose Gram matrix is stored (default 3000)")
    parser.add_argument(
        "--n", type=int, default=20000, help="points whose Gram matrix is not stored, a multiple of 500 (default 20000)"
    )
    parser.add_argument("--d", type=int, default=20, help="features (default 20)")
    parser.add_argument("--only", choices=("first",), help="print only the time to the first result")
    args = parser.parse_args()
    if args.only is None:
        steps(args)
        tiles(args.n, args.d)
        for mode in ("NUMBA", "JAX"):
            print(f"  {mode:6} RBF: {peak(mode, args.n, args.d):.0f} MB at most beyond the data")
        grid(200)
    first_fits()
    first_results()


def steps(args):
    """Print the times of W and its gradient, relative to NumPy with K precomputed and to the graph as written."""
    entries = {"NumPy": by_hand(args.m, args.d)}
    entries |= {mode: compiled(args.m, args.d, mode) for mode in ("NUMBA", "JAX")}
    times = time_in_turns(entries, 50)
    hand = times.pop("NumPy")
    print(f"W and grad W, RBF, m = {args.m}, d = {args.d}, float64; NumPy with K precomputed: {1e3 * hand:.2f} ms")
    few = min(args.m, 600)
    for mode, ours in times.items():
        written = best(as_written(few, args.d, mode), 3) * (args.m / few) ** 2
        print(
            f"  {mode:6} symsvm {1e3 * ours:6.2f} ms, {ours / hand:.2f} x NumPy; as written {1e3 * written:8.0f} ms, "
            f"{written / ours:.0f} x symsvm"
        )


def first_results():
    """Print the time from import to the first result, with an empty compilation cache and with a full one."""
    print(f"Import to first result, SVM_parallel with m = 500, new processes, PyTensor {pytensor.__version__}:")
    for mode in ("NUMBA", "JAX"):
        with tempfile.TemporaryDirectory() as empty:
            (cold, cpu), (warm, _) = first_result(mode, empty), first_result(mode, empty)
        print(f"  {mode:6} {cold:.1f} s ({cpu:.1f} s of CPU) with an empty compilation cache, {warm:.1f} s after that")


if __name__ == "__main__":
    main()
