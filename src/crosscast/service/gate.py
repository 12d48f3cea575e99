"""The middleware of the service: tokens, metrics, and limits on the size, time and number of requests."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

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
        gauge, of = GaugeMetricFamily, ("model",)
        error = gauge("crosscast_model_error", "Scores on held-out data, of its card.", labels=(*of, "score"))
        age = gauge("crosscast_model_age_seconds", "Time since the model was written.", labels=of)
        read = gauge("crosscast_model_read_timestamp_seconds", "When the model was read.", labels=of)
        about = "1 if what is in its folder now could not be taken."
        refused = gauge("crosscast_model_refused", about, labels=of)
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


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Coroutine[object, None, None]]

OPEN_PATHS = ("/health",)
"""Paths that need no token."""


@dataclass(frozen=True)
class Limits:
    """Limits on the body and the time of a request, and on the number of concurrent requests."""

    body_bytes: int = 1 << 20
    body_s: float = 5.0  # Until the body has arrived
    answer_s: float = 10.0  # Until the answer is complete
    requests: int = 64  # Concurrent; further ones get status 503


@dataclass(eq=False)
class Refusal(Exception):
    """A request that is refused, with its status code and reason."""

    code: int
    why: str  # Label of the metric
    sentence: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Gate:
    """ASGI middleware that authenticates, limits and counts requests.

    Parameters
    ----------
    app
        The application that answers; it receives each body in one message.
    tokens
        Returns the current tokens. A Unix socket needs none, as its file mode controls access.
    metrics
        Where requests are counted.
    limits
        What requests may take.
    paths
        Paths with a metric each; all others are counted as ``other``.
    """

    def __init__(
        self,
        app: App,
        tokens: Callable[[], Sequence[bytes]],
        metrics: Metrics,
        limits: Limits,
        paths: Sequence[str],
    ) -> None:
        self._app, self._tokens, self._metrics, self._limits = app, tokens, metrics, limits
        self._paths, self._busy = frozenset(paths), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, codes = time.perf_counter(), list[int]()

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                codes.append(message["status"])
            await send(message)

        path = scope["path"] if scope["path"] in self._paths else "other"
        self._busy += 1
        self._metrics.busy.inc()
        try:
            await self._answered(scope, receive, send_recorded, codes)
        except Refusal as refusal:
            self._metrics.refusals.labels(refusal.why).inc()
            await _refuse(refusal, send_recorded)
        finally:
            self._busy -= 1
            self._metrics.busy.dec()
            self._metrics.requests.labels(path, str(codes[0] if codes else 499)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - start)

    async def _answered(self, scope: Scope, receive: Receive, send: Send, codes: list[int]) -> None:
        headers = dict(scope["headers"])
        scope["crosscast_trusted"] = self._is_trusted(scope, headers.get(b"authorization", b""))
        if not scope["crosscast_trusted"] and scope["path"] not in OPEN_PATHS:
            bearer = ((b"www-authenticate", b"Bearer"),)
            raise Refusal(401, "token", "expected a bearer token that the service knows", bearer)
        if self._busy > self._limits.requests:
            again = ((b"retry-after", b"1"),)
            raise Refusal(503, "busy", "the service is busy: ask again in a second", again)
        try:
            body = await asyncio.wait_for(self._body(headers, receive), self._limits.body_s)
        except TimeoutError:
            raise Refusal(408, "slow", f"expected a request within {self._limits.body_s:g} s") from None
        is_read = False

        async def receive_body() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            await asyncio.wait_for(self._app(scope, receive_body, send), self._limits.answer_s)
        except TimeoutError:
            if codes:
                raise
            raise Refusal(504, "time", f"no answer within {self._limits.answer_s:g} s") from None

    def _is_trusted(self, scope: Scope, authorization: bytes) -> bool:
        server = scope.get("server")
        if server is not None and server[1] is None:
            # A Unix socket has no port.
            return True
        scheme, _, given = authorization.partition(b" ")
        # All tokens are compared, each in constant time.
        right = [hmac.compare_digest(given.strip(), token) for token in self._tokens()]
        return scheme.lower() == b"bearer" and any(right)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self._limits.body_bytes
        large = Refusal(413, "size", f"expected a request of at most {most:,} bytes")
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > most:
            raise large
        parts, size = list[bytes](), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "gone", "the request ended early")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise large
            if not message.get("more_body"):
                return b"".join(parts)


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"error": refusal.sentence}).encode()
    # The unread rest of the request must not be parsed as the next one.
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
