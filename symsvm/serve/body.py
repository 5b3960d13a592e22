"""BodyReader: the body of a request, within limits of bytes and of time."""

import asyncio
import contextlib

from starlette.requests import ClientDisconnect

from symsvm.serve.problem import Problem

__all__ = ["BodyReader", "media_type"]

JSON, LINES = "application/json", "application/x-ndjson"
# A client that sends too much reads the answer only after it has sent: so much more is taken and thrown away.
_DISCARD, _DISCARD_SECONDS = 8, 2.0
_CLOSE = {"connection": "close"}


def media_type(request, known):
    """The media type of the body, one of those that are known."""
    value = request.headers.get("content-type", "")
    kind, *parameters = (part.strip().lower() for part in value.split(";"))
    charsets = [p.partition("=")[2].strip('"') for p in parameters if p.startswith("charset=")]
    if kind not in known or any(charset not in ("utf-8", "utf8") for charset in charsets):
        wanted = " or ".join(known)
        raise Problem(415, "media_type", f"content-type must be {wanted}, in UTF-8.", field="content-type")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "encoding", "content-encoding must be identity: send it as it is.", field="content-encoding")
    return kind


class BodyReader:
    """Reads bodies; counts what all requests together hold of them."""

    def __init__(self, settings):
        self.settings, self.held = settings, 0

    @contextlib.asynccontextmanager
    async def body(self, request):
        """The bytes of the body, which count until the request is answered."""
        if _declared(request) > self.settings.max_body:
            if request.headers.get("expect", "").lower() != "100-continue":
                await self._discard(request)
            raise self._too_large()
        received = bytearray()
        try:
            await self._receive(request, received)
            yield received
        finally:
            self.held -= len(received)

    async def _receive(self, request, received):
        """Fill `received`, within the limits."""
        try:
            async with asyncio.timeout(self.settings.body_timeout):
                async for part in request.stream():
                    received += part
                    self.held += len(part)
                    if len(received) > self.settings.max_body or self.held > self.settings.max_bodies:
                        break
        except TimeoutError:
            message = f"the body must arrive within {self.settings.body_timeout:g} seconds."
            raise Problem(408, "too_slow", message, field="body", headers=_CLOSE) from None
        except ClientDisconnect:
            raise Problem(400, "incomplete", "the connection ended before the body.", field="body") from None
        if len(received) > self.settings.max_body:
            await self._discard(request)
            raise self._too_large()
        if self.held > self.settings.max_bodies:
            message = "the service holds too many bodies: try again."
            raise Problem(503, "busy", message, field="body", headers={"retry-after": "1", **_CLOSE})

    def _too_large(self):
        limit = self.settings.max_body
        return Problem(413, "too_large", f"the body must have at most {limit} bytes.", field="body", headers=_CLOSE)

    async def _discard(self, request):
        """Throw away the rest of the body, up to a limit: then the client can read why."""
        left = _DISCARD * self.settings.max_body
        try:
            async with asyncio.timeout(_DISCARD_SECONDS):
                while left > 0:
                    message = await request.receive()
                    left -= len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return
        except TimeoutError:
            return


def _declared(request):
    """The length that the headers tell, 0 where they tell none."""
    length = request.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else 0
