"""Guard: around every request: the host, the token, the headers, the count, and no traceback."""

import asyncio
import hmac
import logging
import time

from symsvm.serve.problem import Problem, answer

__all__ = ["Guard"]

log = logging.getLogger("symsvm.serve")

# What anybody may see: probes, the page's files and the description of the interface, nothing of the model.
OPEN = frozenset({("GET", path) for path in ("/", "/healthz", "/readyz", "/docs", "/openapi.json")})
ASSETS = "/assets/"
_PIECE = 1 << 16
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

_UNKNOWN = Problem(
    401, "unauthorised", "a bearer token is needed.", field="authorization", headers={"www-authenticate": "Bearer"}
)
_ELSEWHERE = Problem(
    421, "wrong_host", "the service is not known by this name: use its address, or allow the name.", field="host"
)


class Guard:
    """ASGI middleware, the outermost of the service's own."""

    def __init__(self, app, settings, metrics):
        self.app, self.settings, self.metrics = app, settings, metrics
        self._token = None if settings.token is None else settings.token.encode()
        self._hosts = {host.lower() for host in settings.hosts}

    async def __call__(self, scope, receive, send):
        """Answer a request; what goes wrong inside is an error 500 without a word about the inside."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, method = time.perf_counter(), scope["method"]
        scope = {**scope, "method": "GET"} if method == "HEAD" else scope
        reply = _Reply(send, self.settings.body_timeout)
        self.metrics.active.inc()
        try:
            if self._hosts and not self._is_meant(scope):
                await answer(_ELSEWHERE)(scope, receive, reply)
            elif self._token is not None and not self._may(scope):
                await answer(_UNKNOWN)(scope, receive, reply)
            else:
                await self.app(scope, receive, reply)
        except _TooSlow:
            log.warning("a client did not take its answer in time")
        except Exception:  # the log has it; the client is told nothing of the inside
            log.exception("a request to %s failed", getattr(scope.get("route"), "path", "an unknown route"))
            if not reply.status:
                await answer(Problem(500, "internal", "something went wrong inside."))(scope, receive, reply)
        finally:
            self.metrics.active.dec()
            route = getattr(scope.get("route"), "path", None)
            self.metrics.count(route, method, reply.status, time.perf_counter() - started)

    def _is_meant(self, scope):
        """Whether `Host` names this service; a browser always sends it, an old probe may not."""
        return all(_host(value) in self._hosts for name, value in scope["headers"] if name == b"host")

    def _may(self, scope):
        """Whether a request is open to all, or has the token, compared in constant time."""
        path = scope["path"]
        if (scope["method"], path) in OPEN or (scope["method"] == "GET" and path.startswith(ASSETS)):
            return True
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        return hmac.compare_digest(token.strip(), self._token) and kind.lower() == b"bearer"


def _host(value):
    """The name or address in a `Host` header.

    >>> _host(b"LocalHost:8000"), _host(b"[::1]:8000"), _host(b"127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    text = value.decode("latin-1").strip().lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


class _TooSlow(Exception):
    """A client that does not read."""


class _Reply:
    """`send` with the security headers, in pieces that a client must take in time."""

    def __init__(self, send, seconds):
        self.send, self.seconds, self.status = send, seconds, 0

    async def __call__(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            there = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *((n, v) for n, v in HEADERS if n not in there)]
            return await self.send(message)
        body, more = message.get("body", b""), message.get("more_body", False)
        try:
            async with asyncio.timeout(self.seconds):
                while len(body) > _PIECE:
                    await self.send({"type": "http.response.body", "body": body[:_PIECE], "more_body": True})
                    body = body[_PIECE:]
                await self.send({"type": "http.response.body", "body": body, "more_body": more})
        except TimeoutError:
            raise _TooSlow from None
