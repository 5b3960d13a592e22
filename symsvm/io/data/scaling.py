"""Scaling: statistics from the training set, applied to every set."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["Scaling", "standardise"]


class Scaling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map each column by z = (x - shift) * scale + offset, with numbers from the training set.

    Parameters
    ----------
    to : "z-score", "max-abs" or (low, high)
        Mean 0 and deviation 1; x / max|x|, which keeps zeros; or a range such as (0, 1) or (-1, 1).

    A column that is constant on the training set goes to the middle (0, or that of the range), whatever it holds later.
    CSR stays CSR: a scaling that would turn its zeros into something else is refused.

    Attributes
    ----------
    shift_, scale_, offset_ : arrays (d,)
        All there is to store: `Scaling.restore(to, shift, scale, offset)` gives the fitted scaling back.

    >>> Scaling((-1, 1)).fit([[0.0, 5.0], [4.0, 5.0]]).transform([[1.0, 5.0], [8.0, 7.0]])
    array([[-0.5,  0. ],
           [ 3. ,  0. ]])
    """

    def __init__(self, to="z-score"):
        self.to = to

    def fit(self, X, y=None):
        """Take the statistics of the columns of X."""
        low, high = _range(self.to)
        X = validate_data(self, X, accept_sparse="csr", dtype=("float64", "float32"))
        least, most, mean, deviation = _statistics(X, self.to == "z-score")
        if self.to == "z-score":
            shift, spread = mean, deviation
        elif self.to == "max-abs":
            shift, spread = np.zeros(X.shape[1]), np.maximum(np.abs(least), np.abs(most))
        else:
            shift, spread = least, (most - least) / (high - low)
        with np.errstate(divide="ignore", over="ignore"):
            # A spread below 1e-308 has no inverse: as good as constant.
            constant = (least == most) | np.isinf(1 / spread)
            self.scale_ = np.where(constant, 0.0, 1 / np.where(constant, 1.0, spread))
        if not (np.isfinite(shift).all() and np.isfinite(spread).all()):
            column = int(np.flatnonzero(~np.isfinite(shift + spread))[0])
            raise ValueError(f"X has entries in column {column} that are too large to be scaled.")
        self.shift_ = np.where(constant, least, shift)
        self.offset_ = np.where(constant, (low + high) / 2, low if self.to not in ("z-score", "max-abs") else 0.0)
        if sparse.issparse(X):
            self._keeps_zeros()
        return self

    def transform(self, X):
        """Scale the columns of X, dense or sparse, in its own precision."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=("float64", "float32"), reset=False)
        if sparse.issparse(X):
            self._keeps_zeros()
            data = (X.data * self.scale_[X.indices]).astype(X.dtype, copy=False)
            return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
        Z = X - self.shift_
        Z *= self.scale_
        Z += self.offset_
        return Z.astype(X.dtype, copy=False)

    def inverse_transform(self, Z):
        """Undo `transform`; a constant column comes back as it was on the training set."""
        check_is_fitted(self)
        Z = validate_data(self, Z, accept_sparse="csr", dtype=("float64", "float32"), reset=False)
        inverse = np.where(self.scale_ == 0, 0.0, 1 / np.where(self.scale_ == 0, 1.0, self.scale_))
        if sparse.issparse(Z):
            self._keeps_zeros()
            return type(Z)((Z.data * inverse[Z.indices], Z.indices.copy(), Z.indptr.copy()), shape=Z.shape)
        return ((Z - self.offset_) * inverse + self.shift_).astype(Z.dtype, copy=False)

    @classmethod
    def restore(cls, to, shift, scale, offset):
        """A fitted scaling from the arrays that a file has kept."""
        scaling = cls(tuple(to) if not isinstance(to, str) else to)
        arrays = [np.array(array, dtype="float64") for array in (shift, scale, offset)]
        if any(array.ndim != 1 or array.shape != arrays[0].shape or not np.isfinite(array).all() for array in arrays):
            raise ValueError("shift, scale and offset must be finite vectors of one length.")
        scaling.shift_, scaling.scale_, scaling.offset_ = arrays
        scaling.n_features_in_ = len(arrays[0])
        return scaling

    def _keeps_zeros(self):
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


def _range(to):
    """(low, high) that columns go to."""
    if isinstance(to, str) and to in ("z-score", "max-abs"):
        return -1.0, 1.0
    try:
        low, high = map(float, to)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not (low < high and np.isfinite(high - low)):
        raise ValueError(f"to must be 'z-score', 'max-abs' or a range such as (0, 1), got {to!r}.")
    return low, high


def _statistics(X, moments):
    """The least, the greatest, and if asked the mean and the deviation of the columns, in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            least, most = (np.asarray(end, dtype="float64") for end in min_max_axis(X, axis=0))
            mean, variance = mean_variance_axis(X, axis=0) if moments else (None, None)
            return least, most, mean, None if variance is None else np.sqrt(variance)
        least, most = X.min(axis=0).astype("float64"), X.max(axis=0).astype("float64")
        if not moments:
            return least, most, None, None
        return least, most, X.mean(axis=0, dtype="float64"), X.std(axis=0, dtype="float64")


def standardise(X, *others):
    """Shift and scale each column to mean 0 and deviation 1 on X; apply the same to the others.

    A constant column goes to 0, the middle.

    >>> standardise([[1.0, 5.0], [3.0, 5.0]], [[5.0, 5.0]])
    [array([[-1.,  0.],
           [ 1.,  0.]]), array([[3., 0.]])]
    """
    X, *others = (np.asarray(A, dtype="float64") for A in (X, *others))
    scaling = Scaling("z-score").fit(X)
    return [scaling.transform(A) for A in (X, *others)]
