"""Run jobs in a process of their own, which a bad kernel or driver may take down."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

from crosscast import errors
from crosscast.errors import CrosscastError, DeviceFault, MissingExtraError
from crosscast.measure.jobs import Job, render_job

__all__ = ["Report", "run_job"]

Report = Callable[[int, float], None]
"""Called now and then with the runs so far and the seconds that they took."""

_WORKER = "crosscast.measure.worker"
_CHUNK = 1 << 16


def run_job(job: Job, timeout_s: float, report: Report = lambda runs, elapsed_s: None) -> dict[str, Any]:
    """Run a job and return its answer.

    Parameters
    ----------
    job
        What to do.
    timeout_s
        Seconds after which the process is killed.
    report
        Told how far it is.

    Raises
    ------
    CrosscastError
        What the process raised.
    DeviceFault
        If it crashed, or did not end in time.
    """
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            [sys.executable, "-m", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            # Ctrl-C is for the process that started it, which then ends it.
            start_new_session=True,
        ) as child,
    ):
        try:
            assert child.stdin is not None
            child.stdin.write(render_job(job).encode())
            child.stdin.close()
            answer = _answer(child, job, timeout_s, report)
        finally:
            child.kill()
        if answer is None:
            raise _crash(child.wait(), complaints, job)
        return answer


def _answer(
    child: subprocess.Popen[bytes], job: Job, timeout_s: float, report: Report
) -> dict[str, Any] | None:
    """Read what the child says up to its answer; nothing if it ends without."""
    for line in _lines(child, job, timeout_s):
        said = json.loads(line)
        if "error" in said:
            raise _raised(said["error"], said["message"])
        if "answer" in said:
            return dict(said["answer"])
        report(said["runs"], said["elapsed_s"])
    return None


def _lines(child: subprocess.Popen[bytes], job: Job, timeout_s: float) -> Iterator[bytes]:
    assert child.stdout is not None
    end = time.monotonic() + timeout_s
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(end - time.monotonic(), 0)):
                raise DeviceFault(f"{job.device}: did not end within {timeout_s:g} s (the time limit)")
            chunk = os.read(child.stdout.fileno(), _CHUNK)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines


def _raised(name: str, message: str) -> CrosscastError:
    kind = getattr(errors, name, DeviceFault)
    if kind is MissingExtraError:
        # Its constructor makes the message.
        return CrosscastError(message)
    return kind(message) if issubclass(kind, CrosscastError) else DeviceFault(message)


def _crash(code: int, complaints: IO[bytes], job: Job) -> DeviceFault:
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").strip().splitlines()
    last = f": {lines[-1]}" if lines else ""
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    return DeviceFault(f"{job.device}: the process that measured {how}{last}")
