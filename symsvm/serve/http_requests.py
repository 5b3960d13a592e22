"""Reading of requests: media type, body and JSON are checked; what is wrong becomes a status and a JSON error."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi.responses import Response
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    from fastapi.requests import Request

    from symsvm.serve.settings import Settings

__all__ = [
    "CLOSE",
    "JSON",
    "NDJSON",
    "RETRY",
    "BodyReader",
    "ProblemBody",
    "RequestError",
    "error_response",
    "media_type",
    "validate_json",
]

JSON, NDJSON = "application/json", "application/x-ndjson"
# Headers of errors after which the connection is closed, and of those that pass.
CLOSE, RETRY = {"connection": "close"}, {"retry-after": "1"}

# A client that sends too much reads the response only after it has sent everything. The service therefore reads and
# discards up to this many times `max_body`, for at most so many seconds.
_DISCARD, _DISCARD_SECONDS = 8, 2.0
# A body of at most `max_body` over this is small: it is read even when large ones use up `max_bodies`. Otherwise a few
# clients that send large bodies slowly would keep out all others.
_SMALL = 64
# Characters of the request that an error message repeats.
_QUOTED = 200

Schema = TypeVar("Schema", bound=BaseModel)


# ---- errors


class Error(BaseModel):
    """What is wrong with a request."""

    code: str = Field(description="the kind of error, for programs", examples=["missing"])
    field: str | None = Field(
        description="the part of the request that is wrong, null for the whole", examples=["rows[3][1]"]
    )
    message: str = Field(
        description="what is wrong and what to do, in one sentence", examples=["rows[3][1] must be a finite number."]
    )


class ProblemBody(BaseModel):
    """The body of every error response."""

    error: Error


class RequestError(Exception):
    """A request that cannot be answered: the status, and the code, message and field of its JSON error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field
        self.headers = dict(headers or {})


def error_response(error: RequestError) -> Response:
    """The response for an error.

    >>> error_response(RequestError(422, "missing", "rows is missing.", field="rows")).body
    b'{"error": {"code": "missing", "field": "rows", "message": "rows is missing."}}'
    """
    body = json.dumps({"error": {"code": error.code, "field": error.field, "message": error.message}})
    return Response(body, error.status, error.headers, media_type=JSON)


# ---- bodies


def media_type(request: Request, known: tuple[str, ...]) -> str:
    """The media type of a body, which must be one of `known`, in UTF-8 and not compressed."""
    value = request.headers.get("content-type", "")
    kind, *parameters = (part.strip().lower() for part in value.split(";"))
    charsets = [p.partition("=")[2].strip('"') for p in parameters if p.startswith("charset=")]
    if kind not in known or any(charset not in ("utf-8", "utf8") for charset in charsets):
        message = f"content-type must be {' or '.join(known)}, in UTF-8."
        raise RequestError(415, "media_type", message, field="content-type")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        message = "content-encoding must be identity: send the body uncompressed."
        raise RequestError(415, "encoding", message, field="content-encoding")
    return kind


class BodyReader:
    """Reads the bodies of requests within limits of size and time.

    Attributes
    ----------
    buffered : int
        Bytes of the bodies of all requests in progress.
    """

    def __init__(self, settings: Settings) -> None:
        assert settings.max_bodies is not None
        self.max_body, self.max_bodies, self.timeout = settings.max_body, settings.max_bodies, settings.body_timeout
        self.buffered = 0

    @contextlib.asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytearray]:
        """The bytes of a body; they count as buffered until the context ends."""
        if _content_length(request) > self.max_body:
            if request.headers.get("expect", "").lower() != "100-continue":
                await self._discard(request)
            raise self._too_large()
        received = bytearray()
        try:
            await self._receive(request, received)
            yield received
        finally:
            self.buffered -= len(received)

    async def _receive(self, request: Request, received: bytearray) -> None:
        """Append the body to `received`, within the limits."""
        try:
            async with asyncio.timeout(self.timeout):
                async for part in request.stream():
                    received += part
                    self.buffered += len(part)
                    if len(received) > self.max_body or self._is_too_much(received):
                        break
        except TimeoutError:
            message = f"the body must arrive within {self.timeout:g} seconds."
            raise RequestError(408, "too_slow", message, field="body", headers=CLOSE) from None
        except ClientDisconnect:
            message = "the connection ended before the end of the body."
            raise RequestError(400, "incomplete", message, field="body") from None
        if len(received) > self.max_body:
            await self._discard(request)
            raise self._too_large()
        if self._is_too_much(received):
            message = "the service is busy with other large requests: try again."
            raise RequestError(503, "busy", message, field="body", headers=RETRY | CLOSE)

    def _is_too_much(self, received: bytearray) -> bool:
        """Whether a body that is not small exceeds the total of all bodies."""
        return self.buffered > self.max_bodies and len(received) > self.max_body // _SMALL

    def _too_large(self) -> RequestError:
        message = f"the body must have at most {self.max_body} bytes."
        return RequestError(413, "too_large", message, field="body", headers=CLOSE)

    async def _discard(self, request: Request) -> None:
        """Read and discard the rest of a body, up to a limit, so that the client can read the error."""
        left = _DISCARD * self.max_body
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while left > 0:
                    message = await request.receive()
                    left -= len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return


