"""Metrics: what Prometheus asks a service for."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

__all__ = ["Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_METHODS = ("GET", "HEAD", "POST")
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self):
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        name = {"namespace": "symsvm", "registry": registry}
        self.requests = Counter("requests", "Requests answered.", ("route", "method", "status"), **name)
        self.seconds = Histogram("request_seconds", "Time to answer a request.", ("route",), buckets=_SECONDS, **name)
        self.active = Gauge("requests_active", "Requests that are being answered.", **name)
        self.rows = Counter("rows", "Texts or rows predicted.", **name)
        self.batches = Histogram("batch_rows", "Rows predicted together.", buckets=_ROWS, **name)
        self.busy = Histogram("batch_seconds", "Time to predict a batch.", buckets=_SECONDS, **name)
        self.waiting = Gauge("rows_waiting", "Rows that wait for the model.", **name)
        self.reloads = Counter("model_reloads", "Changes of the model file.", ("result",), **name)
        self.stale = Gauge("model_stale", "1 if the model file has changed and could not be used.", **name)
        self.loaded = Gauge("model_loaded_timestamp_seconds", "When the model was loaded.", **name)
        self.model = Info("model", "The model that is served.", **name)
        for result in ("replaced", "refused"):
            self.reloads.labels(result)
        self._known = {}

    def count(self, route, method, status, seconds):
        """Count a request; the route is the pattern, not the path, and odd methods are one: labels stay few."""
        key = route or "none", method if route and method in _METHODS else "other", str(status)
        if key not in self._known:
            self._known[key] = self.requests.labels(*key), self.seconds.labels(key[0])
        requests, histogram = self._known[key]
        requests.inc()
        histogram.observe(seconds)

    def serving(self, digest, description):
        """Say which model is served from now on."""
        self.loaded.set(time.time())
        self.model.info({"digest": digest, "estimator": description["estimator"], "kind": description["kind"]})

    def text(self):
        """All of them in Prometheus' text format, as bytes."""
        return generate_latest(self.registry)
