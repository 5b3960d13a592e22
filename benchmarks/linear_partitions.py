"""Linear machines over partitions beside one process, and beside the mean of models of the partitions, in one run.

    python benchmarks/linear_partitions.py [--points 400000] [--features 20] [--partitions 8] [--turns 3]

The first table: the fit of `LinearSVC` in one process, and over partitions that a local Dask cluster of 1 and 2
workers of one thread holds already. Columns: seconds, the best of the turns; passes; rounds of calls and bytes sent and
received in a fit; the largest difference of the weights from those of one process; whether the bits are those of one
worker. The tolerance is 1e-6 for all.

The second table: each partition fits a model of its own, with C times the number of partitions, and the weights are
averaged. Columns: how far P of the mean is above the optimum, relative; how far its accuracy on 100 000 other points is
below that of the optimum, in points of a hundred. The partitions hold points in a random order, or sorted by a feature.
"""

import argparse
import time
import warnings

import numpy as np

from symsvm import LinearSVC

LOSSES = ("squared_hinge", "hinge")
C, TOL = 1.0, 1e-6


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("points", 400_000), ("features", 20), ("partitions", 8), ("turns", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", module="distributed")
    points, labels = draw(args.points, args.features, 0)
    compare_times(points, labels, args)
    compare_means(points, labels, draw(100_000, args.features, 1), args.partitions)


def draw(n, d, seed):
    """Points of correlated features, and labels by a line with noise that depends on the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ np.random.default_rng(7).normal(size=(d, d)) / d**0.5
    w = np.random.default_rng(8).normal(size=d)
    return X, np.where(X @ w + (0.5 + np.abs(X[:, 0])) * rng.normal(size=n) > 0.3, 1.0, -1.0)


def compare_times(X, y, args):
    """Print the first table."""
    import dask.array as da
    import distributed

    print(f"\n{len(X)} points of {X.shape[1]} features in {args.partitions} partitions, C = {C}, tol = {TOL}")
    print(f"{'':28}{'seconds':>9}{'passes':>8}{'rounds':>8}{'MB sent':>9}{'received':>10}{'difference':>12}  bits")
    for loss in LOSSES:
        alone = LinearSVC(loss=loss, C=C, tol=TOL, max_iter=-1)
        alone.fit(X[:1000], y[:1000])  # compiles
        best = {"one process": timed(lambda alone=alone: alone.fit(X, y), args.turns)}
        rows, first = {}, None
        for count in (1, 2):
            options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
            with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
                size = -(-len(X) // args.partitions)
                data = [da.from_array(v, chunks=(size, *v.shape[1:])).persist() for v in (X, y)]
                distributed.wait(data)
                model = LinearSVC(loss=loss, C=C, tol=TOL)
                model.fit(*data)
                name = f"{count} worker{'s' if count > 1 else ''}"
                best[name] = timed(lambda model=model, data=data: model.fit(*data), args.turns)
                traffic = measure_traffic(*data, loss)
            first = model.coef_ if first is None else first
            rows[name] = model, traffic, bool((model.coef_ == first).all())
        print(f"{loss + ', one process':28}{best['one process']:9.2f}{alone.n_iter_:8}")
        for name, (model, traffic, same) in rows.items():
            off = np.abs(model.coef_ - alone.coef_).max()
            sent, received = traffic.sent / 1e6, traffic.received / 1e6
            print(
                f"{loss + ', ' + name:28}{best[name]:9.2f}{model.n_iter_:8}{traffic.calls:8}{sent:9.2f}{received:10.2f}"
                f"{off:12.1e}  {'the same' if same else 'others'}"
            )


def measure_traffic(X, y, loss):
    """What a fit sends and receives."""
    from symsvm.distributed import DaskEngine, Team
    from symsvm.distributed.dask_collection import DaskCollection
    from symsvm.distributed.partitions import make_parts
    from symsvm.linear.partition import LinearPartition
    from symsvm.linear.partitioned_problem import PartitionedPoints, PartitionedProblem
    from symsvm.linear.solve_partitioned import solve_partitioned

    with DaskEngine() as engine:
        team = Team(engine, make_parts(engine, DaskCollection(X), X, y, None, LinearPartition, 1.0, True))
        sides = np.array([-1.0, 1.0])
        options = {"s": 1.0, "loss": loss, "epsilon": 0.0, "free": False}
        problem = PartitionedProblem(PartitionedPoints(team), sides, sides, np.full(2, C), **options)
        solve_partitioned(problem, tol=TOL)
        team.close()
    return team.traffic


def timed(work, turns):
    """The least seconds of some calls."""
    best = np.inf
    for _ in range(turns):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def compare_means(X, y, test, partitions):
    """Print the second table."""
    print(f"\nthe mean of {partitions} models, one for each partition, against the optimum")
    print(f"{'':40}{'P above':>10}{'accuracy below':>17}")
    for loss in LOSSES:
        optimum = LinearSVC(loss=loss, C=C, tol=TOL, max_iter=-1).fit(X, y)
        for name, order in (("in a random order", np.arange(len(X))), ("sorted by a feature", np.argsort(X[:, 0]))):
            models = [
                LinearSVC(loss=loss, C=partitions * C, tol=TOL, max_iter=-1).fit(X[some], y[some])
                for some in np.array_split(order, partitions)
            ]
            w = np.mean([model.coef_[0] for model in models], axis=0)
            b = float(np.mean([model.intercept_[0] for model in models]))
            least = primal(X, y, optimum.coef_[0], float(optimum.intercept_[0]), loss)
            above = primal(X, y, w, b, loss) / least - 1
            hits = [
                np.mean((test[0] @ each + c > 0) == (test[1] > 0))
                for each, c in ((w, b), (optimum.coef_[0], optimum.intercept_[0]))
            ]
            print(f"{loss + ', ' + name:40}{above:10.1e}{100 * (hits[1] - hits[0]):17.2f}")


def primal(X, y, w, b, loss):
    """P, as it is defined."""
    xi = np.maximum(0, 1 - y * (X @ w + b))
    return 0.5 * (w @ w + b * b) + C * (xi**2 if loss == "squared_hinge" else xi).sum()


if __name__ == "__main__":
    main()
