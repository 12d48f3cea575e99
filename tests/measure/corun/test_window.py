"""The time in which all members run: its laws, and cases small enough to see."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.measure.corun.session import Span, inside, overlap, window


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
