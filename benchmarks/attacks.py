"""Clients of the service for `soak.py`: those that ask and check every answer, and hostile ones.

An attack is a coroutine of the port and the questions. It returns how many things it did, and what it did not expect,
counted by name.
"""

import asyncio
import contextlib
import hashlib
import json
import random
import re
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

__all__ = [
    "ATTACKS",
    "BODIES",
    "LOST",
    "Questions",
    "Tally",
    "connect",
    "exchange",
    "hostile_bodies",
    "kept_busy",
    "metric",
    "post",
    "respond",
]

LOST = (asyncio.IncompleteReadError, ConnectionError)
PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{}\r\nContent-Length: {}\r\n{}\r\n"


def post(body, path="/v1/predict", kind="json", length=None, more=""):
    """The bytes of a POST request."""
    return HEAD.format(path, kind, len(body) if length is None else length, more).encode() + body


@dataclass
class Questions:
    """Rows to ask about, and the labels that each model file gives them, by the SHA-256 of the file.

    `far` has the label of a row of 1e308: its RBF kernel values are 0, and its decision values the intercepts.
    """

    rows: list
    labels: dict = field(default_factory=dict)
    far: dict = field(default_factory=dict)

    def add(self, path, model):
        """Add a model that was saved to a file."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self.labels[digest] = model.predict(np.array(self.rows)).tolist()
        self.far[digest] = model.predict(np.full((1, len(self.rows[0])), 1e308)).item()

    def request(self, i, **how):
        """The request for row i."""
        return post(json.dumps({"rows": [self.rows[i % len(self.rows)]], "top": 1}).encode(), **how)

    def is_right(self, i, body):
        """Whether the answer for row i is that of the model which it names."""
        found = json.loads(body)
        return found["predictions"][0]["label"] == self.labels[found["model"]][i % len(self.rows)]

    def is_far(self, body):
        """Whether the answer is that for a row of 1e308."""
        found = json.loads(body)
        return found["predictions"][0]["label"] == self.far[found["model"]]


@dataclass
class Tally:
    """What became of requests: right, refused (status 503), wrong, or lost (no answer on an open connection)."""

    right: int = 0
    refused: int = 0
    wrong: int = 0
    lost: int = 0
    seconds: list = field(default_factory=list)

    @property
    def requests(self):
        """The number of all."""
        return self.right + self.refused + self.wrong + self.lost

    def quantile(self, q):
        """The q-quantile of the time to a right answer, in milliseconds."""
        return 1e3 * float(np.quantile(self.seconds, q)) if self.seconds else float("nan")


async def connect(port):
    """A connection: its reader and writer."""
    return await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)


async def respond(reader):
    """The status, the head and the body of the next response."""
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
    return int(head[9:12]), head, body


async def metric(port, name):
    """The value of a metric of the service."""
    reader, writer = await connect(port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    _, _, body = await respond(reader)
    writer.close()
    return float(re.search(rb"\n%s (\S+)" % re.escape(name.encode()), body)[1])


async def exchange(reader, writer, questions, i, tally, **how):
    """Ask about row i and count the answer; return whether the connection is of further use."""
    start = time.perf_counter()
    writer.write(questions.request(i, **how))
    try:
        status, head, body = await respond(reader)
    except LOST:
        tally.lost += 1
        return False
    if status == 200 and questions.is_right(i, body):
        tally.right += 1
        tally.seconds.append(time.perf_counter() - start)
    elif status == 503:
        tally.refused += 1
    else:
        tally.wrong += 1
    return b"connection: close" not in head


async def asking(port, questions, tally, first=0, pause=0.02):
    """Ask, check and pause until cancelled."""
    i = first
    while True:
        reader, writer = await connect(port)
        try:
            idle = 0.0
            # The service closes an idle connection after 5 s: a client that slept as long takes a new one.
            while idle < 4 and await exchange(reader, writer, questions, i, tally):
                i, start = i + 1, time.monotonic()
                await asyncio.sleep(pause)
                idle = time.monotonic() - start
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def in_background(*coroutines):
    """Run coroutines while the context lasts; none may end before it."""
    tasks = [asyncio.create_task(one) for one in coroutines]
    try:
        yield
    finally:
        ended = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if ended:
            raise RuntimeError(f"a task ended: {ended[0].exception()!r}")


def kept_busy(port, questions, tally, clients=8):
    """Clients that ask and check while the context lasts."""
    return in_background(*(asking(port, questions, tally, 100 * i) for i in range(clients)))


# ---- attacks


async def _until_closed(reader, writer, byte, pause):
    """Send a byte at intervals until the service closes the connection; return what it sent."""
    answer = asyncio.create_task(reader.read())
    while not answer.done():
        with contextlib.suppress(ConnectionError):
            writer.write(byte)
        await asyncio.wait([answer], timeout=pause)
    writer.close()
    return b"" if answer.exception() else answer.result()


async def _slow(port, start, byte, expected, clients=500):
    async def one():
        reader, writer = await connect(port)
        writer.write(start)
        found = await _until_closed(reader, writer, byte, 1.0)
        return None if found[:12] in expected else f"answered {found[:12]}"

    return clients, Counter(await asyncio.gather(*(one() for _ in range(clients))))


async def slow_headers(port, questions):
    """500 clients send a byte of their headers each second: closed without an answer."""
    return await _slow(port, b"GET / HTTP/1.1\r\na: ", b"a", (b"",))


async def slow_bodies(port, questions):
    """500 clients send a byte of their bodies each second: status 408."""
    # A client that still sends when the connection is closed may not get to read the answer.
    return await _slow(port, post(b"", length=100_000), b" ", (b"HTTP/1.1 408", b""))


async def unread(port, questions, clients=100):
    """100 clients send requests for long answers and read none: closed."""

    async def one():
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        with connection:
            await loop.sock_connect(connection, ("127.0.0.1", port))
            try:
                async with asyncio.timeout(60):
                    while True:
                        await loop.sock_sendall(
                            connection, b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500
                        )
            except ConnectionError:
                return None
            except TimeoutError:
                return "still open after 60 s"

    return clients, Counter(await asyncio.gather(*(one() for _ in range(clients))))


async def pipelined(port, questions, clients=40, each=2000):
    """40 clients send 2000 requests each before they read an answer: answered in order."""

    async def one(first):
        reader, writer = await connect(port)
        wrong = 0
        for i in range(each):
            writer.write(questions.request(first + i) if i % 20 == 0 else PROBE)
        for i in range(each):
            status, _, body = await respond(reader)
            good = questions.is_right(first + i, body) if status == 200 and i % 20 == 0 else body == b'{"status": "ok"}'
            wrong += not good
        writer.close()
        return wrong

    wrong = sum(await asyncio.gather(*(one(7 * k) for k in range(clients))))
    return clients * each, Counter({"wrong": wrong})


async def half_closed(port, questions, clients=500):
    """500 clients ask and close their side of the connection: answered."""

    async def one(i):
        tally = Tally()
        reader, writer = await connect(port)
        writer.write(questions.request(i))
        writer.write_eof()
        with contextlib.suppress(*LOST):
            status, _, body = await respond(reader)
            tally.right += status == 200 and questions.is_right(i, body)
        writer.close()
        return None if tally.right else "no right answer"

    return clients, Counter(await asyncio.gather(*(one(i) for i in range(clients))))


async def crowd(port, questions, clients=2000):
    """2000 connections are open at once, twice what is allowed, then each asks: answered, or status 503."""
    ends, tally = [await connect(port) for _ in range(clients)], Tally()
    await asyncio.gather(*(exchange(*end, questions, i, tally) for i, end in enumerate(ends)))
    for _, writer in ends:
        writer.close()
    most = 1000  # of `max_connections`
    fewer = {} if tally.right >= most - 50 else {f"only {tally.right} answered": 1}
    return clients, Counter({"wrong": tally.wrong, "lost": tally.lost}) + Counter(fewer)


_SIZE = 4 * 2**20 - 100
_ROW = b'{"rows": [[%s]]}'
BODIES = {
    "deep arrays": (b'{"rows": ' + b"[" * (_SIZE // 2), "json", 400),
    "deep objects": (b'{"a":' * (_SIZE // 5), "json", 400),
    "NaN": (_ROW % b", ".join([b"NaN"] * 64), "json", 422),
    "Infinity": (_ROW % b", ".join([b"-Infinity"] * 64), "json", 422),
    "1e999": (_ROW % b", ".join([b"1e999"] * 64), "json", 422),
    "1e308": (_ROW % b", ".join([b"1e308"] * 64), "json", 200),
    "half a surrogate": (b'{"\\ud800": 1}', "json", 400),
    "not UTF-8": (b'{"rows": "\xff\xfe"}', "json", 400),
    "unknown keys": (b"{" + b",".join(b'"%x":1' % i for i in range(_SIZE // 10)) + b"}", "json", 422),
    "an unknown array": (b'{"a":[' + b"[]," * (_SIZE // 3) + b"[]]}", "json", 422),
    "too many rows": (b'{"rows": [' + b",".join([b"[%s]" % b",".join([b"0"] * 64)] * 30_000) + b"]}", "json", 413),
    "blank lines": (b"\n" * _SIZE, "x-ndjson", 422),
    "too many lines": (b"1\n" * (_SIZE // 2), "x-ndjson", 413),
    "one long line": (b" " * _SIZE, "x-ndjson", 422),
    "oversize": (b" " * (2 * _SIZE), "json", 413),
    "nothing": (b"", "json", 400),
}


async def hostile_bodies(port, questions, turns=6):
    """Deep JSON, NaN, surrogates, millions of keys, rows and lines, of 4 MiB: the status that the docs say.

    The row of 1e308 is answered: it is no hostile one for a kernel that is 0 there.
    """

    at_once = asyncio.Semaphore(8)  # more bodies of this size are answered with status 503

    async def one(name):
        body, kind, expected = BODIES[name]
        async with at_once:
            reader, writer = await connect(port)
            writer.write(post(body, kind=kind))
            try:
                status, _, answer = await respond(reader)
                if status == 200 and not questions.is_far(answer):
                    status = "wrong"
            except LOST:
                status = "no answer"
            writer.close()
        return None if status == expected else f"{name}: {status}"

    return turns * len(BODIES), Counter(await asyncio.gather(*(one(name) for name in list(BODIES) * turns)))


async def not_http(port, questions, clients=1000):
    """1000 clients send random bytes, or a request with some bytes changed: answered or closed."""
    rng = random.Random(0)

    async def one():
        data = bytearray(rng.randbytes(rng.randrange(1, 3000)) if rng.random() < 0.3 else questions.request(3))
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        reader, writer = await connect(port)
        writer.write(data)
        try:
            async with asyncio.timeout(40):
                found = await reader.read()
        except TimeoutError:
            return "still open after 40 s"
        except ConnectionError:
            found = b""
        finally:
            writer.close()
        return None if not found or re.match(rb"HTTP/1.1 (200|4\d\d) ", found) else f"answered {found[:12]}"

    return clients, Counter(await asyncio.gather(*(one() for _ in range(clients))))


async def disconnected(port, questions, clients=2000):
    """2000 clients ask and reset the connection, some in the middle of the body: nothing remains of them."""

    async def one(i):
        _, writer = await connect(port)
        request = questions.request(i)
        writer.write(request if i % 2 else request[:-20])
        await asyncio.sleep(0.001 * (i % 10))
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.transport.abort()

    for start in range(0, clients, 200):
        await asyncio.gather(*(one(i) for i in range(start, start + 200)))
    await asyncio.sleep(1)
    active = await metric(port, "symsvm_requests_active")
    return clients, Counter({"requests still active": int(active > 20)})


ATTACKS = (
    slow_headers,
    slow_bodies,
    unread,
    pipelined,
    half_closed,
    crowd,
    hostile_bodies,
    not_http,
    disconnected,
)
