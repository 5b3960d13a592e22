"""The regularised risk of linear support vector machines over their weights, and its lower bound by cutting planes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytensor.tensor as pt

from symsvm._lib.validation import choice, points
from symsvm.objectives.argument_checks import as_tube, check_labels
from symsvm.objectives.certificate import Certificate, infeasibility
from symsvm.objectives.losses import LOSSES
from symsvm.objectives.objective import Objective, shared_variables
from symsvm.objectives.primal import affine
from symsvm.objectives.quadratic_program import QuadraticProgram
from symsvm.objectives.sums import sum_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Graph, Scalar

__all__ = ["CuttingPlanes", "PrimalRisk", "norm", "risk"]


class CuttingPlanes:
    """A lower bound of a convex W, smooth or not, from the values and subgradients along a run.

    A subgradient g_t at x_t gives, for every x, ::

        W(x) >= W_t + g_t.(x - x_t) + 1/2 sum_i c_i (x_i - x_ti)^2

    where c_i >= 0 is the strong convexity of W in x_i. Each such cutting plane is at most W, and so is every average of
    them; its minimum over a box that contains a minimiser of W is a lower bound of the minimum. For the primal of a
    support vector machine the bound is the dual objective at a feasible point, the average of the slopes of the losses;
    so W minus the bound is a duality gap. If W is smooth, the plane at the minimiser closes the gap. Otherwise slopes
    jump at the minimiser, and only their average tends to 0. The average here has the weights t = 1, 2, 3, ..., with
    which that is as fast as `AdaGrad` converges.

    Parameters
    ----------
    convexity : ndarray
        The strong convexity c of W in each coordinate, at least 0.
    lower, upper : array_like
        A box, finite where c is 0, that contains a minimiser of W.

    Examples
    --------
    >>> planes = CuttingPlanes(np.zeros(1), -1.0, 2.0)  # of abs(x)
    >>> planes.add(np.array([1.0]), 1.0, np.array([1.0]))
    -1.0
    >>> round(planes.add(np.array([-0.5]), 0.5, np.array([-1.0])), 3)
    -0.667
    """

    def __init__(self, convexity: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        self.convexity = np.asarray(convexity, dtype="float64")
        self.lower, self.upper = (np.broadcast_to(bound, self.convexity.shape) for bound in (lower, upper))
        # The average is constant + slope.x + 1/2 sum_i c_i x_i^2.
        self.constant, self.slope, self.count, self.best = 0.0, np.zeros(len(self.convexity)), 0, -np.inf

    def add(self, x: Array, W: float, g: Array) -> float:
        """Add the cutting plane at x to the average, and return the best lower bound so far."""
        x, g = np.asarray(x, dtype="float64"), np.asarray(g, dtype="float64")
        constant = float(W) - float(g @ x) + float(0.5 * (self.convexity * x) @ x)
        slope = g - self.convexity * x
        self.count += 1
        share = 2 / (self.count + 1)  # t / (1 + 2 + ... + t)
        self.constant += share * (constant - self.constant)
        self.slope += share * (slope - self.slope)
        self.best = max(self.best, self._minimum(constant, slope), self._minimum(self.constant, self.slope))
        return self.best

    def _minimum(self, constant: float, slope: Array) -> float:
        """Return the minimum over the box."""
        c = self.convexity
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(c > 0, -slope / c, np.where(slope > 0, -np.inf, np.inf))
        x = np.clip(x, self.lower, self.upper)
        return float(constant + np.sum(np.where(slope != 0, slope * x, 0.0) + 0.5 * c * x * x))


def norm(theta: Graph, b: Any, reg_b: float = 0.0) -> Graph:
    """The regulariser, half the squared norm of theta plus 1/2 reg_b b^2."""
    return 0.5 * ((theta**2).sum() + reg_b * b**2)


def risk(theta: Graph, b: Scalar, X: Graph, y: Graph, C: Graph, loss: Callable[..., Any], reg_b: float = 0.0) -> Graph:
    """The regularised risk P of a linear machine (Eq. 002:1.6, 002:1.9).

    ::

        P = 1/2 |theta|^2 + 1/2 reg_b b^2 + sum_i C_i loss(y_i, <theta, x_i> + b)

    `reg_b` is 1 if the bias is the weight of a feature that is 1 (Eq. 002:1.9, 002:2.6), and 0 if it is free
    (Eq. 002:1.6). With C_i = 1 / m the sum is the empirical risk (Eq. 003:28).
    """
    return norm(theta, b, reg_b) + sum_over(lambda x_i, y_i, C_i: C_i * loss(y_i, affine(x_i, theta, b)), X, y, C)


class PrimalRisk(Objective):
    """The regularised risk of a linear machine over v = (theta, b) (Eq. 002:1.6, 002:1.9, 002:1.10, 002:2.6).

    ::

        minimise P(v) = R(v) + sum_i C_i loss(y_i, <theta, x_i> + b)

        R = 1/2 |theta|^2               if the bias is free or left out
        R = 1/2 |theta|^2 + 1/2 b^2     if it is embedded

    The feasible set is a box that is known to contain a minimiser. P is strongly convex in theta, hence ::

        P(0) >= P* + 1/2 |theta*|^2 >= |theta*|^2,    |theta*| <= r = sqrt(P(0))

    and a free b beyond the largest abs(y_i) + r norm(x_i) only increases P (abs(y_i) is 1 for labels).

    The certificate's gap is P - D, where D is the dual objective at a feasible point made of the slopes of the losses;
    see `CuttingPlanes`. `violation` is the gap relative to P, and a point is optimal if it is at most tol.

    Parameters
    ----------
    X : array_like
        The points (m, d).
    y : array_like
        Labels -1 and +1, or targets (m,).
    C : float or array_like
        The penalty of a loss, one number or one per point.
    loss : {"hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"}
        The loss.
    epsilon : float
        Half the width of the tube of the epsilon-insensitive losses.
    bias : {"embedded", "free"} or None
        How b is regularised; None for no b, then v = theta.

    Attributes
    ----------
    X, y, C, loss, epsilon, bias
        The arguments, checked; C has one entry per point.
    m : int
        The number of points.
    classifies, is_smooth : bool
        Whether the loss is for classification, and whether it is smooth.

    Examples
    --------
    >>> from symsvm import compile
    >>> from symsvm.solvers import AdaGrad
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> solution = compile(PrimalRisk(X, y, bias="free"), AdaGrad(), mode="FAST_COMPILE").run(tol=1e-2)
    >>> solution.certificate.status, solution.w.round(1).tolist()
    ('optimal', [1.3, 0.3])
    """

    problem, kind = "primal", "w"

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        C: ArrayLike = 1.0,
        loss: Literal["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"] = "hinge",
        *,
        epsilon: float = 0.1,
        bias: Literal["embedded", "free"] | None = "embedded",
    ) -> None:
        self.X = points(X)
        m, d = self.X.shape
        self.y, self.C = _vector(y, "y", m), _vector(C, "C", m)
        if (self.C < 0).any() or not (self.C > 0).any():
            raise ValueError("C must be positive; C_i = 0 removes point i.")
        call, self.classifies, self.is_smooth = LOSSES[choice(loss, "loss", tuple(LOSSES))]
        if self.classifies:
            check_labels(self.y)
        self.loss, self.epsilon = loss, 0.0 if self.classifies else as_tube(epsilon)
        self.bias = bias if bias is None else choice(bias, "bias", ("embedded", "free"))
        v, X_, y_, C_ = shared_variables(v=np.zeros(d + (bias is not None)), X=self.X, y=self.y, C=self.C)
        if not self.classifies:
            (width,) = shared_variables(epsilon=np.float64(self.epsilon))
            with_tube, call = call, lambda y_i, f_i: with_tube(y_i, f_i, width)
        theta, b = (v, 0.0) if bias is None else (v[:-1], v[-1])
        reg_b = float(bias == "embedded")
        value = risk(theta, b, X_, y_, C_, call, reg_b)
        bound = self._box()
        super().__init__(value, v, *shared_variables(lower=-bound, upper=bound), is_convex=True)
        i: Any = pt.lscalar("i")
        self.m = m
        # P is the mean of this term over i.
        self.row = i, norm(theta, b, reg_b) + m * C_[i] * call(y_[i], affine(X_[i], theta, b))

    @property
    def convexity(self) -> Array:
        """The strong convexity of P in each coordinate: 1, or 0 for a free bias."""
        ones = np.ones(self.X.shape[1] + (self.bias is not None))
        if self.bias == "free":
            ones[-1] = 0.0
        return ones

    @property
    def curvature(self) -> float:
        """A Lipschitz constant L of the gradient of P with a squared loss; a step of size 1 / L decreases P.

        ::

            L = 1 + 2 |sum_i C_i x_i x_i'|    with the bias as a feature of x_i
        """
        if not self.is_smooth:
            raise ValueError(f"the gradient of {self.loss!r} jumps and has no Lipschitz constant: use a squared loss.")
        rows = np.sqrt(2 * self.C)[:, None] * self.features(self.X)
        return 1.0 + float(np.linalg.norm(rows, 2)) ** 2

    @functools.cached_property
    def dual(self) -> QuadraticProgram:
        """The `QuadraticProgram` of its dual, with K(x, z) = <x, z>, or <x, z> + 1 if the bias is embedded."""
        options = {"squared": self.is_smooth, "intercept": self.bias == "free"}
        if self.classifies:
            return QuadraticProgram.c_svc(self.y, self.C, **options)
        return QuadraticProgram.svr(self.y, self.C, self.epsilon, **options)

    def features(self, Z: ArrayLike) -> Array:
        """Return points with a last feature 1 if there is a bias.

        Parameters
        ----------
        Z : array_like
            Points (n, d).

        Returns
        -------
        ndarray
            Their features (n, d) or (n, d + 1).
        """
        Z = points(Z)
        return Z if self.bias is None else np.column_stack([Z, np.ones(len(Z))])

    def decision(self, Z: ArrayLike, v: Array) -> Array:
        """Return the decision values <theta, z> + b, in NumPy.

        Parameters
        ----------
        Z : array_like
            Points (n, d).
        v : ndarray
            The weights (theta, b).

        Returns
        -------
        ndarray
            A decision value for each point (n,).
        """
        return self.features(Z) @ v

    def evaluate(self, v: Array) -> float:
        """Return P(v), in NumPy.

        Parameters
        ----------
        v : ndarray
            The weights (theta, b).

        Returns
        -------
        float
            The regularised risk.
        """
        f = self.decision(self.X, v)
        slack = 1 - self.y * f if self.classifies else np.abs(self.y - f) - self.epsilon
        loss = np.maximum(slack, 0.0) ** (2 if self.is_smooth else 1)
        return float(0.5 * np.sum(self.convexity * v**2) + np.sum(self.C * loss))

    def certifier(self, lower: Array, upper: Array, equality: Any, tol: float) -> Callable[..., Certificate]:
        planes = CuttingPlanes(self.convexity, lower, upper)

        def certify(v: Array, P: float, g: Array) -> Certificate:
            known = planes if np.asarray(g).dtype == "float64" else None  # a rounded plane may exceed P
            return self.certificate(v, P, g, lower, upper, equality, tol=tol, planes=known)

        return certify

    def certificate(
        self,
        v: Array,
        P: float,
        g: Array,
        lower: Array,
        upper: Array,
        equality: Any,
        *,
        tol: float,
        planes: CuttingPlanes | None = None,
    ) -> Certificate:
        # From the cutting plane at v, and from the previous ones if they are given.
        planes = CuttingPlanes(self.convexity, lower, upper) if planes is None else planes
        outside = infeasibility(v, lower, upper)
        b = None if self.bias is None else float(v[-1])
        if not np.isfinite([P, outside]).all():
            return Certificate(float(P), outside, np.inf, b, None, None, None, "diverged", tol)
        dual = planes.add(v, P, g)
        gap = max(float(P) - dual, 0.0)
        violation = gap / P if gap else 0.0
        status = "infeasible" if outside > 0 else "optimal" if violation <= tol else "feasible"
        return Certificate(float(P), outside, violation, b, float(P), dual, gap, status, tol)

    def _box(self) -> Array:
        """Return half the widths of the box."""
        middle = np.median(self.y) if self.bias == "free" and not self.classifies else 0.0
        at_0 = np.ones(len(self.y)) if self.classifies else np.maximum(np.abs(self.y - middle) - self.epsilon, 0.0)
        r = np.sqrt(np.sum(self.C * at_0 ** (2 if self.is_smooth else 1)))
        bound = np.full(len(self.convexity), r)
        if self.bias == "free":
            bound[-1] = np.max(np.abs(self.y) + r * np.linalg.norm(self.X, axis=1))
        return bound

    def __repr__(self) -> str:
        return f"PrimalRisk({self.loss}, {len(self.y)} points, {self.X.shape[1]} features, bias={self.bias!r})"


def _vector(value: ArrayLike, name: str, m: int) -> Array:
    """Return one finite number per point (m,)."""
    array = np.asarray(value, dtype="float64")
    array = np.array(np.broadcast_to(array, m)) if array.ndim == 0 else array
    if array.shape != (m,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, one number for each of the {m} points, got the shape {array.shape}.")
    return array
