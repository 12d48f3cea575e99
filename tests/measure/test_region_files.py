"""Histories as files of one line a run, as runs by key, and as samples."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast import read_history
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions.history import History, RegionKey, RegionRun, from_line, samples_of, to_line
from support.measuring import RUNS, run_of
from support.refusals import refusal, refusals

KEY = RegionKey("a")
LINE = to_line(run_of(KEY))


@pytest.mark.parametrize("end", [1, 20, len(LINE) - 2, len(LINE) - 1, len(LINE)])
def test_runs_are_appended_after_one_that_was_cut_off(end: int, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE + LINE[:end])
    history = History(path)
    for _ in range(2):
        history.record(run_of(KEY))
    assert len(read_history(path)) == (3 if end < len(LINE) - 1 else 4)
    assert path.read_bytes().startswith(LINE + LINE[:end]), "nothing is lost that was there"


GOOD: dict[str, Any] = {"version": 1, "region": "a", "started_s": 1.0, "duration_s": 2.0}


@given(RUNS)
@settings(deadline=None)
def test_every_line_is_read_back_as_it_was(run: RegionRun) -> None:
    line = to_line(run)
    assert line.index(b"\n") == len(line) - 1
    assert from_line(line, "here") == run


@given(RUNS)
@settings(deadline=None)
def test_no_part_of_a_line_is_a_run(run: RegionRun) -> None:
    whole = to_line(run).rstrip(b"\n")
    assert [from_line(whole[:end], "here") for end in range(len(whole))] == [None] * len(whole)


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
        b"[]",
        b"\xff",
        b"null",
        b'{"version": NaN}',
        b'{"version": Infinity}',
        b'{"version": 1' + b"0" * 5000 + b"}",
        b'{"version": 1} {}',
    ],
)
def test_what_is_no_object_of_plain_numbers_is_refused(line: bytes) -> None:
    assert refusal(from_line, line, "here").startswith("here: expected a JSON object")


def test_a_number_too_large_is_no_number() -> None:
    with pytest.raises(InputError, match="duration_s: expected a number <= "):
        from_line(b'{"version":1,"region":"a","started_s":1,"duration_s":1e999}', "here")


@given(st.lists(RUNS, min_size=1, max_size=4), st.data())
@settings(deadline=None)
def test_cut_anywhere_a_file_loses_its_last_line_only(runs: list[RegionRun], data: st.DataObject) -> None:
    lines = [to_line(run) for run in runs]
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


@pytest.mark.parametrize("text", [LINE + b"{}\n" + LINE, LINE + b"It was a dark night"])
def test_a_wrong_line_is_named(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(text)
    assert "runs.jsonl, line 2: " in refusal(read_history, path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "there" / "runs.jsonl"
    assert f"{tmp_path}: cannot read the history (Is a directory)" in refusal(read_history, tmp_path)
    assert f"{missing}: cannot read the history (No such file" in refusal(read_history, missing)
    assert f"{tmp_path}: cannot write the history (Is a directory)" in refusal(History, tmp_path)
    assert f"{missing}: cannot write the history (No such file" in refusal(History, missing)


@pytest.mark.parametrize("text", ["thesis\n", "thesis", "{}\n", "[1]"])
def test_nothing_is_appended_to_what_is_no_history(text: str, tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text(text)
    assert "thesis.txt, line 1: " in refusal(History, path)
    assert path.read_text() == text


A, B, SAMPLED = RegionKey("a"), RegionKey("b", ("3",)), RegionKey("a", ("3",))
SLOW, FAST = Configuration("node", {"core_clock_hz": 1e9}), Configuration("node", {"core_clock_hz": 2e9})


def test_runs_are_found_by_key_and_configuration() -> None:
    runs = History()
    one, two = run_of(A, configuration=SLOW), run_of(A, configuration=FAST)
    for run in (one, run_of(B), two):
        runs.record(run)
    assert (len(runs), runs.keys(), runs.keys("b")) == (3, (A, B), (B,))
    assert runs.runs(A) == (one, two)
    assert runs.runs(A, FAST) == (two,)
    assert runs.last(A) == two


def test_a_run_that_failed_is_no_sample() -> None:
    runs = History()
    runs.record(run_of(A, 1.0))
    failed = run_of(A, 99.0, failure="ValueError", power_w=1.0, metered_s=1.0)
    runs.record(failed)
    assert (runs.mean_time_s(A), runs.mean_power_w(A), runs.last(A)) == (1.0, None, run_of(A, 1.0))
    assert runs.runs(A, failed=True)[-1] == failed


def test_means_are_over_what_is_known() -> None:
    runs = History()
    runs.record(run_of(A, 1.0, power_w=100.0, metered_s=1.0))
    runs.record(run_of(A, 3.0, power_w=20.0, metered_s=3.0))
    runs.record(run_of(A, 2.0, configuration=FAST))
    assert runs.mean_time_s(A) == 2.0
    assert runs.mean_power_w(A) == pytest.approx(40)
    assert (runs.mean_time_s(A, FAST), runs.mean_power_w(A, FAST)) == (2.0, None)
    assert (runs.runs(B), runs.last(B), runs.mean_time_s(B), runs.mean_power_w(B)) == ((), None, None, None)


def test_only_the_last_runs_are_kept_if_so_asked() -> None:
    runs = History(most_runs=2)
    for time_s in (1.0, 2.0, 3.0):
        runs.record(run_of(A, time_s))
    assert runs.mean_time_s(A) == 2.5


NODE = Configuration("node", {"cpu_cap_w": 65, "governor": "fast"})


def test_a_sample_has_a_column_for_everything_known() -> None:
    runs = History()
    powers_w = {"package-0": 30.0, "package-0/dram": 5.0}
    runs.record(
        run_of(SAMPLED, 2.0, configuration=NODE, power_w=30.0, powers_w=powers_w, counters={"cycles": 7})
    )
    runs.record(run_of(SAMPLED, 9.0, configuration=NODE, failure="ValueError"))
    runs.record(run_of(SAMPLED, 9.0))
    runs.record(run_of(RegionKey("b"), 9.0, configuration=NODE))
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
