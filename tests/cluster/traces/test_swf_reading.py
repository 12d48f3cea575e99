import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from swf_made import line_with, sound_line, written

from crosscast.cluster import swf as swf_reading
from crosscast.cluster import swf as swf_text
from crosscast.cluster.swf import FIELDS, NAMES, read_swf
from crosscast.errors import InputError

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


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    path = tmp_path / "a.swf"
    path.write_text(f"{sound_line(1)}\n{sound_line(2)}", encoding="utf-8")
    assert read_swf(path).columns["job"].tolist() == [1, 2]


def test_an_old_header_that_is_not_in_utf_8_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.swf"
    path.write_bytes("; Installation: Umeå\n".encode("latin-1") + sound_line().encode() + b"\n")
    assert read_swf(path).header.fields == {"Installation": "Umeå"}


@pytest.mark.parametrize("block", [90, 128, 1000])
def test_blocks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    lines = [sound_line(job, job / 2) for job in range(1, 60)]
    lines[20:20] = ["; Note: in the middle", ""]
    path = written(tmp_path, *lines)
    whole = read_swf(path)
    monkeypatch.setattr(swf_text, "_BLOCK", block)
    parts = read_swf(path)
    assert parts.header == whole.header
    assert parts.header.fields == {"Note": "in the middle"}
    for name in NAMES:
        np.testing.assert_array_equal(parts.columns[name], whole.columns[name])
    path = written(tmp_path, *lines, line_with(job=60, submit_s=99, run_s="x"))
    with pytest.raises(InputError, match=r"line 62: field 4 \(run time\)"):
        read_swf(path)


def test_columns_without_anything_take_no_memory(tmp_path: Path) -> None:
    trace = read_swf(written(tmp_path, *(sound_line(job) for job in range(1, 9))))
    assert trace.columns["think_s"].strides == (0,)
    assert trace.columns["job"].strides == (8,)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 0 5 100", "line 3: expected 18 fields, found 4"),
        (f"{sound_line()} 1", "line 3: expected 18 fields, found 19"),
        (line_with(run_s="1o0"), "line 3: field 4 (run time): expected a number, found '1o0'"),
        (line_with(run_s="nan"), "line 3: field 4 (run time): expected a number, found 'nan'"),
        (line_with(run_s="1-2"), "line 3: field 4 (run time): expected a number, found '1-2'"),
        (line_with(run_s="."), "line 3: field 4 (run time): expected a number, found '.'"),
        (line_with(run_s="1_0"), "line 3: field 4 (run time): expected a number, found '1_0'"),
        (line_with(job="\f1"), "line 3: field 1 (job number): expected a number, found '\\x0c1'"),
        (
            line_with(run_s=-3),
            "line 3: field 4 (run time): expected at least 0, or -1 where nothing is known, found -3",
        ),
        (
            line_with(submit_s=-0.5),
            "line 3: field 2 (submit time): expected at least 0, or -1 where nothing is known, found -0.5",
        ),
        (line_with(procs=2.5), "line 3: field 5 (allocated processors): expected a whole number, found 2.5"),
        (
            line_with(run_s="1e999"),
            "line 3: field 4 (run time): expected a number of at most 2^53, found inf",
        ),
        (
            line_with(job=99999999999999999),
            "line 3: field 1 (job number): expected a number of at most 2^53, found 1e+17",
        ),
    ],
)
def test_a_line_that_is_wrong_is_named_with_its_field(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, "; MaxProcs: 100", sound_line(), line, sound_line())
    with pytest.raises(InputError) as raised:
        read_swf(path)
    assert str(raised.value) == f"{path}: {message}"


def test_negative_numbers_of_what_is_no_time_are_missing(tmp_path: Path) -> None:
    trace = read_swf(written(tmp_path, line_with(queue=-2, memory_bytes=-1.5)))
    assert np.isnan(trace.columns["queue"]).all()
    assert np.isnan(trace.columns["memory_bytes"]).all()


def test_the_first_job_out_of_order_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(
        tmp_path, *(sound_line(job, submit) for job, submit in enumerate([0, 600, 600, 599, 0], start=1))
    )
    message = "line 4: field 2 (submit time): expected at least 600, as in a line before, found 599"
    with pytest.raises(InputError, match=re.escape(message)):
        read_swf(path)
    monkeypatch.setattr(swf_text, "_BLOCK", 60)
    with pytest.raises(InputError, match=re.escape(message)):
        read_swf(path)


def test_jobs_without_a_submit_time_may_stand_anywhere(tmp_path: Path) -> None:
    path = written(tmp_path, sound_line(1, 5), sound_line(2, -1), sound_line(3, 5), sound_line(4, -1))
    np.testing.assert_array_equal(read_swf(path).columns["submit_s"], [5, np.nan, 5, np.nan])
    path = written(tmp_path, sound_line(1, 5), sound_line(2, -1), sound_line(3, 4))
    with pytest.raises(InputError, match=r"line 3: .* at least 5, .* found 4"):
        read_swf(path)


@pytest.mark.parametrize("lines", [[], ["; Version: 2.2", "", ";"]])
def test_an_empty_trace_is_refused(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(InputError, match="expected a line for each job, found none"):
        read_swf(written(tmp_path, *lines))


def test_what_is_no_trace_is_refused_in_one_sentence(tmp_path: Path) -> None:
    absent = tmp_path / "absent.swf"
    with pytest.raises(InputError, match=r"absent\.swf: cannot read the trace \(No such file or directory\)"):
        read_swf(absent)
    with pytest.raises(InputError, match=r"cannot read the trace \(Is a directory\)"):
        read_swf(tmp_path)
    plain = written(tmp_path, sound_line(), name="plain.swf.gz")
    with pytest.raises(InputError, match="expected a file compressed with gzip, found something else"):
        read_swf(plain)
    cut = tmp_path / "cut.swf.gz"
    cut.write_bytes(gzip.compress(b"\n".join(sound_line(job).encode() for job in range(999)))[:-20])
    with pytest.raises(InputError, match=r"cut\.swf\.gz: cannot read the trace \(Compressed file ended"):
        read_swf(cut)
    flipped = bytearray(gzip.compress(sound_line().encode()))
    flipped[-5] ^= 1
    cut.write_bytes(bytes(flipped))
    with pytest.raises(InputError, match=r"cut\.swf\.gz: cannot read the trace \("):
        read_swf(cut)
    binary = tmp_path / "binary.swf"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match=r"binary\.swf: line 1: field 1"):
        read_swf(binary)


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zeros.swf.gz"
    path.write_bytes(gzip.compress(f"{sound_line()}\n".encode() + bytes(8 << 20)))
    with pytest.raises(
        InputError, match="line 2: expected 18 numbers, found more than 64 KiB without an end"
    ):
        read_swf(path)


def test_a_small_file_that_becomes_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.swf.gz"
    path.write_bytes(gzip.compress(b"\n" * (5 << 20)))
    with pytest.raises(InputError, match=r"expected a line for each job, found \d+ bytes of other lines"):
        read_swf(path)
    monkeypatch.setattr(swf_text, "_MOST_BYTES", 1 << 20)
    path.write_bytes(gzip.compress(f"{sound_line()}\n".encode() * 30_000))
    with pytest.raises(InputError, match="expected a trace of at most 0 GiB, found more"):
        read_swf(path)


def test_too_many_jobs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swf_reading, "_MOST_JOBS", 2)
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
        if field.is_whole:
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
