"""Metrics of the service for Prometheus."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = ("GET", "HEAD", "POST")
# Labels of requests without a route, and of other methods.
_NO_ROUTE, _OTHER = "none", "other"
# Upper bounds of the buckets of histograms: seconds, and rows of a batch.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counters, gauges and histograms of one service, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        options: Any = {"namespace": "symsvm", "registry": registry}
        self.requests = Counter("requests", "Requests answered.", ("route", "method", "status"), **options)
        self.seconds = Histogram(
            "request_seconds", "Time to answer a request.", ("route",), buckets=_SECONDS, **options
        )
        self.active = Gauge("requests_active", "Requests in progress.", **options)
        self.rows = Counter("rows", "Texts or rows predicted.", **options)
        self.batch_rows = Histogram("batch_rows", "Rows predicted together.", buckets=_ROWS, **options)
        self.batch_seconds = Histogram("batch_seconds", "Time to predict a batch.", buckets=_SECONDS, **options)
        self.waiting = Gauge("rows_waiting", "Rows that wait for the model.", **options)
        self.reloads = Counter("model_reloads", "Changes of the model file.", ("result",), **options)
        self.stale = Gauge("model_stale", "1 if the model file has changed and was refused.", **options)
        self.loaded = Gauge("model_loaded_timestamp_seconds", "When the model was loaded.", **options)
        self.model = Info("model", "The model that is served.", **options)
        for result in ("replaced", "refused"):
            self.reloads.labels(result)
        self._children: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def count_request(self, route: str | None, method: str, status: int, seconds: float) -> None:
        """Count a request.

        The label `route` is the pattern, not the path, and unusual methods share one label: the number of time series
        stays small whatever clients send.
        """
        key = route or _NO_ROUTE, method if route and method in _METHODS else _OTHER, str(status)
        if key not in self._children:
            self._children[key] = self.requests.labels(*key), self.seconds.labels(key[0])
        requests, histogram = self._children[key]
        requests.inc()
        histogram.observe(seconds)

    def count_refusal(self, status: int) -> None:
        """Count a request that was refused before the application: it has neither a route nor a time."""
        self.requests.labels(_NO_ROUTE, _OTHER, str(status)).inc()

    def set_model(self, digest: str, description: dict[str, Any]) -> None:
        """Record which model is served from now on."""
        self.loaded.set(time.time())
        self.model.info({"digest": digest, "estimator": description["estimator"], "kind": description["kind"]})

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
