"""The Standard Workload Format: headers, lines, jobs, and schedules as traces."""

import gzip
import runpy
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosscast.cluster import COLUMNS, Machine, Policy, Schedule, read_machines, trace_files
from crosscast.cluster.job_types import read_gavel
from crosscast.cluster.simulate import simulate
from crosscast.cluster.trace_files import read_sacct, read_swf, read_trace, write_swf
from crosscast.cluster.traces import FIELDS, NAMES, Overruns, SwfHeader, header_of, trace_of
from crosscast.errors import InputError
from support.cluster import jobs_of, sound_line, trace_with, written
from support.examples import one_in
from support.refusals import refusal, refusals
from support.shared import shared_data

FIELD_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), max_size=20).map(
    str.strip
)


@pytest.mark.parametrize(
    ("comments", "fields"),
    [
        # A text goes on in the next line, and an address is no name.
        ("; Note: http://a.org/\n;     http://b.org/\n;", {"Note": "http://a.org/\nhttp://b.org/"}),
        # A comment that belongs to no name is passed over.
        ("; by hand\n; Note: a\n;\n;  another remark", {"Note": "a"}),
        # What steers a terminal does not come through.
        ("; Note: \x1b[2Jgone", {"Note": "[2Jgone"}),
    ],
)
def test_comments_are_texts_by_their_names(comments: str, fields: dict[str, str]) -> None:
    assert header_of(comments.split("\n")).fields == fields
    assert header_of([*comments.split("\n"), ";MaxNodes: 36"]).procs == 36


@given(st.dictionaries(FIELD_NAMES, st.lists(LINES, min_size=1, max_size=3).map("\n".join)))
def test_lines_of_a_header_read_back_are_the_header(fields: dict[str, str]) -> None:
    assert header_of(SwfHeader(fields).lines()) == SwfHeader(fields)


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
    columns = (jobs.number, jobs.submit_s, jobs.procs, jobs.run_s[:, 0], jobs.estimate_s[:, 0], found.rows)
    assert [column.tolist() for column in columns] == [[1, 2], [0, 5], [4, 2], [10, 0], [60, 0], [0, 1]]
    assert np.array(jobs.users)[jobs.user].tolist() == ["12", "3"]
    assert (found.left_out, found.without_request, found.overran, found.too_wide) == ({}, 1, 0, 0)


def test_each_line_is_left_out_for_the_first_reason_that_holds() -> None:
    found = trace_with(
        job=[1, 1, 1, 2, 3, 4, 5, 6, 7, 8],
        status=[1, 2, 3, 5, 5, 5, 1, 1, 0, 1],
        submit_s=[0, 0, NONE, 1, 2, 3, 4, 4, 4, NONE],
        run_s=[10, 5, 5, 0, NONE, 7, NONE, 10, NONE, 10],
        procs=[4, 4, 4, 4, 4, 4, 4, 0, NONE, 4],
    ).jobs()
    assert (found.jobs.number.tolist(), found.rows.tolist()) == ([1, 4], [0, 5])
    assert found.left_out == {
        "parts of a job that has a line of its own": 2,
        "cancelled before the start": 2,
        "no submit time": 1,
        "no processors": 2,
        "no run time": 1,
    }
    assert "2 left out: no processors" in found.notes()
    with pytest.raises(InputError, match=r"trace made: expected jobs that ran, found none \(2 no run time\)"):
        trace_with(run_s=[NONE, NONE]).jobs()


def test_parts_of_a_job_without_a_line_of_its_own_are_jobs() -> None:
    found = trace_with(job=[1, 2, 2], status=[1, 2, 3], submit_s=[0, 1, NONE]).jobs()
    assert (found.jobs.number.tolist(), found.left_out) == ([1, 2], {"no submit time": 1})
    # A job without a number has that of its line, and one that was allocated no processors those requested.
    found = trace_with(job=[7, NONE, 9], procs=[0, NONE, 0], requested_procs=[3, 5, 0]).jobs()
    assert (found.jobs.number.tolist(), found.jobs.procs.tolist()) == ([7, 2], [3, 5])
    assert found.left_out == {"no processors": 1}


