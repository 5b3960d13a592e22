"""Learn to classify from one or five images a class: support vector machines beside prototypes and ridge regression.

    SYMSVM_DATA=DIRECTORY python examples/few_shot.py [--seeds 5] [--episodes 800]

An episode has five classes, a few labelled images of each (the support set), and others to classify (the queries). A
network, 16 filters over all positions of an image, maps images to features; a head is fitted to the features of the
support set and classifies the queries. The network is trained through the head on episodes of the digits 0 to 4, turned
and mirrored, each way a class of its own: 40 classes. It is tested on episodes of 5 to 9, upright, which it has never
seen. The heads:

    prototypes    -|phi(z) - mean of phi over the class|^2 (Snell et al. 2017)
    ridge         ridge regression of the classes, in closed form (Bertinetto et al. 2019)
    SVM           exact kernel machines, each class against the rest: symsvm.heads.kernel_machines (docs/deep.md)

All have the same network, steps and loss, the cross-entropy of s times their scores, and learn their numbers with the
weights: s, the ridge, sigma and C. Without a network, prototypes and the SVM classify by the pixels.
"""

import argparse
import time

import numpy as np
import pytensor
import pytensor.tensor as pt
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from symsvm import RBF, heads
from symsvm.data import data_home, load

WAYS, QUERIES, FILTERS, STEP = 5, 15, 16, 5e-3
TESTS = 400  # episodes of a test
# Where the numbers of the heads begin; they are learned as logarithms.
NUMBERS = {
    "prototypes": {"scale": 0.5},
    "ridge": {"scale": 8.0, "ridge": 3.0},
    "SVM": {"scale": 3.0, "sigma": 3.0, "C": 5.0},
}


def images():
    """Return the name of the data, and images (m, d) with pixels from 0 to 1 and their classes 0 to 9."""
    if (data_home() / "mnist").is_dir():
        X, y, *_ = load("mnist")
        return "MNIST", X[:10000] / 255, y[:10000].astype("int64")
    X, y = load_digits(return_X_y=True)
    return "digits of scikit-learn (no mnist in SYMSVM_DATA)", X / 16, y.astype("int64")


def turned(X, y):
    """Return images and classes of all turns by 90 degrees and mirror images: eight classes for each."""
    side = round(X.shape[1] ** 0.5)
    square = X.reshape(-1, side, side)
    ways = [np.rot90(image, turn, axes=(1, 2)) for image in (square, square[:, :, ::-1]) for turn in range(4)]
    return np.concatenate([way.reshape(X.shape) for way in ways]), np.concatenate([8 * y + k for k in range(8)])


def patches(X):
    """Return the squares of pixels at all positions, (m, p, p, size^2), of images at half their resolution if large."""
    side = round(X.shape[1] ** 0.5)
    square = X.reshape(-1, side, side)
    if side > 16:
        square = (square[:, ::2] + square[:, 1::2])[:, :, ::2] / 4 + (square[:, ::2] + square[:, 1::2])[:, :, 1::2] / 4
    size = 5 if square.shape[1] > 8 else 3
    windows = np.lib.stride_tricks.sliding_window_view(square, (size, size), axis=(1, 2))
    return windows.reshape(*windows.shape[:3], size * size)


def scores(head, S, y, Z, numbers):
    """The scores of the queries Z (n, 5) by a head that is fitted to the support set (S, y)."""
    is_class = pt.eq(y[:, None], np.arange(WAYS)).astype("float64")
    if head == "prototypes":
        means = pt.dot(is_class.T, S) / is_class.sum(axis=0)[:, None]
        return numbers["scale"] * (2 * pt.dot(Z, means.T) - (means**2).sum(axis=1))  # the same for a query: -|z|^2
    if head == "ridge":
        A = pt.dot(S, S.T) + numbers["ridge"] * pt.eye(S.shape[0])
        return numbers["scale"] * pt.dot(pt.dot(Z, S.T), pt.linalg.solve(A, is_class, assume_a="pos"))
    return numbers["scale"] * heads.kernel_machines(S, y, Z, RBF(numbers["sigma"]), n_classes=WAYS, C=numbers["C"])


def adam(loss, parameters):
    """Return the updates of one step of Adam (Kingma and Ba 2015)."""
    count = pytensor.shared(0.0, name="count")
    updates = [(count, count + 1)]
    for p, g in zip(parameters, pytensor.grad(loss, parameters), strict=True):
        mean, square = (pytensor.shared(np.zeros_like(p.get_value())) for _ in range(2))
        m, v = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        size = STEP * pt.sqrt(1 - 0.999 ** (count + 1)) / (1 - 0.9 ** (count + 1))
        updates += [(mean, m), (square, v), (p, p - size * m / (pt.sqrt(v) + 1e-8))]
    return updates


