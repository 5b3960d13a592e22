"""Attacks and load in small: every request that arrived is answered, and what no client reads or ends is given up.

`make soak` has the same attacks at full size against a process of its own (benchmarks/soak.py).
"""

import contextlib
import json
import logging
import os
import re
import resource
import socket
import threading
import tracemalloc

import pytest
from serving import GROUPS, MODELS, TEXTS, serving, wait_for

import symsvm
from symsvm.serve.app import _parse_lines
from symsvm.serve.schemas import Schemas
from symsvm.serve.server import allow_open_files

BODY = b'{"post_text": "the orbit of the moon"}'
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
POST, PROBE = HEAD + BODY, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK"
# uvicorn takes uvloop where it is installed, which it is not everywhere.
LOOPS = pytest.mark.parametrize("loop", ["auto", "asyncio"])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "text.symsvm"
    symsvm.save(MODELS["text"](), path)
    return path


@pytest.fixture(autouse=True)
def _no_traceback(caplog):
    """No attack leads to a traceback in the log."""
    yield
    assert not [record for record in caplog.records if record.exc_info]


@contextlib.contextmanager
def busy(client):
    """Keep the model busy: requests wait until the context ends, or until the event that it yields is set."""
    gate = threading.Event()
    client.app.state.batcher.executor.submit(gate.wait)
    try:
        yield gate
    finally:
        gate.set()


def connect(client):
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)


def read(connection):
    """All bytes until the end of the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            found += part
    return found


def ask(connection, request):
    """The response to one request; the connection stays open."""
    connection.sendall(request)
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    length = int(re.search(rb"content-length: (\d+)", found)[1])
    while len(found) < found.index(b"\r\n\r\n") + 4 + length:
        found += connection.recv(65536)
    return found


def connections(client):
    return client.server.server_state.connections


def refusals(client, status):
    """How many requests were refused before they reached the application, by the metrics."""
    labels = {"route": "none", "method": "other", "status": str(status)}
    return client.app.state.metrics.registry.get_sample_value("symsvm_requests_total", labels)


def answered(client, text=TEXTS[0], label="sci.space"):
    """Whether another client is answered as usual."""
    return client.post("/", json={"post_text": text}).json()["predicted_newsgroup"]["name"] == label


# ---- half-closed and pipelined connections


@LOOPS
def test_a_client_that_has_closed_its_side_is_answered(path, loop):
    with serving(path, loop=loop) as client:
        for requests in (POST, POST * 3, PROBE + POST, POST + PROBE * 100 + b"GET /healthz HTT"):
            with connect(client) as connection, busy(client) as gate:
                connection.sendall(requests)
                connection.shutdown(socket.SHUT_WR)
                wait_for(lambda: client.app.state.batcher.waiting)
                gate.set()
                result = read(connection)
            assert result.count(OK) == requests.count(b"Host: a")
            assert result.count(b'"predicted_newsgroup": {"name": "sci.space"') == requests.count(BODY)
        wait_for(lambda: not connections(client))


@LOOPS
def test_half_a_request_of_a_client_that_has_closed_its_side(path, loop):
    with serving(path, loop=loop) as client:
        for half in (b"", b"POST / HT", HEAD, HEAD + BODY[:5]):
            with connect(client) as connection:
                connection.sendall(half)
                connection.shutdown(socket.SHUT_WR)
                assert OK not in read(connection)
            with connect(client) as connection, busy(client) as gate:
                connection.sendall(POST + half)
                connection.shutdown(socket.SHUT_WR)
                wait_for(lambda: client.app.state.batcher.waiting)
                gate.set()
                assert read(connection).count(OK) == 1
        wait_for(lambda: not connections(client))


@LOOPS
def test_pipelined_requests_are_parsed_when_it_is_their_turn(path, loop):
    """A read has thousands of requests, and each that waits takes memory: few are parsed before their turn."""
    with serving(path, loop=loop) as client, connect(client) as connection, busy(client) as gate:
        count = 2000
        sender = threading.Thread(target=connection.sendall, args=(POST + PROBE * count,))
        sender.start()
        wait_for(lambda: client.app.state.batcher.waiting)
        (protocol,) = connections(client)
        wait_for(lambda: protocol._received)
        assert 0 < len(protocol.pipeline) < 100
        assert len(protocol._received) < 300_000
        gate.set()
        result, most = b"", 0
        while result.count(OK) <= count:
            most = max(most, len(protocol.pipeline))
            result += connection.recv(1 << 20)
        sender.join()
    assert most < 100
    assert result.count(OK) == count + 1
    assert result.index(b"predicted_newsgroup") < result.index(b'"status": "ok"')


def test_bodies_among_pipelined_requests(path):
    """The parser's parts end within headers, bodies and chunks."""
    text = json.dumps({"post_text": "orbit " * 20_000}).encode()
    length = HEAD.replace(b"Length: %d" % len(BODY), b"Length: %d" % len(text)) + text
    chunked = HEAD.replace(b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked")
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(text[i : i + 700]), text[i : i + 700]) for i in range(0, len(text), 700))
    requests = (POST + length + PROBE + chunked + pieces + b"0\r\n\r\n") * 3 + PROBE
    with serving(path) as client, connect(client) as connection:
        connection.sendall(requests)
        connection.shutdown(socket.SHUT_WR)
        result = read(connection)
    assert result.count(OK) == 13
    assert result.count(b'"predicted_newsgroup": {"name": "sci.space"') == 9


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (b"\x00\x01\x02\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\na: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n{}", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", 400),
    ],
)
def test_a_request_that_is_refused_leaves_those_before_it(path, wrong, status):
    with serving(path) as client, connect(client) as connection, busy(client) as gate:
        connection.sendall(POST + PROBE * 3)
        wait_for(lambda: client.app.state.batcher.waiting)
        connection.sendall(wrong)
        gate.set()
        result = read(connection)
        assert refusals(client, status) == 1
    assert result.count(OK) == 4
    assert result.count(b"HTTP/1.1 ") == 5
    assert result.rindex(b"HTTP/1.1 %d " % status) > result.rindex(OK)


