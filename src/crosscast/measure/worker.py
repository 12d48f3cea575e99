"""The process that measures: reads a job, runs it, and answers in lines of JSON.

A line is ``{"runs": …, "elapsed_s": …}`` now and then, and at the end ``{"answer": …}`` or
``{"error": …, "message": …, "extra": …}``. Kernels and drivers may write to standard output as they
like: the answers go to a copy of it, and the rest to standard error.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import resource
import signal
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from crosscast.errors import CrosscastError

if TYPE_CHECKING:
    from crosscast.measure.jobs import CharacterizeJob, DescribeJob, Job, SessionJob

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the job on standard input for the process of the id in `sys.argv`; return the exit code."""
    _end_with(int(sys.argv[1]))
    sys.excepthook = _complain
    # Imported here, as that takes a while, in which the other process may be killed.
    from crosscast.measure.jobs import read_job

    # A kernel that crashes is no reason to write this process's memory to a file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            _send(answers, answer=_run(read_job(sys.stdin.read()), answers))
        except CrosscastError as error:
            # Of a part that is missing, also how to get it.
            said = {"error": type(error).__name__, "message": str(error)}
            _send(answers, **said, extra=getattr(error, "extra", None))
        except MemoryError:
            _send(answers, error="DeviceFault", message="this machine has not enough memory for the problem")
    return 0


def _complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say what a driver with a mistake raised, and at last, in the line that is shown, where."""
    from crosscast.suite.registry import place_in_driver

    sys.__excepthook__(kind, error, trace)
    said = " ".join(str(error).split())
    print(f"{kind.__name__}: {said}{place_in_driver(trace)}", file=sys.stderr)


def _end_with(parent: int) -> None:
    """Let this process end with the one that wants the answer, even if that is killed."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before the line above.
        os.kill(os.getpid(), signal.SIGKILL)


def _run(job: Job, answers: TextIO) -> dict[str, Any]:
    from crosscast.measure.jobs import CharacterizeJob

    return _characterize(job) if isinstance(job, CharacterizeJob) else _measure(job, answers)


def _characterize(job: CharacterizeJob) -> dict[str, Any]:
    # Imported here, as measuring does not need it.
    from crosscast.measure.profiling import profile_rows

    return {"profiles": profile_rows(job.subject, job.timeout_s)}


def _measure(job: SessionJob | DescribeJob, answers: TextIO) -> dict[str, Any]:
    # Imported here, so that a missing extra becomes an answer.
    from crosscast.measure.jobs import DescribeJob
    from crosscast.measure.opencl.describe import describe
    from crosscast.measure.opencl.devices import find
    from crosscast.measure.sensors.available import open_sensor
    from crosscast.measure.session import measure_here
    from crosscast.measure.subjects import load

    device = find(job.device)
    if isinstance(job, DescribeJob):
        return describe(device)
    sensor = open_sensor(job.settings.sensor, device.type, device.pci_bus_id)
    measured = measure_here(
        load(job.subject),
        device,
        job.settings,
        sensor,
        repeat=job.repeat,
        report=lambda runs, elapsed_s: _send(answers, runs=runs, elapsed_s=elapsed_s),
    )
    return dataclasses.asdict(measured)


def _send(answers: TextIO, **fields: Any) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