@pytest.mark.parametrize(
    ("header", "overruns", "killed"),
    [
        ({}, "header", False),
        ({"AllowOveruse": "Yes"}, "header", False),
        ({"AllowOveruse": "No"}, "header", True),
        ({"AllowOveruse": "Yes"}, "kill", True),
    ],
)
def test_jobs_that_ran_too_long_are_killed_where_the_header_or_the_caller_says_so(
    header: dict[str, str], overruns: Overruns, killed: bool
) -> None:
    found = trace_with(run_s=[10, 100, 500, 10], requested_s=[60, 60, NONE, 0], header=header).jobs(
        overruns=overruns
    )
    assert found.jobs.run_s[:, 0].tolist() == [10, 60 if killed else 100, 500, 10]
    # A requested time of 0 is none.
    assert found.jobs.estimate_s[:, 0].tolist() == [60, 60, 500, 10]
    assert (found.overran, found.killed) == (1, killed)
    fate = "end at their request" if killed else "run on"
    assert f"1 ran longer than they requested: they {fate}" in found.notes()
    assert "2 requested no time: their estimate is how long they ran" in found.notes()


def test_jobs_wider_than_the_machine_stay_and_are_counted() -> None:
    found = trace_with(procs=[4, 101, 100], header={"MaxProcs": "100"}).jobs()
    assert (len(found.jobs), found.too_wide) == (3, 1)
    assert found.notes() == ["1 of more processors than the header says that there are"]
    assert trace_with(procs=[4]).jobs().too_wide is None


FIVE = [
    "; MaxProcs: 100 (4 nodes of 25)",
    "1 0 10 100 4 99.5 -1 4 200 -1 1 7 1 -1 -1 -1 -1 -1",
    "2 60.5 -1 552.21 -1 -1 2 8 -1 4 0 8 1 2 3 1 1 30",
    ";",
    "",
    "  3\t60.5  0 0 1 -1 -1 1 60 -1 5 7 1 -1 -1 -1 -1 -1\r",
]


@pytest.mark.parametrize("name", ["made.swf", "made.swf.gz", "made"])
def test_all_18_fields_are_read_in_si_units_of_compressed_traces_too(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, *FIVE, name=name)
    if name != "made.swf":
        path.write_bytes(gzip.compress(path.read_bytes()))
    trace = read_swf(path)
    assert (trace.label, len(trace), trace.header.procs) == ("made", 3, 100)
    expected = [
        [1, 0, 10, 100, 4, 99.5, NONE, 4, 200, NONE, 1, 7, 1, NONE, NONE, NONE, NONE, NONE],
        [2, 60.5, NONE, 552.21, NONE, NONE, 2048, 8, NONE, 4096, 0, 8, 1, 2, 3, 1, 1, 30],
        [3, 60.5, 0, 0, 1, NONE, NONE, 1, 60, NONE, 5, 7, 1, NONE, NONE, NONE, NONE, NONE],
    ]
    assert list(trace.columns) == list(NAMES)
    np.testing.assert_array_equal(np.stack([*trace.columns.values()], axis=1), expected)


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
    monkeypatch.setattr(trace_files, "_BLOCK", block)
    parts = read_swf(path)
    assert parts.header == whole.header
    assert parts.header.fields == {"Note": "in the middle"}
    np.testing.assert_equal(parts.columns, whole.columns)
    path = written(tmp_path, *lines, sound_line(60, 99).replace(" 100 ", " x "))
    assert "line 62: field 4 (run time)" in refusal(read_swf, path)


@refusals("line message")
def test_a_line_that_is_wrong_is_named_with_its_field(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, "; MaxProcs: 100", sound_line(), line, sound_line())
    assert refusal(read_swf, path) == f"{path}: {message}"


def test_the_first_job_out_of_order_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, *(sound_line(1, submit_s) for submit_s in (0, 600, 600, 599, 0)))
    message = "line 4: field 2 (submit time): expected at least 600, as in a line before, found 599"
    for block in (trace_files._BLOCK, 60):
        monkeypatch.setattr(trace_files, "_BLOCK", block)
        assert message in refusal(read_swf, path)


