"""The decomposition solver beside scikit-learn, scikit-learn-intelex (float32 and float64) and LIBSVM, in one run.

    SYMSVM_DATA=DIRECTORY python benchmarks/peers.py [--rows NAME ...] [--repeat 3] [--chart out/peers.png]

All libraries get the same data, kernel, C and tolerance (1e-3), a cache of 2 GB, and dense or sparse data as suits
them; the best turn of each counts. The dual objective and the largest KKT violation of each result are evaluated in
float64. Libraries that are not installed are skipped with a note (pip install scikit-learn-intelex libsvm-official).
"""

import argparse
import itertools
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from peer_rows import digits, rows, synthetic, untuned_rows

import symsvm
from symsvm import RBF, KernelDual, QuadraticProgram, pair_kernel
from symsvm.evaluation.expansion import Expansion
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.solvers.decomposition.one_vs_one import one_vs_one

TOL, CACHE = 1e-3, 2000
EPSILON = 0.1
_BOTH = "symsvm", "scikit-learn"


class Peak:
    """The peak resident memory of the process within the block, minus that before it, in MB (Linux)."""

    def __enter__(self):
        self.before, self.most, self._stop = self._resident(), 0, threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join()
        self.megabytes = (self.most - self.before) / 2**20

    def _poll(self):
        while not self._stop.wait(0.005):
            self.most = max(self.most, self._resident())

    @staticmethod
    def _resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


# ---- entries: each returns a function to time, and one that turns its result into a list of (rows, y, z)


def ours(row, kernel=None):
    """Return the entry of symsvm."""
    kernel = RBF.from_gamma(row.gamma) if kernel is None else kernel
    if row.kind == "ovo":
        return lambda: [
            (at, np.where(row.y[at] == b, 1.0, -1.0), solution)
            for _, b, at, solution in one_vs_one(
                row.X, row.y, kernel, lambda y, _: QuadraticProgram.c_svc(y, row.C), tol=TOL
            )
        ], lambda result: [(at, y, solution.z) for at, y, solution in result]
    program = QuadraticProgram.c_svc(row.y, row.C) if row.kind == "svc" else QuadraticProgram.svr(row.y, row.C, EPSILON)
    dual = KernelDual(program, row.X, kernel)
    every = np.arange(len(row.y))
    program = symsvm.compile(dual, symsvm.Decomposition())
    return lambda: program.run(tol=TOL), lambda solution: [(every, row.y, solution.z)]


def estimator(module, row, dtype="float64", dense=False):
    """Return the entry of an SVC or SVR with the interface of scikit-learn."""
    shared = {"C": row.C, "gamma": row.gamma, "tol": TOL, "cache_size": CACHE}
    model = module.SVR(epsilon=EPSILON, **shared) if row.kind == "svr" else module.SVC(**shared)
    X = row.X.toarray() if dense and scipy.sparse.issparse(row.X) else row.X
    X, y = X.astype(dtype), row.y.astype(dtype) if row.kind == "svr" else row.y
    return lambda: model.fit(X, y), lambda model: coefficients(row, model)


def coefficients(row, model):
    """Return z for each binary problem of a fitted estimator."""
    coef = np.asarray(model.dual_coef_.todense() if scipy.sparse.issparse(model.dual_coef_) else model.dual_coef_)
    return spread(row, coef.astype("float64"), model.support_, np.asarray(model.n_support_), 1.0)


