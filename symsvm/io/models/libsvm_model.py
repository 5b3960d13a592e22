"""Estimators to and from LIBSVM's model files.

In a file the first class of a pair wins where its value is positive, the second one elsewhere. In symsvm a pair of more
than two classes goes to the first where f >= 0, and two classes to the second where f > 0. Labels are written from the
largest to the smallest, so that values of 0 give the same class in LIBSVM.
"""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.atomic_write import atomic_write
from symsvm._lib.dense import as_dense
from symsvm._lib.validation import count
from symsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from symsvm.io.file_errors import ModelFileError
from symsvm.io.models.estimator_state import (
    ESTIMATORS,
    calibration_from_arrays,
    check_fitted,
    solutions_from_states,
)
from symsvm.io.models.libsvm_model_text import LibsvmModelText, read_model_text, write_model_text
from symsvm.kernels import RBF, Kernel, Linear, Polynomial, Sigmoid
from symsvm.objectives.certificate import Certificate

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Path

__all__ = ["libsvm_kernel_params", "read_libsvm_model", "write_libsvm_model"]

_TYPES = {SVC: "c_svc", NuSVC: "nu_svc", OneClassSVM: "one_class", SVR: "epsilon_svr", NuSVR: "nu_svr"}
_ESTIMATORS_BY_TYPE = {name: cls for cls, name in _TYPES.items()}
_KERNEL_NAMES = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
_MAX_COEF_BYTES = 2**30  # of the coefficients, which have a column for each pair of classes


# ---- writing


def write_libsvm_model(model: Any, path: Path) -> None:
    """Write one of the five kernel machines to a LIBSVM model file."""
    _check_type(model, path)
    check_is_fitted(model)
    kernel = _kernel_params(model, path)
    text = LibsvmModelText(svm_type=_TYPES[type(model)], nr_class=2, total_sv=len(model.support_), **kernel)
    text.columns = model.n_features_in_
    if text.kernel_type == "precomputed":
        text.vectors = model.support_.astype("int64") + 1
    else:
        text.vectors = sparse.csr_matrix(model.support_vectors_, dtype="float64")
        text.vectors.sort_indices()
        text.vectors.eliminate_zeros()
    if hasattr(model, "classes_"):
        _write_classes(model, text, path)
    else:
        text.rho, text.coef = [-float(model.intercept_[0])], as_dense(model.dual_coef_).T
    with atomic_write(path) as file:
        write_model_text(text, file)


def _check_type(model: Any, path: Path) -> None:
    if isinstance(model, Pipeline):
        raise ModelFileError(
            path, "a LIBSVM file holds no scaling: save pipeline[-1] and scale the points yourself, or save as .symsvm."
        )
    if type(model) not in _TYPES:
        hint = " (fit SVC or SVR with kernel='linear')" if type(model) in ESTIMATORS.values() else ""
        raise ModelFileError(
            path, f"LIBSVM has no {type(model).__name__}: save as .symsvm, or save another estimator{hint}."
        )


def libsvm_kernel_params(kernel: Any) -> dict[str, Any] | None:
    """kernel_type, gamma, degree and coef0 as LIBSVM names them, None for a kernel that LIBSVM does not have.

    >>> libsvm_kernel_params(RBF(sigma=0.5))
    {'kernel_type': 'rbf', 'gamma': 2.0}
    """
    cls, params = type(kernel), kernel.get_params(deep=False) if isinstance(kernel, Kernel) else {}
    if cls is Linear:
        return {"kernel_type": "linear"}
    if cls is RBF:
        widths = np.unique(params["sigma"])  # one width for each feature may be the same for all
        return {"kernel_type": "rbf", "gamma": 1 / (2 * float(widths[0]) ** 2)} if len(widths) == 1 else None
    if cls in (Polynomial, Sigmoid):
        numbers = {"gamma": float(params["gamma"]), "coef0": float(params["coef0"])}
        if cls is Sigmoid:
            return {"kernel_type": "sigmoid"} | numbers
        return {"kernel_type": "polynomial", "degree": int(params["degree"])} | numbers
    return None


