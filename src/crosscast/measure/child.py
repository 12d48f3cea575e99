"""Run jobs in a process of their own, which a bad kernel or driver may take down."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from crosscast import errors
from crosscast.errors import CrosscastError, DeviceFault, MissingExtraError
from crosscast.measure.jobs import Job, Report, SessionJob, render_job

__all__ = ["run_job"]

_WORKER = "crosscast.measure.worker"
_CHUNK = 1 << 16
_MOST_COMPLAINTS = 1 << 16
_OUT_OF_BOUNDS = "; crosscast characterize ... --check-bounds finds accesses that are out of bounds"
_LAST_WORDS_S = 10.0
"""Time from the last that a process can say to its end."""


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
    with subprocess.Popen(
        # Not with the modules of the current folder, which may have the names of others.
        [sys.executable, "-P", "-m", _WORKER, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C is for the process that started it, which then ends it.
        start_new_session=True,
    ) as child:
        try:
            _ask(child, job)
            complaints = bytearray()
            for line in _lines(child, job, timeout_s, complaints):
                said = json.loads(line)
                if "error" in said:
                    raise _raised(said["error"], said["message"], said.get("extra"))
                if "answer" in said:
                    return dict(said["answer"])
                report(said["runs"], said["elapsed_s"])
            raise _crash(child, complaints, job)
        finally:
            child.kill()


def _ask(child: subprocess.Popen[bytes], job: Job) -> None:
    assert child.stdin is not None
    # A process that died already says why elsewhere.
    with suppress(BrokenPipeError), child.stdin as asked:
        asked.write(render_job(job).encode())


def _lines(
    child: subprocess.Popen[bytes], job: Job, timeout_s: float, complaints: bytearray
) -> Iterator[bytes]:
    """Lines that the child answers, until it ends; the last of its complaints are kept."""
    assert child.stdout is not None
    assert child.stderr is not None
    end = time.monotonic() + timeout_s
    rest = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        selector.register(child.stderr, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(end - time.monotonic(), 0))
            # A process that says something at all times must end too.
            if not ready or time.monotonic() > end:
                raise DeviceFault(f"{job.label}: did not end within {timeout_s:g} s (the time limit)")
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is child.stderr:
                    complaints += chunk
                    del complaints[:-_MOST_COMPLAINTS]
                else:
                    # Looked through only when a line ends: an answer may be hundreds of megabytes.
                    rest += chunk
                    if b"\n" in chunk:
                        *lines, rest = rest.split(b"\n")
                        yield from map(bytes, lines)


class _MissingThere(MissingExtraError):
    """A part that the process lacks, in its own words."""

    def __init__(self, message: str, extra: str) -> None:
        CrosscastError.__init__(self, message)
        self.extra = extra


def _raised(name: str, message: str, extra: str | None) -> CrosscastError:
    if extra is not None:
        return _MissingThere(message, extra)
    kind = getattr(errors, name, DeviceFault)
    return kind(message) if issubclass(kind, CrosscastError) else DeviceFault(message)


def _crash(child: subprocess.Popen[bytes], complaints: bytearray, job: Job) -> DeviceFault:
    try:
        code = child.wait(_LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        return DeviceFault(f"{job.label}: the process that measured closed its output and did not end")
    lines = complaints.decode(errors="replace").strip().splitlines()
    last = f": {lines[-1]}" if lines else ""
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    hint = _OUT_OF_BOUNDS if code == -signal.SIGSEGV and isinstance(job, SessionJob) else ""
    return DeviceFault(f"{job.label}: the process that measured {how}{last}{hint}")
