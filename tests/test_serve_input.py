"""Bad input and hostile clients: the right status, an error that names the field, and a service that keeps running."""

import asyncio
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from serving import MODELS, raw, serving, wait_for

import symsvm
from symsvm.serve import Settings, create_app
from symsvm.serve.metrics import Metrics
from symsvm.serve.middleware import GuardMiddleware
from symsvm.serve.served_model import ServedModel

JSON = {"content-type": "application/json"}
LINES = {"content-type": "application/x-ndjson"}
LIMITS = {"max_body": 20_000, "max_rows": 100, "max_batch": 32, "body_timeout": 0.3, "header_timeout": 0.3}
LIMITS |= {"max_headers": 4096, "keep_alive": 0.3}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "text.symsvm"
    symsvm.save(MODELS["text"](), path)
    with serving(path, **LIMITS) as client:
        client.headers["connection"] = "close"  # an idle one would be closed at about the time of the next request
        yield client


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "numbers.symsvm"
    symsvm.save(MODELS["linear"](), path)
    with serving(path, **LIMITS) as client:
        client.headers["connection"] = "close"  # an idle one would be closed at about the time of the next request
        yield client


@pytest.fixture(autouse=True)
def _goes_on(request, caplog):
    """After each test the service answers, and no traceback was logged."""
    yield
    for name in {"text", "numbers"} & set(request.fixturenames):
        assert request.getfixturevalue(name).get("/healthz").status_code == 200
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]


