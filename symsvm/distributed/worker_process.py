"""The main program of a worker process of `ProcessEngine`."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import sys
import threading
from multiprocessing.connection import Client

from symsvm.distributed.process_engine import Objects

__all__ = ["main"]

# Seconds between two heartbeats.
_BEAT = 1.0


def main() -> None:
    """Serve the requests of the process that started this one, until its end closes the standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller
    address, key = ast.literal_eval(sys.stdin.readline()), bytes.fromhex(sys.stdin.readline())
    number = int(sys.stdin.readline())
    threading.Thread(target=_end_with_caller, daemon=True).start()
    sending, objects = threading.Lock(), Objects()
    with contextlib.suppress(OSError, EOFError), Client(address, authkey=key) as connection:
        connection.send(number)

        def send(*message):
            with sending:
                connection.send(message)

        def beat():
            with contextlib.suppress(OSError):
                while not stop.wait(_BEAT):
                    send(None, True, None)

        stop = threading.Event()
        threading.Thread(target=beat, daemon=True).start()
        while True:
            number, *request = connection.recv()
            try:
                result = True, objects.answer(*request)
            except Exception as error:  # the caller raises it
                result = False, error
            try:
                send(number, *result)
            except (TypeError, AttributeError, ValueError) as error:  # what cannot be sent
                send(number, False, RuntimeError(f"{type(result[1]).__name__}: {result[1]} ({error})"))
            del result, request


def _end_with_caller() -> None:
    """End this process when the caller has ended, or closes the pipe."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
