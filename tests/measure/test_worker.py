"""The process that measures, spoken to by hand."""

import json
import os
import signal
import subprocess
import sys

from crosscast.measure.opencl import devices
from crosscast.measure.processes import DescribeJob, SessionJob, render_job
from crosscast.measure.subjects import Settings, SuiteProblem


def worker(job: str, parent: int) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "crosscast.measure.worker", str(parent)]
    return subprocess.run(command, input=job, capture_output=True, text=True, timeout=60)


def test_standard_output_holds_lines_of_json_and_the_answer_last() -> None:
    settings = Settings(2, 0.6, 1, sensor="none")
    job = SessionJob(SuiteProblem("crc", "tiny", {"bytes": 1000}, 0), devices()[-1].id, settings)
    ran = worker(render_job(job), os.getpid())
    *states, answer = map(json.loads, ran.stdout.splitlines())
    assert (ran.returncode, ran.stderr) == (0, "")
    assert states
    assert all(state.keys() == {"runs", "elapsed_s"} for state in states)
    assert answer["answer"].keys() == {"session", "records", "energy", "notes"}


def test_an_error_is_an_answer() -> None:
    ran = worker(render_job(DescribeJob("abacus:0")), os.getpid())
    (answer,) = map(json.loads, ran.stdout.splitlines())
    assert answer["error"] == "InputError"
    assert answer["message"].startswith("device 'abacus:0': expected one of ")
    assert ran.returncode == 0


def test_a_process_whose_parent_is_gone_ends_itself() -> None:
    assert worker(render_job(DescribeJob("abacus:0")), 1 << 30).returncode == -signal.SIGKILL