def spread(row, coef, support, counts, sign):
    """Return z for each binary problem, from coefficients in the layout of LIBSVM (k - 1, support vectors)."""
    m = len(row.y)
    if row.kind == "svr":
        beta = np.bincount(support, coef[0], m)
        return [(np.arange(m), row.y, np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)]))]
    if row.kind == "svc":
        return [(np.arange(m), row.y, sign * np.bincount(support, coef[0], m))]
    classes, ends = np.unique(row.y), np.concatenate([[0], np.cumsum(counts)])
    found = []
    for a, b in itertools.combinations(range(len(classes)), 2):
        at = np.flatnonzero((row.y == classes[a]) | (row.y == classes[b]))
        beta = np.zeros(m)
        for this, other in ((a, b - 1), (b, a)):
            part = slice(ends[this], ends[this + 1])
            beta[support[part]] = coef[other, part]
        found.append((at, np.where(row.y[at] == classes[a], 1.0, -1.0), beta[at]))  # the first class is +1
    return found


def libsvm_official(row):
    """Return the entry of LIBSVM's own Python interface; copying into its structures is not timed."""
    from libsvm import svm
    from libsvm.svmutil import svm_parameter, svm_problem, toPyModel

    order = (
        np.argsort(row.y, kind="stable") if row.kind == "ovo" else np.arange(len(row.y))
    )  # its classes are in the order of their first points
    X = row.X[order] if scipy.sparse.issparse(row.X) else scipy.sparse.csr_matrix(row.X[order])
    problem = svm_problem(row.y[order].astype("float64"), X)
    kind = f"-s 3 -p {EPSILON}" if row.kind == "svr" else "-s 0"
    options = svm_parameter(f"{kind} -t 2 -c {row.C} -g {row.gamma} -e {TOL} -m {CACHE} -q")
    svm.libsvm.svm_set_print_string_function(options.print_func)

    def collect(model):
        coef = np.array(model.get_sv_coef()).T
        support = order[np.array(model.get_sv_indices()) - 1]
        counts = np.array(model.nSV[: model.nr_class]) if row.kind == "ovo" else None
        first = model.get_labels()[0] if row.kind == "svc" else 1
        return spread(row, coef, support, counts, first)

    return lambda: toPyModel(svm.libsvm.svm_train(problem, options)), collect


def entries(row):
    """Yield the names of the libraries for a row, and functions that make their entries."""
    import sklearn.svm

    dense = not scipy.sparse.issparse(row.X)
    yield "symsvm", lambda: ours(row)
    yield "scikit-learn", lambda: estimator(sklearn.svm, row)
    try:
        import sklearnex.svm
    except ImportError:
        print("scikit-learn-intelex is not installed")
    else:
        for dtype in ("float32", "float64"):
            yield f"sklearnex {dtype}", lambda dtype=dtype: estimator(sklearnex.svm, row, dtype, dense=True)
            if not dense:
                yield f"sklearnex {dtype}, CSR", lambda dtype=dtype: estimator(sklearnex.svm, row, dtype)
    try:
        import libsvm.svm  # noqa: F401
    except ImportError:
        print("libsvm-official is not installed")
    else:
        yield "LIBSVM", lambda: libsvm_official(row)


# ---- evaluation in float64


def evaluate(row, found):
    """Return the sum of the dual objectives and the largest violation, in float64."""
    W, worst = 0.0, 0.0
    gram = LocalKernelMatrix(RBF.from_gamma(row.gamma), row.X.tocsr() if scipy.sparse.issparse(row.X) else row.X)
    for at, y, z in found:
        program = QuadraticProgram.svr(y, row.C, EPSILON) if row.kind == "svr" else QuadraticProgram.c_svc(y, row.C)
        z = np.clip(z, program.lower, program.upper)
        z = np.where(np.abs(z) > (1 - 1e-6) * row.C, np.sign(z) * row.C, z)  # float32 rounds C
        beta = program.weights(z)
        support, Kz = np.flatnonzero(beta), np.zeros(len(at))
        gram.submatrix(at).product(beta[support], None, support, Kz, exact=True)
        W += program.value(Kz, z)
        worst = max(worst, program.multipliers(program.gradient(Kz, z), z)[1])
    return W, worst


def timed(work):
    """Return the least time of some turns, 5 to 25 for short ones and fewer for long ones, and the last result."""
    times = []
    while sum(times) < (0.5 if len(times) >= 5 else 3.0) and len(times) < 25:
        time.sleep(0.05)  # threads of the previous turn finish
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


