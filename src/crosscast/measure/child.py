"""Run jobs in a process of their own, which a bad kernel or driver may take down."""

from __future__ import annotations

import json
import time
from typing import Any

from crosscast.errors import DeviceFault
from crosscast.measure.answering_process import AnsweringProcess, heard, raised
from crosscast.measure.jobs import Job, Report, SessionJob, render_job

__all__ = ["OUT_OF_BOUNDS", "run_job"]

_WORKER = "crosscast.measure.worker"

OUT_OF_BOUNDS = "; crosscast characterize ... --check-bounds finds accesses that are out of bounds"
"""What to add to a segmentation fault."""


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
    child = AnsweringProcess(_WORKER)
    try:
        child.tell(render_job(job))
        child.hang_up()
        for _, line in heard([child], time.monotonic() + timeout_s):
            if line is None:
                raise child.crash(job.label, OUT_OF_BOUNDS if isinstance(job, SessionJob) else "")
            said = json.loads(line)
            if "error" in said:
                raise raised(said["error"], said["message"], said["extra"])
            if "answer" in said:
                return dict(said["answer"])
            report(said["runs"], said["elapsed_s"])
        raise DeviceFault(f"{job.label}: did not end within {timeout_s:g} s (the time limit)")
    finally:
        child.end()
