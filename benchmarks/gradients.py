"""What a gradient of a solution costs beside the fit, in one run: `symsvm.argmin` against `program.run`, and QP layers.

    python benchmarks/gradients.py [--rows NAME ...] [--turns 5] [--tol 1e-8]

The loss is r.lam + b with r_i = y_i sin(c.x_i), so that copies of a point have the same r. Columns are the fit alone,
and as multiples of it the fit with the gradient by C and sigma, by a width for each feature, and by all points. All
have the same tolerance, they take turns, and the best turn of each counts; the first call, which compiles, does not.

`--rows layers` solves random problems of 100, 300 and 512 points with qpax and qpth, interior-point layers for JAX and
PyTorch, where these are installed: the fit and the gradient by C and sigma, and its error against central differences
of the exact solver. `--rows memory` prints the memory of 20 000 points above the data.
"""

import argparse
import importlib.util
import subprocess
import sys
import time
import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
from peer_rows import read, synthetic, two
from peers import Peak

import symsvm
from symsvm import RBF, Objective, argmin


class Problem:
    """A C-SVC in symbols, with a loss at held-out points, on the data of a row."""

    def __init__(self, X, y, C, gamma, tol):
        self.X, self.y = X, y
        c = np.random.default_rng(0).normal(size=X.shape[1])
        self.C, self.sigma, self.tol = C, (2 * gamma) ** -0.5, tol
        lam, points, labels = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y")
        upper, sigma, width = pt.dscalar("C"), pt.dscalar("sigma"), pt.dvector("width")

        def build(kernel):
            q = lam * labels
            W = 0.5 * q @ kernel(points, points) @ q - lam.sum()
            objective = Objective(W, lam, upper=upper, equality=(labels, 0.0), is_convex=True)
            v, b = argmin(objective, tol=tol)
            r = pytensor.gradient.disconnected_grad(labels * pt.sin(points @ c))
            return objective, (v * r).sum() + b

        objective, loss = build(RBF(sigma))
        _, loss_of_widths = build(RBF(width))
        self.program = symsvm.compile(objective, "auto")
        numbers = [points, labels, upper]

        def compiled(loss, inputs, wrt):
            return pytensor.function(inputs, [loss, *pytensor.grad(loss, wrt)])

        self.by_numbers = compiled(loss, [*numbers, sigma], [upper, sigma])
        self.by_points = compiled(loss, [*numbers, sigma], [points])
        self.by_widths = compiled(loss_of_widths, [*numbers, width], [upper, width])

    def entries(self):
        """Return what is measured, by name."""
        given = self.X, self.y, self.C
        widths = np.full(self.X.shape[1], self.sigma)
        return {
            "fit": lambda: self.program.run(tol=self.tol, X=self.X, y=self.y, C=self.C, sigma=self.sigma),
            "C, sigma": lambda: self.by_numbers(*given, self.sigma),
            "widths": lambda: self.by_widths(*given, widths),
            "points": lambda: self.by_points(*given, self.sigma),
        }


def a9a():
    X, y = read("a9a")
    return X, y, 1.0, 1 / X.shape[1]


def of_peers(row):
    return row.X, row.y, row.C, row.gamma


ROWS = {
    "svmguide1": lambda: of_peers(two("svmguide1", 2.0)),
    "synth-1": lambda: (*synthetic(10_000), 1.0, 1 / 20),
    "synth-100": lambda: (*synthetic(10_000), 100.0, 1 / 20),
    "a9a": a9a,
}


def compare(name, turns, tol):
    """Print a line: the fit, and what a gradient costs as a multiple of it."""
    problem = Problem(*ROWS[name](), tol)
    entries = problem.entries()
    best, first = {}, {}
    for turn in range(turns + 1):
        for key, run in entries.items():
            began = time.perf_counter()
            result = run()
            seconds = time.perf_counter() - began
            if turn:
                best[key] = min(best.get(key, np.inf), seconds)
            else:
                first[key] = seconds
                if key == "fit":
                    free = int(((result.lam > 0) & (result.lam < problem.C)).sum())
    ratios = "  ".join(f"{best[key] / best['fit']:8.2f}" for key in list(entries)[1:])
    print(
        f"{name:12} {len(problem.y):6} {free:6} {1000 * best['fit']:9.1f}  {ratios}    {first['C, sigma']:6.1f}",
        flush=True,
    )


# ---- interior-point layers


