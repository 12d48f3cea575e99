"""A process that measures, seen from the one that asks: what it is told, and the lines that it answers."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO

from crosscast import errors
from crosscast.errors import CrosscastError, DeviceFault, MissingExtraError

__all__ = ["AnsweringProcess", "heard", "raised"]

_CHUNK = 1 << 16
_MOST_COMPLAINTS = 1 << 16
_LAST_WORDS_S = 10.0
"""Time from the last that a process can say to its end."""


class AnsweringProcess:
    """A Python process that runs a module, which answers by `crosscast.measure.answering`.

    Parameters
    ----------
    module
        Name of the module.
    environment
        Its environment; that of this process by default.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        self._child = subprocess.Popen(
            # Not with the modules of the current folder, which may have the names of others.
            [sys.executable, "-P", "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # Ctrl-C is for the process that started it, which then ends it.
            start_new_session=True,
        )
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._rest = bytearray()
        self._complaints = bytearray()
        self.lines: deque[bytes] = deque()
        """Lines that nobody has taken yet."""
        self.streams: list[IO[bytes]] = [self._child.stdout, self._child.stderr]
        """What it has not closed yet."""

    @property
    def pid(self) -> int:
        """Its id."""
        return self._child.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def tell(self, text: str) -> None:
        """Write to its standard input; a process that died already says why elsewhere."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(text.encode())
            self._child.stdin.flush()

    def hang_up(self) -> None:
        """Tell that nothing more will be told."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.close()

    def read(self, stream: IO[bytes]) -> bool:
        """Take what a stream holds, and wait if that is nothing; tell whether the stream goes on."""
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            self.streams.remove(stream)
        elif stream is self._child.stderr:
            self._complaints += chunk
            del self._complaints[:-_MOST_COMPLAINTS]
        else:
            # Looked through only when a line ends: an answer may be hundreds of megabytes.
            self._rest += chunk
            if b"\n" in chunk:
                *lines, self._rest = self._rest.split(b"\n")
                self.lines.extend(map(bytes, lines))
        return bool(chunk)

    def crash(self, label: str, hint: str = "") -> DeviceFault:
        """What to say of a process that closed its output without an answer.

        Parameters
        ----------
        label
            What it was about.
        hint
            What to add if it made a segmentation fault.
        """
        try:
            code = self._child.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            return DeviceFault(f"{label}: the process that measured closed its output and did not end")
        lines = self._complaints.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        said = hint if code == -signal.SIGSEGV else ""
        return DeviceFault(f"{label}: the process that measured {how}{last}{said}")

    def kill(self) -> None:
        """Kill it; what it said before can still be heard."""
        self._child.kill()

    def end(self) -> None:
        """Kill it, and wait until it has ended."""
        self.kill()
        self.hang_up()
        self._child.wait()
        for stream in (self._child.stdout, self._child.stderr):
            assert stream is not None
            stream.close()
        self.streams.clear()


def heard(
    processes: Sequence[AnsweringProcess], end: float
) -> Iterator[tuple[AnsweringProcess, bytes | None]]:
    """Lines that processes answer, each with its process, and none when one has closed its output.

    Parameters
    ----------
    processes
        Who may answer.
    end
        When to stop listening, by `time.monotonic`. It stops before if all have closed their output.
    """
    with selectors.DefaultSelector() as selector:
        for process in processes:
            for stream in process.streams:
                selector.register(stream, selectors.EVENT_READ, process)
            yield from _taken(process)
        while selector.get_map():
            ready = selector.select(max(end - time.monotonic(), 0))
            # A process that says something at all times must not be listened to for ever.
            if not ready or time.monotonic() > end:
                return
            for key, _ in ready:
                if not key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
                yield from _taken(key.data)


def _taken(process: AnsweringProcess) -> Iterator[tuple[AnsweringProcess, bytes | None]]:
    while process.lines:
        yield process, process.lines.popleft()
    if not process.streams:
        yield process, None


class _MissingThere(MissingExtraError):
    """A part that the process lacks, in its own words."""

    def __init__(self, message: str, extra: str) -> None:
        CrosscastError.__init__(self, message)
        self.extra = extra


def raised(name: str, message: str, extra: str | None) -> CrosscastError:
    """The error that a process answered."""
    if extra is not None:
        return _MissingThere(message, extra)
    kind = getattr(errors, name, DeviceFault)
    return kind(message) if issubclass(kind, CrosscastError) else DeviceFault(message)
