"""Train on a cluster of processes of this machine, lose a worker on the way, and compare with one process.

    python examples/cluster.py [--points 20000] [--workers 2]

A `distributed.LocalCluster` stands for a cluster: on a real one only its address differs. The points are a `dask.array`
whose blocks live with the workers; one of them is killed in the third round, and no bit of the result changes.
"""

import argparse
import os
import signal
import tempfile
import time

import dask.array
import numpy as np
from distributed import Client, LocalCluster, wait

from symsvm import SVC, load, save


def data(m, d=10, seed=0):
    """Return points and labels: two features interact."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=m) > 0, "yes", "no")


def main():
    """Train, predict, save; return whether the bits are those of one process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    X, y = data(args.points)

    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
    with LocalCluster(n_workers=args.workers, **options) as cluster, Client(cluster) as client:
        block = args.points // (4 * args.workers)
        dX, dy = dask.array.from_array(X, chunks=(block, X.shape[1])).persist(), dask.array.from_array(y, chunks=block)
        wait(dX)
        victim = next(iter(client.run(os.getpid).values()))

        def lose_a_worker(info):
            if info.iteration == 3:
                os.kill(victim, signal.SIGKILL)

        model, began = SVC(), time.perf_counter()
        with model.watching(lose_a_worker):
            model.fit(dX, dy)
        traffic = model.traffic_
        print(f"{args.workers} workers: {time.perf_counter() - began:.2f} s, {int(model.n_iter_[0])} rounds")
        print(
            f"{traffic['calls']} calls, {traffic['sent'] / 1e6:.1f} MB sent, {traffic['received'] / 1e6:.1f} received"
        )
        print(f"parts that were lost and loaded again: {traffic['lost']}")
        print(f"certificate: {model.certificate_.status}, violation {model.certificate_.violation:.1e}")
        print(f"training accuracy {model.score(dX, dy):.4f}, predictions {model.predict(dX)}")

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "model.symsvm")
        save(model, path)
        model = load(path)
    alone = SVC().fit(X, y)
    same = np.array_equal(alone.dual_coef_, model.dual_coef_) and np.array_equal(alone.support_, model.support_)
    print("the bits of one process:", "yes" if same else "no")
    return same, traffic["lost"]


if __name__ == "__main__":
    main()
