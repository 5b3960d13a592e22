"""Names of scikit-learn's classifiers over LIBSVM that its users' programs read: `probability`, `probA_`, `_gamma`.

`probability` is deprecated in scikit-learn since version 1.9; here it fits probabilities as `calibration="sigmoid"`
does, with the same warnings, and leaves `predict` as it is.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["LibsvmNames", "check_probability"]

_DEPRECATED = "deprecated"  # the default of `probability`: not given


def check_probability(value: Any, name: str) -> None:
    """Raise a ValueError unless `probability` is True, False or "deprecated", the default."""
    if not (isinstance(value, str) and value == _DEPRECATED) and not isinstance(value, bool | np.bool_):
        raise ValueError(
            f"{name} must be True or False, got {value!r}: or leave it out, and use calibration='sigmoid'."
        )


class LibsvmNames:
    """A mixin of the kernel classifiers with these names."""

    probability: Any
    single_class_note: str = ""

    def warn_of_probability(self) -> None:
        """Warn as scikit-learn does if `probability` is given."""
        if isinstance(self.probability, str):
            return
        name = type(self).__name__
        warnings.warn(
            "The `probability` parameter was deprecated in 1.9 of scikit-learn and will be removed in its 1.11. "
            f"Use `{name}(calibration='sigmoid')`, or `CalibratedClassifierCV({name}(), ensemble=False)`, instead of "
            f"`{name}(probability=True)`.",
            FutureWarning,
            stacklevel=4,
        )

    @property
    def probA_(self) -> Array:
        """A of the sigmoid 1 / (1 + exp(A f + B)) of each map; empty without sigmoids. Deprecated in scikit-learn."""
        return self._sigmoids("probA_", 0)

    @property
    def probB_(self) -> Array:
        """B of the sigmoid of each map; empty without sigmoids. Deprecated in scikit-learn."""
        return self._sigmoids("probB_", 1)

    def _sigmoids(self, name, column):
        warnings.warn(
            f"Attribute `{name}` was deprecated in version 1.9 of scikit-learn and will be removed in 1.11: "
            "`calibration_.maps` has the numbers.",
            FutureWarning,
            stacklevel=3,
        )
        calibration = vars(self).get("calibration_")
        if calibration is None or calibration.method != "sigmoid":
            return np.empty(0)
        return np.array(calibration.maps, dtype="float64")[:, column]
