"""CuttingPlanes: a lower bound of a convex W from the values and slopes along a run, whether W is smooth or not.

A subgradient g_t at x_t gives W(x) >= W_t + g_t.(x - x_t) + 1/2 sum_i c_i (x_i - x_ti)^2 for every x, where c_i >= 0
says how strongly convex W is in x_i. Each such function lies below W, and so does every average of them; its minimum
over a box that holds a minimiser of W is a lower bound of the minimum. For the primal of a support vector machine the
bound is the dual objective at a feasible point, the average of the slopes of the losses; so W minus the bound is a
duality gap. A single tangent closes it where W is smooth. Where it is not, slopes jump at the minimiser, and only their
average tends to 0: with weights t it does so as fast as `AdaGrad` converges.
"""

import numpy as np

__all__ = ["CuttingPlanes"]


class CuttingPlanes:
    """The average of tangents with the weights 1, 2, 3, ..., and the best lower bound so far.

    Parameters
    ----------
    convexity : c, the strong convexity of W in each coordinate, at least 0.
    lower, upper : a box, finite where c is 0, in which W has a minimiser.

    >>> tangents = CuttingPlanes(np.zeros(1), -1.0, 2.0)  # of |x|
    >>> tangents.add(np.array([1.0]), 1.0, np.array([1.0]))
    -1.0
    >>> round(tangents.add(np.array([-0.5]), 0.5, np.array([-1.0])), 3)
    -0.667
    """

    def __init__(self, convexity, lower, upper):
        self.convexity = np.asarray(convexity, dtype="float64")
        self.lower, self.upper = (np.broadcast_to(bound, self.convexity.shape) for bound in (lower, upper))
        # The average is constant + slope.x + 1/2 sum_i c_i x_i^2.
        self.constant, self.slope, self.count, self.best = 0.0, np.zeros(len(self.convexity)), 0, -np.inf

    def add(self, x, W, g):
        """Take the tangent at x into the average; return the best lower bound that is known by now."""
        x, g = np.asarray(x, dtype="float64"), np.asarray(g, dtype="float64")
        constant = float(W) - g @ x + 0.5 * (self.convexity * x) @ x
        slope = g - self.convexity * x
        self.count += 1
        share = 2 / (self.count + 1)  # t / (1 + 2 + ... + t)
        self.constant += share * (constant - self.constant)
        self.slope += share * (slope - self.slope)
        self.best = max(self.best, self._least(constant, slope), self._least(self.constant, self.slope))
        return self.best

    def _least(self, constant, slope):
        """The minimum over the box."""
        c = self.convexity
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(c > 0, -slope / c, np.where(slope > 0, -np.inf, np.inf))
        x = np.clip(x, self.lower, self.upper)
        return float(constant + np.sum(np.where(slope != 0, slope * x, 0.0) + 0.5 * c * x * x))