LINE = f"{sound_line()}\n".encode()
FLIPPED = bytearray(gzip.compress(LINE, mtime=0))
FLIPPED[-5] ^= 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.swf", b"", "expected a line for each job, found none"),
        ("a.swf", b"; Version: 2.2\n\n;\n", "expected a line for each job, found none"),
        ("a.swf", None, "cannot read the trace (No such file or directory)"),
        (".", None, "cannot read the trace (Is a directory)"),
        ("a.swf.gz", LINE, "expected a file compressed with gzip, found something else"),
        ("a.swf.gz", gzip.compress(LINE * 999, mtime=0)[:-20], "cannot read the trace (Compressed file"),
        ("a.swf.gz", bytes(FLIPPED), "cannot read the trace ("),
        ("a.swf", bytes(range(256)), "line 1: field 1"),
        ("a.swf.gz", gzip.compress(LINE + bytes(8 << 20), mtime=0), "line 2: expected 18 numbers, found"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert f"{tmp_path / name}: {said}" in refusal(read_swf, tmp_path / name)


@pytest.mark.parametrize(
    ("limit", "most", "content", "said"),
    [
        ("_MOST_COMMENTS", 1 << 18, b"\n" * (1 << 19), "expected a line for each job, found 524288 bytes"),
        ("_MOST_BYTES", 1 << 18, LINE * 7_500, "expected a trace of at most 0 GiB, found more"),
        ("_MOST_JOBS", 2, LINE * 3, "expected at most 2 jobs, found more"),
    ],
)
def test_a_small_file_that_becomes_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, content: bytes, said: str
) -> None:
    (tmp_path / "a.swf.gz").write_bytes(gzip.compress(content))
    monkeypatch.setattr(trace_files, limit, most)
    with pytest.raises(InputError, match=said):
        read_swf(tmp_path / "a.swf.gz")


WORDS = st.one_of(
    st.integers(0, 10**15 - 1).map(str),
    st.floats(0, 1e15).map(repr),
    st.sampled_from(["-1", "-1.0", "+3", "1e3", "007", ".5", "5."]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(WORDS, min_size=18, max_size=18), min_size=1, max_size=5), st.sampled_from(" \t"))
def test_every_number_is_read_as_python_reads_it_and_written_back_the_same(
    tmp_path: Path, rows: list[list[str]], space: str
) -> None:
    for row in rows:
        row[1] = "0"
        for place, field in enumerate(FIELDS):
            if field.kind in ("procs", "number"):
                row[place] = repr(float(int(float(row[place]))))
    trace = read_swf(written(tmp_path, "; MaxProcs: 5", *(space.join(row) for row in rows)))
    for place, field in enumerate(FIELDS):
        values = [float(row[place]) for row in rows]
        expected = [np.nan if value < 0 else value * field.unit for value in values]
        np.testing.assert_array_equal(trace.columns[field.name], expected)
    write_swf(trace, tmp_path / "back.swf")
    again = read_swf(tmp_path / "back.swf")
    assert (again.label, again.header) == ("back", trace.header)
    np.testing.assert_equal(again.columns, trace.columns)


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


def scheduled(users: tuple[str, ...] = ("ann", "bob"), first_s: float = 0.0) -> Schedule:
    rows = (first_s, 4, 10, 15), (first_s + 1.5, 1, 3.25, 4), (first_s + 2, 2, 7, np.inf)
    jobs = jobs_of(*rows, user=np.array([1, 0, 1]), users=users)
    # On the second machine it takes twice as long.
    jobs = replace(jobs, run_s=jobs.run_s * [1, 2], estimate_s=jobs.estimate_s + np.array([0, 10]))
    start_s, machines = jobs.submit_s + np.array([0, 0.5, 100]), [Machine("quartz", 8), Machine("lassen", 4)]
    end_s = start_s + np.array([20, 3.25, 7])
    return Schedule(jobs, machines, np.array([1, 0, 0]), start_s, end_s, np.full(3, np.nan))


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
        "1 0 0 20 4 -1 -1 4 25 -1 1 2 -1 -1 -1 2 -1 -1",
        "2 1.5 0.5 3.25 1 -1 -1 1 4 -1 1 1 -1 -1 -1 1 -1 -1",
        "3 2 100 7 2 -1 -1 2 -1 -1 1 2 -1 -1 -1 1 -1 -1",
    ]


@pytest.mark.parametrize(
    ("users", "numbers"),
    [(("a", "7"), [2, 1, 2]), (("7", "30"), [30, 7, 30]), (("7", "07"), [2, 1, 2]), (("²", "1"), [2, 1, 2])],
)
def test_users_keep_names_that_are_distinct_numbers(users: tuple[str, ...], numbers: list[int]) -> None:
    assert trace_of(scheduled(users), "ran").columns["user"].tolist() == numbers


