"""The sockets, tokens and life cycle of the service: readiness, reloading and graceful shutdown."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import uvicorn

from crosscast.errors import EnvironmentFault, InputError
from crosscast.service.app import application
from crosscast.service.models import Served

LOG = logging.getLogger("crosscast.service")

_MODE = 0o660
_BACKLOG = 512
_LONGEST = 107
_LOOKS_S = 2.0
_ENDS_S = 30
_SHORTEST_TOKEN = 16
_FIRST_FD = 3


class Tokens:
    """The tokens of a file, a line each; empty lines and those that begin with ``#`` are ignored.

    Nobody but its owner and group may read the file. Short tokens are refused.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.now: tuple[bytes, ...] = ()
        self.read()

    def read(self) -> None:
        """Reread the tokens from the file."""
        field = "token_file"
        try:
            mode, content = self._path.stat().st_mode, self._path.read_bytes()
        except OSError as error:
            problem = f"cannot read {self._path} ({error.strerror})"
            raise InputError.of(field=field, problem=problem) from error
        if mode & 0o007:
            expected = "a file that only its owner and group may read"
            raise InputError.of(where=field, expected=expected, found=f"mode {mode & 0o777:o}")
        lines = [line.strip() for line in content.splitlines()]
        tokens = tuple(line for line in lines if line and not line.startswith(b"#"))
        short = [each for each in tokens if len(each) < _SHORTEST_TOKEN]
        if not tokens or short:
            expected = f"tokens of at least {_SHORTEST_TOKEN} characters, a line each"
            raise InputError.of(where=field, expected=expected, found="a short one" if short else "none")
        self.now = tokens


class _Server(uvicorn.Server):
    """Uvicorn with graceful shutdown at SIGTERM and SIGINT, and rereading at SIGHUP."""

    def __init__(self, config: uvicorn.Config, served: Served, tokens: Tokens | None) -> None:
        super().__init__(config)
        self._served, self._tokens = served, tokens

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop, hup = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, hup.set)
        task: asyncio.Task[None]

        def watch(ended: asyncio.Task[None] | None = None) -> None:
            nonlocal task
            if ended is not None and ended.cancelled():
                return
            if ended is not None:
                LOG.error("files could not be read again, which goes on", exc_info=ended.exception())
            task = loop.create_task(self._watch(hup))
            task.add_done_callback(watch)

        watch()
        try:
            yield
        finally:
            task.cancel()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self.should_exit = True
        _notify("STOPPING=1")

    async def _watch(self, hup: asyncio.Event) -> None:
        """Reread models that were replaced."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(hup.wait(), _LOOKS_S)
            everything = hup.is_set()
            hup.clear()
            if everything and self._tokens is not None:
                try:
                    self._tokens.read()
                    self._served.tokens_refused = None
                except InputError as error:
                    self._served.tokens_refused = str(error)
                    LOG.error("the tokens stay as they were: %s", error)
            # In a thread, so that requests are answered meanwhile.
            await asyncio.to_thread(self._served.refresh, everything)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        _notify("READY=1")
        LOG.info("ready: %s", ", ".join(self._served.state.models))


def serve(
    served: Served,
    *,
    path: Path | None = None,
    bind: str | None = None,
    token_file: Path | None = None,
) -> None:
    """Answer requests until SIGTERM or SIGINT, and finish those in progress.

    Sockets are a Unix socket at `path` with mode 0660, TCP at `bind`, which needs `token_file`, or those that
    systemd hands over.
    """
    given = _given_sockets()
    over_tcp = bind is not None or any(each.family != socket.AF_UNIX for each in given)
    if over_tcp and token_file is None:
        raise InputError.of(
            where="token_file", expected="a file of tokens, as TCP is open to all", found="none"
        )
    if path is None and bind is None and not given:
        raise InputError.of(where="socket", expected="a path, or --bind with --token-file", found="neither")
    tokens = None if token_file is None else Tokens(token_file)
    app = application(served, lambda: () if tokens is None else tokens.now)
    with ExitStack() as undo:
        sockets = list(given)
        if bind is not None:
            sockets.append(undo.enter_context(_tcp(bind)))
        if path is not None and not given:
            sockets.append(undo.enter_context(unix_socket(path)))
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_ENDS_S,
        )
        _Server(config, served, tokens).run(sockets)


def _given_sockets() -> list[socket.socket]:
    """Return the sockets that systemd opened for this process."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = int(os.environ.get("LISTEN_FDS", "0"))
    return [socket.socket(fileno=number) for number in range(_FIRST_FD, _FIRST_FD + count)]


def _notify(state: str) -> None:
    """Notify systemd of a state, if it listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier, suppress(OSError):
            notifier.sendto(state.encode(), re.sub("^@", "\0", address))


@contextmanager
def _tcp(bind: str) -> Iterator[socket.socket]:
    host, _, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError.of(where="bind", expected="HOST:PORT such as 127.0.0.1:8750", found=repr(bind))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, int(port)), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InputError.of(
            field="bind", problem=f"cannot listen at {bind} ({error.strerror or error})"
        ) from error
    with opened:
        yield opened


@contextmanager
def unix_socket(path: Path) -> Iterator[socket.socket]:
    """Listen on a Unix socket for its owner and group, replacing a stale one."""
    if len(os.fsencode(path)) > _LONGEST:
        raise InputError.of(where="socket", expected=f"a path of at most {_LONGEST} bytes", found=str(path))
    _check_free(path)
    # Bound under a temporary name, so that it has its mode and listens when it appears.
    temporary = path.with_name(f".{os.getpid()}.sock")
    opened = socket.socket(socket.AF_UNIX)
    try:
        before = os.umask(0o777 & ~_MODE)
        try:
            opened.bind(str(temporary))
        finally:
            os.umask(before)
        temporary.chmod(_MODE)
        opened.listen(_BACKLOG)
        inode = temporary.stat().st_ino
        temporary.replace(path)
    except OSError as error:
        opened.close()
        temporary.unlink(missing_ok=True)
        problem = f"cannot make {path} ({error.strerror or error})"
        if error.errno == errno.ENOSPC:
            raise EnvironmentFault(f"socket: {problem}") from error
        raise InputError.of(field="socket", problem=problem) from error
    try:
        with opened:
            yield opened
    finally:
        with suppress(OSError):
            if path.stat().st_ino == inode:
                path.unlink()


def _check_free(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_socket():
        raise InputError.of(where="socket", expected="no file, or a socket that nobody uses", found=str(path))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except OSError as error:
            raise InputError.of(
                field="socket", problem=f"cannot use {path} ({error.strerror or error})"
            ) from error
    raise InputError.of(where="socket", expected="one that nobody uses", found=f"a service at {path}")
