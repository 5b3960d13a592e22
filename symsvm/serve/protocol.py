"""Protocol: uvicorn's HTTP/1.1 with limits for clients that send no end of headers, or nothing at all."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["protocol"]

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def protocol(settings):
    """The class of connections with the limits of `settings`."""

    class Protocol(HttpToolsProtocol):
        """A connection that ends when a request's headers are too many or too late, or when nobody reads the answer.

        uvicorn itself waits for ever for the first byte, for the end of the headers, and for the rest of a body that
        was answered before its end.
        """

        _timer, _size, _in_body = None, 0, False

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
            """Count what belongs to headers that have not ended."""
            super().data_received(data)
            if self._timer is not None and not self._in_body:
                self._size += len(data)
                if self._size > settings.max_headers and not self.transport.is_closing():
                    self.transport.write(_TOO_LARGE)
                    self.transport.close()

        def on_message_begin(self):
            """Wait for the end of the headers; the first request has waited since the connection was made."""
            super().on_message_begin()
            self._in_body = False
            if self._timer is None:
                self._arm(settings.header_timeout)

        def on_headers_complete(self):
            """From here on the application has limits of its own."""
            self._disarm()
            self._size, self._in_body = 0, True
            super().on_headers_complete()

        def on_message_complete(self):
            """The body is there."""
            self._disarm()
            self._in_body = False
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
