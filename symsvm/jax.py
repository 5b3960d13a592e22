"""Solutions as functions of JAX arrays: `symsvm.jax.argmin`, differentiable inside `jax.grad` and `jax.jit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.extras import import_extra
from symsvm.implicit.argmin import SECOND_DERIVATIVES
from symsvm.implicit.solution_function import SolutionFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm.objectives import Objective

__all__ = ["argmin"]


def argmin(objective: Objective, *, mode: Any = None, **options: Any) -> Callable[..., tuple[Any, Any]]:
    """Return the solution of an objective as a function of JAX arrays.

    The solver and the adjoint system run on the host, in float64, whatever device and type the arrays have; see
    `symsvm.argmin` for what is computed. The function may be called inside `jax.jit`, `jax.grad` and `jax.vmap`, and
    has no second derivatives.

    Parameters
    ----------
    objective : Objective
        Any W that `symsvm.argmin` takes.
    mode : str or Mode, optional
        The backend of the gradient's sums over pairs on the host, "NUMBA" by default.
    **options : object
        The options tol, max_iter, time_limit and warm_start of `symsvm.argmin`.

    Returns
    -------
    callable
        The function of the free inputs of the objective, by name, that returns lam (n,) and b, a scalar or one for each
        equality.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, pytensor.tensor as pt
    >>> from symsvm import RBF, CSVC
    >>> lam, X, y, C = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y"), pt.dscalar("C")
    >>> solve = argmin(CSVC(lam, X, y, C, RBF(1.0)), mode="FAST_COMPILE")
    >>> points, labels = jnp.array([[-1.0], [0.5], [2.0], [2.2]]), jnp.array([-1.0, 1.0, 1.0, -1.0])
    >>> b = lambda C: solve(X=points, y=labels, C=C)[1]
    >>> round(float(jax.grad(b)(1.0)), 3)
    -0.047
    """
    jax: Any = import_extra("jax", "symsvm.jax")
    jnp = jax.numpy
    solution = SolutionFunction(objective, mode=mode, **options)

    def forward(*arrays):
        lengths, dtype = solution.lengths([x.shape for x in arrays]), jnp.result_type(float)

        def on_host(*values):
            found = solution.solve(*map(np.asarray, values))
            # JAX may have no float64: the adjoint system gets its bits.
            return found[0].astype(dtype), found[1].astype(dtype), np.concatenate(found).view("uint32")

        shapes = [((lengths[0],), dtype), ((lengths[1],), dtype), ((2 * sum(lengths),), "uint32")]
        v, b, bits = _call(jax, on_host, shapes, arrays)
        return (v, b), (arrays, bits)

    def gradient(arrays, bits, gv, gb):
        lengths = solution.lengths([x.shape for x in arrays])

        def on_host(bits, gv, gb, *values):
            point = np.split(np.asarray(bits).view("float64"), np.cumsum(lengths)[:-1])
            found = solution.gradient(*map(np.asarray, values), *point, np.asarray(gv), np.asarray(gb))
            return tuple(np.asarray(g, x.dtype) for g, x in zip(found, values, strict=True))

        return _call(jax, on_host, [(x.shape, x.dtype) for x in arrays], (bits, gv, gb, *arrays))

    @jax.custom_vjp
    def solve(*arrays):
        return forward(*arrays)[0]

    solve.defvjp(forward, lambda kept, g: gradient(*kept, *g))

    def of_inputs(**inputs):
        v, b = solve(*(jnp.asarray(x, dtype=jnp.result_type(float)) for x in solution.arrays(inputs)))
        if not solution.has_scalar_b:
            return v, b
        return v, b[0] if b.shape[0] else jnp.zeros(())

    return of_inputs


def _call(jax, on_host, shapes, arrays):
    """The results of a function of arrays on the host, of these shapes and types; without a derivative of its own."""
    structures = tuple(jax.ShapeDtypeStruct(*shape) for shape in shapes)

    @jax.custom_jvp
    def call(*arrays):
        return jax.pure_callback(on_host, structures, *arrays, vmap_method="sequential")

    @call.defjvp
    def refuse(primals, tangents):
        raise NotImplementedError(SECOND_DERIVATIVES)

    return call(*arrays)
