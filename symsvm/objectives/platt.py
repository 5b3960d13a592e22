"""Platt's sigmoid: probabilities from decision values."""

import pytensor.tensor as pt

from symsvm.objectives.objective import Objective

__all__ = ["Platt", "probability"]


def probability(yhat, AB):
    """P(y = 1 | yhat) = 1 / (1 + exp(A yhat + B)) with AB = (A, B); A is negative for a classifier that works."""
    return pt.sigmoid(-(AB[0] * yhat + AB[1]))


class Platt(Objective):
    """The mean cross-entropy of the sigmoid, free of constraints and convex in (A, B).

        minimise -1/m sum_i [t_i log p_i + (1 - t_i) log(1 - p_i)],    p_i = 1 / (1 + exp(A yhat_i + B))

    Reference: J. Platt, Probabilistic outputs for support vector machines, 1999.

    Parameters
    ----------
    AB : graph of the vector (A, B).
    yhat : decision values (n,).
    t : labels 0 and 1 (n,).
    """

    def __init__(self, AB, yhat, t):
        s = AB[0] * yhat + AB[1]
        # -log p = softplus(s) and -log(1 - p) = softplus(-s) = softplus(s) - s, which no s overflows.
        loss = (pt.softplus(s) - (1 - t) * s).mean()
        super().__init__(loss, AB, lower=-float("inf"), upper=float("inf"), is_convex=True)
