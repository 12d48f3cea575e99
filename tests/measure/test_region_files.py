"""Histories as files that many append to, as runs by key, and as samples."""

import errno
import fcntl
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast import read_history
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions import file as appending
from crosscast.measure.regions.file import (
    MOST_BYTES,
    MOST_NAME,
    Runs,
    append,
    check_history,
    from_line,
    is_begun,
    to_line,
)
from crosscast.measure.regions.key import MOST_CHARACTERS, MOST_FRAME_CHARACTERS, RegionKey, RegionRun
from crosscast.measure.regions.samples import samples_of
from support.measuring import RUNS, run_of
from support.refusals import refusal, refusals

KEY = RegionKey("a")
TEXT = to_line(run_of(KEY))
LINE = TEXT.encode()


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        *((LINE[:end], b"") for end in (1, 20, len(LINE) - 2)),
        # Whole, without its end; and what nobody here has written.
        (LINE.rstrip(b"\n"), LINE),
        (b"notes of mine", b"notes of mine\n"),
    ],
)
def test_what_was_torn_off_is_removed_and_nothing_else(end: bytes, kept: bytes, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE + end)
    append(path, LINE)
    assert path.read_bytes() == LINE + kept + LINE


@pytest.mark.parametrize(("lines", "left"), [(1, 0), (5, 2)])
def test_a_full_disk_keeps_the_whole_lines_that_fit(
    lines: int, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.jsonl"
    append(path, LINE)
    room, write = [left * len(LINE) + 7], os.write

    def full(file: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(file, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        append(path, LINE * lines)
    assert path.read_bytes() == LINE * (1 + left)


def test_long_places_are_read_as_they_were_written() -> None:
    run = run_of(RegionKey("a" * MOST_NAME, ("b" * MOST_CHARACTERS,), ("c" * MOST_FRAME_CHARACTERS,)))
    assert from_line(to_line(run).encode(), "line") == run


def test_a_write_of_a_part_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "runs.jsonl", os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    append(path, LINE)
    assert path.read_bytes() == LINE


def test_nobody_waits_forever_for_a_stopped_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE)
    monkeypatch.setattr(appending, "_PATIENCE_S", 0.02)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        append(path, LINE)
    assert len(read_history(path).runs(KEY)) == 2


def test_a_file_system_without_locks_is_appended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lock(file: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    path = tmp_path / "runs.jsonl"
    append(path, LINE)
    append(path, LINE)
    assert path.read_bytes() == LINE * 2


GOOD: dict[str, Any] = {"version": 1, "region": "a", "started_s": 1.0, "duration_s": 2.0}


@given(RUNS)
@settings(deadline=None)
def test_every_line_is_read_back_as_it_was(run: RegionRun) -> None:
    line = to_line(run)
    assert line.isascii()
    assert line.index("\n") == len(line) - 1
    assert from_line(line.encode(), "here") == run
    assert is_begun(line.encode())


@given(RUNS)
@settings(deadline=None)
def test_no_part_of_a_line_is_a_line_and_each_is_a_begin(run: RegionRun) -> None:
    whole = to_line(run).rstrip("\n").encode()
    for end in range(len(whole)):
        assert is_begun(whole[:end])
        assert "expected a JSON object" in refusal(from_line, whole[:end], "here")


@refusals("changes complaint")
def test_a_wrong_field_is_named(changes: str, complaint: str) -> None:
    with pytest.raises(InputError, match=f"^here: {complaint}"):
        from_line(json.dumps(GOOD | json.loads(changes)).encode(), "here")


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_field_is_named(name: str) -> None:
    rest = {field: value for field, value in GOOD.items() if field != name}
    with pytest.raises(InputError, match=f"^here: {name}: expected .*, found n"):
        from_line(json.dumps(rest).encode(), "here")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"\xff",
        b"null",
        b'{"version": NaN}',
        b'{"version": Infinity}',
        b'{"version": 1' + b"0" * 5000 + b"}",
        b"[" * 100_000,
        b'{"version": 1} {}',
    ],
)
def test_what_is_no_object_of_plain_numbers_is_refused(line: bytes) -> None:
    assert refusal(from_line, line, "here").startswith("here: expected a JSON object")


def test_a_number_too_large_is_no_number_and_too_many_counters_are_none() -> None:
    many = GOOD | {"counters": {str(i): 1 for i in range(1001)}}
    with pytest.raises(InputError, match=r"^here: counters: expected an object of length <= 1000"):
        from_line(json.dumps(many).encode(), "here")
    with pytest.raises(InputError, match="duration_s: expected a number <= "):
        from_line(b'{"version":1,"region":"a","started_s":1,"duration_s":1e999}', "here")


@given(st.lists(RUNS, min_size=1, max_size=4), st.data())
@settings(deadline=None)
def test_cut_anywhere_a_file_loses_its_last_line_only(runs: list[RegionRun], data: st.DataObject) -> None:
    lines = [to_line(run).encode() for run in runs]
    whole = b"".join(lines)
    end = data.draw(st.integers(0, len(whole)))
    left, ends = [], 0
    for run, line in zip(runs, lines, strict=True):
        ends += len(line)
        # Cut just before its end, a line is whole.
        if ends - 1 <= end:
            left.append(run)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_bytes(whole[:end])
        found = read_history(path)
    for key in {run.key for run in runs}:
        assert list(found.runs(key, failed=True)) == [run for run in left if run.key == key]
    assert len(found) == len(left)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT + TEXT[:20] + "\n" + TEXT, "line 2: expected a JSON object, found"),
        (TEXT + "It was a dark night", "line 2: expected a JSON object, found 'It was"),
        ('{"version":1,"region":"' + "a" * MOST_BYTES, "line 1: expected 1048576 bytes at most"),
    ],
    ids=["broken", "none of ours", "without an end"],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(text)
    assert f"runs.jsonl, {message}" in refusal(read_history, path)


