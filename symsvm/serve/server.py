"""The server: uvicorn with limits on connections and headers, from the first request to an orderly end."""

from __future__ import annotations

import asyncio
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
from typing import TYPE_CHECKING, Any

import uvicorn

try:
    import resource
except ImportError:  # Windows
    resource = None

from symsvm.serve.app import create_app
from symsvm.serve.connection import CROWD, limited_protocol
from symsvm.serve.settings import Settings

if TYPE_CHECKING:
    from symsvm._lib.types import Path

__all__ = ["allow_open_files", "allowed_hosts", "create_server", "run"]

log = logging.getLogger("symsvm.serve")

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Signals that stop the service: SIGTERM, Ctrl-C, and Ctrl-Break of Windows.
_STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]
# Connections that the system accepts before the service does.
_BACKLOG = 2048
# Open files of the process other than connections: libraries, the log, the model file, the event loop.
_OWN_FILES = 64


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
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it has a warning for each request that is not HTTP
    allow_open_files(settings.max_connections)
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
    stopping = threading.Event()
    config = uvicorn.Config(
        app,
        http=limited_protocol(settings, app.state.metrics, stopping),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.keep_alive,  # pyright: ignore[reportArgumentType]  # seconds need not be whole
        timeout_graceful_shutdown=settings.shutdown_timeout,  # pyright: ignore[reportArgumentType]
    )
    return _Server(config, stopping)


class _Server(uvicorn.Server):
    """A server that answers, before it ends, the requests on all connections that the system has accepted.

    uvicorn itself closes the listening socket while connections wait to be accepted, and their clients lose what they
    have sent by then.
    """

    def __init__(self, config: uvicorn.Config, stopping: threading.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept the connections that wait, accept no more, and end when all requests are answered."""
        self._stopping.set()
        waiting: list[socket.socket] = []
        for listening in sockets or ():
            with contextlib.suppress(OSError):  # none waits, or there are too many open files
                while True:
                    waiting.append(listening.accept()[0])
        for server in self.servers:  # at once: what arrives in between is lost
            server.close()
        loop = asyncio.get_running_loop()
        for connection in waiting:
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # the client has gone
                await loop.connect_accepted_socket(self._create_protocol, connection)
        await super().shutdown(sockets)

    def _create_protocol(self) -> asyncio.Protocol:
        protocol: Any = self.config.http_protocol_class
        return protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


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


def allow_open_files(max_connections: int) -> None:
    """Raise the process's limit of open files so that it suffices for all connections; warn where it cannot."""
    if resource is None:
        return
    kind, needed = resource.RLIMIT_NOFILE, CROWD * max_connections + _OWN_FILES
    soft, hard = resource.getrlimit(kind)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < needed:
        soft = needed if hard == unlimited else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):  # the system may have a limit of its own
            resource.setrlimit(kind, (soft, hard))
        soft = resource.getrlimit(kind)[0]
    if soft != unlimited and soft < max_connections + _OWN_FILES:
        sentence = (
            "max_connections is %d, but the system allows %d open files: raise that limit, or set a smaller number"
        )
        log.warning(sentence, max_connections, soft)


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
