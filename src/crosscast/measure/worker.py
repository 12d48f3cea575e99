"""The measuring process: reads a job, runs it, and answers in lines of JSON.

Progress is a line ``{"runs": …, "elapsed_s": …}``; the last line is ``{"answer": …}`` or
``{"error": …, "arguments": …}``. A co-runner then takes orders, each a line of JSON, and answers each;
meanwhile it sends ``{"jobs": …}``.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from crosscast.measure.processes import Orders, Send, answering

if TYPE_CHECKING:
    from crosscast.measure.processes import Job


def main() -> int:
    """Run the job on standard input for the process of the id in `sys.argv`; return the exit code."""
    with answering(int(sys.argv[1])) as send:
        # Imported here, so that a missing extra becomes an answer.
        from crosscast.measure.processes import CoRunJob, read_job

        orders = Orders(sys.stdin.fileno())
        job = read_job(orders.line() or "")
        if isinstance(job, CoRunJob):
            from crosscast.measure.session import CoRunner

            CoRunner(job, orders, send).serve()
        else:
            send(answer=_answer(job, send))
    return 0


def _answer(job: Job, send: Send) -> Mapping[str, object]:
    from crosscast.measure.processes import CharacterizeJob, DescribeJob, InstructionMixJob

    if isinstance(job, InstructionMixJob | CharacterizeJob):
        # Measuring needs no characterization, which needs no OpenCL.
        from crosscast.measure.subjects import instruction_mix_of, profile_rows

        if isinstance(job, InstructionMixJob):
            return {"mix": instruction_mix_of(job.subject, job.timeout_s)}
        return {"profiles": profile_rows(job.subject, job.timeout_s)}
    from crosscast.measure.inventory import describe
    from crosscast.measure.opencl import find
    from crosscast.measure.sensors import open_sensor
    from crosscast.measure.session import measure_session
    from crosscast.measure.subjects import load

    device = find(job.device)
    if isinstance(job, DescribeJob):
        return {"device": describe(device)}
    measured = measure_session(
        load(job.subject),
        device,
        job.settings,
        open_sensor(job.settings.sensor, device.type, device.pci_bus_id),
        repeat=job.repeat,
        report=lambda runs, elapsed_s: send(runs=runs, elapsed_s=elapsed_s),
    )
    return dataclasses.asdict(measured)


if __name__ == "__main__":
    sys.exit(main())