def _content_length(request: Request) -> int:
    """The length in the headers, 0 where there is none."""
    length = request.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else 0


# ---- JSON


def validate_json(schema: type[Schema], data: bytes | bytearray, *, line: int | None = None) -> Schema:
    """Parse JSON and check it against a schema; `line` is its number in a body of several lines."""
    prefix = "" if line is None else f"line {line}: "
    try:
        parsed = schema.model_validate_json(data)
    except ValidationError as error:
        found = dict(error.errors(include_url=False, include_input=False)[0])
    else:
        if not parsed.model_extra:
            return parsed
        found = {"type": "extra", "loc": (next(iter(parsed.model_extra)),)}
    # Raised here, the error does not keep pydantic's, which holds the whole input as Python objects.
    raise _request_error(found, prefix)


def _request_error(found: dict[str, Any], prefix: str) -> RequestError:
    """The error for the first thing that pydantic finds wrong."""
    kind, location, context = found["type"], found["loc"], found.get("ctx", {})
    if kind == "json_invalid":
        place = prefix.removesuffix(": ")
        reason = " ".join(str(context.get("error", "")).split())[:_QUOTED]
        message = f"{place or 'the body'} is not valid JSON: {reason}."
        return RequestError(400, "malformed", message, field=place or "body")
    name = prefix + (_field_name(location) or "body")
    if kind in ("too_long", "too_short") and location in (("rows",), ("texts",)):
        status, code = (413, "too_many") if kind == "too_long" else (422, "too_few")
        most, length = context.get("max_length"), context.get("actual_length")
        wanted = (
            f"at most {most} entries, got {length}: send them in several requests" if most else "at least one entry"
        )
        return RequestError(status, code, f"{name} must have {wanted}.", field=name)
    code, sentence = _SENTENCES.get(kind, ("invalid", "{name} does not match the schema."))
    sentence = sentence.format(
        name=name,
        wanted=context.get("min_length", context.get("max_length")),
        found=context.get("actual_length"),
        least=context.get("ge"),
        most=context.get("le"),
    )
    return RequestError(422, code, sentence, field=name)


def _field_name(location: tuple[int | str, ...]) -> str:
    """The name of a place in a JSON document.

    >>> _field_name(("rows", 3, 1))
    'rows[3][1]'
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts)[:_QUOTED].removeprefix(".")


# The code and the message for each kind of error that pydantic reports.
_SENTENCES = {
    "missing": ("missing", "{name} is missing."),
    "extra": ("unknown", "{name} is not a known key: leave it out."),
    "finite_number": ("not_finite", "{name} must be a finite number."),
    "float_type": ("wrong_type", "{name} must be a number."),
    "int_type": ("wrong_type", "{name} must be an integer."),
    "int_from_float": ("wrong_type", "{name} must be an integer."),
    "string_type": ("wrong_type", "{name} must be a string."),
    "list_type": ("wrong_type", "{name} must be an array."),
    "model_type": ("wrong_type", "{name} must be an object."),
    "model_attributes_type": ("wrong_type", "{name} must be an object."),
    "too_short": ("wrong_length", "{name} must have {wanted} numbers, got {found}."),
    "too_long": ("wrong_length", "{name} must have {wanted} numbers, got {found}."),
    "greater_than_equal": ("out_of_range", "{name} must be at least {least}."),
    "less_than_equal": ("out_of_range", "{name} must be at most {most}."),
}