def test_a_file_of_many_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    assert "expected 1073741824 bytes at most, found 1073741825" in refusal(read_history, path)


@pytest.mark.parametrize("read", [read_history, check_history])
def test_what_is_no_file_is_refused(read: object, tmp_path: Path) -> None:
    assert callable(read)
    assert "expected a file of runs, found something else" in refusal(read, tmp_path)
    with pytest.raises(InputError, match=r"(No such file|there is no folder)"):
        read(tmp_path / "there" / "runs.jsonl")


@pytest.mark.parametrize("text", ["thesis\n", "thesis", "{}\n", "[1]"])
def test_nothing_is_appended_to_what_is_no_history(text: str, tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text(text)
    assert "thesis.txt, line 1: " in refusal(check_history, path)


@pytest.mark.parametrize("text", ["", TEXT, TEXT[:10], TEXT * 2])
def test_histories_may_be_appended_to(text: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    check_history(path)
    path.write_text(text)
    check_history(path)


A, B, SAMPLED = RegionKey("a"), RegionKey("b", ("3",)), RegionKey("a", ("3",))
SLOW, FAST = Configuration("node", {"core_clock_hz": 1e9}), Configuration("node", {"core_clock_hz": 2e9})


def test_runs_are_found_by_key_and_configuration() -> None:
    runs = Runs()
    one, two = run_of(A, configuration=SLOW), run_of(A, configuration=FAST)
    for run in (one, run_of(B), two):
        runs.add(run)
    assert (len(runs), runs.keys(), runs.keys("b")) == (3, (A, B), (B,))
    assert runs.runs(A) == (one, two)
    assert runs.runs(A, FAST) == (two,)
    assert runs.last(A) == two


def test_a_run_that_failed_is_no_sample() -> None:
    runs = Runs()
    runs.add(run_of(A, 1.0))
    failed = run_of(A, 99.0, failure="ValueError", power_w=1.0, metered_s=1.0)
    runs.add(failed)
    assert (runs.mean_time_s(A), runs.mean_power_w(A), runs.last(A)) == (1.0, None, run_of(A, 1.0))
    assert runs.runs(A, failed=True)[-1] == failed


def test_means_are_over_what_is_known() -> None:
    runs = Runs()
    runs.add(run_of(A, 1.0, power_w=100.0, metered_s=1.0))
    runs.add(run_of(A, 3.0, power_w=20.0, metered_s=3.0))
    runs.add(run_of(A, 2.0, configuration=FAST))
    assert runs.mean_time_s(A) == 2.0
    assert runs.mean_power_w(A) == pytest.approx(40)
    assert (runs.mean_time_s(A, FAST), runs.mean_power_w(A, FAST)) == (2.0, None)
    assert (runs.runs(B), runs.last(B), runs.mean_time_s(B), runs.mean_power_w(B)) == ((), None, None, None)


def test_only_the_last_runs_and_keys_are_kept_if_so_asked() -> None:
    runs = Runs(most_runs=2, keys=2)
    for time_s in (1.0, 2.0, 3.0):
        runs.add(run_of(A, time_s))
    assert runs.mean_time_s(A) == 2.5
    runs.add(run_of(B))
    runs.add(run_of(RegionKey("c")))
    assert runs.keys() == (B, RegionKey("c"))


NODE = Configuration("node", {"cpu_cap_w": 65, "governor": "fast"})


def test_a_sample_has_a_column_for_everything_known() -> None:
    runs = Runs()
    powers_w = {"package-0": 30.0, "package-0/dram": 5.0}
    runs.add(
        run_of(SAMPLED, 2.0, configuration=NODE, power_w=30.0, powers_w=powers_w, counters={"cycles": 7})
    )
    runs.add(run_of(SAMPLED, 9.0, configuration=NODE, failure="ValueError"))
    runs.add(run_of(SAMPLED, 9.0))
    runs.add(run_of(RegionKey("b"), 9.0, configuration=NODE))
    assert samples_of(runs, SAMPLED) == [
        {
            "device": "node",
            "cpu_cap_w": 65.0,
            "governor": "fast",
            "time_s": 2.0,
            "power_w": 30.0,
            "package-0_w": 30.0,
            "package-0/dram_w": 5.0,
            "cycles": 7,
        }
    ]


def test_two_columns_of_one_name_are_refused() -> None:
    runs = Runs()
    runs.add(run_of(SAMPLED, configuration=Configuration("node", {"time_s": 1})))
    assert "a(3): two columns of its samples would be time_s" in refusal(samples_of, runs, SAMPLED)
