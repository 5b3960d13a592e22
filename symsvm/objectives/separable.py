"""Separable terms: smooth convex functions of one variable each, added to a quadratic program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array

__all__ = ["SeparableTerm"]

_TINY = np.finfo("float64").tiny
# Doublings of the distance from a bound at which a function that is not finite there is evaluated, at most.
_DOUBLINGS = 64
# Steps of the one-dimensional Newton method, and those after which every second one is a bisection.
_STEPS, _BISECT = 250, 20
# The length of the last Newton step, relative to the distance to the bounds, or to the variable without any.
_SHORT = 1e-8
# Doublings of a bracket that has an infinite bound.
_EXPANSIONS = 400


@dataclass(frozen=True, eq=False)
class SeparableTerm:
    """A separable smooth convex function, sum_i phi_i(z_i).

    For kernel logistic regression, with lam = y z and t = lam / C, it is the entropy
    phi(z) = C (t log t + (1 - t) log(1 - t)).

    Parameters
    ----------
    value, gradient, curvature : callable
        Functions of z (n,) that return phi_i(z_i), phi_i'(z_i) and phi_i''(z_i) as new arrays (n,) of float64. At a
        bound they may return infinity or NaN: the limit from inside is then taken.

    Examples
    --------
    >>> quartic = SeparableTerm(lambda z: z**4 / 4, lambda z: z**3, lambda z: 3 * z**2)
    >>> z = quartic.minimiser(np.array([-8.0, 8.0, 1.0]), 0.0, np.array([0.0, -1.0, -2.0]), np.array([5.0, 1.0, 2.0]))
    >>> z.round(6).tolist()
    [2.0, -1.0, -1.0]
    """

    value: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    curvature: Callable[[Array], Array]

    def evaluate(self, name: str, z: Array, lower: Array, upper: Array) -> Array:
        """Return the value, the gradient or the curvature; near a bound, where it is not finite, the limit from inside.

        Parameters
        ----------
        name : {"value", "gradient", "curvature"}
            Which function.
        z, lower, upper : ndarray
            The variables and their bounds (n,).

        Returns
        -------
        ndarray
            Finite numbers (n,); 0 where no number between the bounds gives a finite one.
        """
        function = getattr(self, name)
        with np.errstate(all="ignore"):
            result = np.asarray(function(z), dtype="float64")
            bad = ~np.isfinite(result)
            if not bad.any():
                return result
            from_lower, from_upper = z - lower, upper - z
            step = np.where(from_lower <= from_upper, 1.0, -1.0) * np.maximum(np.spacing(np.abs(z)), _TINY)
            room = np.where(np.isfinite(lower) & np.isfinite(upper), (upper - lower) / 2, np.inf)
            result = result.copy()
            for k in range(_DOUBLINGS):
                moved = np.where(bad, z + np.clip(step * 2.0**k, -room, room), z)
                found = np.asarray(function(moved), dtype="float64")
                result = np.where(bad, found, result)
                bad = ~np.isfinite(result)
                if not bad.any():
                    break
        return np.where(bad, 0.0, result)

    def minimiser(
        self,
        f: Array,
        D: Array | float,
        lower: Array,
        upper: Array,
        near: Array | None = None,
        ends: tuple[Array, Array] | None = None,
    ) -> Array:
        """Return argmin_v phi_i(v) + 1/2 D_i v^2 + f_i v over lower_i <= v <= upper_i, by Newton steps in a bracket.

        Parameters
        ----------
        f : ndarray
            The linear terms (n,).
        D : ndarray or float
            The quadratic terms, at least 0.
        lower, upper : ndarray
            The bounds (n,).
        near : ndarray, optional
            Where to begin (n,).
        ends : tuple of ndarray, optional
            The gradients of phi at the lower and at the upper bounds, if they are known.

        Returns
        -------
        ndarray
            The minimisers (n,); infinite where the function falls forever.
        """
        ends = self.end_gradients(lower, upper) if ends is None else ends
        finite_lower, finite_upper = np.where(np.isfinite(lower), lower, 0.0), np.where(np.isfinite(upper), upper, 0.0)
        at_lower = np.isfinite(lower) & (ends[0] + D * finite_lower + f >= 0)
        at_upper = np.isfinite(upper) & (ends[1] + D * finite_upper + f <= 0) & ~at_lower
        fixed = at_lower | at_upper
        v = np.clip(_middle(lower, upper) if near is None else near, lower, upper)
        v = np.where((v > lower) & (v < upper), v, np.where(fixed, v, _middle(lower, upper)))
        v = np.where(at_lower, lower, np.where(at_upper, upper, v))
        low, high, v = self._bracket(f, D, lower, upper, v, fixed)
        fixed = fixed | np.isinf(v)
        done = fixed.copy()
        for step in range(_STEPS):
            inner = np.where(fixed, 0.0, v) if np.isinf(v).any() else v
            g = self.evaluate("gradient", inner, lower, upper) + D * inner + f
            low, high = np.where(g < 0, inner, low), np.where(g > 0, inner, high)
            h = self.evaluate("curvature", inner, lower, upper) + D
            with np.errstate(all="ignore"):
                newton = -g / h
            # The error of a Newton step is about the square of its length.
            distance = np.minimum(inner - lower, upper - inner)
            size = np.where(np.isfinite(distance), distance, np.abs(inner))
            is_short = np.abs(newton) <= np.maximum(_SHORT * size, 2 * np.spacing(np.abs(inner)))
            new = _newton_point(inner, newton, distance, lower, upper)
            is_between = (new > low) & (new < high)
            if step >= _BISECT and step % 2:
                is_between &= is_short
            new = np.where(is_between, new, np.where(is_short, inner, low / 2 + high / 2))
            done |= (g == 0) | (high - low <= 2 * np.spacing(np.maximum(np.abs(low), np.abs(high))))
            v = np.where(done, v, new)
            done |= is_short
            if done.all():
                break
        return v

    def _bracket(
        self, f: Array, D: Array | float, lower: Array, upper: Array, v: Array, fixed: Array
    ) -> tuple[Array, Array, Array]:
        """Finite ends between which the gradient changes its sign; v is infinite where there are none."""
        low, high = np.where(fixed, v, lower), np.where(fixed, v, upper)
        for end, bound, sign in ((low, lower, -1.0), (high, upper, 1.0)):
            open_ = np.isinf(bound) & ~fixed
            size = np.maximum(1.0, np.abs(v))
            for k in range(_EXPANSIONS if open_.any() else 0):
                with np.errstate(all="ignore"):
                    trial = np.where(open_, v + sign * size * 2.0**k, v)
                    g = np.asarray(self.gradient(trial)) + D * trial + f
                end[open_] = trial[open_]
                open_ &= ~(sign * g >= 0)
                if not open_.any():
                    break
            v = np.where(open_, sign * np.inf, v)
        return low, high, v

    def end_gradients(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return the gradients at the bounds, 0 at infinite ones.

        Parameters
        ----------
        lower, upper : ndarray
            The bounds (n,).

        Returns
        -------
        tuple of ndarray
            The gradients at the lower and at the upper bounds.
        """
        middle = _middle(lower, upper)
        return (
            self.evaluate("gradient", np.where(np.isfinite(lower), lower, middle), lower, upper),
            self.evaluate("gradient", np.where(np.isfinite(upper), upper, middle), lower, upper),
        )


def _newton_point(v: Array, step: Array, distance: Array, lower: Array, upper: Array) -> Array:
    """The end of a Newton step; of one that is long relative to the distance to the nearer bound, in its logarithm.

    Next to a bound phi' is often a logarithm of the distance, on which Newton's method in the distance itself is slow.
    """
    is_lower = v - lower <= upper - v
    with np.errstate(all="ignore"):
        ratio = np.exp(np.clip(np.where(is_lower, step, -step) / distance, -600, 600))
        by_logarithm = np.where(is_lower, lower + distance * ratio, upper - distance * ratio)
    return np.where(np.isfinite(distance) & (np.abs(step) > 0.5 * distance), by_logarithm, v + step)


def _middle(lower: Array, upper: Array) -> Array:
    """A point between the bounds."""
    with np.errstate(invalid="ignore"):
        middle = lower / 2 + upper / 2
    outer = np.where(np.isfinite(lower), lower + 1, np.where(np.isfinite(upper), upper - 1, 0.0))
    return np.where(np.isfinite(lower) & np.isfinite(upper), middle, outer)