def check(answer, status, field):
    """Check the status, and that the error names the field and shows no internals."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert error["field"] == field
    assert error["message"].endswith(".")
    assert not any(word in answer.text for word in ("Traceback", "File ", "/symsvm", "pydantic", "numpy", "sklearn"))


DEEP = b'{"post_text": ' + b"[" * 9000 + b"]" * 9000 + b"}"

POSTS = {
    "missing key": (b"{}", 422, "post_text"),
    "wrong type": (b'{"post_text": 3}', 422, "post_text"),
    "null": (b'{"post_text": null}', 422, "post_text"),
    "unknown key": (b'{"post_text": "a", "more": 1}', 422, "more"),
    "no object": (b'["a"]', 422, "body"),
    "empty": (b"", 400, "body"),
    "cut": (b'{"post_text": "a', 400, "body"),
    "two values": (b'{"post_text": "a"} {}', 400, "body"),
    "latin-1": (b'{"post_text": "\xe9"}', 400, "body"),
    "half a surrogate": (b'{"post_text": "\\ud800"}', 400, "body"),
    "a byte order mark": (b'\xef\xbb\xbf{"post_text": "a"}', 400, "body"),
    "a number of many digits": (b'{"post_text": ' + b"1" * 5000 + b"}", 400, "body"),
    "deep": (DEEP, 400, "body"),
    "too large": (b'{"post_text": "' + b"a" * 30_000 + b'"}', 413, "body"),
}


@pytest.mark.parametrize("name", POSTS)
def test_posts(text, name):
    body, status, field = POSTS[name]
    check(text.post("/", content=body, headers=JSON), status, field)


ROW = [1.0, 2.0, 3.0, 4.0]
ROWS = {
    "missing": ({}, 422, "rows"),
    "texts": ({"texts": ["a"]}, 422, "rows"),
    "no rows": ({"rows": []}, 422, "rows"),
    "a number": ({"rows": 3}, 422, "rows"),
    "no matrix": ({"rows": ROW}, 422, "rows[0]"),
    "too few features": ({"rows": [ROW, ROW[:3]]}, 422, "rows[1]"),
    "too many features": ({"rows": [ROW, ROW, [*ROW, 5.0]]}, 422, "rows[2]"),
    "a string": ({"rows": [ROW, [1.0, "2", 3.0, 4.0]]}, 422, "rows[1][1]"),
    "a truth": ({"rows": [[True, 2.0, 3.0, 4.0]]}, 422, "rows[0][0]"),
    "null": ({"rows": [[None, 2.0, 3.0, 4.0]]}, 422, "rows[0][0]"),
    "not a number": ({"rows": [ROW, [1.0, 2.0, float("nan"), 4.0]]}, 422, "rows[1][2]"),
    "infinite": ({"rows": [[float("-inf"), 2.0, 3.0, 4.0]]}, 422, "rows[0][0]"),
    "too many": ({"rows": [ROW] * 101}, 413, "rows"),
    "top": ({"rows": [ROW], "top": 0}, 422, "top"),
    "top is no integer": ({"rows": [ROW], "top": 1.5}, 422, "top"),
    "nested": ({"rows": [[[1.0], 2.0, 3.0, 4.0]]}, 422, "rows[0][0]"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(numbers, name):
    body, status, field = ROWS[name]
    check(numbers.post("/v1/predict", content=json.dumps(body), headers=JSON), status, field)


@pytest.mark.parametrize("digits", ["1e400", "-1e400", "1" * 400])
def test_numbers_that_no_float_holds(numbers, digits):
    body = f'{{"rows": [[1, 2, 3, {digits}]]}}'
    check(numbers.post("/v1/predict", content=body, headers=JSON), 422, "rows[0][3]")


def test_numbers_that_the_model_cannot_take(numbers):
    body = {"rows": [ROW, ROW, [1.7e308, -1.7e308, 1.7e308, 1.7e308]]}
    check(numbers.post("/v1/predict", json=body), 422, "rows[2]")
    check(numbers.post("/v1/explain", json={"row": body["rows"][2]}), 422, "row")
    lines = "\n\n".join(json.dumps({"row": row}) for row in body["rows"])
    check(numbers.post("/v1/predict", content=lines, headers=LINES), 422, "line 5: row")


def test_many_unknown_keys_are_one_problem(numbers):
    body = {"rows": [ROW]} | dict.fromkeys(map(str, range(1500)), 1)
    check(numbers.post("/v1/predict", json=body), 422, "0")


def test_lines(numbers):
    good = json.dumps({"row": ROW})
    for body, status, field in [
        ("", 422, "body"),
        (f"{good}\n\n{good[:-3]}", 400, "line 3"),
        (f'{good}\n{{"row": [1, 2]}}', 422, "line 2: row"),
        (f'{good}\n{{"text": "a"}}', 422, "line 2: row"),
        (f"{good}\n" * 101, 413, "body"),
    ]:
        check(numbers.post("/v1/predict", content=body, headers=LINES), status, field)
    assert numbers.post("/v1/predict", content=f"{good}\r\n\n{good}\r\n", headers=LINES).text.count("\n") == 2


def test_explanations(text, numbers):
    check(text.post("/v1/explain", json={"row": ROW}), 422, "text")
    check(numbers.post("/v1/explain", json={"row": ROW[:2]}), 422, "row")
    check(numbers.post("/v1/explain", json={"row": [*ROW, 1.0]}), 422, "row")
    check(numbers.post("/v1/explain", json={"row": ROW, "terms": -1}), 422, "terms")


def test_a_post_to_a_model_of_numbers(numbers):
    check(numbers.post("/", json={"post_text": "a"}), 422, "post_text")


def test_media_types(text):
    body = b'{"post_text": "a"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", ""):
        check(text.post("/", content=body, headers={"content-type": kind}), 415, "content-type")
    assert text.post("/", content=body, headers={"content-type": "Application/JSON; charset=UTF-8"}).status_code == 200
    check(text.post("/", content=body, headers=JSON | {"content-encoding": "gzip"}), 415, "content-encoding")


def test_routes_and_methods(text):
    check(text.get("/none"), 404, "path")
    check(text.get("/assets/../app.py"), 404, "path")
    check(text.get("/healthz/"), 404, "path")
    for method, path, allowed in [
        ("GET", "/v1/predict", "POST"),
        ("DELETE", "/", "GET, HEAD, POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/v1/model", "GET, HEAD"),
    ]:
        answer = text.request(method, path)
        check(answer, 405, "method")
        assert answer.headers["allow"] == allowed
        assert (text.head(path).status_code == 200) == ("HEAD" in allowed)


# ---- hostile clients


def head(body, *more):
    lines = ["POST / HTTP/1.1", "Host: a", "Content-Type: application/json", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def chunks(*parts):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def test_chunks(text):
    body = chunks(b'{"post_text"', b': "orbit"}') + chunks(b"")
    answer = raw(text, head(body, "Transfer-Encoding: chunked", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_chunks_without_end(text):
    answer = raw(text, head(chunks(*[b"a" * 5000] * 20), "Transfer-Encoding: chunked"))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"field": "body"' in answer


def test_a_length_that_is_too_large_is_refused_before_the_body(text):
    answer = raw(text, head(b"", "Content-Length: 1000000000", "Expect: 100-continue"))
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_slow_body(text):
    answer = raw(text, head(b'{"post', "Content-Length: 100"))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer


def test_slow_headers(text):
    assert raw(text, b"POST / HTTP/1.1\r\nHost: a\r\n") == b""
    assert raw(text, b"") == b""


def test_headers_without_end(text):
    answer = raw(text, [b"GET /healthz HTTP/1.1\r\n", *[b"a: " + b"a" * 1000 + b"\r\n"] * 20])
    assert (
        answer.startswith(b"HTTP/1.1 431 ") or answer == b""
    )  # closed while the client still sends: it may not read the response


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
REFUSED = {
    "headers in one piece": (b"GET /healthz HTTP/1.1\r\nHost: a\r\na: " + b"a" * 5000 + b"\r\n\r\n", 431, "headers"),
    "an address in one piece": (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431, "headers"),
    "trailers": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(b"{}") + b"0\r\n" + b"a: b\r\n" * 5000,
        431,
        "headers",
    ),
    "the extension of a chunk": (
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"2;" + b"a" * 3000, b"a" * 3000]],
        431,
        "headers",
    ),
    "an upgrade with a body": (
        HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
        400,
        "upgrade",
    ),
    "two lengths": (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", 400, "request"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_requests_refused_before_the_application(text, name):
    request, status, field = REFUSED[name]
    answer = raw(text, request, pause=0.02)
    assert answer.count(b"HTTP/1.1 ") == 1
    top, _, body = answer.partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.1 %d " % status)
    assert b"x-content-type-options: nosniff" in top
    assert json.loads(body)["error"]["field"] == field


@pytest.mark.parametrize("between", [b"\r\n", b"POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"])
def test_an_idle_connection_is_closed(text, between):
    """Neither a line break nor a body that was answered before it came keeps it open."""
    answer = raw(text, [b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", between, b"\r\n"], pause=0.05)
    assert answer.startswith(b"HTTP/1.1 200 ")  # and it was closed: otherwise this would time out


def test_an_upgrade_without_a_body_is_ignored(text):
    request = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert raw(text, request).startswith(b"HTTP/1.1 200 ")


def test_an_unread_body(text):
    """The response comes at once; the connection is closed when the rest of the body does not arrive."""
    assert raw(text, b"POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc").startswith(b"HTTP/1.1 404 ")


def test_requests_that_are_not_http(text):
    for request in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"GET \xff HTTP/1.1\r\n\r\n"):
        assert raw(text, request).startswith(b"HTTP/1.1 400 ")


def test_two_answers_on_one_connection(text):
    once = head(b'{"post_text": "orbit"}', "Content-Length: 22")
    assert raw(text, once + once).count(b"HTTP/1.1 200 OK") == 2  # until the idle connection is closed


def test_a_client_that_disconnects(text):
    raw(text, head(b'{"post_text": "orbit"}', "Content-Length: 22", "Connection: close"))
    with socket.create_connection((text.base_url.host, text.base_url.port)) as connection:
        connection.sendall(head(b'{"post', "Content-Length: 22"))
    sample = text.app.state.metrics.registry.get_sample_value
    wait_for(lambda: sample("symsvm_requests_active") == 0)


def test_too_many_rows_wait(text):
    batcher, gate = text.app.state.batcher, threading.Event()
    most = batcher.max_waiting
    with ThreadPoolExecutor(1) as pool:
        batcher.executor.submit(gate.wait)
        found = pool.submit(text.post, "/", json={"post_text": "orbit"})
        wait_for(lambda: batcher.waiting == 1)
        batcher.waiting += most
        answer = text.post("/", json={"post_text": "orbit"})
        batcher.waiting -= most
        gate.set()
        assert found.result().status_code == 200
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["error"]["code"] == "busy"


def test_too_many_bodies(tmp_path):
    path = tmp_path / "text.symsvm"
    symsvm.save(MODELS["text"](), path)
    with serving(path, max_body=10_000, max_bodies=15_000) as client, ThreadPoolExecutor(1) as pool:
        gate, body = threading.Event(), {"post_text": "a" * 9000}
        client.app.state.batcher.executor.submit(gate.wait)
        found = pool.submit(client.post, "/", json=body)
        wait_for(lambda: client.app.state.batcher.waiting == 1)
        answer = client.post("/", json=body)
        check(answer, 503, "body")
        assert answer.headers["retry-after"] == "1"
        gate.set()
        assert found.result().status_code == 200
        assert client.post("/", json=body).status_code == 200  # the bytes are free again


def test_too_many_connections(tmp_path):
    path = tmp_path / "text.symsvm"
    symsvm.save(MODELS["text"](), path)
    with serving(path, max_connections=2) as client:
        assert client.get("/healthz").status_code == 200
        place = client.base_url.host, client.base_url.port
        with socket.create_connection(place), httpx.Client(base_url=client.base_url) as third:
            wait_for(lambda: len(client.server.server_state.connections) == 2)
            answer = third.post("/", json={"post_text": "orbit"})
            check(answer, 503, None)
            assert answer.headers["retry-after"] == "1"
            assert answer.headers["connection"] == "close"
            assert answer.headers["x-content-type-options"] == "nosniff"
            wait_for(lambda: len(client.server.server_state.connections) == 2)  # the third was closed
            assert client.get("/healthz").status_code == 200


def test_a_client_that_does_not_read():
    """The response is dropped when the client does not read a piece in time."""
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a" * 200_000})

    async def send(message):
        sent.append(message)
        if len(sent) > 2:
            await asyncio.sleep(60)

    guard = GuardMiddleware(app, Settings(body_timeout=0.05), Metrics())
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    asyncio.run(guard(scope, None, send))
    assert [len(message.get("body", b"")) for message in sent] == [0, 65536, 65536]


def test_a_service_that_was_not_started(tmp_path):
    """An application without a lifespan refuses requests at once."""
    path = tmp_path / "text.symsvm"
    symsvm.save(MODELS["text"](), path)

    async def ask():
        transport = httpx.ASGITransport(create_app(path))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            return await client.post("/", json={"post_text": "a"}), await client.get("/readyz")

    answer, ready = asyncio.run(ask())
    check(answer, 503, None)
    assert ready.status_code == 503


def test_one_request_of_many_that_cannot_be_answered(numbers):
    """It is predicted in a batch with others, which get their predictions."""
    gate = threading.Event()
    numbers.app.state.batcher.executor.submit(gate.wait)
    rows = [ROW, [1.7e308, -1.7e308, 1.7e308, 1.7e308], ROW, ROW]
    with ThreadPoolExecutor(len(rows)) as pool:
        found = [pool.submit(numbers.post, "/v1/predict", json={"rows": [row]}) for row in rows]
        wait_for(lambda: numbers.app.state.batcher.waiting == len(rows))
        gate.set()
        assert [answer.result().status_code for answer in found] == [200, 422, 200, 200]


def test_an_internal_error_shows_no_details(tmp_path, monkeypatch, caplog):
    path = tmp_path / "text.symsvm"
    symsvm.save(MODELS["text"](), path)
    with serving(path) as client:
        monkeypatch.setattr(ServedModel, "predict", lambda self, inputs: 1 / 0)
        answer = client.post("/", json={"post_text": "a"})
        check(answer, 500, None)
        assert "division" not in answer.text
        assert "ZeroDivisionError" in caplog.text  # the log has it
        caplog.clear()
