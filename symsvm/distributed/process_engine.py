"""Processes of this machine: an engine that needs no other package."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import subprocess
import sys
import threading
import time
import uuid
from multiprocessing.connection import Listener as ProcessListener
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from symsvm._lib.threads import core_count
from symsvm.distributed.engine import ClusterError, StaleObjectError, WorkerLostError
from symsvm.distributed.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ProcessEngine"]

# Seconds for a process to start, and to end, and between two looks at one that has not answered yet.
_START, _END, _POLL = 120.0, 5.0, 0.2


class ProcessEngine:
    """Worker processes on this machine, for data that are larger than memory or for cores that threads leave idle.

    The processes end with `close`, with the `with` block, or with this process. Ctrl-C does not reach them: the
    caller decides what to do.

    Parameters
    ----------
    count : int
        The number of processes.
    threads : int, optional
        The threads of each; by default the cores of this process are divided among them.
    silence : float
        Seconds without a heartbeat after which a worker counts as lost.

    Examples
    --------
    >>> with ProcessEngine(1) as engine:  # doctest: +SKIP
    ...     actor = engine.spawn("process-0", list, [3, 1]).result()
    ...     actor.call("count", 3).result()
    1
    """

    def __init__(self, count: int, *, threads: int | None = None, silence: float = 30.0) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"count must be the number of processes, at least 1, got {count!r}.")
        self.silence = silence
        self.threads = max(1, core_count() // count) if threads is None else threads
        self._processes: dict[str, _Process] = {}
        self._number = itertools.count()
        self.add(count)

    def add(self, count: int = 1) -> None:
        """Start more processes.

        Parameters
        ----------
        count : int
            How many.
        """
        key = secrets.token_bytes(32)
        with ProcessListener(authkey=key) as listener:
            children = [_start(listener.address, key, i) for i in range(count)]
            try:
                connections = {}  # they come in any order
                while len(connections) < count:
                    connection = _accept(listener, children)
                    connections[connection.recv()] = connection
                for i, child in enumerate(children):
                    self._processes[f"process-{next(self._number)}"] = _Process(child, connections[i])
            except BaseException:
                for child in children:
                    child.kill()
                    child.wait()
                raise

    def workers(self) -> dict[str, int]:
        """Return the workers that answer now, and the threads of each.

        Returns
        -------
        dict
            Names and threads.
        """
        found = [name for name, process in self._processes.items() if process.is_alive(self.silence)]
        return dict.fromkeys(found, self.threads)

    def pid(self, worker: str) -> int:
        """Return the number of a worker's process.

        Parameters
        ----------
        worker : str
            The worker.

        Returns
        -------
        int
            Its process id.
        """
        return self._processes[worker].child.pid

    def spawn(self, worker: str, factory: Callable[..., Any], *args: Any) -> Any:
        """Begin to make an object with a worker.

        Parameters
        ----------
        worker : str
            The worker.
        factory : callable
            Makes the object.
        *args : object
            Its arguments.

        Returns
        -------
        Reply
            The actor.
        """
        process = self._processes.get(worker)
        if process is None or not process.is_alive(self.silence):
            raise WorkerLostError(f"the worker {worker} does not answer.")
        token = uuid.uuid4().hex
        reply = process.send(self.silence, "make", token, (token, self.threads, factory, args))
        return _Birth(reply, _ProcessActor(process, worker, token, self.silence))

    def close(self) -> None:
        """End the processes."""
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process.end()
        for process in processes.values():
            process.wait()

    def __enter__(self) -> ProcessEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _start(address: Any, key: bytes, number: int) -> subprocess.Popen:
    """Start a process that connects to this address."""
    # It imports what this process imports, from where it does.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code = "from symsvm.distributed.worker_process import main; main()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment)
    assert child.stdin is not None
    child.stdin.write(f"{address!r}\n{key.hex()}\n{number}\n".encode())
    child.stdin.flush()  # it stays open: its end tells the process that this one has ended
    return child


def _accept(listener: ProcessListener, children: list[subprocess.Popen]) -> Any:
    """Wait for the connection of one of the processes that were started."""
    found: list[Any] = []

    def accept():
        with contextlib.suppress(OSError, EOFError):
            found.append(listener.accept())

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    end = time.monotonic() + _START
    while thread.is_alive() and time.monotonic() < end and all(child.poll() is None for child in children):
        thread.join(_POLL)
    if not found:
        raise ClusterError("a worker process did not start: see what it has written to the standard error stream.")
    return found[0]


class _Process:
    """A process, the thread that reads what it sends, and the replies that have come."""

    def __init__(self, child, connection):
        self.child, self._connection, self._sending = child, connection, threading.Lock()
        self.seen, self._is_open, self._replies, self._number = time.monotonic(), True, {}, itertools.count()
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, name="symsvm-replies", daemon=True)
        self._reader.start()

    def _read(self):
        try:
            while True:
                number, is_result, value = self._connection.recv()
                with self._news:
                    self.seen = time.monotonic()
                    if number in self._replies:  # not a heartbeat, nor what nobody waits for
                        self._replies[number] = is_result, value
                        self._news.notify_all()
        except (OSError, EOFError):
            pass
        with self._news:
            self._is_open = False
            self._news.notify_all()

    def is_alive(self, silence):
        """Whether it is there and was heard lately."""
        return self._is_open and self.child.poll() is None and time.monotonic() - self.seen <= silence

    def send(self, silence, *message):
        """Send a request."""
        number = next(self._number)
        with self._news:
            self._replies[number] = None
        packed = ForkingPickler.dumps((number, *message))
        with contextlib.suppress(OSError), self._sending:  # the reply says that it is lost
            self._connection.send_bytes(packed)
        return _ProcessReply(self, number, silence)

    def take(self, number, silence):
        """Wait for a reply."""
        try:
            with self._news:
                while self._replies[number] is None:
                    if not self.is_alive(silence):
                        raise WorkerLostError(f"the process {self.child.pid} was lost.")
                    self._news.wait(_POLL)
                is_result, value = self._replies[number]
        finally:
            with self._news:
                self._replies.pop(number, None)
        if is_result:
            return value
        raise WorkerLostError(str(value)) if isinstance(value, StaleObjectError) else value

    def end(self):
        """Ask it to end."""
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        with contextlib.suppress(OSError):
            self.child.terminate()

    def wait(self):
        """Wait until it has ended."""
        try:
            self.child.wait(_END)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self._reader.join(_END)
        self._connection.close()


class _ProcessReply:
    """The reply to a request."""

    def __init__(self, process, number, silence):
        self._process, self._number, self._silence = process, number, silence

    def result(self):
        """Wait for the result."""
        return self._process.take(self._number, self._silence)


class _Birth:
    """The reply to `spawn`."""

    def __init__(self, reply, actor):
        self._reply, self._actor = reply, actor

    def result(self):
        """Wait for the actor."""
        self._reply.result()
        return self._actor


class _ProcessActor:
    """An object with a process."""

    def __init__(self, process, worker, token, silence):
        self._process, self.worker, self._token, self._silence = process, worker, token, silence

    def call(self, method, *args):
        """Begin a call of a method."""
        return self._process.send(self._silence, "call", self._token, (method, args))

    def ready(self):
        """Ask what the worker computes with."""
        return self._process.send(self._silence, "ready", self._token, ())

    def discard(self):
        """Let the worker forget the object."""
        self._process.send(self._silence, "discard", self._token, ())


# What a process makes of requests; here beside their senders.
class Objects:
    """The objects of a process, by their tokens."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}

    def answer(self, kind: str, token: str, args: tuple[Any, ...]) -> Any:
        """Do what a request asks.

        Parameters
        ----------
        kind : {"make", "call", "ready", "discard"}
            What to do.
        token : str
            The object.
        args : tuple
            The arguments.

        Returns
        -------
        object
            The result.
        """
        if kind == "make":
            self._hosts[token] = Host(*args)
            return None
        if kind == "discard":
            self._hosts.pop(token, None)
            return None
        if token not in self._hosts:
            raise StaleObjectError("the object is not there.")
        return self._hosts[token].ready() if kind == "ready" else self._hosts[token].call(token, *args)
