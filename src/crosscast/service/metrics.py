"""Metrics for Prometheus: requests, latencies, refusals, and each model's errors and age."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from crosscast.service.models import ServiceState

_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics(Collector):
    """Counters of requests, and metrics of the models that are served.

    Parameters
    ----------
    state
        Returns the models that are served now.
    """

    def __init__(self, state: Callable[[], ServiceState]) -> None:
        self._state = state
        registry = self._registry = CollectorRegistry(auto_describe=False)
        self.requests = Counter(
            "crosscast_requests", "Requests by path and status code.", ("path", "code"), registry=registry
        )
        self.seconds = Histogram(
            "crosscast_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ("path",),
            buckets=_BOUNDS_S,
            registry=registry,
        )
        self.refusals = Counter(
            "crosscast_refusals",
            "Requests that were refused before they were read.",
            ("why",),
            registry=registry,
        )
        self.busy = Gauge("crosscast_requests_in_progress", "Requests under way.", registry=registry)
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the models."""
        state, now = self._state(), time.time()
        error = GaugeMetricFamily(
            "crosscast_model_error",
            "Scores on held-out data, of its card.",
            labels=("model", "score"),
        )
        age = GaugeMetricFamily(
            "crosscast_model_age_seconds", "Time since the model was written.", labels=("model",)
        )
        read = GaugeMetricFamily(
            "crosscast_model_read_timestamp_seconds", "When the model was read.", labels=("model",)
        )
        refused = GaugeMetricFamily(
            "crosscast_model_refused", "1 if what is in its folder now could not be taken.", labels=("model",)
        )
        for each in state.models.values():
            for score, value in each.errors.items():
                error.add_metric((each.name, score), value)
            age.add_metric((each.name,), now - each.made_s)
            read.add_metric((each.name,), each.read_s)
            refused.add_metric((each.name,), float(each.refused is not None))
        yield from (error, age, read, refused)

    def describe(self) -> Iterator[Metric]:
        """Describe no metrics: `collect` needs the models."""
        yield from ()

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
