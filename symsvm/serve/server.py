"""The server: uvicorn with limits on connections and headers, from the first request to an orderly end."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import uvicorn

from symsvm._lib.compat import http_protocol
from symsvm.serve.app import create_app
from symsvm.serve.http_requests import CLOSE, RETRY, RequestError, error_response
from symsvm.serve.middleware import SECURITY_HEADERS
from symsvm.serve.settings import Settings

if TYPE_CHECKING:
    from symsvm._lib.types import Path

__all__ = ["allowed_hosts", "create_server", "limited_protocol", "run"]

log = logging.getLogger("symsvm.serve")

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Signals that stop the service: SIGTERM, Ctrl-C, and Ctrl-Break of Windows.
_STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]
# Connections that the system accepts before the service does.
_BACKLOG = 2048


def run(
    model_path: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    hosts: Sequence[str] = (),
    **limits: Any,
) -> None:
    """Serve a model file over HTTP until SIGTERM or Ctrl-C.

    Requests in progress are answered before the service ends. The file is read again when it changes.

    Parameters
    ----------
    model_path : str or path
        A file that `symsvm.load` reads.
    host : str
        The address to listen at.
    port : int
        The port to listen at. 0 means any free port.
    token : str or None
        The token that `Authorization: Bearer` must carry. None lets everybody in.
    hosts : sequence of str
        Further names that the service is reached by. With `hosts`, or at a loopback address without a token, requests
        are refused unless their `Host` header is `host`, localhost, 127.0.0.1, ::1 or one of these. Otherwise a foreign
        web page could point its own name to this address and read predictions (DNS rebinding).
    **limits : int, float, sequence or None
        Fields of `Settings`: max_body, max_rows, reload and so on.
    """
    settings = Settings(token=token, hosts=allowed_hosts(host, token, hosts), **limits)
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    app = create_app(model_path, settings)
    listening = _listen(host, port)
    # Otherwise each full collection visits all imported modules, and requests wait a tenth of a second for it.
    gc.collect()
    gc.freeze()
    host, port = listening.getsockname()[:2]
    if token is None and not ipaddress.ip_address(host).is_loopback:
        log.warning("the service at %s has no token: everybody who reaches the address can use it", host)
    address = f"[{host}]" if ":" in host else host
    log.info("serving %s at http://%s:%d/, process %d", os.path.basename(model_path), address, port, os.getpid())
    with listening, _stop_on_signals(create_server(app, settings)) as server:
        server.run(sockets=[listening])
    log.info("stopped")


def create_server(app: Any, settings: Settings) -> uvicorn.Server:
    """A uvicorn server of one process with the limits of `settings`."""
    config = uvicorn.Config(
        app,
        http=limited_protocol(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.keep_alive,  # pyright: ignore[reportArgumentType]  # seconds need not be whole
        timeout_graceful_shutdown=settings.shutdown_timeout,  # pyright: ignore[reportArgumentType]
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def _stop_on_signals(server: uvicorn.Server) -> Iterator[uvicorn.Server]:
    """Let signals stop the server; uvicorn raises them again when it has stopped, and then they do nothing more."""

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    in_main = threading.current_thread() is threading.main_thread()  # only there handlers can be set
    before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS if in_main}
    try:
        yield server
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def allowed_hosts(host: str, token: str | None, hosts: Sequence[str]) -> tuple[str, ...]:
    """The values of `Host` that a service at `host` accepts, empty for all: see `run`.

    >>> allowed_hosts("127.0.0.1", None, ["news.example"])
    ('127.0.0.1', 'localhost', '127.0.0.1', '::1', 'news.example')
    >>> allowed_hosts("127.0.0.1", "a token", []), allowed_hosts("0.0.0.0", None, [])
    ((), ())
    """
    return (host, *_LOOPBACK, *hosts) if hosts or (token is None and _is_loopback(host)) else ()


def _is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name
        return False


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; an error is one sentence."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # Errors of name resolution have negative numbers, which `strerror` does not know.
        code = error.errno or 0
        reason = os.strerror(code) if code > 0 else error.strerror
        raise OSError(error.errno, f"cannot listen at {host}, port {port} ({reason}): choose another") from None


# ---- the protocol of connections


def limited_protocol(settings: Settings) -> type[Any]:
    """The class of HTTP/1.1 connections with the limits of `settings`, for uvicorn."""
    max_headers = settings.max_headers
    no_http = _raw_response(RequestError(400, "malformed", "the request is not valid HTTP/1.1.", field="request"))
    too_large = _raw_response(
        RequestError(431, "too_large", f"the headers must have at most {max_headers} bytes.", field="headers")
    )
    upgrade = _raw_response(
        RequestError(400, "upgrade", "a request with a body must not ask for an upgrade.", field="upgrade")
    )
    crowded = error_response(
        RequestError(503, "busy", "too many connections are open: try again.", headers=RETRY | CLOSE)
    )
    crowded.raw_headers.extend(SECURITY_HEADERS)
    base: Any = http_protocol()

    class LimitedProtocol(base):
        """A connection that is closed when headers are too large or too late, or when the client does not read.

        uvicorn itself has no timeout for the first byte, for the end of the headers, for the rest of a body that was
        answered before its end, and after an empty line between two requests.
        """

        _timer, _in_body, _refusal = None, False, no_http
        # Bytes of headers or trailers; bytes of reads that ended neither headers nor a part of a body; and whether the
        # current read did.
        _size, _unfinished, _progress = 0, 0, False

        def _arm(self, seconds):
            self._disarm()
            self._timer = self.loop.call_later(seconds, self.transport.abort)

        def _disarm(self):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def connection_made(self, transport):
            """Wait for the first request."""
            super().connection_made(transport)
            self._arm(settings.header_timeout)

        def connection_lost(self, exc):
            """Cancel the timer."""
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data):
            """Count bytes that finish nothing; after a response, wait for the next request."""
            self._progress = False
            super().data_received(data)
            if self.transport.is_closing():
                return
            self._unfinished = 0 if self._progress else self._unfinished + len(data)
            if self._unfinished > max_headers:
                self._refusal = too_large
                self.send_400_response("")
            elif self._timer is None and not self._in_body and (self.cycle is None or self.cycle.response_complete):
                self._arm(settings.header_timeout)

        def send_400_response(self, msg):
            """Send the error as JSON and close; a response that has begun is not touched."""
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(self._refusal)
            self.transport.close()

        def _count(self, size):
            """Count a part of the headers; the parser stops at an exception, and uvicorn refuses the request."""
            self._size += size
            if self._size > max_headers:
                self._refusal = too_large
                raise ValueError("too large")

        def on_message_begin(self):
            """Wait for the end of the headers; for the first request the timer runs since the connection was made."""
            super().on_message_begin()
            self._size, self._in_body = 0, False
            if self._timer is None:
                self._arm(settings.header_timeout)

        def on_url(self, url):
            """Count the URL as headers."""
            super().on_url(url)
            self._count(len(url))

        def on_header(self, name, value):
            """Count a header, or a trailer of a chunked body."""
            super().on_header(name, value)
            self._count(len(name) + len(value))

        def on_headers_complete(self):
            """Stop the timer: from here on the application has limits of its own."""
            self._disarm()
            # With an upgrade the parser would take the body for the next request.
            if self.parser.should_upgrade() and any(_announces_body(*header) for header in self.headers):
                self._refusal = upgrade
                raise ValueError("upgrade")
            if len(self.connections) > settings.max_connections:
                self.app = crowded  # its response closes the connection
            self._size, self._in_body, self._progress = 0, True, True
            super().on_headers_complete()

        def on_body(self, body):
            """Note a part of the body."""
            self._progress = True
            super().on_body(body)

        def on_message_complete(self):
            """Note the end of the body."""
            self._disarm()
            self._in_body, self._progress = False, True
            super().on_message_complete()

        def on_response_complete(self):
            """After an early response, the rest of the body must arrive in time."""
            super().on_response_complete()
            if self._in_body and not self.transport.is_closing():
                self._arm(settings.body_timeout)

        def timeout_keep_alive_handler(self):
            """Close an idle connection; abort it if the client has not read its last response."""
            if self.transport.get_write_buffer_size():
                self.transport.abort()
            super().timeout_keep_alive_handler()

    return LimitedProtocol


def _announces_body(name: bytes, value: bytes) -> bool:
    """Whether a header says that a body follows."""
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")


def _raw_response(error: RequestError) -> bytes:
    """The bytes of the response to a request that does not reach the application."""
    error.headers |= CLOSE
    response = error_response(error)
    headers = [*response.raw_headers, *SECURITY_HEADERS]
    first = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()
    return b"\r\n".join([first, *(name + b": " + value for name, value in headers), b"", bytes(response.body)])
