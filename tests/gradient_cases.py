"""Random problems for gradients of solutions: every machine, kernel and parameter, against central differences.

A loss of the solution is r.lam + s.b with random r and s. Its gradient by one parameter, along a random direction, is
compared with a difference of four points. Where the free set differs between the points, the function has a kink
there, and the case says so instead.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.traversal import graph_inputs

from symsvm import RBF, Laplacian, Objective, Polynomial, argmin, pair_kernel
from symsvm.implicit import GradientWarning
from symsvm.objectives import dual, machine_duals

__all__ = ["KERNELS", "MACHINES", "Gradients", "Report"]

FEATURES = 3
# The difference of four points has an error of h^4 and one of rounding, eps |loss| / h.
STEP, RELATIVE, ROUNDING = 2e-5, 1e-7, 2e-9


def kernels():
    """name -> (kernel, the ranges of its numbers, whether it is smooth where points coincide)."""
    sigma, width, a, gamma, coef0 = (pt.dscalar(name) for name in ("sigma", "width", "a", "gamma", "coef0"))
    widths = pt.dvector("widths")
    own = pair_kernel(lambda x, z, scale: pt.exp(-pt.sqrt(((x - z) ** 2).sum() + 0.01) / scale), scale=sigma)
    ranges = {"sigma": (0.5, 3.0), "width": (0.5, 3.0), "a": (0.2, 2.0), "gamma": (0.1, 1.0), "coef0": (0.1, 2.0)}
    return {
        "rbf": (RBF(sigma), {"sigma": ranges["sigma"]}, True),
        "composed": (a * RBF(sigma) + Laplacian(width) * Polynomial(2, gamma, coef0), ranges, False),
        "pair": (own, {"sigma": ranges["sigma"]}, True),
        "widths": (RBF(widths), {"widths": ((0.5,) * FEATURES, (3.0,) * FEATURES)}, True),
    }


KERNELS = tuple(kernels())


def machines(kernel):
    """name -> (objective, what y is, the ranges of its numbers)."""
    lam, X, y, C = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y"), pt.dvector("C")
    epsilon, ones = pt.dscalar("epsilon"), pt.ones_like(y)
    tube, nu = {"epsilon": (0.05, 0.3)}, {"nu": (0.2, 0.5)}

    def form(q):
        return 0.5 * dual.double_sum(q, X, kernel)

    def written(W, lower=0.0, upper=np.inf, equality=(y, 0.0)):
        return Objective(W, lam, lower=lower, upper=upper, equality=equality, is_convex=True)

    p, share = lam / C, form(lam * y)
    entropy = (C * (p * pt.log(p) + (1 - p) * pt.log(1 - p))).sum()
    return {
        "csvc": (machine_duals.c_svc_dual(kernel), "labels", {}),
        "no intercept": (machine_duals.c_svc_dual(kernel, intercept=False), "labels", {}),
        "svr": (machine_duals.svr_dual(kernel), "targets", tube),
        "nusvc": (machine_duals.nu_svc_dual(kernel), "labels", nu),
        "nusvr": (machine_duals.nu_svr_dual(kernel), "targets", {"nu": (0.03, 0.12)}),  # more, and the tube may vanish
        "one-class": (machine_duals.one_class_dual(kernel), None, nu),
        "squared hinge": (written(share - lam.sum() + (lam**2 / (4 * C)).sum()), "labels", {}),
        "|beta|": (
            written(form(lam) - (y * lam).sum() + epsilon * abs(lam).sum(), -C, C, (ones, 0.0)),
            "targets",
            tube,
        ),
        "ls-svm": (written(share - lam.sum() + 0.5 * (lam**2 / C).sum(), -np.inf), "labels", {}),
        "svdd": (written(2 * form(lam) - (lam * kernel(X, X).diagonal()).sum(), 0.0, C, (ones, 2.0)), None, {}),
        "logistic": (written(share + entropy, 0.0, C), "labels", {}),
    }


MACHINES = tuple(machines(RBF(1.0)))


@dataclass
class Report:
    """What came of some problems: the derivatives that were compared, kinks, doubtful ones, the worst error."""

    compared: int = 0
    kinks: int = 0
    doubtful: int = 0
    infeasible: int = 0
    worst: float = 0.0
    broken: list = field(default_factory=list)


class Gradients:
    """The loss of one machine over one kernel, and its gradient by every parameter, compiled once."""

    def __init__(self, machine, kernel, mode="FAST_COMPILE"):
        self.kernel, of_kernel, self.is_smooth = kernels()[kernel]
        objective, self.kind, of_machine = machines(self.kernel)[machine]
        self.name, self.ranges, self.machine = f"{machine}, {kernel}", of_kernel | of_machine, machine
        v, b = argmin(objective, tol=1e-10)
        r, s = pt.dvector("r"), pt.dvector("s")
        loss = (v * r).sum() + (pt.atleast_1d(b) * s).sum()
        found = {x.name: x for x in graph_inputs([loss]) if x.name}
        self.inputs = [name for name in found if name not in ("r", "s")]
        self.names = [name for name in self.inputs if name != "y" or self.kind == "targets"]
        inputs = [found[name] for name in self.inputs]
        options = {"mode": mode, "on_unused_input": "ignore"}
        wanted = [found[name] for name in self.names]
        self.value = pytensor.function([*inputs, r, s], [loss, v], **options)
        self.gradient = pytensor.function([*inputs, r, s], pytensor.grad(loss, wanted), **options)

    def problem(self, rng):
        """Draw the data of a problem: with copies of points, zero weights, empty free sets."""
        m = int(rng.integers(6, 25))
        X = rng.normal(size=(m, FEATURES))
        if not self.is_smooth:  # no two points are close in a feature, where |x - z| has its kink
            X = 4 * (np.argsort(X, axis=0) + 0.5 * rng.random((m, FEATURES))) / m - 2
        elif rng.random() < 0.3:
            X[m // 2] = X[0]
        y = np.where(X[:, 0] + 0.7 * rng.normal(size=m) > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        if self.kind == "targets":
            y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=m)
        C, weight = 10 ** rng.uniform(-1, 2) * rng.uniform(0.5, 2, m), rng.uniform(0.5, 2, m)
        if rng.random() < 0.3:  # a point that does not count
            weight[-1] = 0.0
            C[-1] = 0.0 if self.machine in ("csvc", "no intercept", "svr", "|beta|") else C[-1]
        data = {"X": X, "y": y, "C": C, "weight": weight}
        data |= {name: np.asarray(rng.uniform(*ends)) for name, ends in self.ranges.items()}
        n, count = (2 * m if self.machine in ("svr", "nusvr") else m), 2 if self.machine in ("nusvc", "nusvr") else 1
        return {name: data[name] for name in self.inputs}, (rng.normal(size=n), rng.normal(size=count))

    def compare(self, rng, report):
        """Draw a problem and compare the derivatives by all parameters."""
        data, tail = self.problem(rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", GradientWarning)
                loss, _ = self.value(*data.values(), *tail)
                gradient = self.gradient(*data.values(), *tail)
        except GradientWarning:
            report.doubtful += 1
            return
        except ValueError as error:
            if "no point is feasible" not in str(error):
                raise
            report.infeasible += 1
            return
        for name, g in zip(self.names, gradient, strict=True):
            x = data[name]
            direction = rng.normal(size=np.shape(x)) * (x != 0)  # weights of 0 stay: their derivative is one-sided
            size = max(1e-3, np.abs(x).max())
            points = [self._at(data | {name: x + k * STEP * size * direction}, tail) for k in (-2, -1, 1, 2)]
            if any(point is None or (point[1] != points[0][1]).any() for point in points if points[0] is not None):
                report.kinks += 1
                continue
            below2, below, above, above2 = (value for value, _ in points)
            difference = (below2 - 8 * below + 8 * above - above2) / (12 * STEP * size)
            exact = float((g * direction).sum())
            allowed = RELATIVE * max(abs(exact), float(np.abs(g * direction).sum())) + ROUNDING * abs(loss) / size
            error = abs(difference - exact) / allowed if allowed else 0.0
            report.compared += 1
            report.worst = max(report.worst, error)
            if not error <= 1:
                report.broken.append((self.name, name, exact, difference))

    def _at(self, data, tail):
        """The loss, and which variables are free or at which bound; None where there is no solution."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value, v = self.value(*data.values(), *tail)
        except ValueError:
            return None
        bound = data.get("C" if self.machine not in ("nusvc", "one-class") else "weight")
        upper = np.tile(bound, len(v) // len(bound))
        if self.machine in ("squared hinge", "ls-svm"):
            upper = np.inf
        lower = -upper if self.machine in ("|beta|", "ls-svm") else 0.0
        slack = 1e-9 * max(1.0, float(np.abs(v).max()))
        return float(value), (v - lower > slack) + 2 * (upper - v > slack) + 4 * (np.abs(v) > slack)
