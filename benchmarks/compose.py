"""Duals written by hand as sums beside the same problems as `KernelDual`, in one run.

    python benchmarks/compose.py [--rows NAME ...] [--m 2000 10000] [--turns 25]

A row solves one W twice: as an `Objective` whose W is a sum inside a sum, which is read, and as the `QuadraticProgram`
over a kernel that it should be. Both have the same tolerance, they take turns, and the best turn of each counts. `run`
is the ratio of times of `program.run`, `solve` that of `solve`, which includes compiling once more; `W differs`
is the relative difference of the objectives, computed in float64 from the data. No kernel has a width for each point:
that row is beside the C-SVC of the same size, and its W is not compared.

The rows `first` (a fresh process with a full compilation cache), `readme`, `large` and `logistic` measure other things.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
from sklearn.datasets import make_classification

import symsvm
from symsvm import RBF, KernelDual, Objective, Polynomial, QuadraticProgram, sum_over

C, EPSILON, NU, RIDGE, TOL = 10.0, 0.1, 0.3, 0.5, 1e-3
KERNEL = RBF.from_gamma(1 / 20)
MIXED = 0.3 * KERNEL + 0.7 * Polynomial(2, gamma=1 / 20)

# W is `scale` times the objective of the dual; None where the two are different problems of the same size.
Row = namedtuple("Row", "objective dual scale")


class Points:
    """A hard set of m points with 20 features, as arrays and as the symbols of a W.

    Attributes
    ----------
    arrays : dict
        X, the labels y, the targets t, the costs c and the widths s, and lam = 0 with one entry for each point.
    X, y, t, c, s, lam : SharedVariable
        The same as shared variables.
    """

    def __init__(self, m):
        X, y = make_classification(m, 20, n_informative=10, flip_y=0.05, random_state=0)
        rng = np.random.default_rng(0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        t = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=m)
        self.m = m
        self.arrays = {"X": X, "y": 2.0 * y - 1, "t": t, "c": rng.uniform(1.0, C, m), "s": rng.uniform(2.0, 4.0, m)}
        self.arrays |= {"lam": np.zeros(m)}
        self.X, self.y, self.t, self.c, self.s, self.lam = (pytensor.shared(v, name=n) for n, v in self.arrays.items())

    def dual(self, program, kernel=KERNEL):
        """Return a program over the points."""
        return KernelDual(program, self.arrays["X"], kernel)


def double_sum(q, X, kernel=KERNEL):
    """Return sum_i q_i sum_j q_j K(x_i, x_j)."""
    return sum_over(lambda q_i, x_i: q_i * sum_over(lambda q_j, x_j: q_j * kernel.pair(x_i, x_j), q, X), q, X)


# ---- classification


def c_svc(p, W, scale=1.0, upper=C):
    """Return the row of a C-SVC."""
    objective = Objective(W, variable=p.lam, lower=0.0, upper=upper, equality=(p.y, 0.0))
    return Row(objective, p.dual(QuadraticProgram.c_svc(p.arrays["y"], upper)), scale)


def outside(p):
    """C-SVC, labels outside the inner sum: q = lam y."""
    return c_svc(p, 0.5 * double_sum(p.lam * p.y, p.X) - p.lam.sum())


def inside(p):
    """C-SVC, labels inside both sums, as in the paper."""

    def inner(x_i):
        return sum_over(lambda lam_j, y_j, x_j: lam_j * y_j * KERNEL.pair(x_i, x_j), p.lam, p.y, p.X)

    twice = sum_over(lambda lam_i, y_i, x_i: lam_i * y_i * inner(x_i), p.lam, p.y, p.X)
    return c_svc(p, 0.5 * twice - p.lam.sum())


def outer(p):
    """C-SVC with pt.outer."""
    q = p.lam * p.y
    return c_svc(p, 0.5 * (pt.outer(q, q) * KERNEL(p.X)).sum() - p.lam.sum())


def matrix(p):
    """C-SVC as q K q."""
    q = p.lam * p.y
    return c_svc(p, 0.5 * q @ KERNEL(p.X, p.X) @ q - p.lam.sum())


def mean(p):
    """C-SVC, W divided by m."""
    return c_svc(p, (0.5 * double_sum(p.lam * p.y, p.X) - p.lam.sum()) / p.m, scale=1 / p.m)


def costs(p):
    """C-SVC with a C for each point."""
    return c_svc(p, 0.5 * double_sum(p.lam * p.y, p.X) - p.lam.sum(), upper=p.arrays["c"])


def squared(p):
    """Squared hinge: lam_i^2 / (4 C)."""
    W = 0.5 * double_sum(p.lam * p.y, p.X) - p.lam.sum() + (p.lam**2).sum() / (4 * C)
    objective = Objective(W, variable=p.lam, lower=0.0, upper=np.inf, equality=(p.y, 0.0))
    return Row(objective, p.dual(QuadraticProgram.c_svc(p.arrays["y"], C, squared=True)), 1.0)


def bias(p):
    """Bias in the weights: + (y.lam)^2 / 2, no equality."""
    W = 0.5 * double_sum(p.lam * p.y, p.X) - p.lam.sum() + 0.5 * (p.lam * p.y).sum() ** 2
    program = QuadraticProgram.c_svc(p.arrays["y"], C, intercept=False)
    return Row(Objective(W, variable=p.lam, lower=0.0, upper=C), p.dual(program, KERNEL + 1.0), 1.0)


def nu_svc(p):
    """nu-SVC, two equalities."""
    y = p.arrays["y"]
    nu = NU * 2 * min(np.mean(y > 0), np.mean(y < 0))
    equality = np.stack([y > 0, y < 0]).astype("float64"), np.full(2, nu * p.m / 2)
    objective = Objective(0.5 * double_sum(p.lam * p.y, p.X), variable=p.lam, lower=0.0, upper=1.0, equality=equality)
    return Row(objective, p.dual(QuadraticProgram.nu_svc(y, nu)), 1.0)


def kernels(p):
    """Two kernels with fixed weights."""
    W = 0.5 * double_sum(p.lam * p.y, p.X, 0.3 * KERNEL) - p.lam.sum()
    W = W + 0.5 * double_sum(p.lam * p.y, p.X, 0.7 * Polynomial(2, gamma=1 / 20))
    objective = Objective(W, variable=p.lam, lower=0.0, upper=C, equality=(p.y, 0.0))
    return Row(objective, p.dual(QuadraticProgram.c_svc(p.arrays["y"], C), MIXED), 1.0)


def widths(p):
    """A width for each point inside K (beside a C-SVC)."""

    def K(x, s, z, r):
        return pt.exp(-((x - z) ** 2).sum() / (s**2 + r**2))

    def inner(x, s):
        return sum_over(lambda lam, y, z, r: lam * y * K(x, s, z, r), p.lam, p.y, p.X, p.s)

    W = 0.5 * sum_over(lambda lam, y, x, s: lam * y * inner(x, s), p.lam, p.y, p.X, p.s) - p.lam.sum()
    return c_svc(p, W, scale=None)


# ---- regression, density, least squares


def svr(p):
    """epsilon-SVR in beta, with |beta|."""
    W = 0.5 * double_sum(p.lam, p.X) - (p.t * p.lam).sum() + EPSILON * pt.abs(p.lam).sum()
    objective = Objective(W, variable=p.lam, lower=-C, upper=C, equality=(np.ones(p.m), 0.0))
    return Row(objective, p.dual(QuadraticProgram.svr(p.arrays["t"], C, EPSILON)), 1.0)


def stacked(p):
    """epsilon-SVR in (alpha, alpha')."""
    both = pytensor.shared(np.zeros(2 * p.m), name="both")
    beta = both[: p.m] - both[p.m :]
    W = 0.5 * double_sum(beta, p.X) - (p.t * beta).sum() + EPSILON * both.sum()
    objective = Objective(W, variable=both, lower=0.0, upper=C, equality=(np.repeat([1.0, -1.0], p.m), 0.0))
    return Row(objective, p.dual(QuadraticProgram.svr(p.arrays["t"], C, EPSILON)), 1.0)


def one_class(p):
    """One-class."""
    equality = np.ones(p.m), NU * p.m
    objective = Objective(0.5 * double_sum(p.lam, p.X), variable=p.lam, lower=0.0, upper=1.0, equality=equality)
    return Row(objective, p.dual(QuadraticProgram.one_class(np.ones(p.m), NU)), 1.0)


def svdd(p):
    """SVDD: sum_ij lam_i lam_j K_ij - sum_i lam_i K_ii, in units of lam nu m."""
    total = NU * p.m
    W = double_sum(p.lam, p.X, MIXED) - total * (p.lam * MIXED.diag(p.X)).sum()
    objective = Objective(W, variable=p.lam, lower=0.0, upper=1.0, equality=(np.ones(p.m), total))
    diagonal = MIXED.diag(pt.as_tensor(p.arrays["X"])).eval(mode="FAST_COMPILE")
    zero, one = np.zeros(p.m), np.ones(p.m)
    program = QuadraticProgram(
        -total * diagonal, zero, one, p.m, np.zeros(p.m, dtype="int64"), np.array([total]), zero, 0.0
    )
    return Row(objective, p.dual(program, 2.0 * MIXED), 1.0)


def least_squares(p, p_z, equality):
    """Return the program without bounds, with a diagonal."""
    free = np.full(p.m, np.inf)
    group = np.zeros(p.m, dtype="int64") if equality else np.full(p.m, -1)
    total = np.zeros(1 if equality else 0)
    return p.dual(QuadraticProgram(p_z, -free, free, p.m, group, total, np.full(p.m, RIDGE), 0.0))


def ridge(p):
    """Kernel ridge regression."""
    W = 0.5 * double_sum(p.lam, p.X) - (p.t * p.lam).sum() + 0.5 * RIDGE * (p.lam**2).sum()
    objective = Objective(W, variable=p.lam, lower=-np.inf, upper=np.inf)
    return Row(objective, least_squares(p, -p.arrays["t"], False), 1.0)


def ls_svm(p):
    """LS-SVM."""
    W = 0.5 * double_sum(p.lam * p.y, p.X) - p.lam.sum() + 0.5 * RIDGE * (p.lam**2).sum()
    objective = Objective(W, variable=p.lam, lower=-np.inf, upper=np.inf, equality=(p.y, 0.0))
    return Row(objective, least_squares(p, -p.arrays["y"], True), 1.0)


_CLASSIFIERS = (outside, inside, outer, matrix, mean, costs, squared, bias, nu_svc, kernels, widths)
_OTHERS = (svr, stacked, one_class, svdd, ridge, ls_svm)
FAMILIES = {f.__name__: f for f in (*_CLASSIFIERS, *_OTHERS)}


# ---- (a) times and W


def in_turns(entries, turns, limit=15.0):
    """Return the least time of each entry and its last result; the entries take turns, fewer if these are long."""
    least, result, began = dict.fromkeys(entries, np.inf), {}, time.perf_counter()
    for turn in range(turns):
        for name, work in entries.items():
            time.sleep(0.02)  # threads of the previous turn finish
            start = time.perf_counter()
            result[name] = work()
            least[name] = min(least[name], time.perf_counter() - start)
        if turn >= 2 and time.perf_counter() - began > limit:
            break
    return least, result


def compare(name, m, turns):
    """Print the row of one family at m points; return the ratio of the runs."""
    row = FAMILIES[name](Points(m))
    tol = TOL * (row.scale or 1.0)  # the violation is one of W
    programs = symsvm.compile(row.objective, "auto"), symsvm.compile(row.dual, "auto")
    entries = {
        "run": lambda: programs[0].run(tol=tol),
        "dual run": lambda: programs[1].run(tol=TOL),
        "solve": lambda: symsvm.solve(row.objective, tol=tol),
        "dual solve": lambda: symsvm.solve(row.dual, tol=TOL),
    }
    for work in entries.values():
        work()  # compiles the loops
    least, result = in_turns(entries, turns)
    ours, theirs = result["run"], result["dual run"]
    assert isinstance(programs[0].solver, symsvm.Decomposition)
    difference = "-" if row.scale is None else f"{abs(ours.W / row.scale - theirs.W) / abs(theirs.W):.1e}"
    ratio = least["run"] / least["dual run"]
    print(
        f"{name:12} {m:6} {1e3 * least['dual run']:9.1f} {1e3 * least['run']:9.1f} {ratio:7.2f} "
        f"{least['solve'] / least['dual solve']:7.2f} {difference:>9} {theirs.n_iter:6} {ours.n_iter:5}  "
        f"{ours.certificate.status:10} {FAMILIES[name].__doc__}",
        flush=True,
    )
    return ratio


def table(names, sizes, turns):
    """Print the families at each size."""
    print(f"tol {TOL:g}, C = {C:g}, RBF with gamma 1/20; best of at most {turns} turns, milliseconds")
    print(
        f"{'':12} {'m':>6} {'dual':>9} {'W':>9} {'run':>7} {'solve':>7} {'W differs':>9} {'steps':>6} {'':5}  "
        f"{'':10} run and solve: the time of W / that of the KernelDual"
    )
    for m in sizes:
        ratios = [compare(name, m, turns) for name in names]
        print(f"{'':12} {m:6} geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}\n")


# ---- (b) the first call of a process


FIRST = """
import sys; sys.path.insert(0, {here!r})
import compose, time
points = compose.Points({m})
began = time.perf_counter()
row = compose.FAMILIES[{name!r}](points)
began = began if {which!r} == "objective" else time.perf_counter()  # a KernelDual needs no graph of W
compose.symsvm.solve(row.{which}, tol=compose.TOL).b
print(time.perf_counter() - began)
"""


def first_call(name, which, m, turns):
    """Return the least time from the data to the first solution over some fresh processes, after one that compiles."""
    code = FIRST.format(here=str(Path(__file__).parent), m=m, name=name, which=which)
    found = []
    for _ in range(turns + 1):
        out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
        found.append(float(out.stdout))
    return min(found[1:])


def first(names, turns, m=500):
    """Print what the first call costs more, with writing W, in a fresh process with a full compilation cache."""
    print(f"the first call in a process, m = {m}: seconds from the data to the solution")
    print(f"{'':12} {'dual':>7} {'W':>7} {'more':>7}")
    for name in names:
        ours, theirs = (first_call(name, which, m, turns) for which in ("objective", "dual"))
        print(f"{name:12} {theirs:7.2f} {ours:7.2f} {ours - theirs:+7.2f}", flush=True)
    print()


# ---- (c) the README's own example


def readme():
    """Print which solver took the example of the README."""
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "symsvm.Objective(" in b)
    scope = {"__name__": "__main__"}
    lines = [line for line in block.splitlines() if "explain" not in line]
    exec(compile("\n".join(lines), "README.md", "exec"), scope)
    print(f"the README's example is solved by {symsvm.compile(scope['objective'], 'auto').solver!r}\n")


