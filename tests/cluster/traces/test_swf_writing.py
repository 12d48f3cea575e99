from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from swf_made import trace_with

from crosscast.cluster.jobs import Jobs, Machine, Schedule
from crosscast.cluster.swf import FIELDS, NAMES, SwfHeader, Trace, read_swf, write_swf
from crosscast.errors import InputError


def scheduled(users: tuple[str, ...] = ("ann", "bob"), first_submit: float = 0.0) -> Schedule:
    submit = np.array([0.0, 1.5, 2.0]) + first_submit
    jobs = Jobs(
        number=np.array([5, 6, 9]),
        submit_s=submit,
        procs=np.array([4, 1, 2]),
        run_s=np.array([[10.0, 20.0], [3.25, np.inf], [7.0, 7.0]]),
        estimate_s=np.array([[15.0, 25.0], [4.0, np.inf], [np.inf, np.inf]]),
        user=np.array([1, 0, 1]),
        users=users,
    )
    start = submit + np.array([0.0, 0.5, 100.0])
    machines = [Machine("quartz", 8), Machine("lassen", 4)]
    return Schedule(
        jobs, machines, np.array([1, 0, 0]), start, start + np.array([20.0, 3.25, 7.0]), np.full(3, np.nan)
    )


def test_a_schedule_is_the_trace_of_a_cluster_that_ran_it(tmp_path: Path) -> None:
    path = tmp_path / "ran.swf"
    write_swf(scheduled(), path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        "; Version: 2.2",
        "; Computer: quartz, lassen",
        "; Conversion: a schedule that Crosscast simulated",
        "; MaxJobs: 3",
        "; MaxRecords: 3",
        "; Preemption: No",
        "; MaxProcs: 12",
        "; MaxPartitions: 2",
        "; Partition: 1 quartz (8 processors)",
        "; Partition: 2 lassen (4 processors)",
        "5 0 0 20 4 -1 -1 4 25 -1 1 2 -1 -1 -1 2 -1 -1",
        "6 1.5 0.5 3.25 1 -1 -1 1 4 -1 1 1 -1 -1 -1 1 -1 -1",
        "9 2 100 7 2 -1 -1 2 -1 -1 1 2 -1 -1 -1 1 -1 -1",
    ]


def test_a_schedule_read_back_has_its_jobs(tmp_path: Path) -> None:
    schedule = scheduled(users=("unknown", "12"))
    write_swf(schedule, tmp_path / "ran.swf")
    trace = read_swf(tmp_path / "ran.swf")
    jobs = trace.jobs().jobs
    for name in ("number", "submit_s", "procs"):
        np.testing.assert_array_equal(getattr(jobs, name), getattr(schedule.jobs, name))
    np.testing.assert_array_equal(jobs.run_s[:, 0], schedule.ran_s)
    np.testing.assert_array_equal(trace.columns["wait_s"], schedule.wait_s)
    assert jobs.user is not None
    assert [jobs.users[place] for place in jobs.user] == ["12", "unknown", "12"]


@pytest.mark.parametrize(
    ("users", "numbers"),
    [(("a", "7"), [2, 1, 2]), (("7", "30"), [30, 7, 30]), (("7", "07"), [2, 1, 2]), (("²", "1"), [2, 1, 2])],
)
def test_users_keep_names_that_are_distinct_numbers(
    tmp_path: Path, users: tuple[str, ...], numbers: list[int]
) -> None:
    write_swf(scheduled(users), tmp_path / "ran.swf")
    assert read_swf(tmp_path / "ran.swf").columns["user"].tolist() == numbers


def test_times_before_0_are_moved(tmp_path: Path) -> None:
    write_swf(scheduled(first_submit=-50.0), tmp_path / "ran.swf")
    columns = read_swf(tmp_path / "ran.swf").columns
    assert columns["submit_s"].tolist() == [0, 1.5, 2]
    assert columns["wait_s"].tolist() == [0, 0.5, 100]
    write_swf(scheduled(first_submit=50.0), tmp_path / "ran.swf")
    assert read_swf(tmp_path / "ran.swf").columns["submit_s"].tolist() == [50, 51.5, 52]


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none/a\.swf: cannot write the trace \(No such file or directory\)"
    ):
        write_swf(trace_with(run_s=[1]), tmp_path / "none" / "a.swf")
    assert not list(tmp_path.iterdir())


WHOLE = st.integers(0, 2**53).map(float)
# As 1024 bytes are a unit of the file, no number is so small that a 1024th of it is less exact.
REALS = st.just(0.0) | st.floats(1e-300, 2.0**43)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    count = draw(st.integers(1, 4))
    columns = {}
    for field in FIELDS:
        numbers = (WHOLE if field.is_whole else REALS) | st.just(np.nan)
        columns[field.name] = np.array(draw(st.lists(numbers, min_size=count, max_size=count)))
    # Missing ones, which sort last, may stand anywhere; all others are in order.
    columns["submit_s"] = np.sort(columns["submit_s"])
    return Trace("back", SwfHeader({"MaxProcs": "5", "Note": "a\nb: c"}), columns)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(traces())
def test_a_trace_read_back_is_the_same(tmp_path: Path, trace: Trace) -> None:
    write_swf(trace, tmp_path / "back.swf")
    again = read_swf(tmp_path / "back.swf")
    assert (again.label, again.header) == (trace.label, trace.header)
    for name in NAMES:
        np.testing.assert_array_equal(again.columns[name], trace.columns[name], err_msg=name)
