"""The service as tests ask it: in this process without sockets, or as a process of its own."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosscast.service.app import App, Message

OVER_TCP = ("127.0.0.1", 8750)


@dataclass(frozen=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        (sentence,) = self.json.values()
        return str(sentence)


@dataclass(frozen=True)
class InProcess:
    """Asks an application without sockets."""

    app: App
    server: tuple[str, int | None] | None = ("/run/predict.sock", None)

    def ask(
        self,
        path: str,
        asked: object = None,
        *,
        parts: Sequence[bytes] | None = None,
        gap_s: float = 0.0,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask with a JSON value, or with a body in parts with pauses."""
        content = b"" if asked is None else json.dumps(asked).encode()
        rest = [content] if parts is None else list(parts)
        told = {"content-length": str(len(content))} if parts is None else {}
        sent = list[Message]()

        async def receive() -> Message:
            await asyncio.sleep(gap_s)
            if not rest:
                await asyncio.sleep(60)
            part = rest.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(rest)}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET" if asked is None and parts is None else "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(k.encode(), v.encode()) for k, v in {**told, **(headers or {})}.items()],
            "server": self.server,
            "client": None,
        }
        asyncio.run(self.app(scope, receive, send))
        own = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], own, b"".join(each.get("body", b"") for each in sent[1:]))


def ask(place: str | Path | tuple[str, int], request: bytes) -> bytes:
    """Send bytes to a socket, and take all that comes until it is closed."""
    family = socket.AF_INET if isinstance(place, tuple) else socket.AF_UNIX
    with socket.socket(family) as asked:
        asked.settimeout(20)
        asked.connect(place if isinstance(place, tuple) else str(place))
        asked.sendall(request)
        parts = []
        while part := asked.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def post(path: str, asked: object, *headers: str) -> bytes:
    """A request as the hooks of Slurm make it."""
    body = json.dumps(asked).encode()
    lines = [f"POST {path} HTTP/1.0", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@contextmanager
def running(*words: object, there: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A service in a process of its own, from when its socket is there."""
    command = [sys.executable, "-m", "crosscast", "serve", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            for line in service.stderr:
                if "ready: " in line:
                    break
            assert there is None or there.is_socket()
            yield service
        finally:
            if service.poll() is None:
                service.send_signal(signal.SIGTERM)
            try:
                service.wait(30)
            except subprocess.TimeoutExpired:
                service.kill()