@LOOPS
def test_late_headers_do_not_end_a_request_before_them(path, loop):
    with serving(path, loop=loop, header_timeout=0.05) as client, connect(client) as connection, busy(client) as gate:
        connection.sendall(POST + b"GET /healthz HT")
        wait_for(lambda: client.app.state.batcher.waiting)
        assert not threading.Event().wait(0.2)  # the time for the headers of the second request is over
        gate.set()
        result = read(connection)
    assert result.count(OK) == 1


# ---- slow clients


LONG = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"


def active(client):
    return client.app.state.metrics.registry.get_sample_value("symsvm_requests_active")


@LOOPS
def test_a_client_that_asks_and_does_not_read(path, loop, caplog):
    with serving(path, loop=loop, body_timeout=0.2) as client, connect(client) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            connection.sendall(LONG * 20_000)
        assert answered(client)
        client.close()
        wait_for(lambda: not connections(client) and active(client) == 0)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@LOOPS
def test_a_client_that_does_not_read_the_last_response(path, loop):
    """The connection is to be closed when it has read that."""
    with serving(path, loop=loop, body_timeout=0.2) as client, connect(client) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wait_for(lambda: connections(client))
        (protocol,), state, sent = connections(client), client.server.server_state, 0
        with socket.socket(fileno=os.dup(protocol.transport.get_extra_info("socket").fileno())) as other_end:
            other_end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        while not protocol.transport.get_write_buffer_size():  # the system holds the first responses
            connection.sendall(LONG)
            sent += 1
            wait_for(lambda sent=sent: state.total_requests == sent)
        connection.sendall(LONG.replace(b"Host", b"Connection: close\r\nHost"))
        wait_for(lambda: not connections(client))


@LOOPS
def test_slow_clients_are_given_up_and_others_answered(path, loop):
    """50 clients send a byte now and then, of headers and of bodies."""
    with serving(path, loop=loop, header_timeout=0.4, body_timeout=0.4) as client, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connect(client)) for _ in range(50)]
        starts = [b"POST / HTTP/1.1\r\nHost: a\r\na: ", HEAD.replace(b"%d" % len(BODY), b"10000")]
        for i, connection in enumerate(slow):
            connection.sendall(starts[i % 2])
        ended = False
        while not ended:
            for connection in slow:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"a")
            assert answered(client)
            ended = len(connections(client)) <= 1  # that of the client itself
        results = [read(connection) for connection in slow]
    assert set(results[::2]) == {b""}
    # A client that goes on sending to a closed connection may lose the response.
    assert all(result == b"" or result.startswith(b"HTTP/1.1 408 ") for result in results[1::2])


@LOOPS
@pytest.mark.parametrize("first", [b"", PROBE, PROBE[:20]])
def test_what_arrived_while_the_service_was_busy_is_not_late(path, loop, first):
    """Timers of idle connections and of headers are over, but the request is there, only not read yet."""
    with serving(path, loop=loop, keep_alive=0.2, header_timeout=0.2) as client, connect(client) as other:
        wait_for(lambda: connections(client))
        (protocol,) = connections(client)
        ready, gate = threading.Event(), threading.Event()
        protocol._parse = lambda: [ready.set(), gate.wait(20)]  # reading from another connection takes long
        with connect(client) as connection:
            if first == PROBE:
                assert ask(connection, PROBE).startswith(OK)
            else:
                connection.sendall(first)
                wait_for(lambda: len(connections(client)) == 2)
            other.sendall(PROBE)
            ready.wait(20)
            connection.sendall(PROBE[len(first) % len(PROBE) :])
            assert not threading.Event().wait(0.4)  # longer than both timers
            gate.set()
            assert read(connection).startswith(OK)


