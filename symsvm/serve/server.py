"""Server: uvicorn around the service, from the first request to the last."""

import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading

import uvicorn

from symsvm.serve.app import create_app
from symsvm.serve.protocol import protocol
from symsvm.serve.settings import Settings

__all__ = ["known_by", "run", "server"]

log = logging.getLogger("symsvm.serve")

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def server(app, settings):
    """A uvicorn server of one process with the limits of `settings`."""
    config = uvicorn.Config(
        app,
        http=protocol(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.keep_alive,
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )
    return uvicorn.Server(config)


def run(model_path, *, host="127.0.0.1", port=8000, token=None, hosts=(), **limits):
    """Serve a model file over HTTP until SIGTERM or Ctrl-C; then requests that have begun are answered first.

    Parameters
    ----------
    model_path : a file that `symsvm.load` reads; it is read again when it changes.
    host, port : where to listen; port 0 is any free one.
    token : what `Authorization: Bearer` must say, None for everybody.
    hosts : further names that the service is reached by. With these, or without a token at a loopback address, requests
        to other names than `host`, localhost, 127.0.0.1, ::1 and these are refused: else a web page from elsewhere
        could give its own name this address and ask.
    limits : of `Settings`: max_body, max_rows, reload and so on.
    """
    settings = Settings(token=token, hosts=known_by(host, token, hosts), **limits)
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    app = create_app(model_path, settings)
    listening = _listen(host, port)
    # Else each full collection goes through all that was imported, and requests wait a tenth of a second for it.
    gc.collect()
    gc.freeze()
    host, port = listening.getsockname()[:2]
    if token is None and not ipaddress.ip_address(host).is_loopback:
        log.warning("everybody who reaches %s may use the service: it has no token", host)
    shown = f"[{host}]" if ":" in host else host
    log.info("serving %s at http://%s:%d/, process %d", os.path.basename(model_path), shown, port, os.getpid())
    with listening, _stopping(server(app, settings)) as running:
        running.run(sockets=[listening])
    log.info("stopped")


@contextlib.contextmanager
def _stopping(running):
    """SIGTERM and Ctrl-C stop the server and no more: uvicorn raises them again when it has stopped."""

    def stop(number, frame):
        running.should_exit = True

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM) if main}
    try:
        yield running
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def known_by(host, token, hosts):
    """The names that a service at `host` answers to, empty for all: see `run`.

    >>> known_by("127.0.0.1", None, ["news.example"])
    ('127.0.0.1', 'localhost', '127.0.0.1', '::1', 'news.example')
    >>> known_by("127.0.0.1", "a token", []), known_by("0.0.0.0", None, [])
    ((), ())
    """
    return (host, *_LOOPBACK, *hosts) if hosts or (token is None and _is_loopback(host)) else ()


def _is_loopback(host):
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name
        return False


def _listen(host, port):
    """A socket that listens, or one sentence why there is none."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = os.strerror(error.errno) if (error.errno or 0) > 0 else error.strerror  # of the system, or of a name
        raise OSError(error.errno, f"cannot listen at {host}, port {port} ({reason}): choose another") from None
