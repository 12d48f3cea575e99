"""Accounting logs of Slurm: what is read of them, and what is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from crosscast.cluster.sacct import read_sacct, read_trace
from crosscast.errors import InputError
from support.cluster import sound_line, written
from support.refusals import refusals

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


def test_times_may_be_as_people_read_them(tmp_path: Path) -> None:
    text = "JobID|Submit|Elapsed|Timelimit|NNodes|State\n1|2024-05-31T12:00:00|1-02:03:04|10:00|3|FAILED\n"
    (tmp_path / "jobs.gz").write_bytes(gzip.compress(text.encode()))
    columns = read_trace(tmp_path / "jobs.gz").columns
    assert (columns["run_s"][0], columns["requested_s"][0], columns["procs"][0]) == (93784, 600, 3)
    assert read_trace(written(tmp_path, sound_line())).columns["run_s"].tolist() == [100]


def test_submit_times_may_all_be_unknown(tmp_path: Path) -> None:
    text = "JobID|Submit|Elapsed|NNodes|State\n1|Unknown|10:00|3|FAILED\n"
    assert np.isnan(read_sacct(log(tmp_path, text)).columns["submit_s"]).all()


@refusals("text message")
def test_what_slurm_does_not_write_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_sacct(log(tmp_path, text))