def small(m, seed=0):
    """Return a random problem of m points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5))
    y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
    return X, y, rng.normal(size=m)


def ours(X, y, r):
    """Return the function of (C, sigma) that gives r.lam and its gradient."""
    lam, C, sigma = pt.dvector("lam"), pt.dscalar("C"), pt.dscalar("sigma")
    q = lam * y
    W = 0.5 * q @ RBF(sigma)(pt.constant(X), pt.constant(X)) @ q - lam.sum()
    v, _ = argmin(Objective(W, lam, upper=C, equality=(pt.constant(y), 0.0), is_convex=True))
    f = pytensor.function([C, sigma], [(v * r).sum(), *pytensor.grad((v * r).sum(), [C, sigma])])
    return lambda C, sigma: [float(x) for x in f(C, sigma)]


def by_qpax(X, y, r):
    """The same by qpax's primal-dual interior-point method."""
    import jax
    import jax.numpy as jnp
    import qpax

    jax.config.update("jax_enable_x64", True)
    D, n = ((X[:, None] - X) ** 2).sum(axis=2), len(y)
    G, A = jnp.concatenate([-jnp.eye(n), jnp.eye(n)]), jnp.asarray(y)[None]

    @jax.jit
    @jax.value_and_grad
    def loss(theta):
        C, sigma = theta
        Q = jnp.exp(-D / (2 * sigma**2)) * y[:, None] * y + 1e-9 * jnp.eye(n)
        h = jnp.concatenate([jnp.zeros(n), C * jnp.ones(n)])
        return qpax.solve_qp_primal(Q, -jnp.ones(n), A, jnp.zeros(1), G, h) @ r

    def run(C, sigma):
        value, gradient = loss(jnp.array([C, sigma]))
        return [float(value), *map(float, gradient)]

    return run


def by_qpth(X, y, r):
    """The same by qpth's batched interior-point layer."""
    import torch
    from qpth.qp import QPFunction

    D, n = torch.tensor(((X[:, None] - X) ** 2).sum(axis=2)), len(y)
    labels, weights, eye = torch.tensor(y), torch.tensor(r), torch.eye(n, dtype=torch.float64)

    def run(C, sigma):
        C, sigma = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (C, sigma))
        Q = torch.exp(-D / (2 * sigma**2)) * labels[:, None] * labels + 1e-9 * eye
        h = torch.cat([torch.zeros(n, dtype=torch.float64), C * torch.ones(n, dtype=torch.float64)])
        lam = QPFunction(verbose=-1)(
            Q, -torch.ones(n).double(), torch.cat([-eye, eye]), h, labels[None], torch.zeros(1).double()
        )
        loss = (lam[0] * weights).sum()
        loss.backward()
        return [loss.item(), C.grad.item(), sigma.grad.item()]

    return run


def differences(f, C, sigma, h=1e-5):
    """Return the gradient of f by central differences of four points."""

    def along(a, b):
        at = [f(C + k * h * a, sigma + k * h * b)[0] for k in (-2, -1, 1, 2)]
        return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)

    return np.array([along(1, 0), along(0, 1)])


def layers(turns):
    """Print the time of a fit with its gradient, and the error of the gradient, of each layer."""
    known = {"symsvm": ours}
    for package, make in (("qpax", by_qpax), ("qpth", by_qpth)):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: pip install {package}")
        else:
            known[package] = make
    print(f"{'layer':8} {'m':>5} {'ms':>9} {'x symsvm':>9} {'error':>9}")
    for m in (100, 300, 512):
        X, y, r = small(m)
        exact, base = differences(ours(X, y, r), 1.3, 1.1), None
        for name, make in known.items():
            run = make(X, y, r)
            run(1.3, 1.1)
            best = np.inf
            for _ in range(turns):
                began = time.perf_counter()
                found = run(1.3, 1.1)
                best = min(best, time.perf_counter() - began)
            base = best if base is None else base
            error = np.abs(np.array(found[1:]) - exact).max() / np.abs(exact).max()
            print(f"{name:8} {m:5} {1000 * best:9.1f} {best / base:9.1f} {error:9.1e}", flush=True)


# ---- memory


def memory():
    """Print the memory above the data of 20 000 points, fit and gradient by C and sigma, in a process of its own."""
    X, y = synthetic(20_000)
    problem = Problem(X, y, 10.0, 1 / 20, 1e-3)
    small_X = X[:1000]
    problem.by_numbers(small_X, y[:1000], problem.C, problem.sigma)  # compiles
    with Peak() as peak:
        problem.by_numbers(problem.X, problem.y, problem.C, problem.sigma)
    print(f"20 000 x 20, C = 10: {peak.megabytes:.0f} MB above the data")


def main():
    """Run the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=[*ROWS, "layers", "memory"], choices=[*ROWS, "layers", "memory"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-8)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [name for name in arguments.rows if name in ROWS]
    if chosen:
        print(f"tol = {arguments.tol:g}; fit in ms, fit and gradient as multiples of it, first call in s")
        print(
            f"{'row':12} {'m':>6} {'free':>6} {'fit':>9}  {'C, sigma':>8}  {'widths':>8}  {'points':>8}    {'first':>6}"
        )
    for name in chosen:
        compare(name, arguments.turns, arguments.tol)
    if "layers" in arguments.rows:
        layers(arguments.turns)
    if arguments.rows == ["memory"]:
        memory()
    elif "memory" in arguments.rows:
        subprocess.run([sys.executable, __file__, "--rows", "memory"], check=True)


if __name__ == "__main__":
    main()