# ---- (d) many points


LARGE = """
import sys; sys.path.insert(0, {here!r})
import compose
compose.own_kernel(2000)
import gc; gc.collect()
print(*compose.own_kernel({m}))
"""


def memory(name):
    """Return a number of /proc/self/status in MB (Linux); `ru_maxrss` of a new process includes that of its parent."""
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) / 1024


def own_kernel(m):
    """Return the seconds of a W over m points with a kernel of one's own, and the peak memory above the data in MB."""
    kernel = symsvm.pair_kernel(lambda x, z, s: (1 + ((x - z) ** 2).sum() / s) ** -1.0, s=40.0)
    p = Points(m)
    W = 0.5 * double_sum(p.lam * p.y, p.X, kernel) - p.lam.sum()
    objective = Objective(W, variable=p.lam, lower=0.0, upper=1.0, equality=(p.y, 0.0))
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before, began = memory("VmRSS"), time.perf_counter()
    solution = symsvm.solve(objective, tol=TOL)
    seconds = time.perf_counter() - began
    status = solution.certificate.status
    return f"{seconds:.2f}", f"{memory('VmHWM') - before:.0f}", status, solution.n_iter


def large(m=50_000):
    """Print time and memory of a W over many points, in a new process."""
    code = LARGE.format(here=str(Path(__file__).parent), m=m)
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    seconds, megabytes, status, steps = out.stdout.split()
    print(
        f"m = {m}, a pair_kernel of one's own, C = 1: {seconds} s, {steps} steps, {status}; "
        f"peak memory above the data {megabytes} MB\n"
    )


