"""MNIST, one-vs-one, RBF, C = 5, gamma = 0.02: training time, peak memory and accuracy beside scikit-learn.

    SYMSVM_DATA=DIRECTORY python benchmarks/mnist.py [--rows 10000 60000] [--only symsvm]

Each fit runs in a separate process, so that its peak memory can be measured; "memory" is the peak beyond the data.
symsvm first fits 1000 images, which compiles its loops; scikit-learn has a cache of 2 GB.
"""

import argparse
import subprocess
import sys
import time

from peer_rows import digits
from peers import CACHE, TOL, Peak


def fit(name, rows):
    """Fit and print one line."""
    if name == "symsvm":
        import symsvm as module
    else:
        import sklearn.svm as module

    (X, y), (test, labels) = digits(), digits("t10k")
    X, y = X[:rows].copy(), y[:rows]
    model = module.SVC(C=5.0, gamma=0.02, tol=TOL, cache_size=CACHE)
    if name == "symsvm":
        model.fit(X[:1000], y[:1000])
    with Peak() as peak:
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    began = time.perf_counter()
    right = (model.predict(test) == labels).mean()
    predicting = time.perf_counter() - began
    print(
        f"{name:14}{rows:7}{seconds:10.1f} s {peak.megabytes:8.0f} MB {len(model.support_):9} {100 * right:8.2f} %"
        f"{predicting:9.1f} s   {worst(model) if name == 'symsvm' else ''}",
        flush=True,
    )


def worst(model):
    """Return the certificate of the pair of classes with the largest violation."""
    certificates = model.certificate_ if isinstance(model.certificate_, list | tuple) else [model.certificate_]
    return max(certificates, key=lambda c: c.violation)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", nargs="+", type=int, default=[10_000, 60_000], help="the numbers of images (default 10000 60000)"
    )
    parser.add_argument("--only", choices=("symsvm", "scikit-learn"), help="measure only one of the two")
    parser.add_argument("--one", action="store_true", help="fit in this process")
    args = parser.parse_args()
    if args.one:
        return fit(args.only, args.rows[0])
    print(f"{'':14}{'images':>7}{'training':>12} {'memory':>11} {'vectors':>9} {'accuracy':>10}{'prediction':>11}")
    for rows in args.rows:
        for name in [args.only] if args.only else ("symsvm", "scikit-learn"):
            command = [sys.executable, __file__, "--one", "--only", name, "--rows", str(rows)]
            subprocess.run(command, check=True)
    return None


if __name__ == "__main__":
    main()