def _kernel_params(model: Any, path: Path) -> dict[str, Any]:
    is_precomputed = model.kernel == "precomputed"
    found = {"kernel_type": "precomputed"} if is_precomputed else libsvm_kernel_params(model.kernel_)
    if found is None:
        raise ModelFileError(
            path,
            f"LIBSVM has no kernel {model.kernel_ or model.kernel!r}: save as .symsvm, or fit with "
            "kernel='precomputed'.",
        )
    return found


def _write_classes(model: Any, text: LibsvmModelText, path: Path) -> None:
    """Labels, coefficients and intercepts, from the largest label to the smallest."""
    k = text.nr_class = len(model.classes_)
    if k > 2 and model.multi_class != "ovo":
        raise ModelFileError(
            path,
            f"LIBSVM votes over pairs of classes, not multi_class={model.multi_class!r}: fit 'ovo', or use .symsvm.",
        )
    text.label = _labels(model.classes_, path)[::-1]
    text.nr_sv = model.n_support_.tolist()[::-1]
    order = np.concatenate(np.split(np.arange(text.total_sv), np.cumsum(model.n_support_)[:-1])[::-1])
    sign = 1.0 if k == 2 else -1.0  # of two classes f > 0 is the second one, which is the first one in the file
    text.coef, text.vectors = sign * as_dense(model.dual_coef_).T[order, ::-1], text.vectors[order]
    text.rho = [-sign * float(b) for b in model.intercept_[::-1]]
    if model.calibration_method is not None:
        if model.calibration_method != "sigmoid" or k > 2:
            raise ModelFileError(
                path,
                "a LIBSVM file holds the sigmoid of two classes only: fit without calibration, or use .symsvm.",
            )
        ((A, B),) = model.calibration_.maps
        text.probA, text.probB = [A], [B]


def _labels(classes: Array, path: Path) -> list[int]:
    integers = classes.dtype.kind in "iub" or (classes.dtype.kind == "f" and (classes == np.floor(classes)).all())
    if not integers or np.abs(classes.astype("float64")).max() >= 2**31:
        raise ModelFileError(
            path, f"LIBSVM's labels are integers, got {classes[:3].tolist()}: number the classes, or save as .symsvm."
        )
    return [int(label) for label in classes]


# ---- reading


def read_libsvm_model(path: Path, n_features: int | None = None) -> Any:
    """The estimator of a LIBSVM model file.

    `n_features` is the number of features (of training points for a precomputed kernel); the file has only columns in
    which a support vector has an entry.
    """
    text = read_model_text(path)
    if n_features is not None and count(n_features, "n_features", least=1) < text.columns:
        raise ModelFileError(path, f"n_features={n_features}, but the file has an entry in column {text.columns}.")
    if text.total_sv * len(text.rho) * 8 > _MAX_COEF_BYTES:
        raise ModelFileError(path, f"{text.total_sv} support vectors of {text.nr_class} classes need too much memory.")
    try:
        return _estimator(text, path, n_features)
    except (TypeError, ValueError) as error:
        raise ModelFileError(path, f"its numbers are not those of a model: {str(error).rstrip('.')}.") from None


def _estimator(text: LibsvmModelText, path: Path, n_features: int | None) -> Any:
    model: Any = _ESTIMATORS_BY_TYPE[text.svm_type](kernel=_KERNEL_NAMES[text.kernel_type])
    given = {name: getattr(text, name) for name in ("degree", "gamma", "coef0") if getattr(text, name) is not None}
    model.set_params(**given)
    d = model.n_features_in_ = n_features or max(text.columns, 1)
    model.fit_status_ = 0
    if text.svm_type.endswith("_svc"):
        order = _read_classes(model, text, path)
    else:
        order = np.arange(text.total_sv)
        model.dual_coef_, model.intercept_ = text.coef.T.copy(), np.array([-text.rho[0]])
        model.n_support_ = np.array([text.total_sv], dtype="int32")
        if text.probA or text.prob_density_marks:
            warnings.warn(f"{path}: the estimate of noise or density in the file is ignored.", stacklevel=4)
    _set_support_vectors(model, text, order, d)
    model.n_iter_ = np.zeros(len(model.intercept_), dtype="int32") if hasattr(model, "classes_") else 0
    if isinstance(model, OneClassSVM):
        model.offset_ = -model.intercept_
    if isinstance(model, NuSVR):
        model.epsilon_ = np.nan  # LIBSVM does not write it
    check_fitted(model)
    model.solutions_ = solutions_from_states(model, [_unknown_solution() for _ in model.intercept_])
    return model


