"""Compare all algorithms on the same problems, beside scikit-learn: tables, plots, and claims of Meoli (2021).

    python examples/compare.py [--problems separable sine ...] [--time-limit 10] [--mode JAX] [--to out/compare]

Writes report.md and plots. Real data sets (housing, svmguide1) are read from SYMSVM_DATA, or downloaded once.
"""

import argparse

import matplotlib

from symsvm.comparison import PROBLEMS, problem, report
from symsvm.data import DownloadError

matplotlib.use("Agg")


def main(arguments=None):
    """Run the comparison; return its entries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS), metavar="NAME")
    parser.add_argument(
        "--algorithms", nargs="+", metavar="NAME", help="the algorithms (default: all that suit a problem)"
    )
    parser.add_argument("--tol", type=float, default=1e-3, help="the tolerance of every algorithm (default 1e-3)")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, help="the time limit of each algorithm in seconds (default 10)"
    )
    parser.add_argument(
        "--mode", default=None, help="the backend of algorithms that are compiled from graphs, NUMBA (default) or JAX"
    )
    parser.add_argument(
        "--to", default="out/compare", help="the directory for report.md and plots (default out/compare)"
    )
    args = parser.parse_args(arguments)
    problems = []
    for name in args.problems:
        try:
            problems.append(problem(name))
        except DownloadError as error:
            print(f"{name} is skipped: {error}")
    options = {"algorithms": args.algorithms, "tol": args.tol, "time_limit": args.time_limit, "mode": args.mode}
    return report(problems, args.to, **options)


if __name__ == "__main__":
    main()
