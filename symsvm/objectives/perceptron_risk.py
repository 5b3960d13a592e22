"""The risk of a perceptron, which any separating hyperplane minimises: over points, features or a kernel.

    minimise sum_i max(0, -y_i f(x_i))    with    f(x) = <theta, Phi(x)> + theta_0

It is 0 if no point is on the wrong side. Without a regulariser no separating hyperplane is better than another. It is
also 0 at theta = 0, so the value does not show separation: the certificate requires y_i f(x_i) > 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from symsvm._lib.validation import points, signs
from symsvm.objectives.argument_checks import check_kernel
from symsvm.objectives.certificate import Certificate
from symsvm.objectives.dual import share_numbers
from symsvm.objectives.losses import perceptron_loss
from symsvm.objectives.objective import Objective, shared_variables
from symsvm.objectives.primal import affine
from symsvm.objectives.sums import map_rows, sum_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array, Graph
    from symsvm.kernels import Kernel

__all__ = ["PerceptronRisk", "Separation"]


@dataclass(frozen=True)
class Separation(Certificate):
    """A `Certificate` of a hyperplane that is to separate two classes.

    Parameters
    ----------
    W, infeasibility : float
        As for a `Certificate`; the infeasibility is 0.
    violation : float
        The number of points on the wrong side, among those of one pass.
    b : float or None
        The intercept; None over a kernel.
    primal, dual, gap : None
        Not known.
    status : str
        `optimal` (it separates the classes), `infeasible` (no hyperplane does, and `proof` shows it) or `feasible` (it
        does not; see `separable`).
    tol : float
        The tolerance of the run.
    theta : ndarray or None
        The weights, the intercept last; None over a kernel.
    lam : ndarray
        How often each point was on the wrong side (m,): theta = start + sum_i lam_i y_i Phi(x_i).
    passes : int
        The number of passes over the points, with the last one, which found no mistake.
    separable : bool or None
        Whether the classes can be separated; None if rounding leaves it open.
    proof : ndarray or None
        If no hyperplane separates, lam >= 0 of sum 1 with sum_i lam_i y_i Phi(x_i) = 0 up to rounding.
    """

    theta: Array | None = field(default=None, repr=False)
    lam: Any = field(default=None, repr=False)
    passes: int = 0
    separable: bool | None = None
    proof: Array | None = field(default=None, repr=False)

    @property
    def mistakes(self) -> int:
        """The sum of lam."""
        return int(self.lam.sum())

    def __str__(self) -> str:
        answers = {
            True: "the classes can be separated",
            False: "no hyperplane separates the classes",
            None: "it is not known whether the classes can be separated",
        }
        found = "separated" if self.status == "optimal" else answers[self.separable]
        return f"{self.status}: {found}, {self.mistakes} mistakes in {self.passes} passes"


class PerceptronRisk(Objective):
    """The risk of a perceptron over theta, the intercept last.

    A hyperplane separates if f(x_i) = <theta, Phi(x_i)> + theta_0 has the sign of y_i for all i (Eq. 003:4, 003:24).
    Over a kernel the variable is lam, with theta = sum_i lam_i y_i Phi(x_i).

    Parameters
    ----------
    X : array_like
        The points (m, d).
    y : array_like
        Two labels (m,).
    features : callable, optional
        Phi, a function of one point (a vector graph) that returns its features, a vector graph of known length
        (Eq. 003:22); the point itself by default.
    kernel : Kernel, optional
        A kernel, whose Phi need not be known: f(x) = sum_i lam_i y_i (K(x_i, x) + 1).

    Attributes
    ----------
    m : int
        The number of points.
    kernel : Kernel or None
        The argument.

    Examples
    --------
    >>> X, y = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([-1, 1, 1])
    >>> PerceptronRisk(X, y)
    PerceptronRisk(3 points, 3 weights)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        features: Callable[[Graph], Graph] | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        if kernel is not None and features is not None:
            raise ValueError("give features or a kernel, not both: a kernel has its own features.")
        array = points(X)
        labels = signs(y, m=len(array))
        self.m, self.kernel = len(labels), kernel
        self.problem = "separation" if kernel is None else "kernel-separation"
        self.kind = "w" if kernel is None else "lam"
        X = pytensor.shared(array, name="X", shape=array.shape)
        y = pytensor.shared(labels, name="y", shape=labels.shape)
        graphs = self._over_points(X, y, features) if kernel is None else self._over_kernel(X, y, kernel)
        value, variable, self.row = graphs
        super().__init__(value, variable, lower=-np.inf, is_convex=True)

    def _over_points(self, X: Any, y: Any, features: Any) -> tuple[Graph, Any, tuple[Graph, Graph]]:
        """Return the value, the variable theta and the row of the risk over points or their features."""

        def phi(x: Graph) -> Any:
            return x if features is None else pt.as_tensor(features(x))

        (theta,) = shared_variables(theta=np.zeros(_length(phi(X[0])) + 1))
        i: Any = pt.lscalar("i")
        value = sum_over(lambda x, y: perceptron_loss(y, affine(phi(x), theta[:-1], theta[-1])), X, y)
        signed: Any = y[:, None] * pt.concatenate([map_rows(phi, X), pt.ones((self.m, 1))], axis=1)
        return value, theta, (i, signed[i])

    def _over_kernel(self, X: Any, y: Any, kernel: Kernel) -> tuple[Graph, Any, tuple[Graph, Graph]]:
        """Return the value, the variable lam and the row of the risk over a kernel."""
        check_kernel(kernel)
        kernel.check_points(X.get_value(borrow=True))
        (lam,) = shared_variables(lam=np.zeros(self.m))
        i: Any = pt.lscalar("i")
        K: Any = share_numbers(kernel)(X) + 1
        loss: Any = perceptron_loss(y, K @ (lam * y))
        return loss.sum(), lam, (i, y[i] * y * K[i])

    def certifier(self, lower: Any, upper: Any, equality: Any, tol: float) -> Callable[..., Separation]:
        # The function's last argument is the indicator of the points on the wrong side in the pass that starts at v.
        lam, passes = np.zeros(self.m), 0

        def certify(v: Array, W: float, wrong: Array) -> Separation:
            nonlocal passes
            passes += 1
            theta, b = (v, float(v[-1])) if self.kernel is None else (None, None)
            mistakes = float(np.sum(wrong))
            status = "diverged" if not np.isfinite(v).all() else "feasible" if mistakes else "optimal"
            separable = True if status == "optimal" else None
            before = lam.copy()
            lam[:] += wrong
            certified = float(W), 0.0, mistakes, b, None, None, None, status, tol
            return Separation(*certified, theta, before, passes, separable)

        return certify

    def __repr__(self) -> str:
        variable: Any = self.variable
        what = f"{self.kernel!r}" if self.kernel is not None else f"{len(variable.get_value(borrow=True))} weights"
        return f"PerceptronRisk({self.m} points, {what})"


def _length(phi: Graph) -> int:
    """Return the number of features."""
    if phi.ndim != 1 or phi.type.shape[0] is None:
        raise ValueError(
            "features must make a vector of known length of a point: give its shape, or stack its entries."
        )
    return phi.type.shape[0]
