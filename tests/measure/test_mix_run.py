"""How long to measure bags, and what is refused."""

from __future__ import annotations

import os
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import InputError
from crosscast.measure.corun.crew import Work
from crosscast.measure.corun.mix_run import CoRunSettings, Span, inside, overlap, powers, window
from crosscast.measure.energy import Reading
from crosscast.measure.processes import Orders
from crosscast.measure.subjects import LaunchFile


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"jobs": 0}, "jobs: expected at least 1, found 0"),
        ({"rounds": 0}, "rounds: expected at least 1, found 0"),
        ({"warmups": -1}, "warmups: expected at least 0, found -1"),
        ({"threads": 0}, "threads: expected at least 1, found 0"),
        ({"round_s": -1.0}, "round_s: expected a number of seconds, found -1"),
        ({"window_s": float("nan")}, "window_s: expected a number of seconds, found nan"),
        ({"timeout_s": 0.0}, "timeout_s: expected a number of seconds, found 0"),
        ({"window_s": 9.0, "timeout_s": 8.0}, "window_s: expected less than the time limit of 8 s, found 9"),
        ({"round_s": 8.0, "timeout_s": 8.0}, "round_s: expected less than the time limit of 8 s, found 8"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CoRunSettings(**given)


def test_a_job_has_a_run_at_least() -> None:
    with pytest.raises(InputError, match="runs: expected at least 1, found 0"):
        Work(LaunchFile("launches.toml"), 0)


STEPS = Reading("package-0", 4, (0.0, 1.0, 2.0, 3.0), (0.0, 10.0, 40.0, 50.0))
"""10 W for a second, 30 W for one, and 10 W for one."""


@pytest.mark.parametrize(
    ("time", "watts"),
    [
        (Span(100.0, 103.0), 50 / 3),
        (Span(101.0, 102.0), 30.0),
        (Span(100.5, 101.5), 20.0),
        (Span(90.0, 101.0), 10.0),
        (Span(102.5, 200.0), 10.0),
    ],
)
def test_power_is_energy_in_the_window_by_time(time: Span, watts: float) -> None:
    assert powers([STEPS], 100.0, time) == {"package-0": pytest.approx(watts)}


def test_what_was_not_watched_has_no_power() -> None:
    assert powers([STEPS], 100.0, Span(0.0, 1.0)) == {}
    assert powers([], 0.0, Span(0.0, 1.0)) == {}


def test_the_window_is_from_the_last_first_start_to_the_first_last_end() -> None:
    short = [Span(0.0, 1.0), Span(1.0, 2.0), Span(2.0, 3.0), Span(3.0, 4.0)]
    long = [Span(0.5, 3.5)]
    together = window([short, long])
    assert together == Span(0.5, 3.5)
    assert short[inside(short, together)] == [Span(1.0, 2.0), Span(2.0, 3.0)]
    assert long[inside(long, together)] == long


@pytest.mark.parametrize(
    "jobs",
    [[], [[Span(0.0, 1.0)], []], [[Span(0.0, 1.0)], [Span(1.0, 2.0)]], [[Span(2.0, 3.0)], [Span(0.0, 1.0)]]],
)
def test_there_is_no_window_where_not_all_run(jobs: list[list[Span]]) -> None:
    assert window(jobs) is None


@pytest.mark.parametrize(
    ("round_", "share"),
    [
        ([Span(1.0, 2.0)], 1.0),
        ([Span(0.0, 4.0), Span(0.0, 1.0)], 0.25),
        ([Span(0.0, 2.0), Span(1.0, 4.0), Span(0.5, 3.0)], 0.25),
        ([Span(0.0, 1.0), Span(2.0, 3.0)], 0.0),
        ([Span(1.0, 1.0), Span(1.0, 1.0)], 1.0),
    ],
)
def test_the_overlap_is_the_share_in_which_all_run(round_: list[Span], share: float) -> None:
    assert overlap(round_) == share


@st.composite
def members(draw: st.DrawFn) -> list[Span]:
    """Jobs one after another, with pauses of any length between them."""
    steps = draw(st.lists(st.integers(0, 5), min_size=2, max_size=24))
    times = list(accumulate(steps, initial=draw(st.integers(0, 10))))
    return [Span(float(a), float(b)) for number, (a, b) in enumerate(pairwise(times)) if number % 2 == 0]


@given(st.lists(members(), min_size=1, max_size=4))
def test_jobs_inside_are_those_that_begin_and_end_in_the_window(jobs: list[list[Span]]) -> None:
    together = window(jobs)
    if together is None:
        assert max(some[0].start_s for some in jobs) >= min(some[-1].end_s for some in jobs)
        return
    for some in jobs:
        assert some[0].start_s <= together.start_s < together.end_s <= some[-1].end_s
        within = [job for job in some if together.start_s <= job.start_s and job.end_s <= together.end_s]
        assert some[inside(some, together)] == within


@given(st.lists(members(), min_size=1, max_size=4), members())
def test_another_member_never_lengthens_the_window(jobs: list[list[Span]], another: list[Span]) -> None:
    before, after = window(jobs), window([*jobs, another])
    assert after is None or (before is not None and after.length_s <= before.length_s)


@given(st.lists(members().map(lambda jobs: jobs[0]), min_size=1, max_size=5))
def test_the_overlap_is_a_share_whatever_the_order(round_: list[Span]) -> None:
    assert 0.0 <= overlap(round_) <= 1.0
    assert overlap(round_) == overlap(round_[::-1])


def test_orders_come_one_by_one_however_they_were_written() -> None:
    here, there = os.pipe()
    orders = Orders(here)
    assert not orders.waiting()
    os.write(there, b'{"do": "a"}\n{"do": "b", "runs": 3}\n{"do":')
    assert orders.waiting()
    assert orders.next() == {"do": "a"}
    assert orders.waiting()
    assert orders.next() == {"do": "b", "runs": 3}
    os.write(there, b' "c"}\n')
    assert orders.next() == {"do": "c"}
    assert not orders.waiting()
    os.close(there)
    assert orders.waiting(), "a loop must end when nobody is there to end it"
    assert orders.next() is None
    os.close(here)
