import numpy as np
import pytest
from swf_made import trace_with

from crosscast.cluster.swf import Overruns
from crosscast.errors import InputError

NONE = float("nan")


def test_a_job_is_what_its_line_says() -> None:
    found = trace_with(
        submit_s=[0, 5],
        run_s=[10, 0],
        procs=[4, NONE],
        requested_procs=[8, 2],
        requested_s=[60, NONE],
        user=[12, 3],
        header={"MaxProcs": "4"},
    ).jobs()
    jobs = found.jobs
    assert jobs.number.tolist() == [1, 2]
    assert jobs.submit_s.tolist() == [0, 5]
    assert jobs.procs.tolist() == [4, 2]
    assert jobs.run_s.tolist() == [[10], [0]]
    assert jobs.estimate_s.tolist() == [[60], [0]]
    assert jobs.user is not None
    assert [jobs.users[place] for place in jobs.user] == ["12", "3"]
    assert found.rows.tolist() == [0, 1]
    assert found.left_out == {}
    assert (found.without_request, found.overran, found.too_wide) == (1, 0, 0)


def test_each_line_is_left_out_for_the_first_reason_that_holds() -> None:
    found = trace_with(
        job=[1, 1, 1, 2, 3, 4, 5, 6, 7, 8],
        status=[1, 2, 3, 5, 5, 5, 1, 1, 0, 1],
        submit_s=[0, 0, NONE, 1, 2, 3, 4, 4, 4, NONE],
        run_s=[10, 5, 5, 0, NONE, 7, NONE, 10, NONE, 10],
        procs=[4, 4, 4, 4, 4, 4, 4, 0, NONE, 4],
    ).jobs()
    assert found.jobs.number.tolist() == [1, 4]
    assert found.rows.tolist() == [0, 5]
    assert found.left_out == {
        "parts of a job that has a line of its own": 2,
        "cancelled before the start": 2,
        "no submit time": 1,
        "no processors": 2,
        "no run time": 1,
    }
    assert "2 left out: no processors" in found.notes()


def test_parts_of_a_job_without_a_line_of_its_own_are_jobs() -> None:
    found = trace_with(job=[1, 2, 2], status=[1, 2, 3], submit_s=[0, 1, NONE]).jobs()
    assert found.jobs.number.tolist() == [1, 2]
    assert found.left_out == {"no submit time": 1}


def test_no_processors_allocated_leaves_those_requested() -> None:
    found = trace_with(procs=[0, NONE, 0], requested_procs=[3, 5, 0]).jobs()
    assert found.jobs.procs.tolist() == [3, 5]
    assert found.left_out == {"no processors": 1}


def test_exact_estimates_are_how_long_jobs_run() -> None:
    trace = trace_with(run_s=[10, 100], requested_s=[60, 60])
    assert trace.jobs(estimates="exact").jobs.estimate_s.tolist() == [[10], [100]]
    killed = trace.jobs(estimates="exact", overruns="kill").jobs
    assert killed.run_s.tolist() == killed.estimate_s.tolist() == [[10], [60]]


@pytest.mark.parametrize(
    ("said", "overruns", "killed"),
    [
        (None, "header", False),
        ("Yes", "header", False),
        ("No", "header", True),
        ("No", "run", False),
        ("Yes", "kill", True),
        (None, "kill", True),
    ],
)
def test_jobs_that_ran_too_long_are_killed_where_the_header_or_the_caller_says_so(
    said: str | None, overruns: Overruns, killed: bool
) -> None:
    header = {} if said is None else {"AllowOveruse": said}
    found = trace_with(run_s=[10, 100, 500], requested_s=[60, 60, NONE], header=header).jobs(
        overruns=overruns
    )
    assert found.jobs.run_s[:, 0].tolist() == [10, 60 if killed else 100, 500]
    assert found.jobs.estimate_s[:, 0].tolist() == [60, 60, 500]
    assert found.overran == 1
    assert found.killed is killed
    fate = "end at their request" if killed else "run on"
    assert f"1 ran longer than they requested: they {fate}" in found.notes()


def test_a_requested_time_of_0_is_none() -> None:
    found = trace_with(run_s=[10], requested_s=[0]).jobs(overruns="kill")
    assert found.jobs.run_s.tolist() == found.jobs.estimate_s.tolist() == [[10]]
    assert found.notes() == ["1 requested no time: their estimate is how long they ran"]


def test_jobs_wider_than_the_machine_stay_and_are_counted() -> None:
    trace = trace_with(procs=[4, 101, 100], header={"MaxProcs": "100"})
    found = trace.jobs()
    assert len(found.jobs) == 3
    assert found.too_wide == 1
    assert found.notes() == ["1 need more processors than the header says that there are"]
    assert trace_with(procs=[4]).jobs().too_wide is None


def test_jobs_without_a_user_have_an_unknown_one() -> None:
    jobs = trace_with(user=[2, NONE, 2]).jobs().jobs
    assert jobs.user is not None
    assert [jobs.users[place] for place in jobs.user] == ["2", "unknown", "2"]
    nobody = trace_with(user=[NONE]).jobs().jobs
    assert nobody.user is None
    assert nobody.users == ()


def test_jobs_without_a_number_have_that_of_their_line() -> None:
    assert trace_with(job=[7, NONE]).jobs().jobs.number.tolist() == [7, 2]


def test_a_trace_without_jobs_that_ran_is_refused() -> None:
    with pytest.raises(InputError, match=r"trace made: expected jobs that ran, found none \(2 no run time\)"):
        trace_with(run_s=[NONE, NONE]).jobs()


def test_unknown_choices_are_refused() -> None:
    trace = trace_with(run_s=[1])
    with pytest.raises(InputError, match="estimates: expected one of requested, exact, found 'best'"):
        trace.jobs(estimates="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="overruns: expected one of header, kill, run, found 'no'"):
        trace.jobs(overruns="no")  # type: ignore[arg-type]


def test_cleaning_leaves_the_trace_as_it_is() -> None:
    trace = trace_with(run_s=[500, NONE], requested_s=[60, 60])
    before = {name: column.copy() for name, column in trace.columns.items()}
    trace.jobs(overruns="kill")
    for name, column in before.items():
        np.testing.assert_array_equal(trace.columns[name], column)
