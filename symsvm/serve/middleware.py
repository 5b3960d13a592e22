"""ASGI middleware around every request: host and token, security headers, metrics, and errors without details."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from typing import TYPE_CHECKING

from symsvm.serve.http_requests import CLOSE, RETRY, RequestError, error_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from symsvm.serve.metrics import Metrics
    from symsvm.serve.settings import Settings

__all__ = ["ASSETS", "OPEN_ROUTES", "SECURITY_HEADERS", "GuardMiddleware"]

log = logging.getLogger("symsvm.serve")

# Routes that need no token: probes, the pages with their assets, and the OpenAPI document. They show nothing of the
# model but its number of features and the digest of its file.
OPEN_ROUTES = frozenset({("GET", path) for path in ("/", "/healthz", "/readyz", "/docs", "/openapi.json")})
ASSETS = "/assets/"
# Bytes of a response that are sent at once; the timeout of a slow client holds for all of them.
_PIECE = 1 << 16
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]

_UNAUTHORISED = RequestError(
    401,
    "unauthorised",
    "a valid bearer token is required.",
    field="authorization",
    headers={"www-authenticate": "Bearer"},
)
_STOPPING = RequestError(503, "stopping", "the service is stopping.", headers=RETRY | CLOSE)
_WRONG_HOST = RequestError(
    421,
    "wrong_host",
    "the Host header does not name this service: use its address, or allow the name.",
    field="host",
)


class GuardMiddleware:
    """The outermost middleware of the service."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self.metrics, self.timeout = app, metrics, settings.body_timeout
        self._token = None if settings.token is None else settings.token.encode()
        self._hosts = {host.lower() for host in settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; an exception inside becomes status 500 without details."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, method = time.perf_counter(), scope["method"]
        scope = {**scope, "method": "GET"} if method == "HEAD" else scope
        sender = _ResponseSender(send, self.timeout)
        self.metrics.active.inc()
        try:
            if self._hosts and not self._is_known_host(scope):
                await error_response(_WRONG_HOST)(scope, receive, sender)
            elif self._token is not None and not self._is_authorised(scope, self._token):
                await error_response(_UNAUTHORISED)(scope, receive, sender)
            else:
                await self.app(scope, receive, sender)
        except _ClientTooSlow:
            log.warning("a client did not read its response within %g s: the response was dropped", self.timeout)
        except asyncio.CancelledError:  # uvicorn cancels what takes longer than `shutdown_timeout`
            log.warning("a request was not answered before the service stopped")
            if not sender.status:
                await error_response(_STOPPING)(scope, receive, sender)
        except Exception:  # the details go to the log only
            log.exception("a request to %s failed", getattr(scope.get("route"), "path", "an unknown route"))
            if not sender.status:
                error = RequestError(500, "internal", "an internal error occurred.")
                await error_response(error)(scope, receive, sender)
        finally:
            self.metrics.active.dec()
            route = getattr(scope.get("route"), "path", None)
            self.metrics.count_request(route, method, sender.status, time.perf_counter() - started)

    def _is_known_host(self, scope: Scope) -> bool:
        """Whether every `Host` header names this service; browsers always send one, HTTP/1.0 clients may not."""
        return all(_host(value) in self._hosts for name, value in scope["headers"] if name == b"host")

    def _is_authorised(self, scope: Scope, expected: bytes) -> bool:
        """Whether a request needs no token, or carries it; tokens are compared in constant time."""
        method, path = scope["method"], scope["path"]
        if (method, path) in OPEN_ROUTES or (method == "GET" and path.startswith(ASSETS)):
            return True
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (values[0] if len(values) == 1 else b"").partition(b" ")
        return hmac.compare_digest(token.strip(), expected) and scheme.lower() == b"bearer"


def _host(value: bytes) -> str:
    """The name or address in a `Host` header.

    >>> _host(b"LocalHost:8000"), _host(b"[::1]:8000"), _host(b"127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    text = value.decode("latin-1").strip().lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


class _ClientTooSlow(Exception):
    """The client did not read its response in time."""


class _ResponseSender:
    """ASGI `send` that adds the security headers and sends the body in pieces, with a timeout."""

    def __init__(self, send: Send, timeout: float) -> None:
        self.send, self.timeout, self.status = send, timeout, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name for name, _ in message["headers"]}
            more = [(name, value) for name, value in SECURITY_HEADERS if name not in present]
            message["headers"] = [*message["headers"], *more]
            return await self.send(message)
        body, more_body = message.get("body", b""), message.get("more_body", False)
        try:
            async with asyncio.timeout(self.timeout):
                while len(body) > _PIECE:
                    await self.send({"type": "http.response.body", "body": body[:_PIECE], "more_body": True})
                    body = body[_PIECE:]
                await self.send({"type": "http.response.body", "body": body, "more_body": more_body})
        except TimeoutError:
            raise _ClientTooSlow from None