# ---- (e) kernel logistic regression


def logistic(m=10_000, most=20.0):
    """Print the time of kernel logistic regression, and how far FISTA is after `most` times as long.

    phi(lam) = lam log(lam / C) + (C - lam) log(1 - lam / C) for each point; its slope is infinite at both bounds.
    """
    p = Points(m)
    share = p.lam / C
    entropy = C * (share * pt.log(share) + (1 - share) * pt.log1p(-share)).sum()
    objective = Objective(
        0.5 * double_sum(p.lam * p.y, p.X) + entropy, variable=p.lam, lower=0.0, upper=C, equality=(p.y, 0.0)
    )
    counts = np.where(p.arrays["y"] > 0, np.sum(p.arrays["y"] > 0), np.sum(p.arrays["y"] < 0))
    start = 0.5 * C * counts.min() / counts  # inside the bounds, on the equality
    symsvm.solve(objective, tol=TOL)
    began = time.perf_counter()
    solution = symsvm.solve(objective, tol=TOL)
    seconds = time.perf_counter() - began
    gap = solution.certificate.gap / abs(solution.W)
    print(f"kernel logistic regression, m = {m}: {seconds:.2f} s, {solution.certificate}, relative gap {gap:.1e}")
    slow = symsvm.compile(objective, symsvm.AcceleratedGradient())
    slow.run(start, tol=TOL, max_iter=2)
    target = solution.W + max(1e-6 * abs(solution.W), solution.certificate.gap)
    began = time.perf_counter()
    other = slow.run(start, tol=TOL, max_iter=10**6, time_limit=most * seconds, callback=lambda info: info.W <= target)
    spent = time.perf_counter() - began
    reached = (other.W - solution.W) / abs(solution.W)
    print(f"  FISTA: {spent / seconds:.1f} x the time, stopped by {other.stopped}, W {reached:+.1e} relative\n")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [*FAMILIES, "first", "readme", "large", "logistic"]
    parser.add_argument("--rows", nargs="+", default=every, choices=every, metavar="NAME", help=", ".join(every))
    parser.add_argument("--m", nargs="+", type=int, default=[2000, 10_000], help="numbers of points")
    parser.add_argument("--turns", type=int, default=25, help="turns of each entry (default 25), fewer of long ones")
    args = parser.parse_args()
    names = [name for name in FAMILIES if name in args.rows]
    np.ones(2**28)  # the first access to a page is slow: it must not count for the first entry
    if names:
        table(names, args.m, args.turns)
    if "first" in args.rows:
        first(names or list(FAMILIES), 3)
    if "readme" in args.rows:
        readme()
    if "large" in args.rows:
        large()
    if "logistic" in args.rows:
        logistic()


if __name__ == "__main__":
    main()
