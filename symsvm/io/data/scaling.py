"""Scaling of columns with statistics of the training set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from symsvm._lib.transactions import all_or_nothing
from symsvm._lib.validation import refuse_masked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Points

__all__ = ["Scaling", "standardise"]


class Scaling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map each column by z = (x - shift) * scale + offset, with statistics of the training set.

    A column that is constant on the training set goes to the middle (0, or that of the range), also for other values in
    later sets. CSR stays CSR: a scaling that would turn its zeros into other numbers is refused.

    Parameters
    ----------
    to : "z-score", "max-abs" or (low, high)
        Mean 0 and standard deviation 1; x / max(abs(x)), which keeps zeros; or a range such as (0, 1) or (-1, 1).

    Attributes
    ----------
    shift_ : ndarray of shape (d,)
        The shift of each column.
    scale_ : ndarray of shape (d,)
        The scale of each column, 0 for a constant one.
    offset_ : ndarray of shape (d,)
        The offset of each column. `Scaling.restore` makes a fitted scaling from the three arrays.

    Examples
    --------
    >>> Scaling((-1, 1)).fit([[0.0, 5.0], [4.0, 5.0]]).transform([[1.0, 5.0], [8.0, 7.0]])
    array([[-0.5,  0. ],
           [ 3. ,  0. ]])
    """

    def __init__(self, to: Literal["z-score", "max-abs"] | tuple[float, float] = "z-score") -> None:
        self.to = to

    @all_or_nothing
    def fit(self, X: Points | ArrayLike, y: object = None) -> Self:
        """Compute the statistics of the columns of X.

        Parameters
        ----------
        X : array-like or CSR of shape (m, d)
            The training set.
        y : None
            Not used; pipelines pass it.

        Returns
        -------
        Scaling
            The fitted scaling.
        """
        low, high = _range(self.to)
        points = self._validated(X, reset=True)
        least, most = _extremes(points)
        if self.to == "z-score":
            shift, spread = _mean_and_deviation(points)
        elif self.to == "max-abs":
            shift, spread = np.zeros(points.shape[1]), np.maximum(np.abs(least), np.abs(most))
        else:
            with np.errstate(over="ignore"):  # a spread that is not finite is reported below
                shift, spread = least, (most - least) / (high - low)
        with np.errstate(divide="ignore", over="ignore"):
            # A spread below 1e-308 has no finite inverse: the column counts as constant.
            constant = (least == most) | np.isinf(1 / spread)
            self.scale_ = np.where(constant, 0.0, 1 / np.where(constant, 1.0, spread))
        if not (np.isfinite(shift).all() and np.isfinite(spread).all()):
            column = int(np.flatnonzero(~np.isfinite(shift + spread))[0])
            raise ValueError(f"X has entries in column {column} that are too large to be scaled.")
        self.shift_ = np.where(constant, least, shift)
        self.offset_ = np.where(constant, (low + high) / 2, low if self.to not in ("z-score", "max-abs") else 0.0)
        if sparse.issparse(points):
            self._check_keeps_zeros()
        return self

    def transform(self, X: Points | ArrayLike) -> Any:
        """Scale the columns of X in its own precision.

        Parameters
        ----------
        X : array-like or CSR of shape (m, d)
            The points.

        Returns
        -------
        ndarray or CSR of shape (m, d)
            The scaled points.
        """
        check_is_fitted(self)
        points = self._validated(X)
        if sparse.issparse(points):
            self._check_keeps_zeros()
            data = (points.data * self.scale_[points.indices]).astype(points.dtype, copy=False)
            return type(points)((data, points.indices.copy(), points.indptr.copy()), shape=points.shape)
        Z = points - self.shift_
        Z *= self.scale_
        Z += self.offset_
        return Z.astype(points.dtype, copy=False)

    def inverse_transform(self, Z: Points | ArrayLike) -> Any:
        """Undo `transform`; a constant column gets its value on the training set.

        Parameters
        ----------
        Z : array-like or CSR of shape (m, d)
            Scaled points.

        Returns
        -------
        ndarray or CSR of shape (m, d)
            The points before the scaling.
        """
        check_is_fitted(self)
        points = self._validated(Z)
        inverse = np.where(self.scale_ == 0, 0.0, 1 / np.where(self.scale_ == 0, 1.0, self.scale_))
        if sparse.issparse(points):
            self._check_keeps_zeros()
            return type(points)(
                (points.data * inverse[points.indices], points.indices.copy(), points.indptr.copy()), shape=points.shape
            )
        return ((points - self.offset_) * inverse + self.shift_).astype(points.dtype, copy=False)

    @classmethod
    def restore(cls, to: Any, shift: ArrayLike, scale: ArrayLike, offset: ArrayLike) -> Self:
        """Make a fitted scaling from stored arrays.

        Parameters
        ----------
        to : "z-score", "max-abs" or (low, high)
            As in the constructor.
        shift : array-like of shape (d,)
            The array `shift_`.
        scale : array-like of shape (d,)
            The array `scale_`.
        offset : array-like of shape (d,)
            The array `offset_`.

        Returns
        -------
        Scaling
            The fitted scaling.
        """
        scaling: Any = cls(to if isinstance(to, str) else tuple(to))  # pyright: ignore[reportArgumentType]
        arrays = [np.array(array, dtype="float64") for array in (shift, scale, offset)]
        if any(array.ndim != 1 or array.shape != arrays[0].shape or not np.isfinite(array).all() for array in arrays):
            raise ValueError("shift, scale and offset must be finite vectors of one length.")
        scaling.shift_, scaling.scale_, scaling.offset_ = arrays
        scaling.n_features_in_ = len(arrays[0])
        return scaling

    def _validated(self, X: Any, reset: bool = False) -> Any:
        refuse_masked(X, "X")
        return validate_data(self, X, accept_sparse="csr", dtype=("float64", "float32"), reset=reset)

    def _check_keeps_zeros(self) -> None:
        moved = np.flatnonzero((0 - self.shift_) * self.scale_ + self.offset_)
        if len(moved):
            raise ValueError(
                f"X is sparse, and scaling to {self.to!r} would fill the zeros of {len(moved)} columns (the first: "
                f"{moved[0]}): use Scaling('max-abs'), or X.toarray()."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.to in ("max-abs", (0, 1))
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _range(to: Any) -> tuple[float, float]:
    """The range (low, high) of a scaling; its middle is that of constant columns."""
    if isinstance(to, str) and to in ("z-score", "max-abs"):
        return -1.0, 1.0
    try:
        low, high = map(float, to)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not (low < high and np.isfinite(high - low)):
        raise ValueError(f"to must be 'z-score', 'max-abs' or a range such as (0, 1), got {to!r}.")
    return low, high


def _extremes(X: Any) -> tuple[Array, Array]:
    """Minimum and maximum of the columns, in float64."""
    extremes: Any = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    least, most = (np.asarray(end, dtype="float64") for end in extremes)
    return least, most


def _mean_and_deviation(X: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns, in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            moments: Any = mean_variance_axis(X, axis=0)
            return moments[0], np.sqrt(moments[1])
        return X.mean(axis=0, dtype="float64"), X.std(axis=0, dtype="float64")


def standardise(X: ArrayLike, *others: ArrayLike) -> list[Array]:
    """Scale each column to mean 0 and standard deviation 1 on X, and other sets in the same way.

    A constant column goes to 0.

    Parameters
    ----------
    X : array-like of shape (m, d)
        The training set.
    *others : array-like of shape (n, d)
        Other sets.

    Returns
    -------
    list of ndarray
        The scaled sets, X first.

    Examples
    --------
    >>> standardise([[1.0, 5.0], [3.0, 5.0]], [[5.0, 5.0]])
    [array([[-1.,  0.],
           [ 1.,  0.]]), array([[3., 0.]])]
    """
    arrays = [np.asarray(A, dtype="float64") for A in (X, *others)]
    scaling = Scaling("z-score").fit(arrays[0])
    return [scaling.transform(A) for A in arrays]
