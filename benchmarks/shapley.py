"""Exact Shapley values of a kernel machine: the difference from their definition, and the time.

    python benchmarks/shapley.py [--seed 0]

The first line compares with the sum over all subsets, for 50 points of 8 features and an SVC over the RBF kernel; the
second one measures a point of 100 features with 2000 support vectors and one reference.
"""

import argparse
import itertools
import math
import time

import numpy as np
from sklearn.datasets import make_classification

from symsvm import RBF, SVC, contributions
from symsvm.inspection.shapley import shapley_values


def by_definition(decision, x, reference):
    """The values of the features by the sum over all subsets."""
    d = len(x)
    sets = np.array(list(itertools.product((False, True), repeat=d)))
    value = decision(np.where(sets, x, reference))
    place, phi = 2 ** np.arange(d)[::-1], np.zeros(d)
    for s, at in zip(sets, value, strict=True):
        size = int(s.sum())
        for k in np.flatnonzero(~s):
            weight = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
            phi[k] += weight * (value[(s @ place) + place[k]] - at)
    return phi


def main():
    """Print both lines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    rng = np.random.default_rng(parser.parse_args().seed)
    X, y = make_classification(300, 8, n_informative=6, random_state=0)
    model, worst, largest = SVC().fit(X, y), 0.0, 0.0
    for x in X[:50]:
        (found,) = contributions(model, x, by="features", background=X[100:101])
        phi = by_definition(model.decision_function, x, X[100])
        own = dict(zip(found.names.tolist(), found.contributions.tolist(), strict=True))
        worst = max(worst, max(abs(own.get(f"x{k}", 0.0) - phi[k]) for k in range(8)))
        largest = max(largest, float(np.abs(phi).max()))
    print(f"d = 8, 50 points: differences up to {worst:.1e}, values up to {largest:.2f}")
    V, coef, x, r = rng.normal(size=(2000, 100)), rng.normal(size=(2000, 1)), rng.normal(size=100), np.zeros((1, 100))
    best = math.inf
    for _ in range(5):
        began = time.perf_counter()
        shapley_values(RBF(10.0), x, r, V, coef)
        best = min(best, time.perf_counter() - began)
    print(f"d = 100, 2000 support vectors: {best:.3f} s for a point")


if __name__ == "__main__":
    main()
