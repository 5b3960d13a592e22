"""An objective and a solver, compiled: `Program`, whose `run` is the loop of the solvers that consist of steps."""

# pyright: reportAttributeAccessIssue=false
# (PyTensor's variables get `ndim` and `data` from types that pyright cannot infer.)

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant

from symsvm._lib.interrupts import is_interrupt, restored_interrupts
from symsvm._lib.validation import count, number
from symsvm._lib.validation import dtype as _dtype
from symsvm.compiler.functions import resolve_mode, shape_error
from symsvm.compiler.lifting import MEMORY, TILE_MEMORY
from symsvm.compiler.meshes import is_mesh_mode
from symsvm.compiler.step_functions import step_functions
from symsvm.evaluation.symmetry import SymmetryCheck
from symsvm.graphs.structure import leaves
from symsvm.objectives import Objective
from symsvm.solvers.convergence import ProgressBar, warn_not_converged, warn_user
from symsvm.solvers.solution import Info, Solution, collect_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.solvers.solution import Callback
    from symsvm.solvers.solver import Solver

__all__ = ["Program", "check_input_names", "check_memory", "check_run_arguments", "input_values"]

# The arguments of Program.run, which no free input may have as its name.
_RESERVED = ("start", "tol", "max_iter", "callback", "time_limit", "verbose", "self")
_MAX_ITER = 1000  # for solvers that state no limit of their own


