"""The service as an ASGI application: paths, answers, status codes, and their documentation."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import Lock

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from crosscast.data.fields import STRICT_JSON
from crosscast.errors import CrosscastError, InputError
from crosscast.service.gate import App, Gate, Limits, Metrics
from crosscast.service.models import Served, ServiceState, UnknownName
from crosscast.service.questions import QUESTIONS, Endpoint

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
