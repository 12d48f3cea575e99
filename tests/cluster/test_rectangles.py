"""Rectangles of a timeline: within the machine, apart from one another, all of a job's work."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings

from crosscast.cluster.jobs import Schedule
from crosscast.cluster.metrics import Rectangles, rectangles
from support.schedules import schedule_of, schedules


def boxes(found: Rectangles) -> list[tuple[int, float, float, int, int]]:
    columns = (found.job, found.start_s, found.end_s, found.first, found.procs)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=40)
@given(schedules())
def test_rectangles_are_all_of_the_work_and_never_overlap(schedule: Schedule) -> None:
    for place, machine in enumerate(schedule.machines):
        found = boxes(rectangles(schedule, place))
        for _, _, _, first, procs in found:
            assert 0 <= first < first + procs <= machine.procs
        for (_, start, end, low, count), (_, other_start, other_end, other_low, other_count) in combinations(
            found, 2
        ):
            in_time = start < other_end and other_start < end
            in_place = low < other_low + other_count and other_low < low + count
            assert not (in_time and in_place)
        used = np.zeros(len(schedule.jobs), dtype=np.int64)
        for job, start, end, _, count in found:
            assert (start, end) == (schedule.start_s[job], schedule.end_s[job])
            used[job] += count
        there = (schedule.machine == place) & (schedule.ran_s > 0)
        assert used.tolist() == np.where(there, schedule.jobs.procs, 0).tolist()


@settings(max_examples=40)
@given(schedules())
def test_a_window_has_the_jobs_that_run_in_it(schedule: Schedule) -> None:
    found = set(rectangles(schedule, 0, 3.0, 8.0).job.tolist())
    runs = (schedule.start_s < 8) & (schedule.end_s > 3) & (schedule.ran_s > 0) & (schedule.machine == 0)
    assert found == set(np.flatnonzero(runs).tolist())


def test_a_job_has_processors_side_by_side_where_there_are_enough() -> None:
    # Processor 0 is free again at 2 s, but not the one next to it: the last job takes 2 and 3.
    rows = [(0.0, 0.0, 2.0, 1), (0.0, 0.0, 9.0, 1), (2.0, 2.0, 5.0, 2)]
    assert boxes(rectangles(schedule_of(rows), 0))[-1] == (2, 2.0, 5.0, 2, 2)


def test_a_job_between_others_has_a_rectangle_for_each_part() -> None:
    rows = [(0.0, 0.0, 2.0, 1), (0.0, 0.0, 9.0, 1), (0.0, 0.0, 9.0, 1), (2.0, 2.0, 5.0, 2)]
    assert boxes(rectangles(schedule_of(rows), 0))[-2:] == [(3, 2.0, 5.0, 0, 1), (3, 2.0, 5.0, 3, 1)]
