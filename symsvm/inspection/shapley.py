"""Exact Shapley values of the features of a kernel machine whose kernel is a product over the features.

The game of a decision f at a point x and a reference r gives the features S the value of the point that has x_k for
k in S and r_k for the others. For K(x, v) = prod_k kappa_k(x_k, v_k) it is a sum over the support vectors v_j of
products with a_jk = kappa_k(x_k, v_jk) and b_jk = kappa_k(r_k, v_jk)::

    value(S) = b + sum_j q_j  prod_{k in S} a_jk  prod_{k not in S} b_jk

Shapley's weights are integrals, |S|! (d - 1 - |S|)! / d! = int_0^1 t^|S| (1 - t)^(d - 1 - |S|) dt, so that the sum over
all subsets is one integral::

    phi_k = sum_j q_j (a_jk - b_jk) int_0^1 prod_{l != k} (b_jl + t (a_jl - b_jl)) dt

The integrand has degree d - 1: Gauss and Legendre's rule with d / 2 nodes is exact. Its terms are positive for the RBF
and the Laplacian kernel, and nothing cancels. Sums of kernels have sums of games.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.kernels import RBF, Constant, Laplacian, Linear
from symsvm.kernels.algebra import Power, Product, Scale, Sum

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.kernels import Kernel

__all__ = ["shapley_values"]

# The most terms that the products of sums of kernels may have.
_MAX_TERMS = 64


@dataclass(frozen=True)
class _Term:
    """A multiple of a product over the features: exp(-sum_k squares_k (x_k - v_k)^2 - sum_k sizes_k |x_k - v_k|).

    With `is_linear` it is the multiple of <x, v> instead.
    """

    scale: float = 1.0
    squares: Any = 0.0
    sizes: Any = 0.0
    is_linear: bool = field(default=False)

    def factors(self, x: Array, V: Array) -> Array:
        """The factors between a point and all support vectors, (m, d)."""
        away, exponent = np.abs(x - V), np.zeros(V.shape)
        with np.errstate(over="ignore", under="ignore"):  # a factor may be 0
            for rate, sizes in ((self.sizes, away), (self.squares, away**2)):
                if np.any(rate):
                    exponent += rate * sizes
            return np.exp(-exponent)


def _terms(kernel: Kernel) -> list[_Term]:
    """The terms of a kernel; a ValueError if it is no sum of products over the features."""
    given: Any = kernel
    if isinstance(kernel, RBF):
        return [_Term(squares=1 / (2 * np.asarray(given.sigma, dtype="float64") ** 2))]
    if isinstance(kernel, Laplacian):
        return [_Term(sizes=np.asarray(given.gamma, dtype="float64"))]
    if isinstance(kernel, Linear):
        return [_Term(is_linear=True)]
    if isinstance(kernel, Constant):
        return [_Term(scale=float(given.c))]
    if isinstance(kernel, Scale):
        return [_times(_Term(scale=float(given.c)), term) for term in _terms(given.k1)]
    if isinstance(kernel, Sum):
        return [*_terms(given.k1), *_terms(given.k2)]
    if isinstance(kernel, Product | Power):
        factors = [given.k1, given.k2] if isinstance(kernel, Product) else [given.k1] * int(given.n)
        found = [_Term()]
        for factor in factors:
            found = [_times(one, other) for one in found for other in _terms(factor)]
            if len(found) > _MAX_TERMS:
                raise ValueError(
                    f"the products of {kernel!r} have more than {_MAX_TERMS} terms: use by='support vectors'."
                )
        return found
    raise ValueError(
        f"by='features' needs a kernel that is a product over the features (RBF, Laplacian, their sums, products and "
        f"powers, with Linear in sums), got {kernel!r}: use by='support vectors'."
    )


def _times(one: _Term, other: _Term) -> _Term:
    """The product of two terms."""
    plain = _Term()
    for term, factor in ((one, other), (other, one)):
        if term.is_linear:
            if (factor.squares is not plain.squares) or (factor.sizes is not plain.sizes) or factor.is_linear:
                raise ValueError("by='features' takes Linear in sums, not in products: use by='support vectors'.")
            return _Term(scale=one.scale * other.scale, is_linear=True)
    return _Term(one.scale * other.scale, one.squares + other.squares, one.sizes + other.sizes)


def shapley_values(kernel: Kernel, x: Array, references: Array, V: Array, coef: Array) -> Array:
    """Return the Shapley values of the features, the means over the references.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with numbers.
    x : array of shape (d,)
        The point.
    references : array of shape (n, d)
        The points whose features stand for those that are absent.
    V : array of shape (m, d)
        The support vectors.
    coef : array of shape (m, problems)
        Their coefficients.

    Returns
    -------
    array of shape (problems, d)
        The values: their sum is f(x) minus the mean of f over the references.
    """
    nodes, weights = np.polynomial.legendre.leggauss((len(x) + 1) // 2)
    nodes, weights = (nodes + 1) / 2, weights / 2
    values = np.zeros((coef.shape[1], len(x)))
    for term in _terms(kernel):
        if term.is_linear:
            values += term.scale * (coef.T @ V) * (x - references.mean(axis=0))
            continue
        a = term.factors(x, V)
        for r in references:
            b = term.factors(r, V)
            values += term.scale / len(references) * (coef.T @ ((a - b) * _mean_products(a, b, nodes, weights)))
    return values


def _mean_products(a: Array, b: Array, nodes: Array, weights: Array) -> Array:
    """The integrals of the products of all factors but one, (m, d)."""
    total, step, G = np.zeros_like(a), a - b, np.empty_like(a)
    for t, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
        np.multiply(step, t, out=G)
        np.add(G, b, out=G)
        products = G.prod(axis=1, keepdims=True) * weight
        np.maximum(G, np.finfo("float64").tiny, out=G)  # a factor of 0 is one of both: its own term is 0
        np.divide(products, G, out=G)
        total += G
    return total
