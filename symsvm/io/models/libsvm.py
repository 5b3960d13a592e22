"""LIBSVM: estimators from its model files, and to them.

In a file the first class of a pair wins where its value is positive, the second one where it is not; here a pair of
more than two classes goes to the first where f >= 0, and two classes to the second where f > 0. Labels are written from
the largest to the smallest, so that zeros go to the same class there as here.
"""

import itertools
import warnings

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.atomic_write import atomic_write
from symsvm._lib.validation import count
from symsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from symsvm.io.models.calibrations import calibration_of
from symsvm.io.models.fitted import ESTIMATORS, check_fitted
from symsvm.io.models.libsvm_text import LibsvmText, read_libsvm_text, write_libsvm_text
from symsvm.io.models.model_file_error import ModelFileError
from symsvm.io.models.named_kernel import named_kernel
from symsvm.io.models.solutions import restored
from symsvm.objectives.certificate import Certificate

__all__ = ["read_libsvm", "write_libsvm"]

_TYPES = {SVC: "c_svc", NuSVC: "nu_svc", OneClassSVM: "one_class", SVR: "epsilon_svr", NuSVR: "nu_svr"}
_CLASSES = {name: cls for cls, name in _TYPES.items()}
_NAMES = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid", "precomputed": "precomputed"}
_ROOM = 2**30  # bytes of coefficients, a column a pair of classes


# ---- to a file


def write_libsvm(model, path):
    """Write one of the five kernel machines to a LIBSVM model file."""
    _check_type(model, path)
    check_is_fitted(model)
    text = LibsvmText(svm_type=_TYPES[type(model)], nr_class=2, total_sv=len(model.support_), **kernel_for(model, path))
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
        text.rho, text.coef = [-float(model.intercept_[0])], model.dual_coef_.T
    with atomic_write(path) as file:
        write_libsvm_text(text, file)


def _check_type(model, path):
    if isinstance(model, Pipeline):
        raise ModelFileError(
            path, "a LIBSVM file holds no scaling: save pipeline[-1] and scale the points yourself, or save as .symsvm."
        )
    if type(model) not in _TYPES:
        hint = " (fit SVC or SVR with kernel='linear')" if type(model) in ESTIMATORS.values() else ""
        raise ModelFileError(
            path, f"{type(model).__name__} is none of LIBSVM's machines: save as .symsvm, or another one{hint}."
        )


def kernel_for(model, path):
    """kernel_type, gamma, degree and coef0 of a model."""
    found = {"kernel_type": "precomputed"} if model.kernel == "precomputed" else named_kernel(model.kernel_)
    if found is None:
        raise ModelFileError(
            path,
            f"LIBSVM has no kernel {model.kernel_ or model.kernel!r}: save as .symsvm, or fit with "
            "kernel='precomputed'.",
        )
    return found


def _write_classes(model, text, path):
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
    sign = 1.0 if k == 2 else -1.0  # with two classes f > 0 is the second one, which is the first one there
    text.coef, text.vectors = sign * model.dual_coef_.T[order, ::-1], text.vectors[order]
    text.rho = [-sign * float(b) for b in model.intercept_[::-1]]
    if model.calibration is not None:
        if model.calibration != "sigmoid" or k > 2:
            raise ModelFileError(
                path,
                "LIBSVM's file has room for the sigmoid of two classes only: fit without calibration, or use .symsvm.",
            )
        ((A, B),) = model.calibration_.maps
        text.probA, text.probB = [A], [B]


def _labels(classes, path):
    whole = classes.dtype.kind in "iub" or (classes.dtype.kind == "f" and (classes == np.floor(classes)).all())
    if not whole or np.abs(classes.astype("float64")).max() >= 2**31:
        raise ModelFileError(
            path, f"LIBSVM's labels are integers, got {classes[:3].tolist()}: number the classes, or save as .symsvm."
        )
    return [int(label) for label in classes]


# ---- from a file


def read_libsvm(path, n_features=None):
    """The estimator of a LIBSVM model file.

    Parameters
    ----------
    n_features : of the points (the number of training points for a precomputed kernel); the file names only columns
        that have an entry in a support vector.
    """
    text = read_libsvm_text(path)
    if n_features is not None and count(n_features, "n_features", least=1) < text.columns:
        raise ModelFileError(path, f"n_features={n_features}, but the file has an entry in column {text.columns}.")
    if text.total_sv * len(text.rho) * 8 > _ROOM:
        raise ModelFileError(path, f"{text.total_sv} support vectors of {text.nr_class} classes need too much memory.")
    try:
        return _model_of(text, path, n_features)
    except (TypeError, ValueError) as error:
        raise ModelFileError(path, f"these numbers are no model: {str(error).rstrip('.')}.") from None


