"""Multi-class losses of the scores f of a network: one-vs-rest, Crammer and Singer, Weston and Watkins.

f has a score for each class and y is the index of the right one. Each loss is convex in f, and has a kink where a
margin is exactly 1. There `pytensor.grad` returns the slope of the side with a loss, as for `hinge`; where several
other classes have the greatest score, Crammer and Singer's loss has the slope of the first of them. A squared loss has
no kink at the margin.
"""

# PyTensor declares its elementwise functions without a return type.
# pyright: reportOperatorIssue=false, reportReturnType=false, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant

from symsvm.objectives.losses import hinge

if TYPE_CHECKING:
    from symsvm._lib.types import Graph, Scalar

__all__ = ["crammer_singer", "one_vs_rest", "weston_watkins"]


def one_vs_rest(y: Any, f: Any, *, squared: bool = False) -> Graph:
    """The hinge losses of k machines, each of one class against the rest (Eq. 005:1).

    ::

        sum over r of max(0, 1 - t_r f_r),    t_r = 1 if r = y, else -1

    `squared` is the loss of Tang's deep SVM. Its slope in f_r, -2 t_r max(0, 1 - t_r f_r), is continuous.

    Parameters
    ----------
    y : TensorVariable or array_like
        The classes 0 to k - 1, integers (m,). Another number gives NaN, or an error where y is known when the graph is
        made.
    f : TensorVariable or array_like
        The scores (m, k), float32 or float64.
    squared : bool
        Whether each max(0, .) is squared.

    Returns
    -------
    TensorVariable
        The loss of each point (m,), in the type of f.

    References
    ----------
    Y. Tang, Deep learning using linear support vector machines, 2013.

    Examples
    --------
    >>> f = np.array([[1.5, -0.5, 0.25]])
    >>> one_vs_rest([0], f).eval().tolist(), one_vs_rest([0], f, squared=True).eval().tolist()
    ([1.75], [1.8125])
    """
    y, f, is_class, unknown = _checked(y, f)
    one = pt.constant(1, dtype=f.dtype)
    slack = hinge(pt.switch(is_class, one, -one), f)
    return unknown * _total(_power(slack, squared))


def crammer_singer(y: Any, f: Any, *, squared: bool = False, margin: Scalar = 1) -> Graph:
    """The hinge loss of the right class against the best of the others (Eq. 005:2).

    ::

        max(0, margin - f_y + max over r != y of f_r)

    Its slope is -1 in f_y and 1 in the score of the first best other class while the margin is not exceeded, and 0
    elsewhere.

    Parameters
    ----------
    y : TensorVariable or array_like
        The classes 0 to k - 1, integers (m,). Another number gives NaN, or an error where y is known when the graph is
        made.
    f : TensorVariable or array_like
        The scores (m, k), float32 or float64.
    squared : bool
        Whether the loss is squared.
    margin : float or TensorVariable
        The margin, above 0.

    Returns
    -------
    TensorVariable
        The loss of each point (m,), in the type of f.

    References
    ----------
    K. Crammer, Y. Singer, On the algorithmic implementation of multiclass kernel-based vector machines, 2001.

    Examples
    --------
    >>> crammer_singer([0, 2], [[1.5, -0.5, 0.75], [0.5, 1.0, 0.25]]).eval().tolist()
    [0.25, 1.75]
    """
    y, f, is_class, unknown = _checked(y, f)
    others = pt.switch(is_class, pt.constant(-np.inf, dtype=f.dtype), f)
    is_best = pt.eq(_classes(f), pt.argmax(others, axis=-1, keepdims=True))
    slack = pt.maximum(_number(margin, f) - _chosen(is_class, f) + _chosen(is_best, f), 0)
    return unknown * _power(slack, squared)


def weston_watkins(y: Any, f: Any, *, squared: bool = False, margin: Scalar = 1) -> Graph:
    """The hinge losses of the right class against each of the others (Eq. 005:3).

    ::

        sum over r != y of max(0, margin - f_y + f_r)

    Weston and Watkins have the margin 2.

    Parameters
    ----------
    y : TensorVariable or array_like
        The classes 0 to k - 1, integers (m,). Another number gives NaN, or an error where y is known when the graph is
        made.
    f : TensorVariable or array_like
        The scores (m, k), float32 or float64.
    squared : bool
        Whether each max(0, .) is squared.
    margin : float or TensorVariable
        The margin, above 0.

    Returns
    -------
    TensorVariable
        The loss of each point (m,), in the type of f.

    References
    ----------
    J. Weston, C. Watkins, Support vector machines for multi-class pattern recognition, 1999.

    Examples
    --------
    >>> weston_watkins([0, 2], [[1.5, -0.5, 0.75], [0.5, 1.0, 0.25]]).eval().tolist()
    [0.25, 3.0]
    """
    y, f, is_class, unknown = _checked(y, f)
    slack = pt.maximum(_number(margin, f) - pt.expand_dims(_chosen(is_class, f), -1) + f, 0)
    return unknown * _chosen(~is_class, _power(slack, squared))


def _checked(y: Any, f: Any) -> tuple[Any, Any, Any, Any]:
    """y, f, whether r = y for each score, and 1 for each point, or NaN if y is no class."""
    y, f = pt.as_tensor_variable(y), pt.as_tensor_variable(f)
    if f.dtype not in ("float32", "float64"):
        raise TypeError(f"the scores f must be float32 or float64, got {f.dtype}: use f.astype('float64').")
    if f.ndim < 1 or y.ndim != f.ndim - 1:
        raise ValueError(
            f"the scores f must be (m, k) and the classes y (m,), got {f.ndim} and {y.ndim} dimension(s): y has one "
            "index for each row of f."
        )
    if not y.dtype.startswith(("int", "uint")):
        raise TypeError(f"the classes y must be integers from 0 to k - 1, got {y.dtype}: use y.astype('int64').")
    k = f.type.shape[-1]
    if k == 1:
        raise ValueError("the scores f must have a column for each of at least 2 classes, got 1 column.")
    if isinstance(y, Constant) and k is not None:
        wrong = y.data[(y.data < 0) | (y.data >= k)]
        if len(np.atleast_1d(wrong)):
            raise ValueError(
                f"the classes y must be from 0 to {k - 1} for {k} scores, got {int(np.atleast_1d(wrong)[0])}: "
                "numpy.unique(labels, return_inverse=True)[1] makes such numbers."
            )
    is_class = pt.eq(_classes(f), pt.expand_dims(y, -1))
    one, nan = pt.constant(1, dtype=f.dtype), pt.constant(np.nan, dtype=f.dtype)
    return y, f, is_class, pt.switch(is_class.any(axis=-1), one, nan)


def _classes(f: Graph) -> Graph:
    """0 to k - 1."""
    k = f.type.shape[-1]
    return pt.arange(f.shape[-1]) if k is None else pt.constant(np.arange(k))


def _chosen(mask: Graph, f: Graph) -> Graph:
    """The sum of the scores where the mask is true. A product with the mask would make NaN of infinite scores."""
    return _total(pt.switch(mask, f, pt.constant(0, dtype=f.dtype)))


def _total(f: Graph) -> Graph:
    """The sum over classes in the type of the scores: the results of PyTensor's sums have the wider type on JAX."""
    return f.sum(axis=-1, acc_dtype=f.dtype)


def _number(value: Any, f: Graph) -> Graph:
    """A number or a graph in the type of the scores."""
    return pt.as_tensor_variable(value).astype(f.dtype)


def _power(slack: Graph, squared: bool) -> Graph:
    return slack**2 if squared else slack
