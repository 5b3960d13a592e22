"""The service under load, on loopback: latency, throughput, memory, and the effect of batches.

    SYMSVM_DATA=DIRECTORY python benchmarks/serving.py [--model news.symsvm] [--requests 100000] [--seconds 10]

The service is a separate process with one worker. This process sends requests over keep-alive connections and compares
every answer with the prediction of the model. `paced` sends at a fixed rate and measures the latency from the time at
which a request was due, so that a delay counts for all requests that it affects; `unpaced` sends the next request as
soon as an answer arrives. Posts are those of the by-date test set, in order; the kernel model is an RBF SVC on digits.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import symsvm
from symsvm.data import data_home
from symsvm.text import classifier, read

RUN = "import sys, json; from symsvm.serve import run; run(sys.argv[1], port=0, **json.loads(sys.argv[2]))"


@contextlib.contextmanager
def service(path, **limits):
    """Run a service in a separate process; yield its port and its process."""
    start = time.perf_counter()
    command = [sys.executable, "-c", RUN, str(path), json.dumps(limits)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        line = process.stderr.readline()
        print(f"{Path(path).name}: ready after {time.perf_counter() - start:.1f} s, {memory(process):.0f} MB")
        try:
            yield int(re.search(r":(\d+)/", line)[1]), process
        finally:
            process.terminate()
            process.stderr.read()


def memory(process):
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


class Client:
    """A connection that sends prepared requests and reads answers with a length."""

    async def open(self, port):
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
        return self

    async def ask(self, request):
        """Send a request and return the body of the answer; raise an error unless its status is 200."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        body = await self.reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"the service answers {head[:40]} {body[:200]}")
        return body


def request(path, value):
    """Return the bytes of a POST request."""
    body = json.dumps(value).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def load(port, requests, check, *, clients, rate=None, count):
    """Send `count` requests, cycling through the list; return the seconds of each and of all."""
    pool = [await Client().open(port) for _ in range(clients)]
    times, turn, start = [], iter(range(count)), time.perf_counter()

    async def send(client):
        for i in turn:
            due = time.perf_counter() if rate is None else start + i / rate
            if rate is not None:
                await asyncio.sleep(due - time.perf_counter())
            body = await client.ask(requests[i % len(requests)])
            times.append(time.perf_counter() - due)
            check(i % len(requests), body)

    await asyncio.gather(*(send(client) for client in pool))
    spent = time.perf_counter() - start
    for client in pool:
        client.writer.close()
    return np.array(times), spent


def cpu(process):
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def head():
    """Print the names of the columns."""
    names = ("requests", "per s", "rows/s", "p50 ms", "p99 ms", "max ms", "CPU ms")
    print(" " * 34 + "".join(f"{name:>9}" for name in names))


def measure(name, port, process, requests, check, *, rows=1, **how):
    """Send requests and print a line of numbers; CPU ms is the CPU time of the service for a request."""
    before = cpu(process)
    times, spent = asyncio.run(load(port, requests, check, **how))
    n, computed = len(times), cpu(process) - before
    figures = (*np.quantile(times, [0.5, 0.99]), times.max(), computed / n)
    line = "".join(f"{1e3 * figure:9.2f}" for figure in figures)
    print(f"{name:34}{n:9}{n / spent:9.0f}{rows * n / spent:9.0f}{line}", flush=True)


def posts(path, seconds, total):
    """Measure single posts sent to a text model."""
    texts, model = read(data_home() / "20news-bydate.tar.gz").test.texts[:2000], symsvm.load(path)
    wanted = model.predict(texts).tolist()
    requests = [request("/", {"post_text": text}) for text in texts]

    def check(i, body):
        found = json.loads(body)["predicted_newsgroup"]["name"]
        if found != wanted[i]:
            raise RuntimeError(f"post {i} is {wanted[i]} by the model and {found} by the service")

    with service(path) as (port, process):
        head()
        one = (port, process, requests, check)
        for rate in (100, 300, 500):
            measure(f"paced at {rate} a second", *one, clients=64, rate=rate, count=int(seconds * rate))
        for clients in (1, 4, 16):
            measure(f"unpaced, {clients} clients", *one, clients=clients, count=int(seconds * 400))
        print(f"{'memory after so many requests':34}", end="")
        for tenth in range(1, 11):
            asyncio.run(load(port, requests, check, clients=8, count=max(1, total // 10)))
            print(f" {tenth * total // 10}: {memory(process):.0f} MB", end="", flush=True)
        print()


def rows(folder, seconds):
    """Measure rows sent to a kernel model, one by one and in batches."""
    X, y = load_digits(return_X_y=True)
    model = symsvm.SVC(C=10.0, gamma=1e-3).fit(X, y)
    path = Path(folder) / "digits.symsvm"
    symsvm.save(model, path)
    print(f"\n{len(model.support_)} support vectors, {X.shape[1]} features")
    wanted = model.predict(X).tolist()

    def checked(size):
        def check(i, body):
            found = [p["label"] for p in json.loads(body)["predictions"]]
            if found != wanted[i * size : (i + 1) * size]:
                raise RuntimeError(f"rows from {i * size} differ")

        return check

    for most in (256, 1):
        with service(path, max_batch=most) as (port, process):
            print(f"at most {most} rows are predicted together")
            head()
            for clients in (1, 8, 32):
                requests = [request("/v1/predict", {"rows": [row], "top": 1}) for row in X.tolist()]
                one = (f"single rows, {clients} clients", port, process, requests, checked(1))
                measure(*one, clients=clients, count=int(seconds * 150))
            for size in (4, 16, 64, 256) if most > 1 else ():
                parts = [X[i : i + size].tolist() for i in range(0, len(X) - size + 1, size)]
                requests = [request("/v1/predict", {"rows": part, "top": 1}) for part in parts]
                one = (f"{size} rows a request, 4 clients", port, process, requests, checked(size))
                measure(*one, rows=size, clients=4, count=int(seconds * 20))


def main():
    """Print all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="the file of a newsgroups model (default: train one)")
    parser.add_argument(
        "--requests", type=int, default=100_000, help="requests of the memory measurement (default 100000)"
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="the approximate duration of each measurement (default 10)"
    )
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.model
        if path is None:
            path = Path(folder) / "news.symsvm"
            symsvm.save(classifier().fit(*read(data_home() / "20news-bydate.tar.gz").train), path)
        posts(path, chosen.seconds, chosen.requests)
        rows(folder, chosen.seconds)


if __name__ == "__main__":
    main()
