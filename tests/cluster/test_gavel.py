"""Traces of Gavel, with its speeds.

Accounting logs of Slurm: what is read of them, and what is refused.
"""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from crosscast.cluster.job_tables import GavelTrace, read_gavel, read_speeds
from crosscast.cluster.sacct import read_sacct, read_trace
from crosscast.errors import InputError
from support.cluster import sound_line, written
from support.refusals import refusal, refusals

SPEEDS = """file,gpu,job,gpus,steps_per_s
simulation_throughputs,k80,A3C,1,2.0
simulation_throughputs,v100,A3C,1,8.0
simulation_throughputs,v100_unconsolidated,A3C,1,5.0
physical_cluster_throughputs,v100,A3C,1,99.0
simulation_throughputs,k80,LM (batch size 5),1,0.0
simulation_throughputs,v100,LM (batch size 5),1,10.0
simulation_throughputs,v100,LM (batch size 5),2,15.0
simulation_throughputs,k80,Large,1,0.0
simulation_throughputs,v100,Large,1,0.0
"""


def seven(job: str = "A3C", steps: object = 80, arrival: object = 0, gpus: object = 1) -> str:
    return f"{job}\tcd %s && python3 main.py\t--max-steps\t0\t{steps}\t{arrival}\t{gpus}"


def read(folder: Path, *lines: str, speeds: str = SPEEDS) -> GavelTrace:
    (folder / "a.trace").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "speeds.csv").write_text(speeds, encoding="utf-8")
    return read_gavel(folder / "a.trace", folder / "speeds.csv")


def test_a_job_runs_for_its_steps_over_its_speed(tmp_path: Path) -> None:
    lines = seven(), seven("LM (batch size 5)", 100, 6.5), seven("LM (batch size 5)", 150, 6.5, 2)
    trace = read(tmp_path, *lines)
    assert (trace.kinds, trace.left_out) == (("k80", "v100"), {})
    jobs = trace.jobs
    assert jobs.run_s.tolist() == jobs.estimate_s.tolist() == [[40, 10], [math.inf, 10], [math.inf, 10]]
    columns = [column.tolist() for column in (jobs.submit_s, jobs.procs, jobs.number)]
    assert columns == [[0, 6.5, 6.5], [1, 1, 2], [1, 2, 3]]


def test_jobs_whose_time_is_not_known_are_left_out_and_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, seven(gpus=0), seven(gpus=16), seven(gpus=2), "", seven("Large"), seven(arrival=3))
    assert trace.left_out == {"no GPUs": 1, "no speed on so many GPUs": 2, "does not fit on any GPU": 1}
    assert trace.jobs.number.tolist() == [6]
    said = refusal(read, tmp_path, seven(gpus=16))
    assert said.endswith("speed is known, found none (1 with no speed on so many GPUs)")
    assert refusal(read, tmp_path).endswith("a.trace: expected jobs whose speed is known, found none")


@refusals("line message")
def test_a_line_that_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, seven(arrival=6), line)


def test_speeds_are_of_the_simulation_and_of_one_server(tmp_path: Path) -> None:
    # A kind without a row of a job does not run it. Files of the source are broken in all ways by the law of
    # tests/data/test_sources.py.
    read(tmp_path, seven())
    kinds, speeds = read_speeds(tmp_path / "speeds.csv")
    assert kinds == ("k80", "v100")
    assert (speeds["A3C", 1], speeds["LM (batch size 5)", 2]) == ([2, 8], [0, 15])
    said = refusal(read, tmp_path, seven(), speeds=SPEEDS.replace("simulation_", "other_"))
    assert "expected rows of simulation_throughputs, found none" in said


HEAD = "JobID|User|JobName|Partition|Submit|ElapsedRaw|TimelimitRaw|AllocCPUS|State\n"
LOG = HEAD + (
    "13|bob|solve|gpu|2024-05-31T12:00:30|600|20|4|COMPLETED\n"
    "12|ann|mesh|cpu|2024-05-31T12:00:00|60|UNLIMITED|2|TIMEOUT\n"
    "12.batch||batch||2024-05-31T12:00:00|60||2|COMPLETED\n"
    "14_2|ann|solve|gpu|2024-05-31T12:00:40|0|20|4|CANCELLED by 100\n"
    "15|ann|solve|gpu|2024-05-31T12:00:50|7|20|4|RUNNING\n"
)


def log(folder: Path, text: str) -> Path:
    path = folder / "jobs.txt"
    path.write_text(text)
    return path


def test_jobs_are_in_the_order_of_submission_and_steps_are_none(tmp_path: Path) -> None:
    trace = read_sacct(log(tmp_path, LOG))
    assert trace.columns["job"].tolist() == [12, 13, 14, 15]
    assert trace.columns["submit_s"].tolist() == [0, 30, 40, 50]
    np.testing.assert_array_equal(trace.columns["requested_s"], [np.nan, 1200, 1200, 1200])
    found = trace.jobs()
    assert found.jobs.number.tolist() == [12, 13]
    assert found.jobs.run_s[:, 0].tolist() == [60, 600]
    assert found.jobs.procs.tolist() == [2, 4]
    assert found.left_out == {"cancelled before the start": 1, "no run time": 1}
    assert found.jobs.user is not None
    assert [found.jobs.users[place] for place in found.jobs.user] == ["ann", "bob"]
    assert trace.names["executable"] == ("solve", "mesh")


def test_times_may_be_as_people_read_them_or_unknown(tmp_path: Path) -> None:
    text = "JobID|Submit|Elapsed|Timelimit|NNodes|State\n1|2024-05-31T12:00:00|1-02:03:04|10:00|3|FAILED\n"
    (tmp_path / "jobs.gz").write_bytes(gzip.compress(text.encode()))
    columns = read_trace(tmp_path / "jobs.gz").columns
    assert (columns["run_s"][0], columns["requested_s"][0], columns["procs"][0]) == (93784, 600, 3)
    assert read_trace(written(tmp_path, sound_line())).columns["run_s"].tolist() == [100]
    (tmp_path / "jobs.gz").write_bytes(b"\x1f\x8b" + bytes(20))
    for read in (read_trace, read_sacct):
        assert "Unknown compression method" in refusal(read, tmp_path / "jobs.gz")
    unknown = log(tmp_path, "JobID|Submit|Elapsed|NNodes|State\n1|Unknown|10:00|3|FAILED\n")
    assert np.isnan(read_sacct(unknown).columns["submit_s"]).all()


@refusals("text message")
def test_what_slurm_does_not_write_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(read_sacct, log(tmp_path, text))
