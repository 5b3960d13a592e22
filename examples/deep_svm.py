"""Train a network end to end with softmax, with Tang's squared hinge, and with exact kernel machines as its last layer.

    SYMSVM_DATA=DIRECTORY python examples/deep_svm.py [--rows 5000] [--seeds 5] [--epochs 30]

Two layers map an image to features; what comes after them differs (docs/deep.md). softmax and Tang's head are losses of
a linear layer. The exact layer trains ten machines, each a class against the rest, on half of a batch, and its loss is
that of their decisions on the other half: the gradient goes through the solutions of the machines. sigma and C are
learned with the weights. Then an exact SVC is trained on the features of each network, and one on the pixels.

The data are MNIST where SYMSVM_DATA has it, else the digits of scikit-learn. The penalty of the weights was chosen on
the training images 5001 to 10 000; all settings are the same for all heads.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from symsvm import RBF, SVC, heads
from symsvm.data import data_home, load

HIDDEN, FEATURES, BATCH, STEP = 256, 64, 250, 1e-3
PENALTY = 3e-4  # of the squares of the weights
SIGMA, C = 8.0, 5.0  # where the exact layer begins; its features are FEATURES numbers above 0
ON_FEATURES = {"C": 10.0, "gamma": "scale"}  # the SVC on the features of a network


class Data(NamedTuple):
    """Images (m, d) with pixels from 0 to 1 and their classes 0 to 9, for training and for the test."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Network(NamedTuple):
    """A network with a head: its parameters, a step of training, features of images, and scores if it has them."""

    parameters: list
    step: object
    features: object
    scores: object


def digits(rows):
    """Return MNIST, or the digits of scikit-learn where it is missing; at most so many images to train on."""
    if (data_home() / "mnist").is_dir():
        X, y, X_test, y_test = load("mnist")
        return Data("MNIST", X[:rows] / 255, y[:rows].astype("int64"), X_test / 255, y_test.astype("int64"))
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16, y[order].astype("int64")
    rows = min(rows, 1200)
    return Data("digits of scikit-learn (no mnist in SYMSVM_DATA)", X[:rows], y[:rows], X[1200:], y[1200:])


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


def network(head, d, mode):
    """Compile the network with one of three heads; `start` gives its parameters their values."""
    U, V, A = (pytensor.shared(np.zeros(shape), name=name) for name, shape in zip("UVA", shapes(d), strict=True))
    u, v, a = (pytensor.shared(np.zeros(len(w.get_value()[0])), name=w.name.lower()) for w in (U, V, A))
    log_sigma, log_C = (pytensor.shared(0.0, name=name) for name in ("log_sigma", "log_C"))
    X, y = pt.dmatrix("X"), pt.lvector("y")

    def features(X):
        return pt.maximum(pt.dot(pt.maximum(pt.dot(X, U) + u, 0), V) + v, 0)

    phi, scores = features(X), None
    if head == "exact layer":
        half = X.shape[0] // 2
        options = {"n_classes": 10, "C": pt.exp(log_C)}
        f = heads.kernel_machines(phi[:half], y[:half], phi[half:], RBF(pt.exp(log_sigma)), **options)
        loss, parameters = heads.one_vs_rest(y[half:], f, squared=True).mean(), [U, V, u, v, log_sigma, log_C]
    else:
        scores, parameters = pt.dot(phi, A) + a, [U, V, u, v, A, a]
        rows = pt.arange(X.shape[0])
        if head == "softmax":
            loss = -pt.special.log_softmax(scores, axis=1)[rows, y].mean()
        else:
            loss = heads.one_vs_rest(y, scores, squared=True).mean()
        scores = pytensor.function([X], scores, mode=mode)
    loss += PENALTY * sum((w**2).sum() for w in parameters if w.ndim == 2)
    updates = adam(loss, parameters)
    step = pytensor.function([X, y], loss, updates=updates, mode=mode)
    return Network([p for p, _ in updates], step, pytensor.function([X], phi, mode=mode), scores)


