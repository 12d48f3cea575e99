"""Warm worker processes: each forks a child for every run, so that no run waits for Python to start.

A worker (`worker.py`) is started in the background while the kernel is compiled, and runs nothing of a
kernel's itself. Idle workers are kept; they end with this process, which they notice by their socket.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosscast.errors import EnvironmentFault

__all__ = ["Worker", "prestart", "release", "take"]

_SCRIPT = Path(__file__).with_name("worker.py")
_MOST_DESCRIPTORS = 200  # in one message; Linux takes 253
_KILLED = -9
_ANSWER = struct.Struct("<q")


class Worker:
    """One worker process, and the run that it was given last."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SCRIPT)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={},
            )

    def run(self, job: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Fork a child that runs a job, which names its files by the numbers of `descriptors` here."""
        body = json.dumps({"descriptors": list(descriptors), **job}).encode()
        self._socket.sendall(struct.pack("<QQ", len(body), len(descriptors)))
        for start in range(0, len(descriptors), _MOST_DESCRIPTORS):
            socket.send_fds(self._socket, [b"d"], descriptors[start : start + _MOST_DESCRIPTORS])
        self._socket.sendall(body)

    def wait(self, timeout_s: float) -> int | None:
        """Exit code of the child, negative for a signal; ``None`` if it has not ended in time."""
        if not select.select([self._socket], [], [], timeout_s)[0]:
            return None
        answer = self._socket.recv(_ANSWER.size)
        # A worker that ends takes its child with it.
        return int(_ANSWER.unpack(answer)[0]) if len(answer) == _ANSWER.size else _KILLED

    def close(self) -> None:
        """End the process, and the child that it may have."""
        self._socket.close()
        self.process.kill()
        self.process.wait()


_idle: list[Worker] = []
_started: threading.Thread | None = None


def prestart() -> None:
    """Start a first worker in the background."""
    global _started
    if _started is None:
        _started = threading.Thread(target=_start_first, daemon=True)
        _started.start()


def _start_first() -> None:
    # What fails here fails again where a worker is taken.
    with contextlib.suppress(OSError):
        _idle.append(Worker())


def take() -> Worker:
    """Return an idle worker, or a new one; `release` gives it back.

    Raises
    ------
    EnvironmentFault
        If no process can be started.
    """
    if _started is not None:
        _started.join()
    with contextlib.suppress(IndexError):
        return _idle.pop()
    try:
        return Worker()
    except OSError as error:
        raise EnvironmentFault(f"the process that runs kernels does not start: {error}") from error


def release(worker: Worker) -> None:
    """Keep a worker whose run has ended, for the next one."""
    if worker.process.poll() is None:
        _idle.append(worker)
    else:
        worker.close()


@atexit.register
def _end() -> None:
    while _idle:
        _idle.pop().close()


def _forget() -> None:
    """A forked process has no part in its parent's workers."""
    global _started
    _started = None
    while _idle:
        worker = _idle.pop()
        worker._socket.close()
        worker.process.returncode = 0


os.register_at_fork(after_in_child=_forget)
