"""The state of a decomposition: the point and its products with K, the active set, the working set, the precision.

Carried from iteration to iteration are z, G = K z, the active set, the working set and the precision. Derived from them
by `measure` are the gradient F = G + D z + p over the active variables, its extremes for each equality, and the
violation. The methods are the transitions of the algorithm; the module `algorithm` puts them in order.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symsvm.solvers.decomposition.selection import select, wants_all
from symsvm.solvers.decomposition.vectors import own_vectors
from symsvm.solvers.decomposition.working_set import WorkingSet
from symsvm.solvers.solution import Info

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers.decomposition.parameters import Parameters
    from symsvm.solvers.decomposition.working_set import WorkingSetReuse

__all__ = ["FLOAT32", "FLOAT64", "FLOAT64_PRODUCTS", "Check", "Precision", "State"]


class Precision(NamedTuple):
    """The types that a run computes in: that of products with K, and that of the working set's matrix."""

    products: str
    matrix: str

    def raised(self) -> Precision | None:
        """The next higher precision: first the products, then the matrix; None if both are float64."""
        if self.products != "float64":
            return self._replace(products="float64")
        return self._replace(matrix="float64") if self.matrix != "float64" else None


# Variables are few, and sorted faster than counted, if they are fewer than one for so many points.
_FEW_OF = 16
# Rows of K that are computed together in a sample.
_SAMPLED = 4096

FLOAT32 = Precision("float32", "float32")
FLOAT64_PRODUCTS = Precision("float64", "float32")
FLOAT64 = Precision("float64", "float64")


class Check(enum.Enum):
    """What the comparison of a violation with tol has found; see `State.check`."""

    WITHIN = "the violation is within tol, errors of K z included"
    ABOVE = "the violation, or the error of K z, is above tol"
    RECOMPUTED = "K z was recomputed in float64: measure again"


class _Best(NamedTuple):
    """The best point that float64 has measured."""

    W: float
    violation: float
    saved: Any


