"""The base class of objectives: a symbolic W to minimise and its feasible set, independent of any solver.

minimise W(lam)    subject to    lower <= lam <= upper,    a.lam = c,    G lam <= h
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.traversal import ancestors

from symsvm._lib.validation import is_symbolic
from symsvm.objectives.certificate import PolytopeCertifier, certify
from symsvm.objectives.polytope import polytope_section, rows_overlap
from symsvm.objectives.projections import Pi, box_section

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Self

    from numpy.typing import ArrayLike
    from pytensor.graph.basic import Variable

    from symsvm._lib.types import Array, Graph, Scalar
    from symsvm.objectives.certificate import Certificate

__all__ = ["Objective", "shared_variables"]


class Objective:
    """Any symbolic W that a researcher writes, with its feasible set (Eq. 21 is one of them).

    ::

        minimise W(lam)    subject to    lower <= lam <= upper,    a.lam = c,    G lam <= h

    Parameters
    ----------
    W : TensorVariable
        A scalar graph, smooth in `variable`.
    variable : TensorVariable
        The vector lam, an input or a shared variable; the value of a shared variable is the start of a run.
    lower, upper : array_like or TensorVariable
        Bounds, scalar or (m,); infinite bounds are allowed.
    equality : tuple, optional
        (a, c) for one linear constraint a.lam = c; (A, c) with a matrix and a vector for several. The fast solver needs
        equalities of which no two share a variable; 'accelerated-gradient' and 'qp' take any.
    is_convex : bool, optional
        True if W is known to be convex; only then can a point be called optimal and not just stationary.
    inequality : tuple, optional
        (G, h) for the linear constraints G lam <= h: a vector and a number for one, a matrix and a vector for several;
        for the solvers that project ('accelerated-gradient', 'projected-gradient', 'adagrad') and 'qp'.

    Attributes
    ----------
    value : TensorVariable
        W.
    variable, lower, upper : TensorVariable
        The arguments as graphs.
    equality : tuple of TensorVariable or None
        (a, c) as graphs.
    inequality : tuple of TensorVariable or None
        (G, h) as graphs.
    is_convex : bool or None
        The argument.
    rows_overlap : bool or None
        Whether two equalities share a variable; None if only the values of a run say so.
    problem : str
        The kind of problem, by which `symsvm.list_solvers` selects solvers.
    kind : {"lam", "z", "w"}
        What the variable is: multipliers, the variables of a `QuadraticProgram`, or weights of a primal.
    row : tuple or None
        (i, the graph of row i of the Hessian), for solvers that evaluate single rows.

    Examples
    --------
    >>> lam = pt.vector("lam")
    >>> W = ((lam - np.array([3.0, 1.0])) ** 2).sum()
    >>> Objective(W, variable=lam, upper=2.0, equality=(np.array([1.0, -1.0]), 0.0))
    Objective(W of lam, 0 <= lam <= 2, a.lam = 0)
    """

    problem: str = "smooth"
    kind: Literal["lam", "z", "w"] = "lam"
    row: tuple[Graph, Graph] | None = None
    inequality: tuple[Graph, Graph] | None = None
    rows_overlap: bool | None = False

    def __init__(
        self,
        W: Variable,
        variable: Variable,
        lower: ArrayLike | Variable = 0.0,
        upper: ArrayLike | Variable = np.inf,
        equality: tuple[ArrayLike | Variable, ArrayLike | Variable] | None = None,
        is_convex: bool | None = None,
        inequality: tuple[ArrayLike | Variable, ArrayLike | Variable] | None = None,
    ) -> None:
        value, lam = pt.as_tensor(W), cast("Graph", variable)
        if value.ndim != 0:
            raise ValueError(f"W must be a scalar graph, got {value.ndim} dimension(s).")
        if not is_symbolic(lam) or lam.ndim != 1 or lam.dtype not in ("float32", "float64"):
            raise TypeError(f"variable must be a symbolic vector of floats, got {lam!r}.")
        if lam.owner is not None:
            raise TypeError("variable must be an input or a shared variable, got an expression.")
        if lam not in set(ancestors([value])):
            raise ValueError(f"W must depend on the variable {lam}, or there is nothing to minimise.")
        self.value = value
        self.variable = lam
        self.lower = _constraint(lower, "lower", lam)
        self.upper = _constraint(upper, "upper", lam)
        bounds: Any = lower, upper
        if not any(map(is_symbolic, bounds)) and np.any(np.greater(*bounds)):
            raise ValueError("lower must not exceed upper, or no point is feasible.")
        self.equality = None if equality is None else _rows(equality, "equality", lam)
        self.inequality = None if inequality is None else _rows(inequality, "inequality", lam)
        if self.equality is not None and self.equality[0].ndim == 2:
            value = getattr(self.equality[0], "data", None)
            self.rows_overlap = None if value is None else rows_overlap(value)
        lengths = {rows[0].type.shape[-1] for rows in (self.equality, self.inequality) if rows is not None} - {None}
        if len(lengths) > 1:
            raise ValueError(f"equality and inequality must have one entry per variable, got {sorted(lengths)}.")
        self.is_convex = is_convex

    @property
    def bounds(self) -> list[Graph]:
        """The graphs of the constraints: lower, upper, with an equality a and c, with an inequality G and h."""
        return [self.lower, self.upper, *(self.equality or ()), *(self.inequality or ())]

    @property
    def has_shared_constraints(self) -> bool:
        """Whether a solver must take inequalities, or equalities that share variables."""
        return self.inequality is not None or self.rows_overlap is True

    @property
    def is_grouped(self) -> bool | None:
        """Whether each variable is in one equality, or none is in any; None if only the values of a run say so."""
        if self.has_shared_constraints:
            return False
        if self.equality is None:
            return True
        a = getattr(self.equality[0], "data", None)
        if a is None or self.rows_overlap is None:
            return None
        return bool(((np.atleast_2d(a) != 0).sum(axis=0) == 1).all())

    @property
    def constraint_structure(self) -> Hashable:
        """What `bounds` are; objectives of one structure share a compilation."""
        return self.equality is None, self.inequality is None, self.rows_overlap

    def with_graphs(
        self, value: Graph, variable: Graph, bounds: Sequence[Graph], row: tuple[Graph, Graph] | None = None
    ) -> Self:
        """Return the same problem over other graphs.

        Parameters
        ----------
        value, variable : TensorVariable
            W and its variable.
        bounds : sequence of TensorVariable
            The constraints in the order of `bounds`.
        row : tuple, optional
            (i, the graph of row i of the Hessian).

        Returns
        -------
        Objective
            A copy of this objective with the graphs.
        """
        other = copy.copy(self)
        other.value, other.variable = value, variable
        other.lower, other.upper, *rows = bounds
        other.equality, other.inequality = self.split_rows(rows)
        other.row = row
        return other

    def split_rows(self, rows: Sequence[Any]) -> tuple[Any, Any]:
        """Return (a, c) or None, and (G, h) or None, from the part of `bounds` after lower and upper.

        Parameters
        ----------
        rows : sequence
            The graphs, or their values.

        Returns
        -------
        tuple
            The two pairs.
        """
        pairs = [(rows[i], rows[i + 1]) for i in range(0, len(rows), 2)]
        inequality = pairs.pop() if self.inequality is not None else None
        return (pairs[0] if pairs else None), inequality

    def project(self, v: Graph, scale: Scalar = 1.0) -> Graph:
        """Project onto the feasible set, argmin_p sum_i (p_i - v_i)^2 / scale_i.

        Parameters
        ----------
        v : TensorVariable
            The vector to project.
        scale : float or TensorVariable
            The metric, scalar or (m,), positive; 1 is the Euclidean one.

        Returns
        -------
        TensorVariable
            The nearest feasible point.
        """
        if self.has_shared_constraints:
            return self._project_rows(v, scale)
        if self.equality is None:
            return Pi(v, self.upper, self.lower)
        a, c = self.equality
        if a.ndim == 1:
            return box_section(v, a, self.upper, scale, lower=self.lower, c=c)
        nearest: Any = Pi(v, self.upper, self.lower)
        for k in range(a.type.shape[0]):  # no two equalities share a variable, so each is projected separately
            section = box_section(v, a[k], self.upper, scale, lower=self.lower, c=c[k])
            nearest = pt.switch(pt.neq(a[k], 0), section, nearest)
        if self.rows_overlap is None:
            counts: Any = pt.sum(pt.neq(a, 0), axis=0)
            overlaps = pt.any(counts > 1)
            nearest = pt.switch(overlaps, self._project_rows(v, scale, overlaps), nearest)
        return nearest

    def check_constraints(self, bounds: Sequence[Array]) -> None:
        """Raise ValueError if the values of `bounds` are none of this problem; a run calls it before any work.

        Parameters
        ----------
        bounds : sequence of ndarray
            The values of `bounds`.
        """

    def _project_rows(self, v: Graph, scale: Scalar, used: Any = True) -> Graph:
        """Project onto all constraints at once; where they are not used, quickly onto the box."""
        pairs = [(pt.atleast_2d(a), pt.atleast_1d(c)) for a, c in filter(None, (self.equality, self.inequality))]
        rows, limits = (pt.concatenate(parts) for parts in zip(*pairs, strict=True))
        if used is not True:
            rows, limits = pt.switch(used, rows, 0.0), pt.switch(used, limits, 0.0)
        n_equal = 0 if self.equality is None else pairs[0][0].type.shape[0]
        return polytope_section(v, rows, limits, n_equal, self.upper, scale, lower=self.lower)

    def certificate(
        self,
        lam: Array,
        W: float,
        g: Array,
        lower: Array,
        upper: Array,
        equality: tuple[Array, ...] | None,
        *,
        tol: float,
    ) -> Certificate:
        """Certify a point from the values of W, its gradient and the constraints there.

        An `Objective` has a KKT residual but no gap. Subclasses whose primal is known return a gap as well.

        Parameters
        ----------
        lam : ndarray
            The point (m,).
        W : float
            The objective there.
        g : ndarray
            The gradient there (m,).
        lower, upper : ndarray
            The bounds.
        equality : tuple of ndarray or None
            The values of `bounds` after them: (a, c), and G and h with an inequality.
        tol : float
            The largest violation of an optimal point.

        Returns
        -------
        Certificate
            What is known about the point.
        """
        rows = self.split_rows(equality or ())
        return certify(lam, W, g, lower, upper, *rows, tol=tol, is_convex=self.is_convex)

    def certifier(
        self, lower: Array, upper: Array, equality: tuple[Array, ...] | None, tol: float
    ) -> Callable[..., Certificate]:
        """Return a function that certifies the points of one run, called in their order.

        Parameters
        ----------
        lower, upper : ndarray
            The bounds.
        equality : tuple of ndarray or None
            The values of `bounds` after them: (a, c), and G and h with an inequality.
        tol : float
            The largest violation of an optimal point.

        Returns
        -------
        callable
            A function (lam, W, g) -> `Certificate`.
        """
        rows = self.split_rows(equality or ())
        if self.inequality is not None or (self.rows_overlap is not False and rows_overlap(rows[0][0])):
            return PolytopeCertifier(lower, upper, *rows, tol, self.is_convex)
        return lambda lam, W, g: self.certificate(lam, W, g, lower, upper, equality, tol=tol)

    def __repr__(self) -> str:
        name = self.variable.name or "v"
        equality = "" if self.equality is None else f", a.{name} = {_format(self.equality[1])}"
        inequality = ""
        if self.inequality is not None:
            G, h = self.inequality
            inequality = f", {'g.' if G.ndim == 1 else 'G '}{name} <= {_format(h)}"
        box = f"{_format(self.lower)} <= {name} <= {_format(self.upper)}"
        return f"{type(self).__name__}(W of {name}, {box}{equality}{inequality})"


def shared_variables(**arrays: Any) -> list[Any]:
    """Return each array as a shared variable of its name, so that problems that differ in them share a compilation."""
    return [pytensor.shared(array, name=name) for name, array in arrays.items()]


def _rows(pair: Any, name: str, variable: Graph) -> tuple[Graph, Graph]:
    """Return (a, c) of equalities or inequalities as checked graphs."""
    sign = "=" if name == "equality" else "<="
    try:
        a, c = pair
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (a, c) for a.lam {sign} c, got {pair!r}.") from None
    a, c = _constraint(a, f"a of {name}", variable, max_ndim=2), _constraint(c, f"c of {name}", variable)
    if not a.ndim:
        raise ValueError(f"a of {name} must be a vector, one entry per variable, got 0 dimension(s).")
    if c.ndim != a.ndim - 1:
        raise ValueError(f"c of {name} must be one number for each row of a.")
    if a.ndim == 2 and a.type.shape[0] is None:
        plural = name.replace("equality", "equalities")
        raise ValueError(f"the number of {plural}, the rows of a, must be known: give its shape.")
    return a, c


def _constraint(value: Any, name: str, variable: Graph, max_ndim: int = 1) -> Graph:
    """Return a bound or a coefficient as a checked graph in the dtype of the variable."""
    if is_symbolic(value):
        graph = value.astype(variable.dtype)
    else:
        try:
            has_nan = np.isnan(np.asarray(value, dtype="float64")).any()
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numbers, got {value!r}.") from None
        if has_nan:
            raise ValueError(f"{name} must be numbers, got NaN.")
        graph = pt.constant(np.asarray(value, dtype=variable.dtype))
    if graph.ndim > max_ndim:
        raise ValueError(f"{name} must have at most {max_ndim} dimension(s), got {graph.ndim}.")
    return graph


def _format(bound: Any) -> str:
    value = getattr(bound, "data", None)
    if value is None:
        return bound.name or "a graph"
    return f"{value:g}" if value.ndim == 0 else f"vector of {len(value)}"
