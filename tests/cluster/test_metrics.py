"""Metrics of schedules, counts over time, and the rectangles of a timeline."""

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from crosscast.cluster import Jobs, Machine, Policy, Schedule
from crosscast.cluster.metrics import (
    PolicyResult,
    QueuedJobs,
    check_objective,
    differences,
    metrics_of,
    per_machine,
    per_size,
    per_user,
    ranked,
    slowdowns_of,
    weeks_of,
)
from crosscast.cluster.resources import Rectangles, queue_length, rectangles
from crosscast.errors import InputError
from support.cluster import USERS, jobs_of, schedule_of, schedules
from support.examples import examples
from support.refusals import refusal


def boxes(found: Rectangles) -> list[tuple[int, float, float, int, int]]:
    columns = (found.job, found.start_s, found.end_s, found.first, found.procs)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@examples(40)
@given(schedules)
def test_rectangles_are_all_of_the_work_and_never_overlap(schedule: Schedule) -> None:
    for place, machine in enumerate(schedule.machines):
        found = boxes(rectangles(schedule, place))
        assert all(0 <= first < first + procs <= machine.procs for *_, first, procs in found)
        for (_, start, end, low, count), (_, begin, over, other, wide) in combinations(found, 2):
            in_time, in_place = start < over and begin < end, low < other + wide and other < low + count
            assert not (in_time and in_place)
        used = np.zeros(len(schedule.jobs), dtype=np.int64)
        for job, start, end, _, count in found:
            assert (start, end) == (schedule.start_s[job], schedule.end_s[job])
            used[job] += count
        there = (schedule.machine == place) & (schedule.ran_s > 0)
        assert used.tolist() == np.where(there, schedule.jobs.procs, 0).tolist()
        # A window has the jobs that run in it.
        runs = (schedule.start_s < 8) & (schedule.end_s > 3) & there
        window = set(rectangles(schedule, place, 3.0, 8.0).job.tolist())
        assert window == set(np.flatnonzero(runs).tolist())


def test_a_job_has_processors_side_by_side_where_there_are_enough_else_in_parts() -> None:
    # Processor 0 is free again at 2 s, but not the one next to it: the last job takes 2 and 3.
    rows = [(0.0, 0.0, 2.0, 1), (0.0, 0.0, 9.0, 1), (2.0, 2.0, 5.0, 2)]
    assert boxes(rectangles(schedule_of(rows), 0))[-1] == (2, 2.0, 5.0, 2, 2)
    rows = [(0.0, 0.0, 2.0, 1), (0.0, 0.0, 9.0, 1), (0.0, 0.0, 9.0, 1), (2.0, 2.0, 5.0, 2)]
    assert boxes(rectangles(schedule_of(rows), 0))[-2:] == [(3, 2.0, 5.0, 0, 1), (3, 2.0, 5.0, 3, 1)]


@pytest.mark.filterwarnings("ignore:overflow")
def test_no_jobs_and_times_that_cannot_be_added_up_have_no_metrics() -> None:
    none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
    jobs = Jobs(whole, none, whole, none[:, None], none[:, None])
    with pytest.raises(InputError, match="expected at least one job, found none"):
        metrics_of(Schedule(jobs, [Machine("m", 4)], whole, none, none, none))
    with pytest.raises(InputError, match="schedule: expected times that can be added up"):
        metrics_of(schedule_of([(0.0, 0.0, 1e308, 4)]))


@examples(40)
@given(schedules)
def test_metrics_are_those_of_a_loop_and_of_machines_and_users_together(schedule: Schedule) -> None:
    jobs, found = schedule.jobs, metrics_of(schedule)
    waits, rans = (schedule.start_s - jobs.submit_s).tolist(), (schedule.end_s - schedule.start_s).tolist()
    slowdowns = [max((wait + ran) / max(ran, 10.0), 1.0) for wait, ran in zip(waits, rans, strict=True)]
    assert found.average_bounded_slowdown == pytest.approx(math.fsum(slowdowns) / len(slowdowns))
    assert found.mean_wait_s == pytest.approx(math.fsum(waits) / len(waits))
    assert found.median_wait_s == pytest.approx(np.median(waits))
    assert found.wait_p95_s == pytest.approx(np.percentile(waits, 95))
    assert found.makespan_s == max(schedule.end_s) - min(jobs.submit_s)
    if found.utilisation is not None:
        size = sum(machine.procs for machine in schedule.machines)
        assert found.utilisation == pytest.approx(np.dot(jobs.procs, rans) / (size * found.makespan_s))
        assert 0 <= found.utilisation <= 1 + 1e-12
    assert jobs.user is not None
    names = [machine.name for machine in schedule.machines]
    by_machine = [(part, schedule.machine == names.index(part.machine)) for part in per_machine(schedule)]
    by_user = [(part, jobs.user == USERS.index(part.user)) for part in per_user(schedule)]
    for parts in (by_machine, by_user):
        assert sum(part.jobs for part, _ in parts) == found.jobs
        for part, own in parts:
            assert part.jobs == np.count_nonzero(own)
            if own.any():
                assert part.mean_wait_s == pytest.approx(np.array(waits)[own].mean())
                assert part.average_bounded_slowdown == pytest.approx(np.array(slowdowns)[own].mean())
            else:
                assert part.mean_wait_s is None
    # Queues are those counted second by second.
    moments = np.arange(-1.0, schedule.end_s.max() + 2, 0.5)
    waiting = [np.count_nonzero((jobs.submit_s <= now) & (now < schedule.start_s)) for now in moments]
    assert queue_length(schedule).at(moments).tolist() == waiting


