"""PrimalRisk: a linear support vector machine by its weights, with any of the four losses."""

import functools

import numpy as np
import pytensor
import pytensor.tensor as pt

from symsvm._lib.validation import choice, number, points
from symsvm.objectives.certificate import Certificate, infeasibility
from symsvm.objectives.cutting_planes import CuttingPlanes
from symsvm.objectives.losses import LOSSES
from symsvm.objectives.objective import Objective
from symsvm.objectives.primal import affine
from symsvm.objectives.quadratic_program import QuadraticProgram
from symsvm.objectives.sums import sum_over

__all__ = ["PrimalRisk", "norm", "risk"]


def norm(theta, b, reg_b=0.0):
    """The regulariser 1/2 |theta|^2 + 1/2 reg_b b^2."""
    return 0.5 * ((theta**2).sum() + reg_b * b**2)


def risk(theta, b, X, y, C, loss, reg_b=0.0):
    """P = 1/2 |theta|^2 + 1/2 reg_b b^2 + sum_i C_i loss(y_i, <theta, x_i> + b) (Eq. 002:1.6, 002:1.9).

    `reg_b` is 1 where the bias is a weight of its own, of a feature that is 1 (Eq. 002:1.9, 002:2.6), and 0 where
    it is free (Eq. 002:1.6). With C_i = 1 / m the sum is the empirical risk (Eq. 003:28).
    """
    return norm(theta, b, reg_b) + sum_over(lambda x_i, y_i, C_i: C_i * loss(y_i, affine(x_i, theta, b)), X, y, C)


