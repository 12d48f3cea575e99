import csv
from pathlib import Path

import numpy as np
import pytest

from crosscast.cluster.jobs import COLUMNS, Jobs, Machine, Schedule, write_schedule
from crosscast.errors import InputError


def scheduled(name: str = "lassen") -> Schedule:
    times = np.array([[10.0], [0.1]])
    jobs = Jobs(np.array([3, 7]), np.array([0.0, 0.2]), np.array([4, 1]), times, times)
    start = np.array([0.0, 10.0])
    machines = [Machine("quartz", 8), Machine(name, 4)]
    return Schedule(jobs, machines, np.array([1, 0]), start, start + times[:, 0], np.full(2, np.nan))


def test_a_schedule_is_a_row_for_each_job(tmp_path: Path) -> None:
    write_schedule(scheduled(), tmp_path / "schedule.csv")
    assert (tmp_path / "schedule.csv").read_bytes() == (
        b"job,submit,start,end,machine,procs\n3,0,0,10,lassen,4\n7,0.2,10,10.1,quartz,1\n"
    )


@pytest.mark.parametrize("name", ["a,b", 'the "large" one', "two\nlines", "Umeå"])
def test_any_name_of_a_machine_is_read_back(tmp_path: Path, name: str) -> None:
    write_schedule(scheduled(name), tmp_path / "schedule.csv")
    with (tmp_path / "schedule.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["machine"] for row in rows] == [name, "quartz"]


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none/a\.csv: cannot write the schedule \(No such file"):
        write_schedule(scheduled(), tmp_path / "none" / "a.csv")
    assert not list(tmp_path.iterdir())