class State:
    """The state of a run.

    Attributes
    ----------
    z, Kz, W : the point, K z, and the objective.
    is_exact : whether Kz was computed in float64 throughout; `is_fresh`: and as one product, not as a sum of many.
    is_refined : whether the free variables were refined since the last working set.
    n_iter, steps : outer iterations, and steps of SMO in all of them.
    size : the largest |K_ii| of all members that a working set has had.
    is_late : whether the first product took more time than there was, so that Kz is an estimate.
    vectors : z, K z, F and the active set, in memory or where the points are.
    active, working, precision : the active set, the working set, the types that are computed in.
    F : the gradient (K + D) z + p, up to date for the active variables after `measure`.
    least, most, middle : for each equality the least F that may rise, the greatest that may fall, and their middle.
    b : the multipliers of the equalities, -middle.
    violation, n_free, n_bounded : the largest KKT violation; active variables between their bounds and at one but 0.
    """

    def __init__(
        self,
        qp: QuadraticProgram,
        matrix: KernelMatrix,
        start: Array | None,
        seed: int,
        pairs: str | None,
        parameters: Parameters,
        reuse: WorkingSetReuse | None,
        deadline: float = np.inf,
    ):
        self.qp, self.matrix, self.parameters, self.pairs = qp, matrix, parameters, pairs
        self.is_whole = qp.n <= parameters.whole and pairs is None
        self.rng = np.random.default_rng(seed)
        self._entries_before = matrix.entries
        self.vectors = own_vectors(qp, matrix, parameters)
        self.z = qp.start(start)
        self._at_drop: list[Array] = []  # z at each time that variables were dropped
        reused = None if reuse is None else reuse.take(qp, matrix, parameters)
        self.precision = FLOAT64 if matrix.is_exact or self._needs_float64() else FLOAT32
        if reused is not None:
            self.working = reused
            self.precision = self.precision._replace(matrix=str(reused.K.dtype))
        else:
            self.working = WorkingSet(qp, matrix, self.precision.matrix, parameters)
        self.is_exact, self.is_refined, self.n_iter, self.steps = True, False, 0, 0
        self.aim = parameters.aim_whole if self.is_whole else parameters.aim
        self._last_exact = self._last_shrunk = np.inf  # violations at the last exact measure and at the last shrinking
        self._best: _Best | None = None
        self._idle = self._unchecked = 0
        self.size = 0.0
        self.is_late = False
        self.recompute_gradient(deadline)  # a start may be optimal

    def _needs_float64(self) -> bool:
        """Whether D alone keeps variables finite, and is smaller than what float32 does to K."""
        qp = self.qp
        unbounded = np.isinf(qp.lower) | np.isinf(qp.upper)
        if not unbounded.any():
            return False
        some = np.unique(np.linspace(0, qp.m - 1, 64).astype("int64"))
        K = np.empty((len(some), len(some)))
        self.matrix.block(some, some, K)
        return bool(qp.diagonal[unbounded].min() < 1e-5 * np.abs(np.diagonal(K)).max())

    @property
    def z(self) -> Array:
        """The point."""
        return self.vectors.z

    @z.setter
    def z(self, z: Array) -> None:
        self.vectors.put(z)

    @property
    def Kz(self) -> Array:
        """K z."""
        return self.vectors.Kz

    @property
    def F(self) -> Array:
        """The gradient."""
        return self.vectors.F

    @property
    def active(self) -> Any:
        """The active set."""
        return self.vectors.active

    # ---- optimality

    def measure(self) -> None:
        """Compute F, its extremes for each equality, and the violation, over the active variables."""
        has_equality = len(self.qp.total) > 0
        self.n_free, self.n_bounded, self.violation, *ends = self.vectors.survey()
        self.least, self.most, self.middle = ends
        self.b = -self.middle if has_equality else np.zeros(0)

    def is_feasible(self) -> bool:
        """Whether the totals are what rounding allows, after many steps."""
        return self.qp.infeasibility(self.z) <= self.qp.rounding_error(self.z)

    def check(self, tol: float) -> Check:
        """Decide whether the violation is within tol, in spite of the error of K z.

        K z is recomputed in float64 where its error leaves the answer open.
        """
        is_within = self.violation <= tol
        if is_within and not self.is_exact:
            is_within = self._is_within(tol)
            if self.is_exact and not is_within:
                return Check.RECOMPUTED
        if self._is_stale() if is_within else self._error_exceeds_violation():
            self.recompute_gradient()
            return Check.RECOMPUTED
        return Check.WITHIN if is_within else Check.ABOVE

    def _is_within(self, tol: float) -> bool:
        """Whether violation and error together are within tol; if not, aim lower or recompute K z in float64."""
        error = 5 * self.gradient_error()  # of two products; others than those sampled may be twice as large, and more
        if self.violation + error <= tol:
            return True
        if error > 0.6 * tol or self.violation <= self.aim * tol <= tol - 1.1 * error:
            self.recompute_gradient()
        else:  # some more steps cost less
            self.aim = min(self.aim, 1 - 1.1 * error / tol)
        return False

    def _is_stale(self) -> bool:
        """Whether K z is a sum of many products, or the totals have lost digits in many steps."""
        return (self.is_exact and not self.is_fresh) or not self.is_feasible()

    def _error_exceeds_violation(self) -> bool:
        """Whether the error of K z is as large as the violation that it is to measure; sampled from time to time."""
        self._unchecked += 1
        interval = 1 if self.is_whole else self.parameters.check_interval
        if self.is_exact or not self.active.n_variables or self._unchecked < interval:
            return False
        self._unchecked = 0
        return 6 * self.gradient_error() > self.violation

    def gradient_error(self) -> float:
        """The largest error of K z in a sample of the active points, with those of the largest |F + b|."""
        support, n_points = np.flatnonzero(self.z), self.active.n_points
        affordable = self.parameters.spot_cost / self.matrix.width / max(1, len(support))
        size = min(n_points, int(np.clip(affordable, 16, 64)))
        sample = self.vectors.active_points(self.rng.choice(n_points, size, replace=False))
        worst = self.vectors.worst_points(self.b, size)
        some = np.unique(np.concatenate([sample, worst]))
        beta, points = self.by_point(support, self.z[support])
        exact, K = np.zeros(len(some)), np.empty((min(len(points), _SAMPLED), len(some)))
        for low in range(0, len(points), _SAMPLED):  # K_ji for K_ij: few columns are arranged faster than many
            rows = points[low : low + _SAMPLED]
            self.matrix.block(rows, some, K[: len(rows)])
            exact += beta[low : low + _SAMPLED] @ K[: len(rows)]
        return float(np.max(np.abs(exact - self.vectors.products(some))))

    # ---- transitions

    def recompute_gradient(self, deadline: float = np.inf) -> None:
        """Compute K z in float64 from the data, all variables active, at totals that are what rounding allows.

        It is an estimate, and `is_late` is true, if the deadline comes first.
        """
        if not self.is_feasible():
            self.z = self.qp.start(self.z)
        support = np.flatnonzero(self.z)
        d, points = self.by_point(support, self.z[support])
        self._at_drop = []
        self.is_late = not self.vectors.recompute(d, points, deadline)
        self.is_exact = self.is_fresh = not self.is_late
        self.W = self.vectors.value()

    def reconstruct_gradient(self) -> None:
        """Make all variables active: add to K z of the dropped points what they have missed."""
        exact = self.has_exact_products
        for time, z in enumerate(self._at_drop):
            changed = np.flatnonzero(self.z != z)
            if len(changed):
                self._note_product(exact)
                self.vectors.add_to_dropped(time, *self.by_point(changed, (self.z - z)[changed]), exact=exact)
        self._at_drop = []
        self.vectors.activate()

    def shrink(self) -> None:
        """Drop the variables that are safely at a bound, each time the violation has halved."""
        if self.is_whole or self.is_exact or self.violation > self._last_shrunk / 2:
            return
        self._last_shrunk = self.violation
        self.vectors.shrink(self.least, self.most, self.parameters.shrink_margin * self.violation)
        self._at_drop.append(self.z.copy())

    def solve_working_set(self, tol: float, deadline: float = np.inf) -> bool:
        """Select a working set, solve for it until the deadline at most, update K z; return whether z changed."""
        self.n_iter += 1
        self.is_refined = False
        if not self.is_whole and self.pairs is None and wants_all(self):
            self._take_all()
        self._choose_members(select(self))
        W = self.working.members
        # A part need not be solved better than the whole is; and no violation falls below the digits of the matrix.
        p = self.parameters
        digits = p.digits_float32 if self.working.K.dtype == "float32" else p.digits_float64
        part = p.subproblem_part * min(1.0, len(W) / p.subproblem_size)
        eps = self.violation * (digits if self.is_whole else max(digits, part))
        if self.pairs is None:
            eps = max(self.aim * tol, eps)
        # F of free variables is near the middle: relative to it, float32 has the digits that count.
        F = self.vectors.relative_gradient(W, self.middle if len(self.qp.total) else None)
        new, change, steps = self.working.solve(F, self.z, eps, deadline)
        self.steps += steps
        moved = np.flatnonzero(new != self.z[W])
        changed = W[moved]
        d, F = new[moved] - self.z[changed], self.vectors.gradient(changed)
        self.vectors.move(W, new)
        self._add_working_product(moved, d, change)
        # W is quadratic: it changes by d times the mean of its gradients before and after.
        qp = self.qp
        after = self.vectors.products(qp.point[changed]) + qp.diagonal[changed] * self.z[changed] + qp.p[changed]
        self.W += float(d @ (F + after)) / 2
        return len(changed) > 0

    def _take_all(self) -> None:
        """Let all variables be the working set from now on: their matrix costs less than products with most of them."""
        self.is_whole = True
        if self.active.is_shrunk:
            self.reconstruct_gradient()
            self.measure()

    def _choose_members(self, wanted: Array) -> None:
        """Let the working set have these members, in float64 where their values overflow float32."""
        self.vectors.hold(self.qp.point[wanted])
        self.working.choose(wanted)
        self.size = max(self.size, float(np.abs(self.working.diagonal).max(initial=0.0)))
        if not self.working.is_finite() and self.working.K.dtype == "float32":
            self._set_precision(FLOAT64)
            self.working.choose(wanted)
        if not self.working.is_finite():
            raise ValueError(f"the kernel {self.matrix.name} is not finite on these points: scale X.")

    def raise_precision(self) -> bool:
        """Go to the next higher precision; return False if all is float64."""
        raised = self.precision.raised()
        if raised is not None:
            self._set_precision(raised)
        return raised is not None

    def _set_precision(self, precision: Precision) -> None:
        if precision.matrix != self.working.K.dtype:
            self.working = WorkingSet(self.qp, self.matrix, precision.matrix, self.parameters)
        self.precision = precision

    @property
    def has_exact_products(self) -> bool:
        """Whether products are computed in float64."""
        return self.precision.products == "float64"

    def make_progress(self, tol: float) -> bool:
        """Compare an exact measure with the best one before; return False if no progress is possible in float64.

        Where W rose, the run returns to the best point in a higher precision. Where the violation has not halved since
        the last exact measure, the precision is raised.
        """
        if not self.is_feasible():
            self.recompute_gradient()
            self.measure()
        eps, rounding = np.finfo("float64").eps, self.vectors.rounding()
        is_slow, self._last_exact = self.violation > self._last_exact / 2, self.violation
        best = self._best
        if best is not None:
            if self.W > best.W + 8 * rounding and self.raise_precision():  # undo what float32 made worse
                self.raise_precision()
                self.W = best.W
                self.vectors.restore(best.saved)
                self.measure()
                return True
            sizes = eps * float(np.abs(self.working.diagonal).max(initial=0.0))
            within_reach = sizes * float(np.abs(self.z).sum()) <= 10 * tol  # of what rounding leaves
            falls = self.violation < 0.9 * best.violation or (within_reach and self.W < best.W - 8 * rounding)
            self._idle = 0 if falls else self._idle + 1
            p = self.parameters
            patience = p.patience if self.n_free <= p.max_free else p.patience_partial
            if self._idle >= patience and not self.raise_precision():
                if best.W < self.W:
                    self.W = best.W
                    self.vectors.restore(best.saved)
                return False
        if best is None or self._idle == 0:
            if best is not None:
                self.vectors.forget(best.saved)
            self._best = _Best(self.W, self.violation, self.vectors.save())
        if is_slow:
            self.raise_precision()
        return True

    def is_finite(self) -> bool:
        """Whether W and K z are finite."""
        return bool(np.isfinite(self.W) and self.vectors.is_finite())

    def restore_best(self) -> bool:
        """Return from a point that is not finite to the best one, in a higher precision; False if there is none."""
        if self._best is None:
            self.z = self.qp.start()
            self.recompute_gradient()
        else:
            self.W, self.is_exact, self._at_drop = self._best.W, True, []
            self.vectors.restore(self._best.saved)
            self.vectors.activate()
        self.measure()
        return self.raise_precision()

    def finish(self) -> None:
        """End at the best point that float64 has measured, should the last one be worse."""
        self.recompute_gradient()
        if self._best is not None and self._best.W < self.W:
            self.W = self._best.W
            self.vectors.restore(self._best.saved)

    # ---- products

    def by_point(self, variables: Array, d: Array) -> tuple[Array, Array]:
        """The sum of d for each point of the variables, and these points."""
        if self.qp.n == self.qp.m:
            return d, variables
        qp, of = self.qp, self.qp.point[variables]
        if _FEW_OF * len(variables) < qp.m:
            points, where = np.unique(of, return_inverse=True)
            return np.bincount(where, weights=d, minlength=len(points)), points
        is_there = np.zeros(qp.m, dtype=bool)
        is_there[of] = True
        points = np.flatnonzero(is_there)
        return np.bincount(of, weights=d, minlength=qp.m)[points], points

    def add_product(self, variables: Array, d: Array, *, exact: bool = False) -> None:
        """G += K[:, variables] d, for the active points."""
        if len(variables):
            self._note_product(exact)
            self.vectors.add(*self.by_point(variables, d), exact=exact)

    def _note_product(self, exact: bool) -> None:
        """Note that another product is added to K z."""
        self.is_exact &= exact
        self.is_fresh = False

    def _add_working_product(self, moved: Array, d: Array, change: Array) -> None:
        """G += K[:, W] d: for the members W of the working set the product is known from the subproblem."""
        qp, working = self.qp, self.working
        W, exact = working.members, self.has_exact_products
        if not len(moved) or (exact and working.K.dtype != "float64"):
            self.add_product(W[moved], d, exact=exact)
            return
        change[moved] -= qp.diagonal[W[moved]] * d
        self._note_product(exact)
        self.vectors.add_outside(*self.by_point(W[moved], d), qp.point[W], change, exact=exact)

    def info(self, seconds: float) -> Info:
        """The diagnostics of an iteration; the gap is over the active variables."""
        rows = (self.matrix.entries - self._entries_before) / self.qp.m
        bounded = self.n_bounded + self.active.n_bounded
        return Info(self.n_iter, seconds, self.W, self.violation, self.vectors.gap(self.b), self.n_free, bounded, rows)
