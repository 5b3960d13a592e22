"""Engines for tests: one whose workers are in this process and can be lost, and a Dask cluster in this process."""

import contextlib
import itertools
import warnings

import pytest

from symsvm.distributed import WorkerLostError
from symsvm.distributed.host import software


class OneProcess:
    """An engine whose objects are here; after some calls a worker with its objects is lost."""

    def __init__(self, names, lose_after=None):
        self.names, self.calls, self.lose_after, self.made = list(names), itertools.count(1), lose_after, 0

    def workers(self):
        return dict.fromkeys(self.names, 1)

    def spawn(self, worker, factory, *args):
        self.made += 1
        return _Now(lambda: _Actor(self, worker, factory(*args)))

    def lose(self, worker):
        if len(self.names) > 1 and worker in self.names:
            self.names.remove(worker)

    def close(self):
        pass


class _Now:
    def __init__(self, result):
        self.result = result


class _Actor:
    def __init__(self, engine, worker, held):
        self._engine, self.worker, self._held = engine, worker, held

    def call(self, method, *args):
        if next(self._engine.calls) == self._engine.lose_after:
            self._engine.lose(self.worker)
        if self.worker not in self._engine.names:
            return _Now(self._raise)
        result = getattr(self._held, method)(*args)
        return _Now(lambda: result)

    def ready(self):
        return _Now(software)

    def discard(self):
        pass

    def _raise(self):
        raise WorkerLostError("the worker was lost.")


@contextlib.contextmanager
def local_cluster():
    """A client of two Dask workers in this process, which start in no time."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask warns of a port that another cluster has
        with (
            distributed.LocalCluster(**options, host="127.0.0.1", protocol="tcp://") as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
