"""What stands before the service: tokens, and limits on the size, time and number of requests."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosscast.service.metrics import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Coroutine[object, None, None]]

OPEN_PATHS = ("/health",)
"""What is answered without a token, too."""


@dataclass(frozen=True)
class Limits:
    """What one request, and all at a time, may take."""

    body_bytes: int = 1 << 20
    body_s: float = 5.0  # Until the body is there
    answer_s: float = 10.0  # Until the answer is
    requests: int = 64  # At a time; more are told to come again


@dataclass(eq=False)
class Refusal(Exception):
    """A request that is not answered, and why."""

    code: int
    why: str  # For the metrics
    sentence: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Gate:
    """An ASGI application around another one.

    Parameters
    ----------
    app
        What answers; it gets each body whole.
    tokens
        Gives the tokens that are good at the moment. On a Unix socket none is needed: its file's mode is what
        lets somebody in.
    metrics
        Where requests are counted.
    limits
        What requests may take.
    paths
        Paths that metrics tell apart.
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

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                codes.append(message["status"])
            await send(message)

        path = scope["path"] if scope["path"] in self._paths else "other"
        self._busy += 1
        self._metrics.busy.inc()
        try:
            await self._answered(scope, receive, told, codes)
        except Refusal as refusal:
            self._metrics.refusals.labels(refusal.why).inc()
            await _refuse(refusal, told)
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
        given = False

        async def whole() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            await asyncio.wait_for(self._app(scope, whole, send), self._limits.answer_s)
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
        # Each is compared, and each in the same time, however much of it is right.
        right = [hmac.compare_digest(given.strip(), token) for token in self._tokens()]
        return scheme.lower() == b"bearer" and any(right)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self._limits.body_bytes
        large = Refusal(413, "size", f"expected a request of at most {most:,} bytes")
        told = headers.get(b"content-length", b"0")
        if not told.isdigit() or len(told) > 18 or int(told) > most:
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
    # What of the request was not read must not be taken for the next one.
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
