"""The service as an ASGI application: paths and answers, behind tokens, metrics and limits."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.exceptions import HTTPException

from crosscast.data.fields import STRICT_JSON
from crosscast.errors import CrosscastError, InputError
from crosscast.service.models import Served, ServiceState, UnknownName
from crosscast.service.questions import QUESTIONS, Endpoint

_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics(Collector):
    """Counters of requests, and metrics of the models that are served, which `state` returns."""

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
    """ASGI middleware that authenticates, limits and counts requests, of which `app` gets bodies whole.

    A Unix socket needs no token, as its file mode controls access. Paths other than `paths` are counted
    together.
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


LOG = logging.getLogger("crosscast.service")

_THREADS = 2
_CACHED, _CACHED_BYTES = 1024, 1 << 16
_PATHS = (
    *(each.path for each in QUESTIONS),
    "/v1/models",
    "/v1/profiles",
    "/health",
    "/metrics",
    "/openapi.json",
)


class Answers:
    """Answers of the models, computed in threads and cached by request, least recently used evicted first.

    At most `most` questions wait for a thread.
    """

    def __init__(self, served: Served, most: int) -> None:
        self._served, self._most, self._waiting = served, most, 0
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="answers")
        self._cache: OrderedDict[tuple[int, str, bytes], bytes] = OrderedDict()

    async def answer(self, question: Endpoint, body: bytes) -> tuple[int, bytes]:
        """Return the status code and the JSON of the answer to a request."""
        state = self._served.state
        key = state.generation, question.path, body
        with self._lock:
            if (cached := self._cache.get(key)) is not None:
                self._cache.move_to_end(key)
                return 200, cached
            if self._waiting >= self._most:
                return 503, _error("the service is busy: ask again in a second")
            self._waiting += 1
        future = self._threads.submit(_answered, state, question, body)
        # Called when the thread is done, which may be after the client has disconnected.
        future.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.wrap_future(future)

    def _done(self, key: tuple[int, str, bytes], done: Future[tuple[int, bytes]]) -> None:
        with self._lock:
            self._waiting -= 1
            if done.cancelled() or done.exception() is not None:
                return
            code, content = done.result()
            if code == 200 and len(content) + len(key[2]) <= _CACHED_BYTES:
                self._cache[key] = content
                if len(self._cache) > _CACHED:
                    self._cache.popitem(last=False)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _answered(state: ServiceState, question: Endpoint, body: bytes) -> tuple[int, bytes]:
    try:
        request = STRICT_JSON.decode(body.decode())
    except (ValueError, RecursionError) as error:
        return 400, _error(f"expected a JSON object ({error})")
    try:
        return 200, json.dumps(question.answered(state, request), allow_nan=False).encode()
    except UnknownName as error:
        return 404, _error(str(error))
    except InputError as error:
        return 422, _error(str(error))
    except CrosscastError:
        LOG.exception("%s could not be answered", question.path)
        return 500, _error("this could not be answered; the service's log says why")


def _error(sentence: str) -> bytes:
    return json.dumps({"error": sentence}).encode()


def application(served: Served, tokens: Callable[[], Sequence[bytes]], limits: Limits | None = None) -> App:
    """Return the ASGI application that answers from `served`; clients over TCP need one of `tokens`."""
    limits = limits or Limits()
    metrics = Metrics(lambda: served.state)
    answers = Answers(served, limits.requests)

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        yield
        answers.close()

    api = FastAPI(
        title="Crosscast",
        description="Forecasts of run time and power, choices under power caps, and co-location.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        lifespan=alive,
    )
    for question in QUESTIONS:
        api.post(
            question.path,
            summary=question.about,
            openapi_extra={
                "requestBody": {"required": True, "content": {"application/json": _body(question)}}
            },
            responses=_RESPONSES,
            response_class=Response,
        )(_endpoint(answers, question))

    @api.get("/v1/models", summary="The models that are served, and their scores on held-out data.")
    async def models() -> dict[str, object]:
        return {
            "models": [
                {**each.facts(), "question": each.question, "errors": each.errors}
                for each in served.state.models.values()
            ]
        }

    @api.get("/v1/profiles", summary="The names of profiles, isolated runs and sample runs.")
    async def profiles() -> dict[str, object]:
        samples = [
            {"name": name, "model": each.name}
            for each in served.state.models.values()
            for name in each.samples
        ]
        return {**served.state.catalogue.to_dict(), "samples": samples}

    @api.get("/health", summary="Whether the service answers, and what it could not read again.")
    async def health(request: Request) -> dict[str, object]:
        if not request.scope.get("crosscast_trusted"):
            return {"ready": True}
        state = served.state
        refused = {each.name: each.refused for each in state.models.values() if each.refused}
        others = {"profiles": state.refused, "token_file": served.tokens_refused}
        return {
            "ready": True,
            "models": {
                each.name: "as in its folder" if each.refused is None else "an earlier one"
                for each in state.models.values()
            },
            "refused": refused | {name: reason for name, reason in others.items() if reason},
        }

    @api.get("/metrics", summary="For Prometheus.", response_class=Response)
    async def told() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @api.exception_handler(HTTPException)
    async def wrong(_: Request, error: HTTPException) -> Response:
        content = _error(str(error.detail))
        return Response(content, error.status_code, error.headers, "application/json")

    return Gate(api, tokens, metrics, limits, _PATHS)


def _endpoint(answers: Answers, question: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        code, content = await answers.answer(question, await request.body())
        return Response(content, code, media_type="application/json")

    endpoint.__name__ = question.path.rpartition("/")[2]
    return endpoint


def _body(question: Endpoint) -> dict[str, object]:
    """Document a request: its schema, and an example."""
    _, parts = msgspec.json.schema_components((question.request_type,))
    # Requests contain no nested structures.
    (schema,) = parts.values()
    return {"schema": schema, "example": question.example}


_RESPONSES: dict[int | str, dict[str, object]] = {
    200: {"description": "The answer, as the command prints it with --json."},
    400: {"description": "The request is no JSON."},
    401: {"description": "A token is needed."},
    404: {"description": "The model or the profile is not known."},
    413: {"description": "The request is too large."},
    422: {"description": "A value is not as expected; the sentence in `error` says which."},
    503: {"description": "The service is busy."},
    504: {"description": "The answer took too long."},
}