class Program:
    """An objective and a solver, compiled for one backend; `compile` makes one.

    Parameters
    ----------
    objective : Objective
        The problem.
    solver : Solver
        The algorithm, such as `ProjectedGradient()`.
    mode : str or Mode, optional
        The backend: "NUMBA" (default), "JAX" or another PyTensor mode.
    memory : int, optional
        The bytes that arrays beside the data may take, 1 GiB by default.
    dtype : {"float32", "float64"}, optional
        The type to compute in, by default that of the objective.
    mesh : jax.sharding.Mesh, optional
        The devices to spread the kernel matrix over, by rows; for mode "JAX".

    Attributes
    ----------
    inputs : list of TensorVariable
        The free inputs of the objective, which are arguments of `run`.
    given : list of TensorVariable
        All variables that a run gives values to: inputs, shared variables, numbers.
    functions : StepFunctions
        The compiled functions.
    """

    warns = True  # whether a run that ends short of tol is no result

    def __init__(
        self,
        objective: Objective,
        solver: Solver,
        *,
        mode: Any = None,
        memory: int | None = None,
        dtype: str | None = None,
        mesh: Any = None,
    ) -> None:
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
        missing = [name for name in ("structure", "start", "init", "step") if not hasattr(solver, name)]
        if isinstance(solver, type) or missing:
            hint = "" if isinstance(solver, type) or len(missing) == 4 else f", which has no {' and no '.join(missing)}"
            raise TypeError(f"solver must be a solver such as ProjectedGradient(), got {solver!r}{hint}.")
        self.objective, self.solver = objective, solver
        self.memory = MEMORY if memory is None else check_memory(memory)
        self.dtype = objective.variable.dtype if dtype is None else _dtype(dtype)
        mode = resolve_mode(mode, mesh)
        self._n_processes = mode.n_processes if is_mesh_mode(mode) else 1
        self._check_symmetry = SymmetryCheck(objective, self.memory)
        roots = [objective.value, *objective.bounds]
        variables, numbers = leaves(roots)
        # A user may change a bound, so it is an input; an infinite one, or 0, is part of the problem's structure.
        numbers += [v for v in objective.bounds if _is_bound(v) and v not in numbers]
        variables.remove(objective.variable)
        self._shared = [v for v in variables if isinstance(v, SharedVariable)]
        self.inputs = [v for v in variables if not isinstance(v, SharedVariable)]
        check_input_names(self.inputs)
        self._numbers = [v.data for v in numbers]
        self.given = [*self.inputs, *self._shared, *numbers]
        self.functions = step_functions(objective, self.given, solver, mode, self.memory, self.dtype)
        self.functions.compile_ahead()

    def steps(self, first: Sequence[ArrayLike], data: Sequence[Array] = ()) -> Iterator[tuple[Any, float, Any, Any]]:
        """Yield the iterations of the solver: the loop of every run.

        It ends when the solver's own rule says so (`is_finished`), else never. A point without a finite W is skipped if
        the solver backtracks.

        Parameters
        ----------
        first : sequence of array_like
            The vectors in the first state, see `initial_state`.
        data : sequence of ndarray
            The values of `inputs`.

        Yields
        ------
        tuple
            The point lam, W(lam), grad W(lam) and the next lam.
        """
        values = self.functions.to_device(self._values(data))
        lam, *state = (np.asarray(v, dtype=self.dtype) for v in (*first, *self.solver.start()))
        prepare, step = self.functions.compiled(lam, values)
        skips, backtracks = False, getattr(self.solver, "backtracks", False)
        is_finished = getattr(self.solver, "is_finished", None)
        constants = None
        while True:
            try:
                constants = prepare(*values) if constants is None else constants
                new, *state, W, g = step(lam, *state, *constants, *values)  # the state stays where it was computed
            except (ValueError, TypeError) as error:
                raise shape_error(error, self.given, [np.shape(x) for x in values]) from error
            new, W = np.asarray(new), float(W)
            if np.isfinite(W) or not skips:
                yield lam, W, np.asarray(g), new
            if is_finished is not None and is_finished(*state):
                return
            lam, skips = new, backtracks

    def _values(self, data: Sequence[Array]) -> list:
        """The values of `given`: the data, the present values of the shared variables, the numbers."""
        return [*data, *(v.get_value(borrow=True) for v in self._shared), *self._numbers]

    @restored_interrupts()
    def run(
        self,
        start: ArrayLike | None = None,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        callback: Callback | None = None,
        time_limit: float | None = None,
        verbose: int = 0,
        **data: ArrayLike,
    ) -> Solution:
        """Run from `start` until the KKT violation is at most `tol`.

        Parameters
        ----------
        start : array_like, optional
            The first point, which is projected onto the feasible set; by default the value of the shared variable.
        tol : float
            The largest KKT violation to accept.
        max_iter : int, optional
            The limit on the steps: 1000, more for solvers with cheap steps. The solution is the point reached.
        callback : callable, optional
            A function of an `Info`; a true return value stops the run.
        time_limit : float, optional
            The limit in seconds. The solution is the point reached.
        verbose : int
            1 draws a bar with the violation and the gap on a terminal.
        **data : array_like
            A value for each free input of the objective, by name.

        Returns
        -------
        Solution
            The last point, with its certificate.
        """
        max_iter = getattr(self.solver, "max_iter", _MAX_ITER) if max_iter is None else max_iter
        tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
        if time_limit is not None and self._n_processes > 1:
            raise ValueError(
                f"time_limit cannot end a run in {self._n_processes} processes, whose clocks differ: pass max_iter."
            )
        # A certificate is computed in float64 from the data: float32, or a gradient that was updated, may be off.
        confirms = self.dtype != "float64" or getattr(self.solver, "carries_gradient", False)
        began = time.perf_counter()
        values = input_values(self.inputs, data)
        first_point = self._check_start(start)
        lower, upper, *rest = self._bounds(values, len(first_point))
        if sentence := self._check_symmetry(dict(zip(self.given, self._values(values), strict=True))):
            warn_user(sentence)
        first = self.initial_state(first_point, values)
        equality = tuple(rest) or None
        infos, stopped, reached = [], None, None
        bar = ProgressBar(tol) if verbose else None
        certify = self.objective.certifier(lower, upper, equality, tol)
        try:
            for n_iter, (lam, W, g, _) in enumerate(self.steps(first, values)):
                certificate = certify(lam, W, g)
                if confirms and certificate.status in ("optimal", "stationary"):
                    certificate = certify(lam, *self.exact(lam, values))
                if certificate.status == "diverged" and reached is not None:
                    stopped = "diverged"
                    break
                reached = lam, W, g, certificate  # in one statement, so that an interrupt cannot mix two points
                info = Info(n_iter, time.perf_counter() - began, W, certificate.violation, certificate.gap)
                infos.append(info)
                if certificate.status == "diverged":
                    stopped = "diverged"
                elif certificate.status in ("optimal", "stationary"):
                    stopped = "tol"
                elif n_iter == max_iter:
                    stopped = "max_iter"
                elif time_limit is not None and info.seconds >= time_limit:
                    stopped = "time_limit"
                if bar is not None:
                    bar.show(info)
                if callback is not None and callback(info) and stopped is None:
                    stopped = "callback"
                if stopped:
                    break
        except (KeyboardInterrupt, SystemError) as error:
            if not infos or not is_interrupt(error):
                raise
            stopped = "interrupt"
        finally:
            if bar is not None:
                bar.close()
        assert reached is not None
        lam, W, g, certificate = reached
        stopped = stopped or "rest"
        # Far from the optimum, a certifier may report a bound of the violation; `exactly` then computes it.
        if (confirms or hasattr(certify, "exactly")) and stopped != "tol" and certificate.status != "diverged":
            W, g = self.exact(lam, values) if confirms else (W, g)
            certificate = getattr(certify, "exactly", certify)(lam, W, g)
        lam = np.array(lam)  # a copy, since JAX's arrays are read-only
        feasible = lam
        if certificate.status == "infeasible":
            (feasible,) = self.functions.evaluate("project", lam, self._values(values))
        if self.warns and certificate.status not in ("optimal", "stationary"):
            is_feasible = certificate.status != "infeasible"
            goal = f"a violation of {certificate.violation:.2g}, above tol={tol:g}"
            warn_not_converged(stopped, len(infos) - 1, goal, _advice(stopped), is_feasible=is_feasible)
        objective, trace = self.objective, collect_trace(infos)
        solved = getattr(objective, "program", None), lam if objective.kind == "z" else None
        return Solution(
            lam, certificate.b, feasible, stopped, len(infos) - 1, trace, lambda: certificate, objective.kind, *solved
        )

    def initial_state(self, start: ArrayLike | None = None, data: Sequence[Array] = ()) -> Sequence[Array]:
        """Return the vectors in the first state of a run.

        Parameters
        ----------
        start : array_like, optional
            The first point, by default the value of the shared variable.
        data : sequence of ndarray
            The values of `inputs`.

        Returns
        -------
        sequence of ndarray
            The first lam, as the solver's `init` makes it, and the solver's other vectors.
        """
        return self.functions.evaluate("init", self._check_start(start), self._values(data))

    def exact(self, lam: Array, data: Sequence[Array] = ()) -> tuple[float, Array]:
        """Return W and its gradient in float64, also for a program that computes in float32.

        Parameters
        ----------
        lam : ndarray
            The point.
        data : sequence of ndarray
            The values of `inputs`.

        Returns
        -------
        W : float
            The objective at lam.
        g : ndarray
            Its gradient.
        """
        return self.functions.value_and_grad_float64(lam, self._values(data))

    def _check_start(self, start: ArrayLike | None) -> Array:
        variable = self.objective.variable
        if start is None:
            if not isinstance(variable, SharedVariable):
                raise TypeError(f"start must be given: {variable} is an input, not a shared variable with a value.")
            start = variable.get_value()
        start = np.asarray(start, dtype=self.dtype)
        length = variable.type.shape[0]
        if start.ndim != 1 or not len(start) or not np.isfinite(start).all() or length not in (None, len(start)):
            expected = f" of length {length}" if length is not None else ""
            raise ValueError(f"start must be a finite vector{expected}, got the shape {start.shape}.")
        return start

    def _bounds(self, data: Sequence[Array], length: int) -> list[Array]:
        """The float64 values of the constraints: lower, upper and, with equalities or inequalities, their rows."""
        values = [np.asarray(v, dtype="float64") for v in self.functions.bounds(self._values(data))]
        for value in [*values[:3], *values[4:5]]:  # lower, upper, the rows of equalities and inequalities
            if value.ndim and value.shape[-1] != length:
                raise ValueError(f"a constraint has {value.shape[-1]} entries, but start has {length}.")
        for value in values:
            if np.isnan(value).any():
                raise ValueError("a constraint holds NaN.")
        self.objective.check_constraints(values)
        return values


