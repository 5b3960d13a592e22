"""Measure training over workers: its bits, what it costs beside one process, and a model of its time.

    python benchmarks/clusters.py bits
    python benchmarks/clusters.py overhead [--points 100000] [--rounds 2]
    python benchmarks/clusters.py model [--points 100000]
    python benchmarks/clusters.py large [--points 1000000] [--memory]
    python benchmarks/clusters.py scale

All workers are processes of this machine, one thread each, under a `distributed.LocalCluster` on the loopback
interface, or under `ProcessEngine` (--engine processes). The points are normal, with 20 features; the label is the sign
of x_0 + x_1 x_2 + noise; RBF with gamma 0.05, C = 1, tol 1e-3. `scale` extrapolates: it runs nothing on a cluster.
"""

import argparse
import contextlib
import resource
import threading
import time
import warnings

import numpy as np

from symsvm import SVC, SVR
from symsvm.distributed import DaskEngine, Part, ProcessEngine, Team, spread
from symsvm.distributed.worker_rows import Rows

GAMMA = 0.05


def data(m, d=20, seed=0):
    """Return points and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=m) > 0, 1, -1)


@contextlib.contextmanager
def engine(kind, workers):
    """Start workers of one thread each, and have them load their code."""
    with contextlib.ExitStack() as stack:
        if kind == "processes":
            made = stack.enter_context(ProcessEngine(workers, threads=1))
        else:
            import distributed

            warnings.filterwarnings("ignore", "Sending large graph")
            options = {
                "threads_per_worker": 1,
                "processes": True,
                "dashboard_address": "127.0.0.1:0",
                "host": "127.0.0.1",
            }
            cluster = stack.enter_context(distributed.LocalCluster(n_workers=workers, **options))
            client = stack.enter_context(distributed.Client(cluster))
            made = stack.enter_context(DaskEngine(client))
        X, y = data(4000)
        SVC(gamma=GAMMA).fit(spread(X, made), y)
        yield made


def timed(fit):
    """Return what a function returns, and its seconds."""
    began = time.perf_counter()
    found = fit()
    return found, time.perf_counter() - began


def bits(args):
    """Compare the bits of one process with those of 1 to 4 workers."""
    from scipy import sparse

    X, y = data(20_000)
    S = sparse.random(8000, 400, 0.05, "csr", random_state=0)
    score = np.asarray(S[:, :200].sum(axis=1)).ravel()
    cases = {
        "dense": (SVC(gamma=GAMMA), X, y, None),
        "CSR": (SVC(gamma=GAMMA), S, np.where(score > np.median(score), 1, -1), None),
        "SVR": (SVR(), X[:8000], X[:8000, 0] ** 2, None),
        "weights": (SVC(gamma=GAMMA), X, y, np.random.default_rng(1).random(len(y))),
    }
    for workers in (1, 2, 3, 4):
        with engine(args.engine, workers) as made:
            for name, (model, points, labels, weights) in cases.items():
                alone = model.fit(points, labels, weights).solutions_[0].z
                z = model.fit(spread(points, made), labels, weights).solutions_[0].z
                print(f"{workers} workers, {name}: {'the same bits' if np.array_equal(z, alone) else 'DIFFERENT'}")


def overhead(args):
    """Compare two workers of one thread with one process of two threads; they take turns."""
    X, y = data(args.points)
    model, alone, apart = SVC(gamma=GAMMA), [], []
    with engine(args.engine, 2) as made:
        points = spread(X, made)
        if args.engine == "dask":  # the workers have the points, as one process has
            import dask.array
            import distributed

            points = dask.array.from_array(X, chunks=(-(-args.points // 8), X.shape[1])).persist()
            distributed.wait(points)
        for _ in range(args.rounds):
            _, seconds = timed(lambda: model.fit(X, y))
            alone.append(seconds)
            z = model.solutions_[0].z
            _, seconds = timed(lambda: model.fit(points, y))
            apart.append(seconds)
            assert np.array_equal(z, model.solutions_[0].z), "the bits differ"
    t, n = model.traffic_, int(model.n_iter_[0])
    print(f"{args.points} points, {n} rounds, {len(model.support_)} support vectors; least of {args.rounds} runs")
    print(f"one process, two threads: {min(alone):.2f} s (all: {', '.join(f'{s:.2f}' for s in alone)})")
    print(f"two workers, {args.engine}: {min(apart):.2f} s (all: {', '.join(f'{s:.2f}' for s in apart)})")
    print(f"ratio {min(apart) / min(alone):.2f}")
    print(f"{t['calls']} calls, {t['waited']:.2f} s in them, {t['sent'] / 1e6:.0f} MB sent, ", end="")
    print(f"{t['received'] / 1e6:.0f} MB received")


# ---- a model of the time


def rates(made):
    """Measure what a run is made of: latency of a call, bytes a second, values a second of a worker."""
    X, _ = data(40_000)
    workers = len(made.workers())
    from symsvm.kernels import RBF

    parts = [Part(Rows, ([X[: len(X) // workers]],)) for _ in range(workers)]
    team = Team(made, parts)
    team.call("unite", "float64", False, 20)
    kernel = RBF.from_gamma(GAMMA)
    team.call("prepare", 0, kernel, None, False, {0: np.zeros(20)})
    found = {}
    team.call("forget", 9)
    found["latency"] = min(timed(lambda: team.call("forget", 9))[1] for _ in range(200))
    blob = np.zeros(2**20)
    seconds = min(timed(lambda: team.call("forget", blob.tobytes()))[1] for _ in range(5))
    found["bandwidth"] = workers * blob.nbytes / (seconds - found["latency"])
    rows, d = np.arange(len(X) // workers), np.ones(1000)
    for name, exact in (("float32", False), ("float64", True)):
        call = ("product", 0, rows, d, X[:1000], exact)
        team.call(*call)
        seconds = min(timed(lambda call=call: team.call(*call))[1] for _ in range(3))
        found[name] = len(rows) * len(d) / (seconds - found["latency"])
    team.close()
    return found


def predicted(rate, workers, *, serial, calls, moved, fast, exact):
    """The model: what the coordinator does alone, calls, bytes, and values, which the workers share."""
    seconds = {
        "serial": serial,
        "latency": calls * rate["latency"],
        "bytes": moved / rate["bandwidth"],
        "products": (fast / rate["float32"] + exact / rate["float64"]) / workers,
    }
    return sum(seconds.values()), seconds


def model(args):
    """Predict runs from rates that other calls have measured, and compare."""
    for workers in (1, 2):
        with engine(args.engine, workers) as made:
            rate = rates(made)
            print(
                f"{workers} workers: a call {1e3 * rate['latency']:.2f} ms, {rate['bandwidth'] / 1e6:.0f} MB/s, "
                f"{rate['float32'] / 1e9:.2f} and {rate['float64'] / 1e9:.2f} 10^9 values/s of a worker"
            )
            for m in (args.points // 4, args.points // 2, args.points):
                X, y = data(m)
                fitted, measured = timed(lambda X=X, y=y: SVC(gamma=GAMMA).fit(spread(X, made), y))
                t = fitted.traffic_
                fast, exact = t["entries"]
                serial = measured - t["waited"]
                total, parts = predicted(
                    rate,
                    workers,
                    serial=serial,
                    calls=t["calls"],
                    moved=t["sent"] + t["received"],
                    fast=fast,
                    exact=exact,
                )
                listed = ", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items())
                print(
                    f"  {m} points, {int(fitted.n_iter_[0])} rounds: took {measured:.2f} s, predicted {total:.2f} s "
                    f"({100 * (total / measured - 1):+.0f} %): {listed}; {t['sent'] / 1e6:.0f} + "
                    f"{t['received'] / 1e6:.0f} MB, {fast / 1e9:.2f} + {exact / 1e9:.2f} 10^9 values",
                    flush=True,
                )


def scale(args):
    """Extrapolate to 10^7 points on many workers from runs of fewer points: rounds, bytes and values grow as powers."""
    sizes = [25_000, 50_000, 100_000, 200_000]
    with engine(args.engine, 2) as made:
        rate, rows = rates(made), []
        for m in sizes:
            X, y = data(m)
            fitted, measured = timed(lambda X=X, y=y: SVC(gamma=GAMMA).fit(spread(X, made), y))
            t = fitted.traffic_
            fast, exact = t["entries"]
            row = [t["calls"], t["sent"] / 2, t["received"], fast, exact, measured - t["waited"], len(fitted.support_)]
            rows.append(row)
            print(m, [f"{x:.4g}" for x in row], flush=True)
    logs = np.log(np.array(rows))
    slope, start = np.polyfit(np.log(sizes), logs, 1)
    names = ("calls", "sent to each", "received", "fast", "exact", "serial", "support vectors")
    print("powers of m:", ", ".join(f"{name} {power:.2f}" for name, power in zip(names, slope, strict=True)))
    m = 10**7
    calls, sent, received, fast, exact, serial, support = np.exp(start + slope * np.log(m))
    print(f"{m} points: {calls:.0f} calls, {support:.3g} support vectors, {fast:.3g} + {exact:.3g} values")
    for workers in (16, 64, 256):
        for network, latency in (("this machine", rate["latency"] * workers / 2), ("1 ms, 1 GB/s", 1e-3)):
            speed = rate["bandwidth"] if network == "this machine" else 1e9
            own = dict(rate, latency=latency, bandwidth=speed)
            total, parts = predicted(
                own, workers, serial=serial, calls=calls, moved=sent * workers + received, fast=fast, exact=exact
            )
            listed = ", ".join(f"{name} {seconds / 3600:.2f}" for name, seconds in parts.items())
            print(f"{workers} workers of one core, {network}: {total / 3600:.1f} h ({listed})")


class Peak:
    """The most memory that this process and its descendants have had, each by itself."""

    def __enter__(self):
        """Begin to look."""
        self.most, self._stop = {}, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        """Stop."""
        self._stop.set()
        self._thread.join()

    def _look(self):
        import psutil

        own = psutil.Process()
        while not self._stop.wait(0.5):
            for process in [own, *own.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    self.most[process.pid] = max(self.most.get(process.pid, 0), process.memory_info().rss)


def large(args):
    """One run of many points, that are read from a file by the workers."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "X.npy")
        X, y = data(args.points)
        np.save(path, X)
        del X

        def show(info):
            if info.iteration % 20 == 0:
                print(
                    f"round {info.iteration}, {info.seconds:.0f} s, violation {info.violation:.2e}, {info.free} free",
                    flush=True,
                )

        with engine(args.engine, 2) as made, Peak() as peak:
            fitted = SVC(gamma=GAMMA)
            with fitted.watching(show):
                _, seconds = timed(lambda: fitted.fit(spread(path, made), y))
            t = fitted.traffic_
            print(
                f"{args.points} points: {seconds:.0f} s, {int(fitted.n_iter_[0])} rounds, {len(fitted.support_)} "
                f"support vectors, stopped: {fitted.solutions_[0].stopped}, {t['calls']} calls, "
                f"{t['sent'] / 1e6:.0f} MB sent, {t['received'] / 1e6:.0f} MB received, {t['waited']:.0f} s in calls, "
                f"{t['entries'][0]:.3g} + {t['entries'][1]:.3g} values"
            )
            print("trace: violation", fitted.trace_["violation"][-1])
        own = peak.most.pop(os.getpid(), 0)
        print(f"peak memory: coordinator {own / 2**30:.2f} GB (resource: ", end="")
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB), ", end="")
        print("others", ", ".join(f"{size / 2**30:.2f}" for size in sorted(peak.most.values())), "GB")


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("bits", "overhead", "model", "large", "scale"))
    parser.add_argument("--points", type=int)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engine", choices=("dask", "processes"), default="dask")
    args = parser.parse_args()
    args.points = args.points or (10**6 if args.part == "large" else 10**5)
    {"bits": bits, "overhead": overhead, "model": model, "large": large, "scale": scale}[args.part](args)


if __name__ == "__main__":
    main()