def _unknown_solution() -> dict[str, Any]:
    """The state of a solution without a certificate, which a LIBSVM file does not hold."""
    nan = float("nan")
    certificate = Certificate(nan, nan, nan, None, None, None, None, "unknown", nan)
    return {"certificate": vars(certificate), "trace": {}, "stopped": "unknown", "n_iter": 0}


def _set_support_vectors(model: Any, text: LibsvmModelText, order: Array, d: int) -> None:
    if text.kernel_type == "precomputed":
        model.support_ = (text.vectors[order] - 1).astype("int32")
        model.support_vectors_, model.shape_fit_ = np.empty((0, 0)), (d, d)
    else:
        vectors = text.vectors[order]
        vectors.resize((text.total_sv, d))
        dense = text.total_sv * d * 8 <= 16 * vectors.nnz + 2**16  # about as much memory as the entries
        model.support_ = np.arange(text.total_sv, dtype="int32")
        model.support_vectors_, model.shape_fit_ = vectors.toarray() if dense else vectors, (text.total_sv, d)
    model.kernel_ = model.kernel_for(model.support_vectors_, None)
    model.X_fit_ = None
    if model.kernel_ is not None:
        model.kernel_.lift(lambda name, value: value)  # checks every number


def _read_classes(model: Any, text: LibsvmModelText, path: Path) -> Array:
    """Set labels in increasing order, coefficients and intercepts; return the order of the support vectors."""
    k, labels = text.nr_class, np.array(text.label)
    model.classes_, rank = np.sort(labels), np.argsort(np.argsort(labels))  # rank of each class of the file
    of = np.repeat(np.arange(k), text.nr_sv)  # the class of each vector, in the order of the file
    order = np.argsort(rank[of], kind="stable")
    coef, intercept = np.zeros((text.total_sv, k * (k - 1) // 2)), np.zeros(k * (k - 1) // 2)
    column = {pair: c for c, pair in enumerate(itertools.combinations(range(k), 2))}
    dual_coef = np.zeros((k - 1, text.total_sv))
    for p, (i, j) in enumerate(itertools.combinations(range(k), 2)):
        a, b = sorted((rank[i], rank[j]))
        # In LIBSVM the first class is positive; here the second of two classes, else the first in the order of labels.
        sign = 1.0 if (rank[i] < rank[j]) == (k > 2) else -1.0
        intercept[column[a, b]] = -sign * text.rho[p]
        for own, other, place in ((i, j, j - 1), (j, i, i)):
            of_class, row = of == own, rank[other] - (rank[other] > rank[own])
            dual_coef[row, of_class] = coef[of_class, column[a, b]] = sign * text.coef[of_class, place]
    model.dual_coef_, model.intercept_ = dual_coef[:, order], intercept
    model.problem_coef_ = -coef[order] if k > 2 else coef[order]
    model.n_support_ = np.array(text.nr_sv, dtype="int32")[np.argsort(rank)]
    model.class_weight_ = np.ones(k)
    if text.probA and text.probB and k == 2:
        sign = 1.0 if rank[0] > rank[1] else -1.0
        model.set_params(calibration="sigmoid")
        # 1 / (1 + exp(A f + B)) is the probability of LIBSVM's first class; that of the second one is 1 minus it.
        maps = np.array([[text.probA[0]], [text.probB[0] * sign]])
        model.calibration_ = calibration_from_arrays("sigmoid", [maps], 2)
    elif text.probA or text.probB:
        warnings.warn(f"{path}: LIBSVM's probabilities of more than two classes are ignored.", stacklevel=5)
    return order
