"""Schedules in CSV files."""

from __future__ import annotations

import csv
from pathlib import Path

from crosscast.cluster.number_text import texts_of
from crosscast.cluster.schedule import Schedule
from crosscast.errors import InputError
from crosscast.tables.whole_file import whole_file

__all__ = ["COLUMNS", "write_schedule"]

COLUMNS = ("job", "submit", "start", "end", "machine", "procs")
"""Number of the job, three times in seconds, name of the machine, processors of the job."""


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule, a row for each job in the order of their submission.

    Parameters
    ----------
    schedule
        The schedule.
    path
        The file, which is there whole or not at all. Numbers are as short as they are read back the same,
        whole ones without a fraction.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    path = Path(path)
    names = [machine.name for machine in schedule.machines]
    jobs = schedule.jobs
    columns = (
        jobs.number.tolist(),
        *(texts_of(times, "") for times in (jobs.submit_s, schedule.start_s, schedule.end_s)),
        [names[place] for place in schedule.machine.tolist()],
        jobs.procs.tolist(),
    )
    try:
        with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(COLUMNS)
            rows.writerows(zip(*columns, strict=True))
    except OSError as error:
        raise InputError(f"{path}: cannot write the schedule ({error.strerror})") from error
