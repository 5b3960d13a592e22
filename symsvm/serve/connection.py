"""A connection: HTTP/1.1 with limits on headers, on time and on requests that wait, and with an orderly end."""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from symsvm._lib.compat import http_protocol
from symsvm.serve.http_requests import CLOSE, RETRY, RequestError, error_response
from symsvm.serve.middleware import SECURITY_HEADERS

if TYPE_CHECKING:
    from symsvm.serve.metrics import Metrics
    from symsvm.serve.settings import Settings

__all__ = ["CROWD", "limited_protocol"]

# Bytes that are parsed at once. A request without a body has 20 bytes or more, and each that waits for the responses
# before it takes 2 KB: parsed in whole reads, 40 clients that send requests without reading took 800 MB.
_PART = 1024
# While the service stops, seconds that an idle connection has for a request that is on its way.
_GRACE = 0.3
# Seconds between the end of a timer and its effect, in which the event loop reads from all connections.
_READ = 0.01
# So many times `max_connections` are accepted, to be answered with status 503; more are closed at once.
CROWD = 3


def limited_protocol(settings: Settings, metrics: Metrics, stopping: threading.Event) -> type[Any]:
    """The class of HTTP/1.1 connections with the limits of `settings`, for uvicorn; `stopping` ends keep-alive."""
    max_headers, max_connections = settings.max_headers, settings.max_connections
    grace = min(_GRACE, settings.header_timeout)
    no_http = RequestError(400, "malformed", "the request is not valid HTTP/1.1.", field="request")
    too_large = RequestError(431, "too_large", f"the headers must have at most {max_headers} bytes.", field="headers")
    upgrade = RequestError(400, "upgrade", "a request with a body must not ask for an upgrade.", field="upgrade")
    crowded = error_response(
        RequestError(503, "busy", "too many connections are open: try again.", headers=RETRY | CLOSE)
    )
    crowded.raw_headers.extend(SECURITY_HEADERS)
    base: Any = http_protocol()

    class LimitedProtocol(base):
        """A connection that is closed when headers are too large or too late, or when the client does not read.

        uvicorn itself has no timeout for the first byte, for the end of the headers, for the rest of a body that was
        answered before its end, after an empty line between two requests, and for a client that does not read; it
        parses all requests of a read at once, closes a connection whose client has closed its own side, and drops
        requests that it has not yet read when it stops.
        """

        # Timers of what must arrive, and of what the client must read.
        _timer, _stall = None, None
        # The request that is being answered.
        _running = None
        # Whether the parser is in a body, bytes that are left of it, and whether no request will follow.
        _in_body, _left, _last = False, 0, False
        # Why the parser refuses a request, and whether that is to be sent after the responses before it.
        _refusal, _refused = no_http, False
        # Bytes of headers or trailers; bytes of parts that ended neither headers nor a part of a body; and whether the
        # current part did.
        _size, _unfinished, _progress = 0, 0, False
        # Whether the connection was one too many, and whether reading goes on when all received bytes are parsed.
        _surplus, _resumes = False, False

        def _arm(self, seconds):
            self._disarm()
            self._timer = self.loop.call_later(seconds, self._expire, seconds)

        def _disarm(self):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _expire(self, seconds):
            """Read what arrived while the event loop was busy: uvloop runs timers first."""
            self._timer = self.loop.call_later(_READ, self._give_up, seconds)

        def _give_up(self, seconds):
            """Abort, but not while a response is due: the next headers may be late because reading has paused."""
            self._timer = None
            if self._is_idle():
                self.transport.abort()
            else:
                self._arm(seconds)

        def _is_idle(self):
            return self.cycle is None or self.cycle.response_complete

        # ---- the connection

        def connection_made(self, transport):
            """Wait for the first request."""
            super().connection_made(transport)
            self._received = bytearray()
            self._resume, self.flow.resume_reading = self.flow.resume_reading, self._resume_reading
            self._surplus = len(self.connections) > max_connections
            if len(self.connections) > CROWD * max_connections:
                transport.abort()
            else:
                self._arm(grace if stopping.is_set() else settings.header_timeout)

        def connection_lost(self, exc):
            """Cancel the timers; what is still to be sent is dropped."""
            self._disarm()
            self._received.clear()
            if self._stall is not None:
                self._stall.cancel()
            if self._running is not None:  # uvicorn marks only the newest request
                self._running.disconnected = not self._running.response_complete
            super().connection_lost(exc)

        def eof_received(self):
            """Keep the connection of a client that has closed its own side until its requests are answered."""
            if self._in_body and self.pipeline:
                self.pipeline.popleft()  # the newest request, which will not be complete
            elif self._in_body or self._is_idle():
                return super().eof_received()
            self._last = True
            return True

        def shutdown(self):
            """Answer the requests that have arrived, then close."""
            if self._is_idle():
                self._arm(grace)
            else:
                self._close_after_last()

        def _close_after_last(self):
            """While the service stops, let the response to the last request that has arrived close the connection."""
            if stopping.is_set() and not self._received and not self._is_idle():
                self.cycle.keep_alive = False

        # ---- reading

        def data_received(self, data):
            """Parse what was received."""
            self._received += data
            self._parse()

        def _parse(self):
            """Parse part by part, until a request waits for the responses before it."""
            while self._received and not (self.pipeline or self._last or self.transport.is_closing()):
                size = max(_PART, self._left)
                part = bytes(self._received[:size])
                del self._received[:size]
                self._parse_part(part)
            if self._last:
                self._received.clear()
            elif self._received:
                self.flow.pause_reading()
            elif self._resumes:
                self._resumes = False
                self._resume()
            self._close_after_last()

        def _parse_part(self, part):
            """Count bytes that finish nothing; after a response, wait for the next request."""
            self._progress = False
            super().data_received(part)
            if self._last or self.transport.is_closing():
                return
            self._unfinished = 0 if self._progress else self._unfinished + len(part)
            if self._unfinished > max_headers:
                self._refusal = too_large
                self.send_400_response("")
            elif self._timer is None and not self._in_body and self._is_idle():
                self._arm(settings.header_timeout)

        def _resume_reading(self):
            """Read on when all received bytes are parsed."""
            if self._received:
                self._resumes = True
            else:
                self._resume()

        def send_400_response(self, msg):
            """Send the error as JSON, after the responses to the requests before it, and close."""
            if self._in_body and self.pipeline:
                self.pipeline.popleft()  # the newest request, which is the one that is refused
            elif self._in_body or self._is_idle():
                if self._is_idle() or not self.cycle.response_started:
                    self._refuse()
                self.transport.close()
                self._limit_writing()
                return
            self._last = self._refused = True

        def _refuse(self):
            metrics.count_refusal(self._refusal.status)
            self.transport.write(_raw_response(self._refusal))

        def _count(self, size):
            """Count a part of the headers; the parser stops at an exception, and uvicorn refuses the request."""
            self._size += size
            if self._size > max_headers:
                self._refusal = too_large
                raise ValueError("too large")

        def on_message_begin(self):
            """Wait for the end of the headers; for the first request the timer runs since the connection was made."""
            super().on_message_begin()
            self._size, self._in_body, self._left = 0, False, 0
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
            upgrades = self.parser.should_upgrade()
            if upgrades and any(_announces_body(*header) for header in self.headers):
                self._refusal = upgrade
                raise ValueError("upgrade")
            self._surplus = self._surplus and len(self.connections) > max_connections
            if self._surplus:
                self.app = crowded  # its response closes the connection
                metrics.count_refusal(crowded.status_code)
            left = max((int(value) for name, value in self.headers if name == b"content-length"), default=0)
            super().on_headers_complete()
            if not self.pipeline:
                self._running = self.cycle
            if upgrades:
                self.cycle.keep_alive = False  # uvicorn drops what follows in the same part
            self._size, self._in_body, self._progress, self._left = 0, True, True, left

        def on_body(self, body):
            """Note a part of the body."""
            self._progress = True
            self._left = max(0, self._left - len(body))
            super().on_body(body)

        def on_message_complete(self):
            """Note the end of the body."""
            self._disarm()
            self._in_body, self._progress, self._left = False, True, 0
            super().on_message_complete()

        # ---- writing

        def on_response_complete(self):
            """Go on with the next request; after an early response, the rest of the body must arrive in time."""
            if self._last and not self.pipeline and not self.transport.is_closing():
                if self._refused:
                    self._refuse()
                self.transport.close()
            if self.pipeline:
                self._running = self.pipeline[-1][0]
            super().on_response_complete()
            if self.transport.is_closing():
                self._limit_writing()
                return
            if self._in_body and self.cycle.response_complete:
                self._arm(settings.body_timeout)
            if self._received and not self.pipeline:
                self.loop.call_soon(self._parse)

        def pause_writing(self):
            """Wait for the client to read."""
            super().pause_writing()
            self._limit_writing()

        def resume_writing(self):
            """Go on; if the connection is to be closed, the client must read the rest in time too."""
            super().resume_writing()
            if self._stall is not None and not self.transport.is_closing():
                self._stall.cancel()
                self._stall = None

        def _limit_writing(self):
            """Abort the connection if the client does not read in time."""
            if self._stall is None and self.transport.get_write_buffer_size():
                self._stall = self.loop.call_later(settings.body_timeout, self.transport.abort)

        def timeout_keep_alive_handler(self):
            """Close an idle connection, unless a request arrived while the event loop was busy."""
            self.timeout_keep_alive_task = self.loop.call_later(_READ, self._close_idle)

        def _close_idle(self):
            """Close; abort if the client has not read its last response."""
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