def compare(row, only=None):
    """Print a row of the table; return the times by name."""
    m, d = row.X.shape
    print(f"\n{row.name} ({m} x {d}, gamma {row.gamma:.4g})")
    print(f"  {'':24}{'seconds':>9} {'symsvm is':>12} {'W':>22} {'violation':>10}")
    times, reference = {}, None
    for name, make in entries(row):
        if only and name not in only:
            continue
        work, collect = make()
        if name == "symsvm":
            work()  # compiles the loops of a kernel
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, result = timed(work)
        W, violation = evaluate(row, collect(result))
        times[name] = seconds
        reference = W if reference is None else reference
        note = f"{seconds / times['symsvm']:9.2f} x" if name != "symsvm" and "symsvm" in times else ""
        worse = (W - reference) / abs(reference)
        print(f"  {name:24}{seconds:9.3f} {note:>12} {W:22.9f} {violation:10.1e}   W {worse:+.1e} relative", flush=True)
        if name == "symsvm":
            print(f"  {'  its certificate':24}{certificate_time(row, result):9.3f}")
    return times


def certificate_time(row, result):
    """Return the seconds to compute the certificates, which are computed when they are first read."""
    solutions = [solution for *_, solution in result] if row.kind == "ovo" else [result]
    began = time.perf_counter()
    good = all(solution.certificate.status == "optimal" for solution in solutions)
    seconds = time.perf_counter() - began
    if not good:
        print("  NOT OPTIMAL:", next(s.certificate for s in solutions if s.certificate.status != "optimal"))
    return seconds


def own_kernel(row):
    """Print the time of the RBF written as a pair function, beside `RBF`."""
    by_hand = pair_kernel(lambda x, z, gamma: (-(gamma * ((x - z) ** 2).sum())).exp(), gamma=row.gamma)
    times = []
    for kernel in (RBF.from_gamma(row.gamma), by_hand):
        work, _ = ours(row, kernel)
        work()
        times.append(work)
    best = [min(timed(work)[0] for _ in range(3)) for work in times]
    print(f"{row.name}: RBF {best[0]:.3f} s, the same as a pair_kernel {best[1]:.3f} s, {best[1] / best[0]:.2f} x")


def through_the_estimator(row):
    """Print the time of SVC or SVR beside the solver that it calls, in turns."""
    (fit, _), (run, _) = estimator(symsvm, row), ours(row)
    fit(), run()
    best = [min(times) for times in zip(*((timed(fit)[0], timed(run)[0]) for _ in range(3)), strict=True)]
    kind = "SVR" if row.kind == "svr" else "SVC"
    print(f"{row.name}: {kind}.fit {best[0]:.4f} s, the solver {best[1]:.4f} s, {best[0] / best[1]:.2f} x")


def on_all_cores(row):
    """Print the time of the solver on one core and on all (the parallel SMO of Wei and Ren, with working sets)."""
    from symsvm._lib.threads import core_count, single_core

    work, _ = ours(row)
    work()
    with single_core():
        one = timed(work)[0]
    all_cores = timed(work)[0]
    print(f"{row.name}: {one:.3f} s on one core, {all_cores:.3f} s on {core_count()}, {one / all_cores:.2f} x")