@pytest.mark.parametrize(("first", "submits"), [(-50.0, [0, 1.5, 2]), (50.0, [50, 51.5, 52])])
def test_times_before_0_are_moved(first: float, submits: list[float]) -> None:
    columns = trace_of(scheduled(first_s=first), "ran").columns
    assert (columns["submit_s"].tolist(), columns["wait_s"].tolist()) == (submits, [0, 0.5, 100])


SACCT = "JobID|User|JobName|Partition|Submit|ElapsedRaw|TimelimitRaw|AllocCPUS|State\n"
LOG = SACCT + (
    "13|bob|solve|gpu|2024-05-31T12:00:30|600|20|4|COMPLETED\n"
    "12|ann|mesh|cpu|2024-05-31T12:00:00|60|UNLIMITED|2|TIMEOUT\n"
    "12.batch||batch||2024-05-31T12:00:00|60||2|COMPLETED\n"
    "14_2|ann|solve|gpu|2024-05-31T12:00:40|0|20|4|CANCELLED by 100\n"
    "15|ann|solve|gpu|2024-05-31T12:00:50|7|20|4|RUNNING\n"
)


def log(folder: Path, text: str) -> Path:
    path = folder / "jobs.txt"
    path.write_text(text)
    return path


def test_jobs_are_in_the_order_of_submission_and_steps_are_none(tmp_path: Path) -> None:
    trace = read_sacct(log(tmp_path, LOG))
    assert trace.columns["job"].tolist() == [12, 13, 14, 15]
    assert trace.columns["submit_s"].tolist() == [0, 30, 40, 50]
    np.testing.assert_array_equal(trace.columns["requested_s"], [np.nan, 1200, 1200, 1200])
    found = trace.jobs()
    assert found.jobs.number.tolist() == [12, 13]
    assert found.jobs.run_s[:, 0].tolist() == [60, 600]
    assert found.jobs.procs.tolist() == [2, 4]
    assert found.left_out == {"cancelled before the start": 1, "no run time": 1}
    assert np.array(found.jobs.users)[found.jobs.user].tolist() == ["ann", "bob"]
    assert trace.names["executable"] == ("solve", "mesh")


def test_fields_that_are_not_read_may_be_long(tmp_path: Path) -> None:
    head, *jobs = LOG.splitlines()
    text = "\n".join([f"{head}|SubmitLine", *(f"{job}|{'x' * 70_000}" for job in jobs)])
    assert read_sacct(log(tmp_path, text)).names == read_sacct(log(tmp_path, LOG)).names


def test_times_may_be_as_people_read_them_or_unknown(tmp_path: Path) -> None:
    text = "JobID|Submit|Elapsed|Timelimit|NNodes|State\n1|2024-05-31T12:00:00|1-02:03:04|10:00|3|FAILED\n"
    (tmp_path / "jobs.gz").write_bytes(gzip.compress(text.encode()))
    columns = read_trace(tmp_path / "jobs.gz").columns
    assert (columns["run_s"][0], columns["requested_s"][0], columns["procs"][0]) == (93784, 600, 3)
    assert read_trace(written(tmp_path, sound_line())).columns["run_s"].tolist() == [100]
    (tmp_path / "jobs.gz").write_bytes(b"\x1f\x8b" + bytes(20))
    for reader in (read_trace, read_sacct):
        assert "Unknown compression method" in refusal(reader, tmp_path / "jobs.gz")
    # With offsets, as SLURM_TIME_FORMAT may ask for, two hours pass when clocks are set back by one.
    offsets = "JobID|Submit|Elapsed|NNodes|State\n1|2024-10-27T02:30:00+0200|10:00|3|FAILED\n"
    offsets += "2|2024-10-27T03:30:00+0100|10:00|3|FAILED\n"
    assert read_sacct(log(tmp_path, offsets)).columns["submit_s"].tolist() == [0, 7200]
    unknown = log(tmp_path, "JobID|Submit|Elapsed|NNodes|State\n1|Unknown|10:00|3|FAILED\n")
    assert np.isnan(read_sacct(unknown).columns["submit_s"]).all()


