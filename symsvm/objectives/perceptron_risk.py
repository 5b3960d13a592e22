"""PerceptronRisk: two classes to separate by any hyperplane, over the points, over features of them or over a kernel.

    minimise sum_i max(0, -y_i f(x_i))    with    f(x) = <theta, Phi(x)> + theta_0

It is 0 where no point is on the wrong side, and there is no regulariser: no separating hyperplane is better than
another. It is also 0 at theta = 0, and so the value does not tell: the certificate asks for y_i f(x_i) > 0.
"""

from dataclasses import dataclass, field

import numpy as np
import pytensor
import pytensor.tensor as pt

from symsvm._lib.validation import points, signs
from symsvm.kernels import Kernel
from symsvm.objectives.certificate import Certificate
from symsvm.objectives.losses import perceptron_loss
from symsvm.objectives.objective import Objective
from symsvm.objectives.primal import affine
from symsvm.objectives.sums import each, sum_over

__all__ = ["PerceptronRisk", "Separation"]


@dataclass(frozen=True)
class Separation(Certificate):
    """A `Certificate` of a hyperplane that is to separate two classes.

    Attributes
    ----------
    status : `optimal` (it separates them), `infeasible` (nothing does, and `proof` shows it) or `feasible` (it does
        not; see `separable`).
    violation : how many points are on the wrong side, among those that were looked at in one pass.
    theta : the weights, the intercept last; None over a kernel.
    lam : how often each point was wrong on the way (m,): theta = start + sum_i lam_i y_i Phi(x_i).
    passes : over the points, the one that found nobody wrong included.
    separable : True, False, or None where rounding leaves it open.
    proof : lam >= 0 of sum 1 with sum_i lam_i y_i Phi(x_i) = 0 up to rounding, where nothing separates; else None.
    """

    theta: np.ndarray | None = field(default=None, repr=False)
    lam: np.ndarray = field(default=None, repr=False)
    passes: int = 0
    separable: bool | None = None
    proof: np.ndarray | None = field(default=None, repr=False)

    @property
    def mistakes(self):
        """The sum of lam."""
        return int(self.lam.sum())

    def __str__(self):
        words = {True: "the classes can be separated", False: "nothing separates the classes", None: "nobody knows yet"}
        found = "separated" if self.status == "optimal" else words[self.separable]
        return f"{self.status}: {found}, {self.mistakes} mistakes in {self.passes} passes"


class PerceptronRisk(Objective):
    """The risk of a perceptron over theta, the intercept last; over a kernel, over lam: theta = sum_i lam_i y_i Phi_i.

    A hyperplane separates if f(x_i) = <theta, Phi(x_i)> + theta_0 has the sign of y_i for all i (Eq. 003:4, 003:24).

    Parameters
    ----------
    X, y : the points (m, d) and two labels.
    features : Phi, an expression of one point (a vector graph of known length) that gives its features (Eq. 003:22);
        the point itself by default.
    kernel : a `Kernel`, whose Phi is not known: f(x) = sum_i lam_i y_i (K(x_i, x) + 1).

    >>> X, y = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([-1, 1, 1])
    >>> PerceptronRisk(X, y)
    PerceptronRisk(3 points, 3 weights)
    """

    def __init__(self, X, y, *, features=None, kernel=None):
        if kernel is not None and features is not None:
            raise ValueError("give features or a kernel, not both: a kernel has its own features.")
        X = points(X)
        y = signs(y, m=len(X))
        self.m, self.kernel = len(y), kernel
        self.problem = "separation" if kernel is None else "kernel-separation"
        data, labels = pytensor.shared(X, name="X", shape=X.shape), pytensor.shared(y, name="y", shape=y.shape)
        make = self._over_points if kernel is None else self._over_kernel
        value, variable, self.row = make(data, labels, features if kernel is None else kernel)
        super().__init__(value, variable, lower=-np.inf, is_convex=True)

    def _over_points(self, X, y, features):
        def phi(x):
            return x if features is None else pt.as_tensor(features(x))

        (n,) = _length(phi(X[0]))
        theta, i = pytensor.shared(np.zeros(n + 1), name="theta"), pt.lscalar("i")
        value = sum_over(lambda x, y: perceptron_loss(y, affine(phi(x), theta[:-1], theta[-1])), X, y)
        signed = y[:, None] * pt.concatenate([each(phi, X), pt.ones((self.m, 1))], axis=1)
        return value, theta, (i, signed[i])

    def _over_kernel(self, X, y, kernel):
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")
        kernel.check_points(X.get_value(borrow=True))
        lifted = kernel.lift(lambda name, value: pytensor.shared(np.asarray(value, dtype="float64"), name=name))
        lam, i = pytensor.shared(np.zeros(self.m), name="lam"), pt.lscalar("i")
        K = lifted(X) + 1
        return perceptron_loss(y, K @ (lam * y)).sum(), lam, (i, y[i] * y * K[i])

    def certifier(self, lower, upper, equality, tol):
        """A function (v, W, wrong) -> `Separation`; `wrong`: who was on the wrong side in the pass from v."""
        lam, passes = np.zeros(self.m), 0

        def certify(v, W, wrong):
            nonlocal passes
            passes += 1
            theta, b = (v, float(v[-1])) if self.kernel is None else (None, None)
            bad = float(np.sum(wrong))
            word = "diverged" if not np.isfinite(v).all() else "feasible" if bad else "optimal"
            rest = None, None, None, word, tol, theta, lam.copy(), passes, True if word == "optimal" else None
            lam[:] += wrong
            return Separation(float(W), 0.0, bad, b, *rest)

        return certify

    def __repr__(self):
        what = f"{self.kernel!r}" if self.kernel is not None else f"{len(self.variable.get_value(borrow=True))} weights"
        return f"PerceptronRisk({self.m} points, {what})"


def _length(phi):
    if phi.ndim != 1 or phi.type.shape[0] is None:
        raise ValueError(
            "features must make a vector of known length of a point: give its shape, or stack its entries."
        )
    return phi.type.shape
