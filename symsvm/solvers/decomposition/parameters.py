"""The numbers that tune the decomposition, in one place."""

from dataclasses import dataclass

__all__ = ["DEFAULTS", "Parameters"]


@dataclass(frozen=True)
class Parameters:
    """The numbers that tune a run of `decompose`; the solution does not depend on them, only the way to it.

    Numbers inside compiled loops (block sizes, costs of a step of SMO) stay beside these loops: Numba freezes them into
    cached code, and looks for changes in the file of the loop only.

    Attributes
    ----------
    whole : int
        A problem of at most so many variables is its own working set.
    join, join_few, join_points : int
        Violators on each side that join the free variables: one for so many points, at least few and at most `join`.
    wide, wide_points, wide_part : int, int, float
        Features from which on all variables are solved for together, if there are at most so many points for each, or
        so large a part of a working set is not 0.
    max_free : int
        Free variables in a working set.
    candidate_part : float
        A variable at a bound is a candidate if it violates optimality by this part of the largest violation.
    subproblem_part, subproblem_size : float, int
        The part of the violation that the solution of a working set may leave, less where it has fewer variables than
        this: steps on few cost less than another working set.
    aim, aim_whole : float
        The part of tol to aim at, and that of a problem that is its own working set; the rest is for errors of K z.
    digits_float32, digits_float64 : float
        The part of a violation that is left when the working set's matrix has no digits left to reduce it.
    max_steps : int
        Steps of SMO in one working set; only degenerate problems reach it.
    spot_cost : float
        Multiplications for a sample of K z in float64.
    check_interval : int
        Iterations between two samples of the error of K z; a problem that is its own working set is sampled each time.
    patience, patience_partial : int
        Iterations in float64 without progress that end a run; and those where a working set holds only a part of the
        free variables, which takes more of them.
    shrink_margin : float
        A variable at a bound is dropped if its gradient is further than this part of the violation on the safe side.
    newton_time : float
        Nanoseconds of SMO before Newton's step is tried, at least.
    newton_variables : int
        Free variables in a factorisation.
    newton_simple : int
        Newton's steps of a subproblem that may stop at the first bounds they meet; later ones go from bound to bound.
    pause : float
        Nanoseconds of SMO between two looks at the clock and at interrupts.
    refine_cost : float
        Multiplications for the refinement of the free variables.
    refine_rounds, refine_steps : int
        Rounds of refinement, each with another set of free variables; and Newton's steps in a round.
    landmarks : int
        Columns of K in the preconditioner of Newton's equations, for a program with a separable term.
    newton_dense : int
        Free variables up to which these equations are solved by a factorisation.
    cg_steps : int
        Steps of conjugate gradients in one system, at most.
    forcing : float
        The part of the residual that conjugate gradients leave.
    rounding : float
        A violation that is rounding, as a part of the size of what cancels in the gradient.
    """

    whole: int = 2560
    join: int = 512
    join_few: int = 128
    join_points: int = 8
    wide: int = 200
    wide_points: int = 8
    wide_part: float = 0.5
    max_free: int = 8192
    candidate_part: float = 0.3
    subproblem_part: float = 0.25
    subproblem_size: int = 1280
    aim: float = 0.65
    aim_whole: float = 0.5
    digits_float32: float = 1e-5
    digits_float64: float = 1e-9
    max_steps: int = 10**6
    spot_cost: float = 2**23
    check_interval: int = 16
    patience: int = 20
    patience_partial: int = 500
    shrink_margin: float = 0.5
    newton_time: float = 2e6
    newton_variables: int = 4096
    newton_simple: int = 2
    pause: float = 1e8
    refine_cost: float = 2**26
    refine_rounds: int = 16
    refine_steps: int = 6
    landmarks: int = 512
    newton_dense: int = 1024
    cg_steps: int = 500
    forcing: float = 0.1
    rounding: float = 1e-13


DEFAULTS = Parameters()
