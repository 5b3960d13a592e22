"""Protocol: uvicorn's HTTP/1.1 with limits for clients that send no end of headers, or nothing at all."""

from http import HTTPStatus

from symsvm._lib.compat import http_protocol
from symsvm.serve.guard import HEADERS
from symsvm.serve.problem import Problem, answer

__all__ = ["protocol"]

_CLOSE = {"connection": "close"}


def protocol(settings):
    """The class of connections with the limits of `settings`."""
    most = settings.max_headers
    no_http = _written(Problem(400, "malformed", "the request is no HTTP/1.1.", field="request"))
    too_large = _written(Problem(431, "too_large", f"headers must have at most {most} bytes.", field="headers"))
    upgrade = _written(
        Problem(400, "upgrade", "a request with a body must not ask for an upgrade: leave it out.", field="upgrade")
    )
    crowded = answer(
        Problem(503, "busy", "too many connections are open: try again.", headers={"retry-after": "1", **_CLOSE})
    )
    crowded.raw_headers.extend(HEADERS)

    class Protocol(http_protocol()):
        """A connection that ends when a request's headers are too many or too late, or when nobody reads the answer.

        uvicorn itself waits for ever for the first byte, for the end of the headers, for the rest of a body that was
        answered before its end, and after a line break between two requests.
        """

        _timer, _in_body, _refusal = None, False, no_http
        # Bytes of headers or trailers; and of reads that brought neither their end nor a part of a body.
        _size, _unended, _brought = 0, 0, False

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
            """Forget the timer."""
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data):
            """Count what has not ended; wait for the next request, if there was one before."""
            self._brought = False
            super().data_received(data)
            if self.transport.is_closing():
                return
            self._unended = 0 if self._brought else self._unended + len(data)
            if self._unended > most:
                self._refuse(too_large)
            elif self._timer is None and not self._in_body and (self.cycle is None or self.cycle.response_complete):
                self._arm(settings.header_timeout)

        def _refuse(self, refusal):
            self._refusal = refusal
            self.send_400_response("")

        def send_400_response(self, msg):
            """Say what is wrong as JSON and close; nothing is written into an answer that has begun."""
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(self._refusal)
            self.transport.close()

        def _count(self, size):
            """Count a part of the headers; the parser ends with what is raised, and uvicorn refuses the request."""
            self._size += size
            if self._size > most:
                self._refusal = too_large
                raise ValueError("too large")

        def on_message_begin(self):
            """Wait for the end of the headers; the first request has waited since the connection was made."""
            super().on_message_begin()
            self._size, self._in_body = 0, False
            if self._timer is None:
                self._arm(settings.header_timeout)

        def on_url(self, url):
            """Count it."""
            super().on_url(url)
            self._count(len(url))

        def on_header(self, name, value):
            """Count it; behind a chunked body these are trailers, which are as few."""
            super().on_header(name, value)
            self._count(len(name) + len(value))

        def on_headers_complete(self):
            """From here on the application has limits of its own."""
            self._disarm()
            # The parser would take the body for the next request.
            if self.parser.should_upgrade() and any(_is_body(*header) for header in self.headers):
                self._refusal = upgrade
                raise ValueError("upgrade")
            if len(self.connections) > settings.max_connections:
                self.app = crowded  # which closes the connection
            self._size, self._in_body, self._brought = 0, True, True
            super().on_headers_complete()

        def on_body(self, body):
            """A part of it."""
            self._brought = True
            super().on_body(body)

        def on_message_complete(self):
            """The body is there."""
            self._disarm()
            self._in_body, self._brought = False, True
            super().on_message_complete()

        def on_response_complete(self):
            """The rest of a body that nobody waits for any more must come soon."""
            super().on_response_complete()
            if self._in_body and not self.transport.is_closing():
                self._arm(settings.body_timeout)

        def timeout_keep_alive_handler(self):
            """An idle connection closes; one whose last answer was not taken is cut."""
            if self.transport.get_write_buffer_size():
                self.transport.abort()
            super().timeout_keep_alive_handler()

    return Protocol


def _is_body(name, value):
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")


def _written(problem):
    """The bytes of an answer to what never comes to the application."""
    problem.headers |= _CLOSE
    response = answer(problem)
    headers = [*response.raw_headers, *HEADERS]
    first = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}".encode()
    return b"\r\n".join([first, *(name + b": " + value for name, value in headers), b"", response.body])