def test_slowdowns_are_over_the_time_on_the_fastest_machine_that_is_wide_enough() -> None:
    times = np.array([[100.0, 20.0], [100.0, 20.0]])
    jobs = Jobs(np.arange(2), np.zeros(2), np.array([1, 3]), times, times)
    machines, slow, none = [Machine("slow", 4), Machine("fast", 2)], np.zeros(2, np.int64), np.full(2, np.nan)
    schedule = Schedule(jobs, machines, slow, np.zeros(2), np.full(2, 100.0), none)
    assert slowdowns_of(schedule).tolist() == [5, 1]
    configured = replace(jobs, fastest_s=times / 2)
    assert slowdowns_of(replace(schedule, jobs=configured)).tolist() == [10, 2]


def result_of(schedule: Schedule, policy: Policy | None = None) -> PolicyResult:
    found = metrics_of(schedule), per_machine(schedule), per_user(schedule), per_size(schedule)
    return PolicyResult(QueuedJobs(policy or Policy(), schedule.jobs), *found, 1.0, weeks=weeks_of(schedule))


def weekly(waits: list[list[float]]) -> Schedule:
    """Jobs that wait so long, in one week after the other."""
    starts = [(604_800.0 * week, 604_800.0 * week + wait) for week, own in enumerate(waits) for wait in own]
    return schedule_of([(submit, start, start + 100, 1) for submit, start in starts], sizes=(99,))


def test_an_interval_over_weeks_is_that_of_their_differences() -> None:
    one = result_of(weekly([[5.0, 7.0], [1.0], [3.0, 3.0, 3.0]]))
    other = result_of(weekly([[4.0, 6.0], [0.0], [2.0, 2.0, 2.0]]))
    found, same = differences(one, other), differences(one, one)
    assert found is not None and same is not None
    # All wait a second longer in each week, whichever are drawn.
    assert (found[0].value, found[0].interval.low, found[0].interval.high) == (1, 1, 1)
    assert (same[1].interval.low, same[1].interval.high) == (0, 0)
    assert differences(result_of(weekly([[5.0]])), result_of(weekly([[4.0]]))) is None
    wide = differences(result_of(weekly([[100.0], [0.0], [0.0], [50.0]])), result_of(weekly([[0.0]] * 4)))
    assert wide is not None
    assert 0 <= wide[0].interval.low < 37.5 == wide[0].value < wide[0].interval.high <= 100


def test_the_best_by_an_objective_is_first() -> None:
    slow, fast = result_of(weekly([[5.0], [5.0]])), result_of(weekly([[1.0], [1.0]]))
    assert ranked([slow, fast], "mean-wait") == [fast, slow]
    assert ranked([fast, fast], "makespan") == [fast, fast]
    for objective, lacking in (
        ("fairness", "a trace with users"),
        ("cost", "a budget of power that says so"),
    ):
        said = refusal(check_objective, objective, None, users=False)
        assert said == f"search: {objective}: expected {lacking}, found none"


def test_runs_that_differ_in_one_choice_have_labels_of_their_own() -> None:
    run = QueuedJobs(Policy(), jobs_of((0, 1, 1)))
    choices: dict[str, list[Any]] = {"shift": ["never", "price"], "configured": ["model"]}
    choices |= {"shared": ["gain"], "predicted": [True], "exact": [True]}
    labels = [replace(run, **{name: each}).label for name, values in choices.items() for each in values]
    assert len({run.label, *labels}) == 7