class PrimalRisk(Objective):
    """The regularised risk of a linear machine over v = (theta, b) (Eq. 002:1.6, 002:1.9, 002:1.10, 002:2.6).

        minimise P(v) = R(v) + sum_i C_i loss(y_i, <theta, x_i> + b)

    with R = 1/2 |theta|^2 for a bias that is free or left out, and 1/2 |theta|^2 + 1/2 b^2 for one that is embedded.

    A minimiser lies in a box that is known before, and the box is the feasible set. P is strongly convex in theta, so
    P(0) >= P* + 1/2 |theta*|^2 >= |theta*|^2, whence |theta*| <= R = sqrt(P(0)). A free b beyond the largest |y_i| +
    R |x_i| only costs (|y_i| is 1 for labels).

    The certificate's gap is P - D, D the dual objective at a feasible point that follows from the slopes of the losses;
    see `cutting_planes`. `violation` is the gap relative to P, and a point is optimal if it is at most tol.

    Parameters
    ----------
    X, y : the points (m, d), and labels -1 and +1 or targets (m,).
    C : the price of a loss, a number or one a point.
    loss : "hinge", "squared_hinge", "epsilon_insensitive" or "squared_epsilon_insensitive".
    epsilon : half the width of the tube, of the two losses that have one.
    bias : "embedded", "free" or None for no b; then v = theta.

    >>> from symsvm import compile
    >>> from symsvm.solvers import AdaGrad
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> solution = compile(PrimalRisk(X, y, bias="free"), AdaGrad(), mode="FAST_COMPILE").run(tol=1e-2)
    >>> solution.certificate.status, solution.lam.round(1).tolist()
    ('optimal', [1.3, 0.3])
    """

    problem = "primal"

    def __init__(self, X, y, C=1.0, loss="hinge", *, epsilon=0.1, bias="embedded"):
        self.X = points(X)
        m, d = self.X.shape
        self.y, self.C = _vector(y, "y", m), _vector(C, "C", m)
        if (self.C < 0).any() or not (self.C > 0).any():
            raise ValueError("C must be positive; one of 0 takes a point out.")
        call, self.classifies, self.is_smooth = LOSSES[choice(loss, "loss", tuple(LOSSES))]
        if self.classifies and not np.isin(self.y, (-1.0, 1.0)).all():
            raise ValueError("y must hold the labels -1 and +1; symsvm.data.signs turns any two labels into them.")
        self.loss, self.epsilon = loss, 0.0 if self.classifies else number(epsilon, "epsilon")
        if self.epsilon < 0:
            raise ValueError(f"epsilon must be at least 0, got {epsilon!r}.")
        self.bias = bias if bias is None else choice(bias, "bias", ("embedded", "free"))
        v = pytensor.shared(np.zeros(d + (bias is not None)), name="v")
        X, y, C = (pytensor.shared(a, name=name) for a, name in ((self.X, "X"), (self.y, "y"), (self.C, "C")))
        if not self.classifies:
            width = pytensor.shared(np.float64(self.epsilon), name="epsilon")
            of_tube, call = call, lambda y_i, f_i: of_tube(y_i, f_i, width)
        theta, b = (v, 0.0) if bias is None else (v[:-1], v[-1])
        value = risk(theta, b, X, y, C, call, float(bias == "embedded"))
        bound = self._bound()
        box = (pytensor.shared(a, name=name) for a, name in ((-bound, "lower"), (bound, "upper")))
        super().__init__(value, v, *box, is_convex=True)
        i = pt.lscalar("i")
        self.m = m
        # P is the mean of these over i.
        self.row = i, norm(theta, b, float(bias == "embedded")) + m * C[i] * call(y[i], affine(X[i], theta, b))

    @property
    def convexity(self):
        """How strongly P is convex in each coordinate: what R weighs, 1, or 0 for a free bias."""
        ones = np.ones(self.X.shape[1] + (self.bias is not None))
        if self.bias == "free":
            ones[-1] = 0.0
        return ones

    @property
    def curvature(self):
        """L = 1 + 2 |sum_i C_i x_i x_i'|, a Lipschitz constant of the gradient of P where the loss is squared.

        1 / L is a step size that needs no luck. x_i has the bias as a feature.
        """
        if not self.is_smooth:
            raise ValueError(f"the gradient of {self.loss!r} jumps, and has no Lipschitz constant.")
        rows = np.sqrt(2 * self.C)[:, None] * self.features(self.X)
        return 1.0 + float(np.linalg.norm(rows, 2)) ** 2

    @functools.cached_property
    def dual(self):
        """The `QuadraticProgram` that it is the primal of, over <x_i, x_j>, and + 1 where the bias is embedded."""
        options = {"squared": self.is_smooth, "intercept": self.bias == "free"}
        if self.classifies:
            return QuadraticProgram.c_svc(self.y, self.C, **options)
        return QuadraticProgram.svr(self.y, self.C, self.epsilon, **options)

    def features(self, Z):
        """The rows of Z, with a last feature 1 if there is a bias."""
        Z = points(Z)
        return Z if self.bias is None else np.column_stack([Z, np.ones(len(Z))])

    def decision(self, Z, v):
        """<theta, z> + b for the rows of Z, in NumPy."""
        return self.features(Z) @ v

    def at(self, v):
        """P(v), in NumPy."""
        f = self.decision(self.X, v)
        short = 1 - self.y * f if self.classifies else np.abs(self.y - f) - self.epsilon
        loss = np.maximum(short, 0.0) ** (2 if self.is_smooth else 1)
        return float(0.5 * np.sum(self.convexity * v**2) + np.sum(self.C * loss))

    def certifier(self, lower, upper, equality, tol):
        """A function (v, P, g) -> `Certificate` for the points of one run, which remembers their tangents."""
        tangents = CuttingPlanes(self.convexity, lower, upper)

        def certify(v, P, g):
            known = tangents if np.asarray(g).dtype == "float64" else None  # rounded tangents may cut into P
            return self.certificate(v, P, g, lower, upper, equality, tol=tol, tangents=known)

        return certify

    def certificate(self, v, P, g, lower, upper, equality, *, tol, tangents=None):
        """Certify v from the tangent there, and from those before if they are given."""
        tangents = CuttingPlanes(self.convexity, lower, upper) if tangents is None else tangents
        outside = infeasibility(v, lower, upper)
        b = None if self.bias is None else float(v[-1])
        if not np.isfinite([P, outside]).all():
            return Certificate(float(P), outside, np.inf, b, None, None, None, "diverged", tol)
        dual = tangents.add(v, P, g)
        gap = max(float(P) - dual, 0.0)
        violation = gap / P if gap else 0.0
        word = "infeasible" if outside > 0 else "optimal" if violation <= tol else "feasible"
        return Certificate(float(P), outside, violation, b, float(P), dual, gap, word, tol)

    def _bound(self):
        """Half the widths of the box."""
        middle = np.median(self.y) if self.bias == "free" and not self.classifies else 0.0
        at_0 = np.ones(len(self.y)) if self.classifies else np.maximum(np.abs(self.y - middle) - self.epsilon, 0.0)
        R = np.sqrt(np.sum(self.C * at_0 ** (2 if self.is_smooth else 1)))
        bound = np.full(len(self.convexity), R)
        if self.bias == "free":
            bound[-1] = np.max(np.abs(self.y) + R * np.linalg.norm(self.X, axis=1))
        return bound

    def __repr__(self):
        return f"PrimalRisk({self.loss}, {len(self.y)} points, {self.X.shape[1]} features, bias={self.bias!r})"


def _vector(value, name, m):
    array = np.asarray(value, dtype="float64")
    array = np.array(np.broadcast_to(array, m)) if array.ndim == 0 else array
    if array.shape != (m,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, one number for each of the {m} points, got the shape {array.shape}.")
    return array
