"""Every algorithm on the same problems, beside scikit-learn: a table, pictures, and what the seeds found.

    python examples/compare.py [--problems separable sine ...] [--time-limit 10] [--mode JAX] [--to out/compare]

Writes report.md and pictures. Real sets (housing, svmguide1) are read from SYMSVM_DATA, or downloaded once.
"""

import argparse

import matplotlib

from symsvm.comparison import PROBLEMS, problem, report
from symsvm.data import DownloadError

matplotlib.use("Agg")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="all that suit a problem by default")
    parser.add_argument("--tol", type=float, default=1e-3, help="what every algorithm is asked for")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds for each algorithm")
    parser.add_argument("--mode", default=None, help="the backend of the algorithms that are graphs")
    parser.add_argument("--to", default="out/compare", help="the directory for report.md and pictures")
    args = parser.parse_args(arguments)
    problems = []
    for name in args.problems:
        try:
            problems.append(problem(name))
        except DownloadError as error:
            print(f"{name} is left out: {error}")
    options = {"algorithms": args.algorithms, "tol": args.tol, "time_limit": args.time_limit, "mode": args.mode}
    return report(problems, args.to, **options)


if __name__ == "__main__":
    main()
