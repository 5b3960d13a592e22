"""The service under attack and load, on loopback: is every request answered rightly, and does memory stay?

    python benchmarks/soak.py [--minutes 10] [--stops 10] [--seconds 20] [--only NAME ...]

The service is a process of its own with a model of digits and its default limits; only the model file is checked more
often. First the attacks of `attacks.py`,
one after the other, while eight clients ask and check every answer; then the model file is replaced and damaged under
load; then the service is stopped by SIGTERM under load, several times; at last sixteen clients ask for `--minutes`,
among hostile requests and replacements of the model. `done` counts what an attack did, `odd` what did not end as it
should; the other figures are those of the clients that check, and the memory of the service before, at most, and after
(MB). The exit code is 1 if an answer is wrong or lost, if an attack ends otherwise
than it should, or if memory in the last tenth of the soak is 10 % more than in the first.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attacks import (
    ATTACKS,
    BODIES,
    LOST,
    Questions,
    Tally,
    connect,
    exchange,
    hostile_bodies,
    in_background,
    kept_busy,
    metric,
    post,
    respond,
)
from sklearn.datasets import load_digits

import symsvm

RUN = "import sys, json; from symsvm.serve import run; run(sys.argv[1], port=0, **json.loads(sys.argv[2]))"
COLUMNS = ("done", "odd", "requests", "right", "refused", "wrong", "lost", "p50 ms", "p99 ms", "MB", "most", "after")
GROWTH = 1.10
# Seconds between two checks of the model file.
RELOAD = 0.1


class Service:
    """A service in a process of its own, whose log goes to a file."""

    def __init__(self, path, folder, **limits):
        self.log = Path(folder) / "log"
        with self.log.open("w", encoding="utf-8") as log:
            command = [sys.executable, "-c", RUN, str(path), json.dumps(limits)]
            self.process = subprocess.Popen(command, stderr=log)
        while not (found := re.search(r"http://\S+:(\d+)/", self.log.read_text(encoding="utf-8"))):
            if self.process.poll() is not None:
                raise RuntimeError(self.log.read_text(encoding="utf-8"))
            time.sleep(0.05)
        self.port = int(found[1])

    def memory(self, key="VmRSS"):
        """The resident memory in MB; with VmHWM, its maximum since `reset`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(rf"{key}:\s+(\d+)", status)[1]) / 1024

    def reset(self):
        """Measure the maximum from now on."""
        with contextlib.suppress(OSError):
            Path(f"/proc/{self.process.pid}/clear_refs").write_text("5", encoding="utf-8")

    def stop(self):
        """Stop by SIGTERM; return what is wrong with its end, counted by name: the exit code, tracebacks in the log."""
        self.process.send_signal(signal.SIGTERM)
        code, text = self.process.wait(60), self.log.read_text(encoding="utf-8")
        found = text.count("Traceback")
        if found:
            print(text[text.index("Traceback") :][:4000], file=sys.stderr)
        return Counter({f"exit code {code}": int(code != 0), "a traceback in the log": found})


class Table:
    """The lines that are printed, and whether all is well."""

    def __init__(self):
        self.fails = []
        print(f"{'':24}" + "".join(f"{name:>9}" for name in COLUMNS))

    def line(self, name, done, odd, tally, memory):
        """Print a line and note what is wrong."""
        counts = (done, sum(odd.values()), tally.requests, tally.right, tally.refused, tally.wrong, tally.lost)
        times = "".join(f"{tally.quantile(q):9.1f}" for q in (0.5, 0.99))
        print(
            f"{name:24}" + "".join(f"{n:9}" for n in counts) + times + "".join(f"{m:9.0f}" for m in memory), flush=True
        )
        self.note(name, odd)
        if tally.wrong or tally.lost:
            self.fail(f"{name}: {tally.wrong} wrong answers, {tally.lost} lost")
        if not tally.right:
            self.fail(f"{name}: nothing was answered")

    def note(self, name, odd):
        """Note what did not end as it should."""
        self.fails.extend(f"{name}: {count} times {what}" for what, count in odd.items() if count)

    def fail(self, sentence):
        """Note what is wrong."""
        self.fails.append(sentence)


@contextlib.contextmanager
def measured(table, name, service):
    """Measure the memory of the service around what happens; yields a dict for done, odd and the tally."""
    service.reset()
    before, found = service.memory(), {"done": 0, "odd": Counter(), "tally": Tally()}
    yield found
    odd = Counter({what: n for what, n in found["odd"].items() if what and n})
    table.line(name, found["done"], odd, found["tally"], (before, service.memory("VmHWM"), service.memory()))


async def attack(table, service, questions, one):
    """One attack while others ask."""
    with measured(table, one.__name__.replace("_", " "), service) as found:
        async with kept_busy(service.port, questions, found["tally"]):
            found["done"], found["odd"] = await one(service.port, questions)
            await asyncio.sleep(0.5)


def damaged(rng, whole):
    """A model file that is cut, changed in some bytes, empty, or of zeros."""
    kind = rng.randrange(4)
    if kind == 0:
        return whole[: rng.randrange(len(whole))]
    if kind == 1:
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        return bytes(data)
    return b"" if kind == 2 else b"\0" * len(whole)


async def replacing(path, wholes, pause, found):
    """Replace the model file by turns by a damaged one and a whole one, until cancelled."""
    rng = random.Random(0)
    while True:
        for whole in reversed(wholes):
            for data in (damaged(rng, whole), whole):
                new = path.with_suffix(".new")
                new.write_bytes(data)
                os.replace(new, path)
                found["done"] += 1
                await asyncio.sleep(pause)


