"""The end of the service, and changes of its model, under load: every request that arrived is answered."""

import contextlib
import json
import threading

import pytest
from serving import (
    GROUPS,
    LOOPS,
    MODELS,
    OK,
    POST,
    PROBE,
    TEXTS,
    ask,
    busy,
    connect,
    connections,
    read,
    serving,
    wait_for,
)

import symsvm


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
