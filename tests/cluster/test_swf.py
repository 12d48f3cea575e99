"""The Standard Workload Format: headers, lines, jobs, and schedules as traces."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosscast.cluster import swf
from crosscast.cluster.jobs import Jobs, Machine, Schedule
from crosscast.cluster.swf import (
    FIELDS,
    NAMES,
    JobTrace,
    Overruns,
    SwfHeader,
    header_of,
    read_swf,
    trace_of,
    write_swf,
)
from crosscast.errors import InputError
from support.cluster import sound_line, trace_with, written
from support.refusals import refusal, refusals

FIELD_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), max_size=20).map(
    str.strip
)


def test_typed_fields_are_numbers_and_answers() -> None:
    nodes = ("; MaxNodes: 36", ";MaxProcs:  1152 (36 nodes of 32)")
    header = header_of([*nodes, "; AllowOveruse: No", "; Preemption: Double"])
    assert (header.max_nodes, header.max_procs, header.procs) == (36, 1152, 1152)
    assert header.allow_overuse is False
    assert header.preemption == "Double"


@pytest.mark.parametrize(
    ("comments", "fields"),
    [
        # A text goes on in the next line, and an address is no name.
        (
            [
                *("; Information: http://a.org/", ";              http://b.org/", ";"),
                *("; Queue: 1 a", "; Queue: 2 b"),
            ],
            {"Information": "http://a.org/\nhttp://b.org/", "Queue": "1 a\n2 b"},
        ),
        # A comment that belongs to no name is passed over.
        (["; by hand", "; Note: a", ";", ";  another remark"], {"Note": "a"}),
        # What steers a terminal does not come through.
        (["; Note: \x1b[2Jgone"], {"Note": "[2Jgone"}),
    ],
)
def test_comments_are_texts_by_their_names(comments: list[str], fields: dict[str, str]) -> None:
    assert header_of(comments).fields == fields


@given(st.dictionaries(FIELD_NAMES, st.lists(LINES, min_size=1, max_size=3).map("\n".join)))
def test_lines_of_a_header_read_back_are_the_header(fields: dict[str, str]) -> None:
    header = SwfHeader(fields)
    assert header_of(header.lines()) == header


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
    assert (found.jobs.number.tolist(), found.left_out) == ([1, 2], {"no submit time": 1})
    # A job without a number has that of its line, and one that was allocated no processors those requested.
    found = trace_with(job=[7, NONE, 9], procs=[0, NONE, 0], requested_procs=[3, 5, 0]).jobs()
    assert (found.jobs.number.tolist(), found.jobs.procs.tolist()) == ([7, 2], [3, 5])
    assert found.left_out == {"no processors": 1}


@pytest.mark.parametrize(
    ("said", "overruns", "killed"),
    [
        (None, "header", False),
        ("Yes", "header", False),
        ("No", "header", True),
        ("Yes", "kill", True),
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


def test_jobs_wider_than_the_machine_stay_and_are_counted() -> None:
    found = trace_with(procs=[4, 101, 100], header={"MaxProcs": "100"}).jobs()
    assert (len(found.jobs), found.too_wide) == (3, 1)
    assert found.notes() == ["1 of more processors than the header says that there are"]
    assert trace_with(procs=[4]).jobs().too_wide is None
    # A requested time of 0 is none.
    found = trace_with(run_s=[10], requested_s=[0]).jobs(overruns="kill")
    assert found.jobs.run_s.tolist() == found.jobs.estimate_s.tolist() == [[10]]
    assert found.notes() == ["1 requested no time: their estimate is how long they ran"]


def test_a_trace_without_jobs_that_ran_is_refused() -> None:
    with pytest.raises(InputError, match=r"trace made: expected jobs that ran, found none \(2 no run time\)"):
        trace_with(run_s=[NONE, NONE]).jobs()


FIVE = [
    "; MaxProcs: 100",
    "1 0 10 100 4 99.5 -1 4 200 -1 1 7 1 -1 -1 -1 -1 -1",
    "2 60.5 -1 552.21 -1 -1 2 8 -1 4 0 8 1 2 3 1 1 30",
    ";",
    "",
    "  3\t60.5  0 0 1 -1 -1 1 60 -1 5 7 1 -1 -1 -1 -1 -1\r",
]


def test_all_18_fields_are_read_in_si_units(tmp_path: Path) -> None:
    trace = read_swf(written(tmp_path, *FIVE))
    assert len(trace) == 3
    assert trace.label == "made"
    assert trace.header.max_procs == 100
    nan = np.nan
    expected = {
        "job": [1, 2, 3],
        "submit_s": [0, 60.5, 60.5],
        "wait_s": [10, nan, 0],
        "run_s": [100, 552.21, 0],
        "procs": [4, nan, 1],
        "cpu_s": [99.5, nan, nan],
        "memory_bytes": [nan, 2048, nan],
        "requested_procs": [4, 8, 1],
        "requested_s": [200, nan, 60],
        "requested_memory_bytes": [nan, 4096, nan],
        "status": [1, 0, 5],
        "user": [7, 8, 7],
        "group": [1, 1, 1],
        "executable": [nan, 2, nan],
        "queue": [nan, 3, nan],
        "partition": [nan, 1, nan],
        "preceding_job": [nan, 1, nan],
        "think_s": [nan, 30, nan],
    }
    assert list(trace.columns) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(trace.columns[name], values, err_msg=name)


def test_a_compressed_trace_is_the_same_trace(tmp_path: Path) -> None:
    plain = written(tmp_path, *FIVE)
    packed = tmp_path / "made.swf.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    nameless = tmp_path / "made"
    nameless.write_bytes(packed.read_bytes())
    for path in (packed, nameless):
        trace = read_swf(path)
        assert trace.label == "made"
        for name, column in read_swf(plain).columns.items():
            np.testing.assert_array_equal(trace.columns[name], column)


def test_the_last_line_needs_no_end_and_an_old_header_no_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "a.swf"
    path.write_bytes(f"; Installation: Umeå\n{sound_line(1)}\n{sound_line(2)}".encode("latin-1"))
    assert read_swf(path).columns["job"].tolist() == [1, 2]
    assert read_swf(path).header.fields == {"Installation": "Umeå"}


@pytest.mark.parametrize("block", [90, 128, 1000])
def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    lines = [sound_line(job, job / 2) for job in range(1, 60)]
    lines[20:20] = ["; Note: in the middle", ""]
    path = written(tmp_path, *lines)
    whole = read_swf(path)
    monkeypatch.setattr(swf, "_BLOCK", block)
    parts = read_swf(path)
    assert parts.header == whole.header
    assert parts.header.fields == {"Note": "in the middle"}
    for name in NAMES:
        np.testing.assert_array_equal(parts.columns[name], whole.columns[name])
    path = written(tmp_path, *lines, sound_line(60, 99).replace(" 100 ", " x "))
    assert "line 62: field 4 (run time)" in refusal(read_swf, path)


@refusals("line message")
def test_a_line_that_is_wrong_is_named_with_its_field(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, "; MaxProcs: 100", sound_line(), line, sound_line())
    with pytest.raises(InputError) as raised:
        read_swf(path)
    assert str(raised.value) == f"{path}: {message}"


def test_the_first_job_out_of_order_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(
        tmp_path, *(sound_line(job, submit) for job, submit in enumerate([0, 600, 600, 599, 0], start=1))
    )
    message = "line 4: field 2 (submit time): expected at least 600, as in a line before, found 599"
    assert message in refusal(read_swf, path)
    monkeypatch.setattr(swf, "_BLOCK", 60)
    assert message in refusal(read_swf, path)


@pytest.mark.parametrize("lines", [[], ["; Version: 2.2", "", ";"]])
def test_an_empty_trace_is_refused(tmp_path: Path, lines: list[str]) -> None:
    assert "expected a line for each job, found none" in refusal(read_swf, written(tmp_path, *lines))


def test_what_is_no_trace_is_refused_in_one_sentence(tmp_path: Path) -> None:
    absent = tmp_path / "absent.swf"
    assert "absent.swf: cannot read the trace (No such file or directory)" in refusal(read_swf, absent)
    assert "cannot read the trace (Is a directory)" in refusal(read_swf, tmp_path)
    plain = written(tmp_path, sound_line(), name="plain.swf.gz")
    assert "expected a file compressed with gzip, found something else" in refusal(read_swf, plain)
    cut = tmp_path / "cut.swf.gz"
    cut.write_bytes(gzip.compress(b"\n".join(sound_line(job).encode() for job in range(999)))[:-20])
    assert "cut.swf.gz: cannot read the trace (Compressed file ended" in refusal(read_swf, cut)
    flipped = bytearray(gzip.compress(sound_line().encode()))
    flipped[-5] ^= 1
    cut.write_bytes(bytes(flipped))
    assert "cut.swf.gz: cannot read the trace (" in refusal(read_swf, cut)
    binary = tmp_path / "binary.swf"
    binary.write_bytes(bytes(range(256)))
    assert "binary.swf: line 1: field 1" in refusal(read_swf, binary)


def test_a_line_without_end_and_a_small_file_that_becomes_large_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.swf.gz"
    path.write_bytes(gzip.compress(f"{sound_line()}\n".encode() + bytes(8 << 20)))
    assert "line 2: expected 18 numbers, found more than 64 KiB without an" in refusal(read_swf, path)
    monkeypatch.setattr(swf, "_MOST_COMMENTS", 1 << 18)
    path.write_bytes(gzip.compress(b"\n" * (1 << 19)))
    with pytest.raises(InputError, match=r"expected a line for each job, found \d+ bytes of other lines"):
        read_swf(path)
    monkeypatch.setattr(swf, "_MOST_BYTES", 1 << 18)
    path.write_bytes(gzip.compress(f"{sound_line()}\n".encode() * 7_500))
    assert "expected a trace of at most 0 GiB, found more" in refusal(read_swf, path)
    monkeypatch.setattr(swf, "_MOST_JOBS", 2)
    assert len(read_swf(written(tmp_path, sound_line(), sound_line()))) == 2
    with pytest.raises(InputError, match="expected at most 2 jobs, found more"):
        read_swf(written(tmp_path, sound_line(), sound_line(), sound_line()))


WORDS = st.one_of(
    st.integers(0, 10**15 - 1).map(str),
    st.floats(0, 1e15).map(repr),
    st.sampled_from(["-1", "-1.0", "+3", "1e3", "007", ".5", "5."]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(WORDS, min_size=18, max_size=18), min_size=1, max_size=5), st.sampled_from(" \t"))
def test_every_number_is_read_as_python_reads_it(tmp_path: Path, rows: list[list[str]], space: str) -> None:
    for row in rows:
        row[1] = "0"
    for place, field in enumerate(FIELDS):
        if field.kind in ("procs", "number"):
            for row in rows:
                row[place] = repr(float(int(float(row[place]))))
    trace = read_swf(written(tmp_path, *(space.join(row) for row in rows)))
    for place, field in enumerate(FIELDS):
        values = [float(row[place]) for row in rows]
        expected = [np.nan if value < 0 else value * field.unit for value in values]
        np.testing.assert_array_equal(trace.columns[field.name], expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=60) | st.text("0123456789 .-+eE\r\n\t;", max_size=60).map(str.encode),
    st.integers(0, 2),
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, noise: bytes, place: int) -> None:
    parts = [sound_line(1).encode() + b"\n", sound_line(2).encode() + b"\n"]
    parts.insert(place, noise)
    path = tmp_path / "noise.swf"
    path.write_bytes(b"".join(parts))
    try:
        trace = read_swf(path)
    except InputError as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert len(trace) >= 1


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


@pytest.mark.parametrize(
    ("users", "numbers"),
    [(("a", "7"), [2, 1, 2]), (("7", "30"), [30, 7, 30]), (("7", "07"), [2, 1, 2]), (("²", "1"), [2, 1, 2])],
)
def test_users_keep_names_that_are_distinct_numbers(users: tuple[str, ...], numbers: list[int]) -> None:
    assert trace_of(scheduled(users), "ran").columns["user"].tolist() == numbers


@pytest.mark.parametrize(("first", "submits"), [(-50.0, [0, 1.5, 2]), (50.0, [50, 51.5, 52])])
def test_times_before_0_are_moved(first: float, submits: list[float]) -> None:
    columns = trace_of(scheduled(first_submit=first), "ran").columns
    assert (columns["submit_s"].tolist(), columns["wait_s"].tolist()) == (submits, [0, 0.5, 100])


WHOLE = st.integers(0, 2**53).map(float)
# As 1024 bytes are a unit of the file, no number is so small that a 1024th of it is less exact.
REALS = st.just(0.0) | st.floats(1e-300, 2.0**43)


@st.composite
def traces(draw: st.DrawFn) -> JobTrace:
    count = draw(st.integers(1, 4))
    columns = {}
    for field in FIELDS:
        numbers = (WHOLE if field.kind in ("procs", "number") else REALS) | st.just(np.nan)
        columns[field.name] = np.array(draw(st.lists(numbers, min_size=count, max_size=count)))
    # Missing ones, which sort last, may stand anywhere; all others are in order.
    columns["submit_s"] = np.sort(columns["submit_s"])
    return JobTrace("back", SwfHeader({"MaxProcs": "5", "Note": "a\nb: c"}), columns)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(traces())
def test_a_trace_read_back_is_the_same(tmp_path: Path, trace: JobTrace) -> None:
    write_swf(trace, tmp_path / "back.swf")
    again = read_swf(tmp_path / "back.swf")
    assert (again.label, again.header) == (trace.label, trace.header)
    for name in NAMES:
        np.testing.assert_array_equal(again.columns[name], trace.columns[name], err_msg=name)