# ---- crowds


def test_a_crowd_does_not_displace_clients(path):
    """Connections beyond the limit are refused; those within it go on, and far too many are closed at once."""
    with serving(path, max_connections=2) as client, connect(client) as second, contextlib.ExitStack() as stack:
        assert answered(client)
        wait_for(lambda: len(connections(client)) == 2)
        crowd = [stack.enter_context(connect(client)) for _ in range(7)]
        wait_for(lambda: len(connections(client)) == 6)
        assert sorted(map(read, crowd[4:])) == [b""] * 3
        assert answered(client)
        assert ask(second, PROBE).startswith(OK)
        for connection in (crowd[0], crowd[2], crowd[3]):
            connection.sendall(PROBE)
            assert read(connection).startswith(b"HTTP/1.1 503 ")
        assert refusals(client, 503) == 3
        crowd[1].sendall(b"GET /healthz HTTP/1.1\r\n")
        second.close()
        wait_for(lambda: len(connections(client)) == 2)
        assert ask(crowd[1], b"Host: a\r\n\r\n").startswith(OK)  # there is room now


def test_open_files_suffice_for_the_connections(caplog):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] // 2, before[1]))
        allow_open_files(before[0] // 5)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > before[0] // 2
        assert not caplog.records
        allow_open_files(10**12)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
        assert "max_connections" in caplog.text
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


# ---- the end of the service


@LOOPS
def test_requests_that_arrived_are_answered_at_the_end(path, loop):
    """Those that were not read yet, those on connections that were not accepted yet, and pipelined ones."""
    with serving(path, loop=loop) as client, contextlib.ExitStack() as stack:
        idle, waiting = ([stack.enter_context(connect(client)) for _ in range(3)] for _ in range(2))
        for connection in (*idle, *waiting):
            assert ask(connection, PROBE).startswith(OK)
        gate, late = stack.enter_context(busy(client)), []
        for connection in waiting:
            connection.sendall(POST)
        wait_for(lambda: client.app.state.batcher.waiting == len(waiting))
        tick, stop = client.server.on_tick, threading.Event()

        async def last_tick(counter):
            if not stop.is_set():
                return await tick(counter)
            for connection in idle:
                connection.sendall(POST + PROBE * 200)
            for connection in waiting:
                connection.sendall(PROBE * 200)
            for _ in range(3):
                late.append(stack.enter_context(connect(client)))
                late[-1].sendall(POST + PROBE * 200)
            return True  # the service stops before it reads or accepts anything more

        client.server.on_tick = last_tick
        stop.set()
        wait_for(lambda: client.app.state.batcher.waiting >= 2 * len(waiting))
        gate.set()
        for connection in (*idle, *late):
            result = read(connection)
            assert result.count(OK) == 201
            assert b"connection: close" in result[result.rindex(OK) :]
            assert result.count(b"connection: close") == 1
        for connection in waiting:
            # Their response was on its way: it says that the connection closes, or the next ones are answered too.
            assert read(connection).count(OK) in (1, 201)


@LOOPS
def test_idle_and_half_sent_requests_do_not_delay_the_end(path, loop):
    with serving(path, loop=loop, header_timeout=600, keep_alive=600) as client, contextlib.ExitStack() as stack:
        silent, half, idle = (stack.enter_context(connect(client)) for _ in range(3))
        half.sendall(PROBE[:10])
        assert ask(idle, PROBE).startswith(OK)
        wait_for(lambda: len(connections(client)) == 3)
        client.server.should_exit = True
        assert [read(connection) for connection in (silent, half, idle)] == [b""] * 3


@LOOPS
def test_a_request_that_takes_longer_than_the_end(path, loop):
    """It gets an error as any other, not uvicorn's."""
    with serving(path, loop=loop, shutdown_timeout=0.2) as client, connect(client) as connection, busy(client):
        connection.sendall(POST)
        wait_for(lambda: client.app.state.batcher.waiting)
        client.server.should_exit = True
        top, _, body = read(connection).partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body)["error"]["code"] == "stopping"


# ---- bodies


def test_large_bodies_do_not_displace_small_ones(path):
    """Clients that send large bodies slowly use up `max_bodies`; a short post is answered nevertheless."""
    with serving(path, max_body=64_000, max_bodies=128_000) as client, contextlib.ExitStack() as stack:
        for _ in range(2):
            slow = stack.enter_context(connect(client))
            slow.sendall(HEAD.replace(b"%d" % len(BODY), b"64000") + b" " * 63_990)
        wait_for(lambda: client.post("/", json={"post_text": "a" * 5000}).status_code == 503)
        assert answered(client)


