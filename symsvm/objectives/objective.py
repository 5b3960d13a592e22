"""Objective: the problem, and nothing about how it is solved.

minimise W(lam)    subject to    lower <= lam <= upper,    a.lam = c
"""

import copy

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.traversal import ancestors

from symsvm._lib.validation import is_symbolic
from symsvm.objectives.certificate import certify
from symsvm.objectives.projections import Pi, box_section

__all__ = ["Objective"]


class Objective:
    """Any symbolic W that a researcher writes, with its feasible set (Eq. 21 is one of them).

        minimise W(lam)    subject to    lower <= lam <= upper,    a.lam = c

    Parameters
    ----------
    W : scalar graph, smooth in `variable`.
    variable : vector, an input or a shared variable; a shared one is also where a run starts.
    lower, upper : bounds, scalar or (m,); numbers, arrays or graphs, infinite ones allowed.
    equality : (a, c), one linear constraint a.lam = c; (A, c) with a matrix and a vector for several, of which no two
        may share a variable; or None.
    is_convex : True if W is known to be convex; only then can a point be called optimal and not just stationary.

    >>> lam = pt.vector("lam")
    >>> W = ((lam - np.array([3.0, 1.0])) ** 2).sum()
    >>> Objective(W, variable=lam, upper=2.0, equality=(np.array([1.0, -1.0]), 0.0))
    Objective(W of lam, 0 <= lam <= 2, a.lam = 0)
    """

    problem = "smooth"  # which solvers suit it; see `symsvm.list_solvers`
    row = None  # (i, the graph of row i of the Hessian) for solvers that ask for single rows, where it is known

    def __init__(self, W, variable, lower=0.0, upper=np.inf, equality=None, is_convex=None):
        W = pt.as_tensor(W)
        if W.ndim != 0:
            raise ValueError(f"W must be a scalar graph, got {W.ndim} dimension(s).")
        if not is_symbolic(variable) or variable.ndim != 1 or variable.dtype not in ("float32", "float64"):
            raise TypeError(f"variable must be a symbolic vector of floats, got {variable!r}.")
        if variable.owner is not None:
            raise TypeError("variable must be an input or a shared variable, got an expression.")
        if variable not in set(ancestors([W])):
            raise ValueError(f"W must depend on the variable {variable}, or there is nothing to minimise.")
        self.value = W
        self.variable = variable
        self.lower = _bound(lower, "lower", variable)
        self.upper = _bound(upper, "upper", variable)
        if not is_symbolic(lower) and not is_symbolic(upper) and np.any(np.asarray(lower) > np.asarray(upper)):
            raise ValueError("lower must not exceed upper, or no point is feasible.")
        if equality is None:
            self.equality = None
        else:
            try:
                a, c = equality
            except (TypeError, ValueError):
                raise TypeError(f"equality must be a pair (a, c) for a.lam = c, got {equality!r}.") from None
            a, c = _bound(a, "a of equality", variable, most=2), _bound(c, "c of equality", variable)
            if not a.ndim:
                raise ValueError("a of equality must be a vector, one entry a variable, got 0 dimension(s).")
            if c.ndim != a.ndim - 1:
                raise ValueError("c of equality must be one number for each row of a.")
            if a.ndim == 2 and a.type.shape[0] is None:
                raise ValueError("the number of equalities, the rows of a, must be known: give its shape.")
            self.equality = (a, c)
        self.is_convex = is_convex

    @property
    def bounds(self):
        """The graphs of the constraints: lower, upper and, with an equality, a and c."""
        return [self.lower, self.upper, *(self.equality or ())]

    def over(self, value, variable, bounds, row=None):
        """The same problem over other graphs, in the order of `bounds`; with the row, for solvers that go by rows."""
        other = copy.copy(self)
        other.value, other.variable = value, variable
        other.lower, other.upper, *equality = bounds
        other.equality = tuple(equality) or None
        other.row = row
        return other

    def project(self, v, scale=1.0):
        """The feasible point nearest to v, argmin_p sum_i (p_i - v_i)^2 / scale_i."""
        if self.equality is None:
            return Pi(v, self.upper, self.lower)
        a, c = self.equality
        if a.ndim == 1:
            return box_section(v, a, self.upper, scale, lower=self.lower, c=c)
        nearest = Pi(v, self.upper, self.lower)
        for k in range(a.type.shape[0]):  # no two share a variable: each for its own
            section = box_section(v, a[k], self.upper, scale, lower=self.lower, c=c[k])
            nearest = pt.switch(pt.neq(a[k], 0), section, nearest)
        return nearest

    def certificate(self, lam, W, g, lower, upper, equality, *, tol):
        """Certify lam from the values there of W, its gradient and the constraints: a KKT residual, no gap."""
        return certify(lam, W, g, lower, upper, equality, tol=tol, is_convex=self.is_convex)

    def certifier(self, lower, upper, equality, tol):
        """A function (lam, W, g) -> `Certificate` for the points of one run, in their order."""
        return lambda lam, W, g: self.certificate(lam, W, g, lower, upper, equality, tol=tol)

    def __repr__(self):
        name = self.variable.name or "v"
        equality = "" if self.equality is None else f", a.{name} = {_text(self.equality[1])}"
        return f"{type(self).__name__}(W of {name}, {_text(self.lower)} <= {name} <= {_text(self.upper)}{equality})"


def _bound(value, name, variable, most=1):
    if not is_symbolic(value):
        try:
            bad = np.isnan(np.asarray(value, dtype="float64")).any()
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numbers, got {value!r}.") from None
        if bad:
            raise ValueError(f"{name} must be numbers, got NaN.")
    value = _graph(value, variable)
    if value.ndim > most:
        raise ValueError(f"{name} must have at most {most} dimension(s), got {value.ndim}.")
    return value


def _graph(value, variable):
    if is_symbolic(value):
        return value.astype(variable.dtype)
    return pt.constant(np.asarray(value, dtype=variable.dtype))


def _text(bound):
    value = getattr(bound, "data", None)
    if value is None:
        return bound.name or "a graph"
    return f"{value:g}" if value.ndim == 0 else f"vector of {len(value)}"