async def reload(table, service, questions, path, wholes, seconds):
    """Replace and damage the model file under load."""
    with measured(table, "damaged model files", service) as found:
        files = replacing(path, wholes, 5 * RELOAD, found)
        async with kept_busy(service.port, questions, found["tally"]), in_background(files):
            await asyncio.sleep(seconds)
            found["odd"] = await idle_reloads(service)


async def idle_reloads(service):
    """What the service did not do with the model files: refuse the damaged ones, read the whole ones."""
    results = ("refused", "replaced")
    counts = [await metric(service.port, f'symsvm_model_reloads_total{{result="{result}"}}') for result in results]
    return Counter({f"no file {result}": 1 for result, count in zip(results, counts, strict=True) if not count})


async def stops(table, path, folder, questions, count):
    """Stop the service under load, several times: each request that was sent on an open connection is answered."""
    tally, odd = Tally(), Counter()

    async def ask(port, first, keep):
        i = first
        while True:
            try:
                reader, writer = await connect(port)
            except ConnectionError:  # refused: the service has stopped
                return
            try:
                goes_on = True
                while goes_on:
                    how = {} if keep else {"more": "Connection: close\r\n"}
                    goes_on = await exchange(reader, writer, questions, i, tally, **how)
                    i += 1
            finally:
                writer.close()

    for turn in range(count):
        service = Service(path, folder, reload=0)
        clients = [asyncio.create_task(ask(service.port, 50 * i, i % 2)) for i in range(48)]
        await asyncio.sleep(1 + 0.037 * turn)
        odd += await asyncio.to_thread(service.stop)
        await asyncio.gather(*clients)
    table.line("SIGTERM under load", count, odd, tally, ())


async def hostile(port, questions, found):
    """Send a few hostile requests each second, until cancelled."""
    rng, names = random.Random(0), list(BODIES)
    half = questions.request(0)[:-10]
    while True:
        body, kind, _ = BODIES[rng.choice(names)]
        requests = [post(body, kind=kind), rng.randbytes(200) + b"\r\n\r\n", half, b"GET / HTTP/1.1\r\n" * 3, b""]
        for request in requests:
            reader, writer = await connect(port)
            writer.write(request)
            with contextlib.suppress(*LOST, TimeoutError):
                async with asyncio.timeout(0.5):
                    await respond(reader)
            writer.transport.abort()
            found["done"] += 1


async def soak(table, service, questions, path, wholes, minutes):
    """Ask for minutes, among hostile requests and replacements of the model file; memory must stay."""
    medians = []
    await hostile_bodies(service.port, questions, turns=1)  # memory of the first large bodies is no growth
    with measured(table, f"{minutes:g} minutes", service) as found:
        tally = found["tally"]
        tasks = (replacing(path, wholes, 25 * RELOAD, {"done": 0}), hostile(service.port, questions, found))
        async with in_background(*tasks), kept_busy(service.port, questions, tally, clients=16):
            for tenth in range(1, 11):
                samples = []
                for _ in range(20):  # the median is not that of a large body
                    await asyncio.sleep(0.3 * minutes)
                    samples.append(service.memory())
                medians.append(statistics.median(samples))
                print(f"{tenth:3} tenths: {tally.requests} requests, {medians[-1]:.0f} MB", file=sys.stderr)
            found["odd"] = await idle_reloads(service)
    print("memory in each tenth, MB: " + ", ".join(f"{m:.0f}" for m in medians))
    if medians[-1] > GROWTH * medians[0]:
        table.fail(f"memory grew from {medians[0]:.0f} to {medians[-1]:.0f} MB")


def models(folder):
    """Two models of digits in files, and the questions with the answers of both."""
    X, y = load_digits(return_X_y=True)
    questions, paths = Questions(X.tolist()), []
    for C in (10.0, 0.1):
        paths.append(Path(folder) / f"{C}.symsvm")
        model = symsvm.SVC(C=C, gamma=1e-3).fit(X, y)
        symsvm.save(model, paths[-1])
        questions.add(paths[-1], model)
    return [path.read_bytes() for path in paths], questions


async def campaign(chosen, folder):
    """Run everything; return what is wrong."""
    wholes, questions = models(folder)
    path = Path(folder) / "model.symsvm"
    path.write_bytes(wholes[0])
    wanted = set(chosen.only or ("load", *(one.__name__ for one in ATTACKS), "reload", "stops", "soak"))
    table, service = Table(), Service(path, folder, reload=RELOAD)
    if "load" in wanted:
        with measured(table, "load without attack", service) as found:
            async with kept_busy(service.port, questions, found["tally"]):
                await asyncio.sleep(chosen.seconds)
    for one in ATTACKS:
        if one.__name__ in wanted:
            await attack(table, service, questions, one)
    if "reload" in wanted:
        await reload(table, service, questions, path, wholes, chosen.seconds)
    table.note("the end", await asyncio.to_thread(service.stop))
    path.write_bytes(wholes[0])
    if "stops" in wanted:
        await stops(table, path, folder, questions, chosen.stops)
    if "soak" in wanted:
        service = Service(path, folder, reload=RELOAD)
        await soak(table, service, questions, path, wholes, chosen.minutes)
        table.note("the end of the soak", await asyncio.to_thread(service.stop))
    return table.fails


def main():
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="the duration of the soak (default 10)")
    parser.add_argument("--seconds", type=float, default=20.0, help="the duration of each other load (default 20)")
    parser.add_argument(
        "--stops", type=int, default=10, help="how often the service is stopped under load (default 10)"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="load, an attack, reload, stops or soak (default: all)"
    )
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        fails = asyncio.run(campaign(chosen, folder))
    for sentence in fails:
        print(sentence)
    print("failed" if fails else "nothing was lost, nothing was wrong")
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