@pytest.mark.parametrize("line", [b"\n", b" \n", b"\r\n", b"1\n", b"{}\n", b'{"text": ""}\n'])
def test_lines_take_no_more_memory_than_the_body(line):
    schemas = Schemas.of("text", "class", None, 1000)
    data = bytearray(line * (2**20 // len(line)))
    tracemalloc.start()
    try:
        with pytest.raises(Exception, match="line"):
            _parse_lines(schemas, data)
        assert tracemalloc.get_traced_memory()[1] < len(data)
    finally:
        tracemalloc.stop()


def test_large_bodies_are_parsed_one_at_a_time(path, monkeypatch):
    """A body can take a hundred times its size while it is parsed."""
    running, most, parsed = 0, 0, threading.Event()

    def parse(schemas, data):
        nonlocal running, most
        running += 1
        most = max(most, running)
        parsed.wait(0.05)
        running -= 1
        return _parse_lines(schemas, bytearray(b'{"text": "orbit"}'))

    monkeypatch.setattr("symsvm.serve.app._parse_batch", parse)
    with serving(path) as client:
        body = json.dumps({"texts": ["a" * 70_000]}).encode()
        request = HEAD.replace(b"POST / ", b"POST /v1/predict ").replace(b"%d" % len(BODY), b"%d" % len(body)) + body
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(connect(client)) for _ in range(4)]
            for connection in clients:
                connection.sendall(request)
            assert all(connection.recv(65536).startswith(OK) for connection in clients)
    assert most == 1


LONE = [rb'"\ud800"', rb'"\udc00\ud800"', rb'"a\ud83d"', rb'"\udfff b"']


def test_surrogates_deep_values_and_no_numbers_on_every_route(path):
    """The status is 400 or 422, the error is JSON, and others are answered."""
    deep = b"[" * 200_000
    values = [*LONE, b"NaN", b"-Infinity", b"1e999", deep, deep + b"]" * 200_000, b'{"a":' * 100_000, b"-", b"\xff"]
    keys = {"/": (b"post_text", b"%s"), "/v1/predict": (b"texts", b"[%s]"), "/v1/explain": (b"text", b"%s")}
    with serving(path) as client:
        for route, (key, form) in keys.items():
            bodies = [b'{"%s": %s}' % (key, form % value) for value in values]
            bodies += [b'{%s: "a", "%s": %s}' % (lone, key, form % b'"a"') for lone in LONE]
            for body in bodies:
                kinds = ["application/json"] + ["application/x-ndjson"] * (route == "/v1/predict")
                for kind in kinds:
                    answer = client.post(route, content=body, headers={"content-type": kind})
                    assert answer.status_code in (400, 422), (route, body[:40])
                    assert answer.json()["error"]["message"]
        assert answered(client)


# ---- reload


def test_a_damaged_model_under_load(path, tmp_path):
    """The file is damaged and mended by turns: every response is that of a model that was whole."""
    file, good = tmp_path / "model.symsvm", path.read_bytes()
    symsvm.save(MODELS["text"]().fit(TEXTS * 3, [group.upper() for group in GROUPS] * 3), file)
    other = file.read_bytes()
    with serving(file, reload=0.01) as client, contextlib.ExitStack() as stack:
        seen, stop, refused = [], threading.Event(), 0
        sample = client.app.state.metrics.registry.get_sample_value

        def replace(data):
            (tmp_path / "new").write_bytes(data)
            (tmp_path / "new").replace(file)

        def reloads(result):
            return sample("symsvm_model_reloads_total", {"result": result})

        def send():
            while not stop.is_set():
                seen.append(client.post("/v1/predict", json={"texts": TEXTS[:3]}))

        threads = [threading.Thread(target=send) for _ in range(4)]
        stack.callback(lambda: [stop.set(), *(thread.join() for thread in threads)])
        for thread in threads:
            thread.start()
        for turn in range(4):
            whole = (good, other)[turn % 2]
            flipped = bytearray(whole)
            flipped[len(whole) * (turn + 1) // 6] ^= 0xFF
            for damaged in (whole[: len(whole) // 3], bytes(flipped), b"", b"\0" * len(whole)):
                replace(damaged)
                refused += 1
                wait_for(lambda: reloads("refused") == refused)  # noqa: B023  # called in this turn only
            replace(whole)
            wait_for(lambda: reloads("replaced") == turn + 1)  # noqa: B023
    lower = GROUPS[:3]
    assert {answer.status_code for answer in seen} == {200}
    labels = {tuple(p["label"] for p in answer.json()["predictions"]) for answer in seen}
    assert labels == {tuple(lower), tuple(group.upper() for group in lower)}