def _model_of(text, path, n_features):
    model = _CLASSES[text.svm_type](kernel=_NAMES[text.kernel_type])
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
            warnings.warn(f"{path}: the estimate of noise or density in this file is left out.", stacklevel=4)
    _keep_vectors(model, text, order, d)
    model.n_iter_ = np.zeros(len(model.intercept_), dtype="int32") if hasattr(model, "classes_") else 0
    if isinstance(model, OneClassSVM):
        model.offset_ = -model.intercept_
    if isinstance(model, NuSVR):
        model.epsilon_ = np.nan  # which LIBSVM does not write
    check_fitted(model)
    model.solutions_ = restored(model, [_unknown() for _ in model.intercept_])
    return model


def _unknown():
    """A file of LIBSVM says nothing about the optimum."""
    nan = float("nan")
    certificate = Certificate(nan, nan, nan, None, None, None, None, "unknown", nan)
    return {"certificate": vars(certificate), "trace": {}, "stopped": "unknown", "n_iter": 0}


def _keep_vectors(model, text, order, d):
    if text.kernel_type == "precomputed":
        model.support_ = (text.vectors[order] - 1).astype("int32")
        model.support_vectors_, model.shape_fit_ = np.empty((0, 0)), (d, d)
    else:
        vectors = text.vectors[order]
        vectors.resize((text.total_sv, d))
        dense = text.total_sv * d * 8 <= 16 * vectors.nnz + 2**16  # no more room than the entries alone
        model.support_ = np.arange(text.total_sv, dtype="int32")
        model.support_vectors_, model.shape_fit_ = vectors.toarray() if dense else vectors, (text.total_sv, d)
    model.kernel_ = model.kernel_for(model.support_vectors_, None)
    model.X_fit_ = None
    if model.kernel_ is not None:
        model.kernel_.lift(lambda name, value: value)  # which checks every number


def _read_classes(model, text, path):
    """Labels in increasing order, with coefficients and intercepts; returns the order of the support vectors."""
    k, labels = text.nr_class, np.array(text.label)
    model.classes_, rank = np.sort(labels), np.argsort(np.argsort(labels))  # rank of each class of the file
    of = np.repeat(np.arange(k), text.nr_sv)  # the class of each vector, as the file counts
    order = np.argsort(rank[of], kind="stable")
    coef, intercept = np.zeros((text.total_sv, k * (k - 1) // 2)), np.zeros(k * (k - 1) // 2)
    column = {pair: c for c, pair in enumerate(itertools.combinations(range(k), 2))}
    laid = np.zeros((k - 1, text.total_sv))
    for p, (i, j) in enumerate(itertools.combinations(range(k), 2)):
        a, b = sorted((rank[i], rank[j]))
        # There the first class is positive; here the second one for two classes, else the first in the order of labels.
        sign = 1.0 if (rank[i] < rank[j]) == (k > 2) else -1.0
        intercept[column[a, b]] = -sign * text.rho[p]
        for mine, other, place in ((i, j, j - 1), (j, i, i)):
            here, row = of == mine, rank[other] - (rank[other] > rank[mine])
            laid[row, here] = coef[here, column[a, b]] = sign * text.coef[here, place]
    model.dual_coef_, model.intercept_ = laid[:, order], intercept
    model.problem_coef_ = -coef[order] if k > 2 else coef[order]
    model.n_support_ = np.array(text.nr_sv, dtype="int32")[np.argsort(rank)]
    model.class_weight_ = np.ones(k)
    if text.probA and text.probB and k == 2:
        sign = 1.0 if rank[0] > rank[1] else -1.0
        model.set_params(calibration="sigmoid")
        # 1 / (1 + exp(A f + B)) is the probability of the first class there; of the second one it is 1 minus that.
        maps = np.array([[text.probA[0]], [text.probB[0] * sign]])
        model.calibration_ = calibration_of("sigmoid", [maps], 2)
    elif text.probA or text.probB:
        warnings.warn(f"{path}: LIBSVM's probabilities of several classes are left out.", stacklevel=5)
    return order