def prediction():
    """Print the time of predicting 10 000 images with 3900 support vectors, together and one by one."""
    from sklearn.svm import SVC

    X, _ = digits("t10k")
    V, y = digits()
    V, y = V[:4000], np.where(y[:4000] < 5, -1.0, 1.0)
    peer = SVC(gamma=0.02, C=1e-6).fit(V, y)  # every point is a support vector
    assert len(peer.support_) >= 3900, len(peer.support_)
    V, q = peer.support_vectors_, peer.dual_coef_[0]
    expansion = Expansion(RBF.from_gamma(0.02), V)  # that of a model
    expand = {"symsvm": lambda X: expansion(X, q), "peer": lambda X: peer.decision_function(X)}
    expand["symsvm"](X)
    (mine, f), (theirs, g) = (timed(lambda of=of: of(X)) for of in expand.values())
    rows = [X[i : i + 1] for i in range(100)]
    (one, h), (other, _) = (timed(lambda of=of: np.concatenate([of(row) for row in rows])) for of in expand.values())
    scale, f = np.abs(q).max(), f + peer.intercept_[0]
    print(
        f"prediction, {len(X)} x {len(V)} x 784: {mine:.3f} s, scikit-learn {theirs:.3f} s, {theirs / mine:.1f} x; "
        f"one row {10 * one:.2f} ms, scikit-learn {10 * other:.2f} ms, {other / one:.2f} x; "
        f"largest difference {np.abs(f - g).max() / scale:.1e} of max|q|, "
        f"of rows predicted one by one {np.abs(h + peer.intercept_[0] - f[: len(h)]).max() / scale:.1e}"
    )


MEMORY = """
import sys, time
sys.path.insert(0, {here!r})
import symsvm
from peer_rows import synthetic
from peers import Peak
from symsvm import RBF, KernelDual, QuadraticProgram
small = synthetic(3000)
symsvm.solve(KernelDual(QuadraticProgram.c_svc(small[1], 1.0), small[0], RBF.from_gamma(1 / 20)))
X, y = synthetic({m})
with Peak() as peak:
    began = time.perf_counter()
    solution = symsvm.solve(KernelDual(QuadraticProgram.c_svc(y, 1.0), X, RBF.from_gamma(1 / 20)))
    seconds = time.perf_counter() - began
print(f"synthetic {m} x 20, C = 1: {{seconds:.2f}} s, {{solution.certificate}}; "
      f"peak memory beyond the data {{peak.megabytes:.0f}} MB", flush=True)
"""


def big(m=100_000, peer=True):
    """Print time and peak memory for 100 000 points, in a new process."""
    subprocess.run([sys.executable, "-c", MEMORY.format(here=str(Path(__file__).parent), m=m)], check=True)
    if peer:
        from sklearn.svm import SVC

        X, y = synthetic(m)
        began = time.perf_counter()
        SVC(C=1.0, gamma=1 / 20, cache_size=CACHE).fit(X, y)
        print(f"  scikit-learn: {time.perf_counter() - began:.1f} s")


def geometric(values):
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(list(values)))))


def summary(table, title):
    """Print the ratios of some rows; return their geometric means, to scikit-learn and to the best library of each."""
    to_sklearn = {name: t["scikit-learn"] / t["symsvm"] for name, t in table.items() if {*t} >= {*_BOTH}}
    to_best = {
        name: min(v for k, v in t.items() if k != "symsvm") / t["symsvm"]
        for name, t in table.items()
        if "symsvm" in t and len(t) > 1
    }
    if not to_sklearn:
        return None
    least = min(to_best, key=to_best.get)
    means = geometric(to_sklearn.values()), geometric(to_best.values())
    print(f"\n{title}: geometric means over {len(to_sklearn)} rows: {means[0]:.2f} x faster than scikit-learn,")
    print(f"{means[1]:.2f} x than the best other library of each row; at least {to_best[least]:.2f} x ({least})")
    return means


def medians(runs, title):
    """Print the geometric means of each run, and their medians."""
    if len(runs) > 1:
        text = ", ".join(f"{to_sklearn:.2f} / {to_best:.2f}" for to_sklearn, to_best in runs)
        middle = np.median(runs, axis=0)
        print(f"\n{title}: {text} x in {len(runs)} runs; medians {middle[0]:.2f} / {middle[1]:.2f} x")


