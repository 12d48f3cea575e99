"""Pictures of schedules show what was scheduled, within what was asked for."""

from typing import Any

import numpy as np
import pytest

from crosscast.cluster.experiment import Setup, run_experiment
from crosscast.cluster.jobs import Jobs, Machine
from crosscast.cluster.metrics import Steps, queue_length
from crosscast.cluster.placements import Workload
from crosscast.errors import InputError
from crosscast.report import schedule_figures as timeline
from crosscast.report.schedule_figures import gantt, placement_figure, queue_figure
from support.cluster import schedule_of

ROWS = [(100.0, 100.0, 140.0, 2), (100.0, 100.0, 160.0, 1), (110.0, 160.0, 200.0, 4)]


def test_a_timeline_has_a_rectangle_a_job_and_a_panel_a_machine() -> None:
    schedule = schedule_of(ROWS, machine=[0, 1, 0], sizes=(4, 2))
    figure: Any = gantt(schedule, "made up", to_s=100.0)
    panels = figure.axes[:2]
    corners = [[path.get_extents().bounds for path in axes.collections[0].get_paths()] for axes in panels]
    # Left, bottom, width, height: seconds since the first submission, and processors.
    assert corners[0] == [(0.0, 0.0, 40.0, 2.0), (60.0, 0.0, 40.0, 4.0)]
    assert corners[1] == [(0.0, 0.0, 60.0, 1.0)]
    assert [axes.get_ylim() for axes in panels] == [(0.0, 4.0), (0.0, 2.0)]
    assert panels[1].get_xlabel() == "time since the first submission, seconds"
    assert figure.get_suptitle() == "made up"


def test_users_with_the_most_work_have_colours_and_names() -> None:
    figure: Any = gantt(schedule_of(ROWS, user=[0, 0, 2]), "made up", colour="user", to_s=100.0)
    faces = figure.axes[0].collections[0].get_facecolor()
    assert faces[0].tolist() == faces[1].tolist()
    assert faces[0].tolist() != faces[2].tolist()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["user cyd", "user ada"]


def test_all_but_the_first_users_are_grey() -> None:
    rows = [(0.0, float(place), float(place + 1), 1) for place in range(12)]
    schedule = schedule_of(rows, user=[0] * 12)
    jobs = Jobs(
        schedule.jobs.number,
        schedule.jobs.submit_s,
        schedule.jobs.procs,
        schedule.jobs.run_s,
        schedule.jobs.run_s,
        np.arange(12),
        tuple("abcdefghijkl"),
    )
    crowd = type(schedule)(
        jobs, schedule.machines, schedule.machine, schedule.start_s, schedule.end_s, schedule.reserved_s
    )
    figure: Any = gantt(crowd, "made up", colour="user", to_s=20.0)
    assert figure.legends[0].get_texts()[-1].get_text() == "4 others"
    faces = figure.axes[0].collections[0].get_facecolor()
    assert len({tuple(face) for face in faces.tolist()}) == 9


def test_a_window_shows_its_jobs_only() -> None:
    figure: Any = gantt(schedule_of(ROWS), "made up", from_s=45.0, to_s=55.0)
    assert len(figure.axes[0].collections[0].get_paths()) == 1
    assert figure.axes[0].get_xlim() == (45.0, 55.0)


def test_what_a_timeline_cannot_show_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = schedule_of(ROWS)
    with pytest.raises(InputError, match=r"timeline: expected jobs from 3\.333 min to 5 min, found none"):
        gantt(schedule, "late", from_s=200.0, to_s=300.0)
    with pytest.raises(InputError, match="colour: expected jobs with users, found none"):
        gantt(schedule, "anonymous", colour="user", to_s=100.0)
    monkeypatch.setattr(timeline, "MOST_JOBS", 2)
    with pytest.raises(InputError, match=r"jobs: expected at most 2 from .*, found 3: draw a part of it"):
        gantt(schedule, "many", to_s=100.0)


def test_a_queue_is_a_line_of_steps_for_each_policy() -> None:
    schedule = schedule_of(ROWS)
    figure: Any = queue_figure(
        {"easy": queue_length(schedule), "fcfs": queue_length(schedule)},
        "made up",
        origin_s=100.0,
        from_s=0.0,
        to_s=100.0,
    )
    axes = figure.axes[0]
    assert len(axes.lines) == 2
    assert axes.lines[0].get_drawstyle() == "steps-post"
    assert axes.lines[0].get_xdata().tolist() == [0.0, 10.0, 60.0, 100.0]
    assert axes.lines[0].get_ydata().tolist() == [0.0, 1.0, 0.0, 0.0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "easy (at most 1)",
        "fcfs (at most 1)",
    ]


def test_a_policy_has_the_same_colour_beside_a_limit_as_without_one() -> None:
    steps = Steps(np.array([0.0]), np.array([5]))
    lines = {"easy": steps, "fcfs": steps}
    figures: list[Any] = [
        queue_figure(each, "made up", origin_s=0.0, from_s=0.0, to_s=9.0, limit="budget")
        for each in (lines, {"budget": steps} | lines)
    ]
    alone, (limit, *beside) = ([line.get_color() for line in each.axes[0].lines] for each in figures)
    assert beside == alone
    assert limit not in alone


def test_a_very_long_queue_keeps_its_extremes() -> None:
    count = np.where(np.arange(100_000) % 2 == 0, 3, 5)
    count[54_321] = 999
    steps = Steps(np.arange(100_000.0), count)
    figure: Any = queue_figure({"easy": steps}, "made up", origin_s=0.0, from_s=0.0, to_s=99_999.0)
    line = figure.axes[0].lines[0]
    assert len(line.get_xdata()) < 10_000
    assert line.get_ydata().max() == 999
    assert line.get_ydata().min() == 3
    at = float(line.get_xdata()[line.get_ydata().argmax()])
    assert at * 3600 == pytest.approx(54_321, abs=30)


def test_queues_of_very_different_lengths_are_both_seen() -> None:
    lines = {"short": Steps(np.array([0.0]), np.array([2])), "long": Steps(np.array([0.0]), np.array([5000]))}
    figure: Any = queue_figure(lines, "made up", origin_s=0.0, from_s=0.0, to_s=9.0)
    assert figure.axes[0].get_yscale() == "symlog"


def test_placements_have_bars_with_intervals_and_the_least_makespan() -> None:
    run_s = np.array([[8.0, 2.0], [3.0, 6.0]])
    jobs = Jobs(np.arange(1, 3), np.zeros(2), np.ones(2, dtype=np.int64), run_s, run_s)
    types = Workload(
        jobs, (Machine("a", 3), Machine("b", 2, has_gpu=True)), np.array([True, False]), run_s, run_s
    )
    found = run_experiment(types, Setup(("user", "exact"), 50, [1, 2]))
    figure: Any = placement_figure(found, "made up")
    left, right = figure.axes
    assert [bar.get_width() for bar in left.patches] == [each.makespan_s.value for each in found.results]
    assert [bar.get_width() for bar in right.patches] == [
        each.average_bounded_slowdown.value for each in found.results
    ]
    assert found.least_makespan_s is not None
    *_, interval, least = sorted(left.lines, key=lambda line: line.get_linestyle() != "-")
    assert least.get_xdata()[0] == found.least_makespan_s.value
    assert tuple(interval.get_xdata()) == found.results[1].makespan_s.interval
    assert "95 % over 2 seeds" in figure.get_suptitle()