def shapes(d):
    """The shapes of the weights."""
    return (d, HIDDEN), (HIDDEN, FEATURES), (FEATURES, 10)


def start(net, rng):
    """Give the parameters random values, and the state of Adam zeros."""
    for p in net.parameters:
        value = p.get_value()
        if p.name in ("U", "V", "A"):
            value = rng.normal(size=value.shape) * np.sqrt(2 / len(value))
        else:
            value = np.asarray({"log_sigma": np.log(SIGMA), "log_C": np.log(C)}.get(p.name, 0.0)) + 0 * value
        p.set_value(value)


def train(net, data, epochs, rng):
    """Take steps on random batches; return the seconds."""
    batch = min(BATCH, len(data.X) // 2)
    began = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):  # for matrices of this size its threads cost more than they give
        for _ in range(epochs):
            order = rng.permutation(len(data.X))
            for i in range(0, len(order) - batch + 1, batch):
                some = order[i : i + batch]
                loss = net.step(data.X[some], data.y[some])
    if not np.isfinite(loss):
        raise RuntimeError("the loss is not finite: take a smaller step.")
    return time.perf_counter() - began


def errors(net, data):
    """Return the errors of the head itself and of an SVC on the features of the network, as parts of 1."""
    phi, phi_test = net.features(data.X), net.features(data.X_test)
    if net.scores is not None:
        own = net.scores(data.X_test).argmax(axis=1)
    else:
        value = {p.name: float(p.get_value()) for p in net.parameters if p.name in ("log_sigma", "log_C")}
        kernel, penalty = RBF(np.exp(value["log_sigma"])), np.exp(value["log_C"])
        own = SVC(kernel=kernel, C=penalty, multi_class="ovr").fit(phi, data.y).predict(phi_test)
    svc = SVC(**ON_FEATURES).fit(phi, data.y)
    return (own != data.y_test).mean(), (svc.predict(phi_test) != data.y_test).mean()


def main():
    """Print the table; return the errors by head, in percent: its own, and those of an SVC on its features."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000, help="images to train on (default 5000)")
    parser.add_argument("--seeds", type=int, default=5, help="networks for each head (default 5)")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the images (default 30)")
    parser.add_argument("--mode", default="NUMBA", help="PyTensor's mode (default NUMBA)")
    args = parser.parse_args()

    data = digits(args.rows)
    print(f"{data.name}: {len(data.X)} images to train on, {len(data.X_test)} to test; {args.seeds} seeds")
    print(f"\n{'':14}{'error of the head':>20}{'SVC on its features':>22}{'training':>12}{'a step':>10}")
    found = {}
    for head in ("softmax", "squared hinge", "exact layer"):
        net, rows, seconds = network(head, data.X.shape[1], args.mode), [], []
        start(net, np.random.default_rng(0))
        net.step(data.X[:BATCH], data.y[:BATCH])  # compiles
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            start(net, rng)
            seconds.append(train(net, data, args.epochs, rng))
            rows.append(errors(net, data))
        found[head] = 100 * np.array(rows)
        (own, svc), spread = found[head].mean(axis=0), found[head].std(axis=0)
        steps = args.epochs * (len(data.X) // min(BATCH, len(data.X) // 2))
        print(
            f"{head:14}{own:11.2f} +- {spread[0]:.2f} %{svc:13.2f} +- {spread[1]:.2f} %"
            f"{np.median(seconds):10.1f} s{1000 * np.median(seconds) / steps:7.1f} ms",
            flush=True,
        )
    began = time.perf_counter()
    raw = SVC(C=5.0, gamma=0.02 if data.name == "MNIST" else "scale").fit(data.X, data.y)
    seconds = time.perf_counter() - began
    error = 100 * (raw.predict(data.X_test) != data.y_test).mean()
    print(f"{'SVC on pixels':14}{error:11.2f} {'%':>9}{'':22}{seconds:10.1f} s")
    print("\nMean and standard deviation over seeds; a training time is the median, after compilation.")
    return found


if __name__ == "__main__":
    main()
