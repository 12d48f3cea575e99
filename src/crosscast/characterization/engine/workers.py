"""Warm worker processes: each forks a child for every job, so that no job waits for a start of Python.

A worker (`worker.py`, `llvm_worker.py`) is started in the background, and does not run kernels itself.
Idle workers are kept for later jobs; they end with this process, which their socket shows.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from crosscast.errors import EnvironmentFault

Kind = Literal["kernel", "llvm"]
Code = TypeVar("Code", bound="int | None")

_FOLDER = Path(__file__).parent
_COMMANDS: dict[Kind, list[str]] = {
    "kernel": ["-I", "-S", str(_FOLDER / "worker.py")],
    "llvm": ["-P", str(_FOLDER / "llvm_worker.py")],
}
_PURPOSES: dict[Kind, str] = {"kernel": "running kernels", "llvm": "compiling kernels"}
_MOST_DESCRIPTORS = 200  # in one message; Linux takes 253
_KILLED = -9
_ANSWER = struct.Struct("<q")


class Worker:
    """A worker process and its current job."""

    def __init__(self, kind: Kind) -> None:
        self._socket, child_end = socket.socketpair()
        with child_end:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, *_COMMANDS[kind]],
                stdin=child_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={} if kind == "kernel" else None,  # LLVM is searched as in this process
            )

    def begin(self, descriptors: Sequence[int]) -> None:
        """Fork a child for the job that these files describe; the first one receives errors."""
        self._socket.sendall(struct.pack("<Q", len(descriptors)))
        for start in range(0, len(descriptors), _MOST_DESCRIPTORS):
            socket.send_fds(self._socket, [b"d"], descriptors[start : start + _MOST_DESCRIPTORS])

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit code of the child, negative for a signal; ``None`` if it has not ended in time."""
        ready = select.poll()  # `select` takes no descriptors over 1023, of which a launch may have many
        ready.register(self._socket, select.POLLIN)
        if not ready.poll(1e3 * timeout_s):
            return None
        answer = self._socket.recv(_ANSWER.size)
        # A worker that ended has killed its child.
        return int(_ANSWER.unpack(answer)[0]) if len(answer) == _ANSWER.size else _KILLED

    def close(self) -> None:
        """End the process and its child."""
        self._socket.close()
        self.process.kill()
        self.process.wait()


_idle: dict[Kind, list[Worker]] = {kind: [] for kind in _COMMANDS}
_started: dict[Kind, threading.Thread] = {}


def prestart(kind: Kind) -> None:
    """Start a first worker in the background."""
    if kind not in _started:
        starting = threading.Thread(target=_start_first, args=(kind,), daemon=True)
        starting.start()
        _started[kind] = starting  # Only now, as another thread may join it at once


def _start_first(kind: Kind) -> None:
    # A failure here recurs when a worker is needed.
    with contextlib.suppress(OSError):
        _idle[kind].append(Worker(kind))


def run(kind: Kind, descriptors: Sequence[int], wait: Callable[[Worker], Code]) -> Code:
    """Do a job in an idle or new worker, which is kept for the next job if the child has ended.

    Returns the result of `wait`: the exit code of the job's child, or ``None`` if it has not ended.
    """
    if kind in _started:
        _started[kind].join()
    while True:
        is_idle = True
        try:
            worker = _idle[kind].pop()
        except IndexError:
            is_idle, worker = False, _new(kind)
        has_begun, code = False, None
        try:
            worker.begin(descriptors)
            has_begun, code = True, wait(worker)
            return code
        except OSError as error:
            # An idle worker that was killed is skipped.
            if has_begun or not is_idle:
                raise EnvironmentFault(f"the process for {_PURPOSES[kind]} is gone ({error})") from error
        finally:
            if code is None or worker.process.poll() is not None:
                worker.close()
            else:
                _idle[kind].append(worker)


def _new(kind: Kind) -> Worker:
    try:
        return Worker(kind)
    except OSError as error:
        raise EnvironmentFault(f"a process for {_PURPOSES[kind]} does not start: {error}") from error


@atexit.register
def _end() -> None:
    for idle in _idle.values():
        while idle:
            idle.pop().close()


def _forget() -> None:
    """Drop the parent's workers in a forked process."""
    _started.clear()
    for idle in _idle.values():
        while idle:
            worker = idle.pop()
            worker._socket.close()
            worker.process.returncode = 0


os.register_at_fork(after_in_child=_forget)