def _advice(stopped: str) -> list[str]:
    """What to do about a run of steps that ended before its tolerance."""
    if stopped in ("max_iter", "time_limit"):
        return [f"Raise {stopped} or tol, scale the features, or use another solver."]
    if stopped == "diverged":
        return ["Lower the step size, or use 'accelerated-gradient', which finds it by itself."]
    return []


def check_run_arguments(
    tol: Any, max_iter: Any, time_limit: Any, callback: Any
) -> tuple[float, int | None, float | None]:
    """Return the numbers among the arguments of a run, or raise for one that is wrong."""
    if time_limit is not None:
        time_limit = number(time_limit, "time_limit")
        if time_limit < 0:
            raise ValueError(f"time_limit must not be negative, got {time_limit}.")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of an Info, got {callback!r}.")
    return number(tol, "tol", positive=True), None if max_iter is None else count(max_iter, "max_iter"), time_limit


def check_input_names(inputs: Sequence[Any]) -> None:
    """Raise unless every free input has a name that can be an argument of `run`."""
    names = [v.name for v in inputs]
    for name in names:
        if name is None or names.count(name) > 1 or name in _RESERVED:
            raise ValueError(f"every free input of an objective needs a name of its own for run(), not {name!r}.")


def input_values(inputs: Sequence[Any], data: Mapping[str, Any]) -> list[Array]:
    """Return the values of the free inputs of an objective, in their order, or raise for one that is missing."""
    names = [v.name for v in inputs]
    missing, unknown = [n for n in names if n not in data], [n for n in data if n not in names]
    if missing or unknown:
        what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
        raise TypeError(f"the objective's free inputs are {', '.join(names) or 'none'}: {what}.")
    values = [_array(data[v.name], v) for v in inputs]
    for v, value in zip(inputs, values, strict=True):
        if value.ndim != v.ndim:
            raise ValueError(f"{v.name} must have {v.ndim} dimension(s), got the shape {value.shape}.")
        if np.isnan(value.data if hasattr(value, "tocsr") else value).any():
            raise ValueError(f"{v.name} must not hold NaN.")
    return values


def _array(value: Any, v: Any) -> Any:
    """A value of an input in its type; sparse matrices, which only `Decomposition` takes, become CSR."""
    return value.tocsr().astype(v.dtype) if hasattr(value, "tocsr") else np.asarray(value, dtype=v.dtype)


def _is_bound(v: Any) -> bool:
    """Whether v is a number that a user may change."""
    return isinstance(v, Constant) and not v.ndim and np.isfinite(v.data) and v.data != 0


def check_memory(value: Any) -> int:
    """Return the bytes that arrays may take, or raise."""
    memory = count(value, "memory")
    if memory < TILE_MEMORY:
        raise ValueError(f"memory must hold at least one tile, {TILE_MEMORY} bytes, got {memory}.")
    return memory
