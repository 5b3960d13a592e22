"""Bad input is refused in a sentence, by a ValueError or a TypeError; no error or warning is another library's."""

import traceback
import warnings

import numpy as np
import pytest
from cases import Case, build, draw, make
from promise import Promise, demand
from scipy import sparse


def check(case, figures):
    """Fit and predict with one thing that is odd."""
    data = make(case)
    rng = np.random.default_rng(case.seed)
    names = list(ODD)
    name = names[int(rng.integers(len(names)))]
    parameters, X, y, weight, Z = ODD[name](data, rng)
    known = build(case).get_params(deep=False)
    parameters = {key: value for key, value in parameters.items() if key in known}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = build(case, **parameters)
            model.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
            np.asarray(model.predict(Z))
            str(model.certificate_)
        except Exception as error:
            judge(error, name)
            return  # the sentence is there; scikit-learn's sum of what is not finite may warn before it
    # scikit-learn's checks, and the function among the kernels of the cases, may warn as they like.
    noise = [w for w in caught if issubclass(w.category, RuntimeWarning)]
    noise = [w for w in noise if "sklearn" not in w.filename and not w.filename.endswith("cases.py")]
    told = [f"{w.category.__name__} ({w.filename.rpartition('/')[2]}): {w.message}" for w in noise]
    demand(not noise, f"{name}: {told[:1]}")


def judge(error, name):
    """A refusal is a sentence of this package, or of scikit-learn's checks."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = "symsvm" in frame.filename or "sklearn" in frame.filename
    told = f"{name}: {type(error).__name__}: {str(error)[:150]!r} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
    demand(isinstance(error, (ValueError, TypeError)), told)
    demand(ours and len(str(error).split()) > 3, told)


def _odd_values(data, rng):
    X = data.dense.astype("float64").copy()
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice([np.nan, np.inf, -np.inf, 1e308, 5e-324])
    return {}, X, data.y, data.weight, data.dense_Z


def _odd_types(data, rng):
    with np.errstate(all="ignore"):  # float16 has 5 digits of range
        small = data.dense.astype("float16")
    X = [
        data.dense.astype(str),
        data.dense.astype(complex),
        np.ma.masked_array(data.dense, data.dense > 0),
        data.dense.astype("datetime64[s]") if np.abs(data.dense).max() < 1e15 else data.dense.astype(bool),
        data.dense.astype(bool),
        small,
        data.dense.astype("longdouble"),
        data.dense[:, 0],
        data.dense[:, :0],
        data.dense[None],
        sparse.coo_matrix(data.dense),
        sparse.csr_matrix(data.dense.astype("float32")),
        None,
        "points",
        {"x": 1},
        data.dense[:1],
        data.dense[:2],
    ]
    return {}, X[int(rng.integers(len(X)))], data.y, data.weight, data.dense_Z


def _odd_labels(data, rng):
    m = len(data.dense)
    y = [
        None,
        np.zeros(m),
        np.full(m, np.nan),
        np.arange(m) + 0.5,
        ["a"] * m,
        [None] * m,
        np.arange(m),
        rng.normal(size=(m, 2)),
    ]
    y += [np.array([1, "a"] * m, dtype=object)[:m], np.arange(m)[: m // 2], np.full(m, 1e308), np.arange(m) % 2 == 0]
    y += [np.array([f"{i % 3}" for i in range(m)], dtype=object), np.array([], dtype=float)]
    return {}, data.X, y[int(rng.integers(len(y)))], data.weight, data.Z


def _odd_weights(data, rng):
    m = len(data.dense)
    w = [np.zeros(m), -np.ones(m), np.full(m, np.nan), np.full(m, np.inf), np.ones(m + 1), np.ones((m, 2)), "some", 2.0]
    w += [np.eye(m)[0], np.full(m, 1e300), np.full(m, 1e-300), np.full(m, 5e-324), ["1"] * m]
    w += [np.ma.masked_array(np.ones(m), np.arange(m) < 2), np.ones(m, dtype=complex), np.ones(m, dtype=bool)]
    return {}, data.X, data.y, w[int(rng.integers(len(w)))], data.Z


def _odd_parameters(data, rng):
    values = [
        -1.0,
        0.0,
        np.nan,
        np.inf,
        1e300,
        1e-300,
        "auto",
        None,
        True,
        3,
        [1.0],
        np.float32(0.5),
        np.array(0.5),
        {},
        -7,
    ]
    names = ["C", "tol", "gamma", "nu", "epsilon", "degree", "coef0", "max_iter", "time_limit", "intercept_scaling"]
    names += [
        "kernel",
        "solver",
        "mode",
        "class_weight",
        "multi_class",
        "loss",
        "penalty",
        "random_state",
        "calibration",
    ]
    names += ["fit_intercept", "penalize_intercept", "warm_start", "cache_size", "verbose", "shrinking", "dual"]
    chosen = {str(rng.choice(names)): values[int(rng.integers(len(values)))] for _ in range(3)}
    if chosen.get("time_limit", 0) in (np.inf, 1e300, None):
        del chosen["time_limit"]
    return chosen, data.X, data.y, data.weight, data.Z


def _odd_rows(data, rng):
    Z = [
        data.dense_Z[:, :-1],
        data.dense_Z[:0],
        data.dense_Z[0],
        data.dense_Z * np.nan,
        None,
        "rows",
        data.dense_Z.astype(str),
    ]
    Z += [
        np.hstack([data.dense_Z, data.dense_Z]),
        sparse.csr_matrix(data.dense_Z),
        data.dense_Z.astype(complex),
        [[]],
        [],
    ]
    return {}, data.X, data.y, data.weight, Z[int(rng.integers(len(Z)))]


def _nothing(data, rng):
    return {}, data.X, data.y, data.weight, data.Z


ODD = {
    "nothing odd": _nothing,
    "odd values": _odd_values,
    "odd types": _odd_types,
    "odd labels": _odd_labels,
    "odd weights": _odd_weights,
    "odd parameters": _odd_parameters,
    "odd rows": _odd_rows,
}

PROMISE = Promise("sentences", check, draw, fixed=(Case(), Case(kernel="Polynomial", log_scale=88.0)), examples=30)


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_refusals_are_sentences(number):
    PROMISE.keep(PROMISE.example(number))