class Learner:
    """A network with a head: a step of training on an episode, and the classes of queries."""

    def __init__(self, head, d, mode):
        self.filters, self.bias = pytensor.shared(np.zeros((d, FILTERS))), pytensor.shared(np.zeros(FILTERS))
        self.logs = {name: pytensor.shared(np.log(value), name=name) for name, value in NUMBERS[head].items()}
        self.first = {log: log.get_value() for log in self.logs.values()}
        S, y, Z, t = pt.dtensor4("S"), pt.lvector("y"), pt.dtensor4("Z"), pt.lvector("t")

        def features(P):  # filters at all positions of an image, averaged over squares of four
            n, p = P.shape[0], P.shape[1]
            a = pt.maximum(pt.dot(P.reshape((-1, P.shape[3])), self.filters) + self.bias, 0)
            return a.reshape((n, p // 2, 2, p // 2, 2, FILTERS)).mean(axis=(2, 4)).reshape((n, -1))

        numbers = {name: pt.exp(log) for name, log in self.logs.items()}
        f = scores(head, features(S), y, features(Z), numbers)
        loss = -pt.special.log_softmax(f, axis=1)[pt.arange(t.shape[0]), t].mean()
        self.updates = adam(loss, [self.filters, self.bias, *self.logs.values()])
        self.step = pytensor.function([S, y, Z, t], loss, updates=self.updates, mode=mode)
        self.classify = pytensor.function([S, y, Z], f.argmax(axis=1), mode=mode)

    def start(self, rng):
        """Give the weights random values, the numbers of the head their first ones, and the state of Adam zeros."""
        for p, _ in self.updates:
            p.set_value(self.first.get(p, np.zeros_like(p.get_value())))
        shape = self.filters.get_value().shape
        self.filters.set_value(rng.normal(size=shape) * np.sqrt(2 / shape[0]))


def episode(X, by_class, shots, rng):
    """Draw an episode: support images and their classes, queries and theirs; the classes in a random order."""
    chosen = [rng.choice(by_class[c], shots + QUERIES, replace=False) for c in rng.permutation(len(by_class))[:WAYS]]
    y = np.arange(WAYS)
    support, queries = (np.concatenate(part) for part in zip(*((c[:shots], c[shots:]) for c in chosen), strict=True))
    return X[support], np.repeat(y, shots), X[queries], np.repeat(y, QUERIES)


def accuracy(classify, X, by_class, shots, tests):
    """Return the part of the queries that are right over the same episodes for every learner, in percent."""
    rng, right = np.random.default_rng(12345), 0.0
    for _ in range(tests):
        S, y, Z, t = episode(X, by_class, shots, rng)
        right += (classify(S, y, Z) == t).mean() / tests
    return 100 * right


def by_pixels(head, mode):
    """The same heads without a network."""
    S, y, Z = pt.dmatrix("S"), pt.lvector("y"), pt.dmatrix("Z")
    numbers = {name: pt.constant(value) for name, value in NUMBERS[head].items()}
    if head == "SVM":  # the mean squared distance of images is about twice their variance
        numbers["sigma"] = pt.sqrt(S.var(axis=0).sum())
    return pytensor.function([S, y, Z], scores(head, S, y, Z, numbers).argmax(axis=1), mode=mode)


def main():
    """Print the table; return the accuracies by head and shots, one for each seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="networks for each head (default 5)")
    parser.add_argument("--episodes", type=int, default=800, help="episodes to train on (default 800)")
    parser.add_argument("--tests", type=int, default=TESTS, help=f"episodes to test on (default {TESTS})")
    parser.add_argument("--mode", default="NUMBA", help="PyTensor's mode (default NUMBA)")
    args = parser.parse_args()

    name, X, y = images()
    unseen = [np.flatnonzero(y == c) for c in range(5, 10)]
    many, classes = turned(X[y < 5], y[y < 5])
    seen = [np.flatnonzero(classes == c) for c in np.unique(classes)]
    P, many = patches(X), patches(many)
    print(f"{name}: {args.episodes} episodes of the digits 0 to 4; test: {args.tests} episodes of 5 to 9")
    print(f"{WAYS} classes, {QUERIES} queries of each; {args.seeds} seeds\n")
    print(f"{'':24}{'1 image a class':>22}{'5 images a class':>22}{'a step':>12}")
    found = {}
    with threadpool_limits(1, user_api="blas"):  # for matrices of this size its threads cost more than they give
        for head in NUMBERS:
            learner, line, times = Learner(head, P.shape[-1], args.mode), "", []
            learner.start(np.random.default_rng(0))
            learner.step(*episode(many, seen, 1, np.random.default_rng(0)))  # compiles
            for shots in (1, 5):
                accuracies = []
                for seed in range(args.seeds):
                    rng = np.random.default_rng(seed)
                    learner.start(rng)
                    for _ in range(args.episodes):
                        given = episode(many, seen, shots, rng)
                        began = time.perf_counter()
                        loss = learner.step(*given)
                        times.append(time.perf_counter() - began)
                    if not np.isfinite(loss):
                        raise RuntimeError("the loss is not finite: take a smaller step.")
                    accuracies.append(accuracy(learner.classify, P, unseen, shots, args.tests))
                found[head, shots] = np.array(accuracies)
                error = np.std(accuracies, ddof=1) / np.sqrt(args.seeds) if args.seeds > 1 else np.nan
                line += f"{np.mean(accuracies):13.2f} +- {error:.2f} %"
            print(f"{head:24}{line}{1000 * np.median(times):9.1f} ms", flush=True)
        for head in ("prototypes", "SVM"):
            classify = by_pixels(head, args.mode)
            line = "".join(f"{accuracy(classify, X, unseen, shots, args.tests):13.2f} {'%':>9}" for shots in (1, 5))
            print(f"{head + ' of pixels':24}{line}", flush=True)
    print("\nMean and standard error over seeds: of other weights at the start and other episodes to train on.")
    return found


if __name__ == "__main__":
    main()
