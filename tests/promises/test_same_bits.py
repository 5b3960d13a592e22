"""The same input gives the same bits: again, from other memory, in threads, in other processes, on more cores."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from agreement import raw_values
from cases import UNTIMED, Case, Outcome, build, fit, make, tame
from promise import Promise, demand, started
from replay import digest, digest_of, replayed
from sklearn.base import clone


def check(case, figures):
    """Fit again: another estimator, arrays elsewhere in memory, and two at once."""
    data, first = started(case, **UNTIMED)
    if first.refusal is not None or first.timed_out:
        return
    bits = digest_of(first.model, raw_values(case, first.model, data.Z))
    again = {
        "a clone": lambda: (clone(build(case, **UNTIMED)), data.X),
        "the same estimator": lambda: (first.model, data.X),
        "other memory": lambda: (build(case, **UNTIMED), elsewhere(data.X)),
    }
    for name, make_it in again.items():
        model, X = make_it()
        outcome = fit(model, X, data.y, data.weight)
        if not outcome.timed_out:
            found = digest_of(outcome.model, raw_values(case, outcome.model, data.Z))
            demand(found == bits, f"other bits with {name}")
    if case.seed % 5 == 0:
        models = [build(case, **UNTIMED) for _ in range(2)]
        # The filters of warnings are those of all threads.
        with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(2) as pool:
            warnings.simplefilter("always")
            list(pool.map(lambda model: model.fit(data.X, data.y, **_weight(data)), models))
        if Outcome(None, None, tuple(caught)).timed_out:
            return
        for model in models:
            demand(digest_of(model, raw_values(case, model, data.Z)) == bits, "other bits in threads")


def _weight(data):
    return {} if data.weight is None else {"sample_weight": data.weight}


def elsewhere(X):
    """A copy of an array that begins 8 bytes after a multiple of 64."""
    if not isinstance(X, np.ndarray):
        return X
    buffer = np.empty(X.nbytes + 128, dtype="uint8")
    start = -buffer.ctypes.data % 64 + 8
    view = buffer[start : start + X.nbytes].view(X.dtype)
    order = "C" if X.flags.c_contiguous else "F"
    copy = view.reshape(X.shape, order=order)
    copy[...] = X
    return copy


PROMISE = Promise("same bits", check, tame, fixed=(Case(), Case(machine="LinearSVC", kernel="linear", seed=5)))


@pytest.mark.parametrize("number", PROMISE.numbers)
def test_a_second_fit_has_the_same_bits(number):
    PROMISE.keep(PROMISE.example(number))


# The last two are large enough for loops over several cores.
ELSEWHERE = (
    Case(),
    Case(machine="SVR", m=60, kernel="laplacian"),
    Case(machine="SVC", m=300, d=4, kernel="rbf"),
    Case(machine="LinearSVC", kernel="linear", m=300, d=5, classes=3),
)


def test_another_process_with_one_core_gives_the_same_bits():
    one = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    assert replayed(ELSEWHERE, **one) == [digest(case) for case in ELSEWHERE]


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("cores", ["1", "2"])
def test_an_empty_cache_gives_the_same_bits(cores, tmp_path):
    empty = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
    }
    cases = (*ELSEWHERE, Case(m=700, d=4, kernel="sum", layout="csr", classes=3))
    there = replayed(cases, **empty, NUMBA_NUM_THREADS=cores, OMP_NUM_THREADS=cores)
    assert there == [digest(case) for case in cases]


def test_data_are_made_from_the_case_alone():
    assert np.array_equal(make(Case(seed=3)).dense, make(Case(seed=3, log_C=1.0)).dense)