@refusals("text message")
def test_what_slurm_does_not_write_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(read_sacct, log(tmp_path, text))


def test_a_stray_end_of_line_belongs_to_its_field(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_bytes(LOG.replace("solve", "so\rlve").encode())
    assert read_sacct(path).names["executable"] == ("so\rlve", "mesh")


# Real logs: they lie beside the checkout, in shared/data, or where CROSSCAST_DATA points

KTH, HPC2N = ("KTH-SP2-1996-2.1-cln", 100), ("HPC2N-2002-2.1-cln", 240)

KTH_WAITED_S = 6_129_704_263
"""Seconds that all jobs together wait in AccaSim 1.1.3, by FirstInFirstOut and FirstFit on 100 nodes of one
core, as ``python -m benchmarks.schedule`` runs it."""


def test_first_come_first_served_a_whole_log_is_as_in_accasim() -> None:
    name, procs = KTH
    jobs = read_swf(shared_data(f"swf/{name}.swf.gz")).jobs().jobs.killed_at_estimate()
    schedule = simulate(jobs, [Machine("one", procs)], policy=Policy(backfill=None))
    assert len(jobs) == 27_992
    assert schedule.wait_s.sum() == KTH_WAITED_S


@pytest.mark.parametrize(
    ("log", "count", "overran", "users"), one_in(2, [(KTH, 27_992, 0, 212), (HPC2N, 202_876, 14_817, 257)])
)
def test_a_log_is_read_as_another_reader_reads_it_and_all_lines_are_jobs(
    log: tuple[str, int], count: int, overran: int, users: int
) -> None:
    name, procs = log
    path = shared_data(f"swf/{name}.swf.gz")
    trace = read_swf(path)
    assert (trace.label, len(trace), trace.header.max_procs) == (name, count, procs)
    with gzip.open(path) as file:
        numbers = np.array([line.split() for line in file if not line.startswith(b";")], dtype=np.float64)
    numbers[numbers < 0] = np.nan
    for column, field in zip(numbers.T, FIELDS, strict=True):
        np.testing.assert_array_equal(trace.columns[field.name], column * field.unit, err_msg=field.name)
    found = trace.jobs()
    assert (found.left_out, found.too_wide, found.without_request, found.killed) == ({}, 0, 0, False)
    assert (len(found.jobs), found.overran, len(found.jobs.users)) == (count, overran, users)


def test_gavels_traces_run_on_three_kinds_of_gpu(tmp_path: Path) -> None:
    speeds = shared_data("gpu_corun/gavel_standalone.csv")
    with tarfile.open(shared_data("swf/gavel_traces.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    left_out = {"ee9e8c": 373, "ed69ec": 0, "795a4c": 0, "2869ce": 179}
    for name, missed in left_out.items():
        path = tmp_path / f"{name}.trace"
        trace = read_gavel(path, speeds)
        assert trace.kinds == ("k80", "p100", "v100")
        assert sum(trace.left_out.values()) == missed
        with path.open(encoding="utf-8") as file:
            assert len(trace.jobs) + missed == sum(1 for _ in file)
    # 79,561 steps of a Transformer, of which the file of speeds says 5.446 a second.
    first = read_gavel(tmp_path / "795a4c.trace", speeds).jobs
    assert first.run_s[0, 2] == 79_561 / 5.44610521981264
    with pytest.raises(InputError, match="expected jobs whose speed is known, found none"):
        read_gavel(tmp_path / "philly.trace", speeds)


def test_every_column_of_a_schedule_is_documented_and_its_machines_can_be_read(tmp_path: Path) -> None:
    docs = Path(__file__).parents[2] / "docs"
    hooks = runpy.run_path(str(docs / "hooks.py"))
    document: str = hooks["on_page_markdown"]((docs / "traces.md").read_text(encoding="utf-8"))
    section = document.split("\n## Schedules\n")[1].split("\n## ")[0]
    rows = " ".join(line for line in section.splitlines() if line.startswith("| "))
    places = [rows.index(f"`{name}`") for name in COLUMNS]
    assert places == sorted(places)
    path = tmp_path / "machines.toml"
    path.write_text(document.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    found = [(machine.name, machine.procs, machine.device) for machine in read_machines(path)]
    assert found == [("quartz", 2988, None), ("lassen", 795, "v100")]