# The rows of the chart, as they are called there; and its bars, each the best of its kinds of data.
TITLES = {
    "svmguide1": "svmguide1, 3089 x 4",
    "svmguide3": "svmguide3, 1243 x 22",
    "a9a": "a9a, 32 561 x 123",
    "cadata": "cadata, 20 640 x 8 (SVR)",
    "mnist": "MNIST, 10 000 x 784",
    "synth-1": "10 000 x 20, C = 1",
    "synth-100": "10 000 x 20, C = 100",
    "synth-1000": "10 000 x 20, C = 1000",
    "synth-30000": "30 000 x 20, C = 10",
}
BARS = {
    "scikit-learn-intelex float32": "#8fb8de",
    "scikit-learn-intelex float64": "#2b5d8a",
    "LIBSVM": "#b58a2e",
    "scikit-learn": "#c65b3c",
}


def chart(table, path):
    """Draw the times as multiples of symsvm's."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def ratio(times, bar):
        """The time of the best entry of a bar, relative to symsvm's; nan if it was not run."""
        name = bar.replace("scikit-learn-intelex", "sklearnex")
        found = [seconds for entry, seconds in times.items() if entry.split(",")[0] == name]
        return min(found, default=np.nan) / times["symsvm"]

    matplotlib.rcParams["svg.hashsalt"] = "symsvm"  # the same file from the same numbers
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(table) + 1.3))
    height = 0.8 / len(BARS)
    for k, (bar, colour) in enumerate(BARS.items()):
        at = [i + (k - len(BARS) / 2 + 0.5) * height for i in range(len(table))]
        widths = np.array([ratio(times, bar) - 1 for times in table.values()])
        axes.barh(at, widths, height, left=1.0, label=bar, color=colour)
    ticks = [1, 2, 3, 5, 10, 20, 40]
    axes.set(xscale="log", xlim=(1, None), yticks=range(len(table)), yticklabels=[TITLES[name] for name in table])
    axes.set_xticks(ticks, [f"{tick} x" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("time to the same tolerance, as a multiple of symsvm's")
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.tight_layout()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Date": None} if str(path).endswith(".svg") else None)


def main():
    """Print the tables and draw the chart."""
    (main_rows, large), untuned = rows(), untuned_rows()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [*main_rows, *large, *untuned, "kernel", "estimator", "cores", "prediction", "big"]
    parser.add_argument("--rows", nargs="+", default=every, choices=every, metavar="NAME", help=", ".join(every))
    parser.add_argument("--only", nargs="+", metavar="PEER", help="the libraries (default all)")
    parser.add_argument("--repeat", type=int, default=1, help="runs of the rows with a geometric mean (default 1)")
    parser.add_argument("--chart", default="out/peers.png", help="the file of the chart (default out/peers.png)")
    args = parser.parse_args()
    np.ones(2**29)  # the first access to a page is slow: it must not count for the first entry
    groups, means = {"main rows": main_rows, "rows that nothing was tuned for": untuned}, {}
    for turn in range(args.repeat):
        for title, group in groups.items():
            table = {name: compare(make(), args.only) for name, make in group.items() if name in args.rows}
            means.setdefault(title, []).append(summary(table, title))
            if group is main_rows and turn == 0 and table and all(len(t) > 1 for t in table.values()):
                chart(table, args.chart)
    for title, runs in means.items():
        if None not in runs:
            medians(runs, title)
    if set(large) & set(args.rows):
        print("\nLarge C")
        for name, make in large.items():
            if name in args.rows:
                compare(make(), args.only)
    print()
    if "kernel" in args.rows:
        own_kernel(main_rows["synth-100"]())
    if "estimator" in args.rows:
        for make in main_rows.values():
            through_the_estimator(make())
    if "cores" in args.rows:
        for name in ("a9a", "mnist", "synth-100", "synth-30000"):
            on_all_cores(main_rows[name]())
    if "prediction" in args.rows:
        prediction()
    if "big" in args.rows:
        big()


if __name__ == "__main__":
    main()
