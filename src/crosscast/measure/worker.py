"""The process that measures: reads a job, runs it, and answers in lines of JSON.

A line is ``{"runs": …, "elapsed_s": …}`` now and then, and at the end ``{"answer": …}`` or
``{"error": …, "message": …, "extra": …}``.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from crosscast.measure.processes import Send, answering

if TYPE_CHECKING:
    from crosscast.measure.processes import CharacterizeJob, DescribeJob, Job, MixJob, SessionJob


def main() -> int:
    """Run the job on standard input for the process of the id in `sys.argv`; return the exit code."""
    with answering(int(sys.argv[1])) as send:
        from crosscast.measure.processes import read_job

        send(answer=_run(read_job(sys.stdin.read()), send))
    return 0


def _run(job: Job, send: Send) -> dict[str, Any]:
    from crosscast.measure.processes import CharacterizeJob, MixJob

    if isinstance(job, MixJob):
        return _mix(job)
    return _characterize(job) if isinstance(job, CharacterizeJob) else _measure(job, send)


def _characterize(job: CharacterizeJob) -> dict[str, Any]:
    # Imported here, as measuring does not need it.
    from crosscast.measure.subjects import profile_rows

    return {"profiles": profile_rows(job.subject, job.timeout_s)}


def _mix(job: MixJob) -> dict[str, Any]:
    # Imported here, as measuring does not need it.
    from crosscast.measure.subjects import mix_here

    return {"mix": mix_here(job.subject, job.timeout_s)}


def _measure(job: SessionJob | DescribeJob, send: Send) -> dict[str, Any]:
    # Imported here, so that a missing extra becomes an answer.
    from crosscast.measure.energy import open_sensor
    from crosscast.measure.opencl import describe, find
    from crosscast.measure.processes import DescribeJob
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
        report=lambda runs, elapsed_s: send(runs=runs, elapsed_s=elapsed_s),
    )
    return dataclasses.asdict(measured)


if __name__ == "__main__":
    sys.exit(main())
