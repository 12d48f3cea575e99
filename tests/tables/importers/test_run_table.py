"""CSV files of one's own runs: what becomes of rows, and every bad one in a sentence."""

from pathlib import Path
from typing import Any

import pytest
from configured_rows import write_rows
from hypothesis import given
from hypothesis import strategies as st

from crosscast.configuration import Configuration
from crosscast.data.sources.runs import read_run_table
from crosscast.errors import InputError

ROW = {"application": "sort", "threads": 2, "time_s": 3.0, "power_w": 40.0}


def refusal(path: Path, *settings: str) -> str:
    with pytest.raises(InputError) as caught:
        read_run_table(path, settings or None)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    return text.removeprefix(str(path))


def table(folder: Path, *rows: dict[str, Any]) -> Path:
    return write_rows(folder / "runs.csv", list(rows))


def test_a_row_says_what_ran_and_what_is_missing_has_a_default(tmp_path: Path) -> None:
    full = {"kernel": "merge", "size": "big", "device": "node", "cpu_w": 30.0, "cycles": 1e9}
    none = dict.fromkeys(full, "")
    first, second = read_run_table(table(tmp_path, ROW | full, ROW | none)).runs
    assert (first.application, first.kernel, first.size) == ("sort", "merge", "big")
    assert first.configuration == Configuration("node", {"threads": 2})
    assert (first.time_s, first.power_w) == (3.0, 40.0)
    assert (first.domains_w, first.counters) == ({"cpu": 30.0}, {"cycles": 1e9})
    assert (second.application, second.kernel, second.size) == ("sort", "sort", "default")
    assert second.configuration == Configuration("machine", {"threads": 2})
    assert (second.domains_w, second.counters) == ({}, {})


def test_columns_need_not_be_there_and_the_time_has_two_names(tmp_path: Path) -> None:
    (run,) = read_run_table(table(tmp_path, {"application": "sort", "runtime_s": 3, "cpu_w": 4})).runs
    assert (run.time_s, run.power_w, run.domains_w) == (3.0, None, {"cpu": 4.0})
    assert run.configuration == Configuration("machine", {})


def test_a_setting_is_a_word_if_no_row_has_a_number(tmp_path: Path) -> None:
    rows = [ROW | {"mode": "fast", "step": 0}, ROW | {"mode": "", "step": -1.5}]
    first, second = read_run_table(table(tmp_path, *rows), ["mode", "step"]).runs
    assert first.configuration.settings == {"mode": "fast", "step": 0.0}
    assert second.configuration.settings == {"step": -1.5}


def test_what_was_taken_as_what_is_told_by_file(tmp_path: Path) -> None:
    notes = read_run_table(table(tmp_path, ROW | {"cycles": 5})).notes
    assert notes == ["runs.csv: settings: threads", "runs.csv: powers: power_w", "runs.csv: counters: cycles"]


@pytest.mark.parametrize("name", ["time_s", "power_w", "threads", "cpu_cap_w", "core_clock_hz"])
@pytest.mark.parametrize("value", [0, -1, "nan", "inf", "many"])
def test_a_number_that_must_be_above_zero_is_named_with_its_line(
    tmp_path: Path, name: str, value: object
) -> None:
    rest = {"cpu_cap_w": 5, "core_clock_hz": 1e9}
    path = table(tmp_path, ROW | rest, ROW | rest | {name: value})
    assert refusal(path) == f", line 3: {name}: expected a number above 0, found {str(value)!r}"


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"application": ""}, "application: expected a name, found nothing"),
        ({"application": "a\nb"}, "application: expected a name of at most 200 characters"),
        ({"size": "x" * 201}, "size: expected a name of at most 200 characters"),
        ({"time_s": ""}, "time_s: expected seconds above 0, found nothing"),
        ({"cpu_w": -1}, "cpu_w: expected a number of at least 0, found '-1'"),
        ({"power_w": "", "cpu_w": 0}, "expected powers above 0 watts, found 0 in cpu"),
        (
            {"note": "static"},
            "note: expected the number of a counter, found 'static' (if the run was set to it",
        ),
        ({"note": "nan"}, "note: expected the number of a counter, found 'nan'"),
    ],
)
def test_bad_cells_are_named_with_their_line(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = table(tmp_path, {**ROW, "size": "", "cpu_w": "", "note": "", **changed})
    assert found in refusal(path)


def test_a_setting_that_is_a_number_here_and_a_word_there_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, ROW | {"mode": 1}, ROW | {"mode": "two"})
    assert refusal(path, "mode") == ", line 3: mode: expected a number, as in the rows before, found 'two'"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", ": expected columns such as application, time_s and power_w, found an empty file"),
        (b"application,time_s,power_w\n", ": expected a row for each run, found none"),
        (b"application,time_s,time_s\n", ", line 1: expected each column once, found 'time_s' twice"),
        (b"application,time_s,power_w\n\xff,1,2\n", ": expected UTF-8"),
        (b"application,time_s,power_w\na,1\n", ", line 2: expected 3 cells, found 2"),
        (b",".join(b"%d" % n for n in range(1001)) + b"\n", ", line 1: expected 1000 columns at most"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    assert refusal(path).startswith(found)


@given(st.text(st.sampled_from('ab012,.x"\n-e'), max_size=80))
def test_no_cells_bring_anything_but_runs_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    path.write_text(f"application,threads,time_s,power_w\n{text}")
    try:
        found = read_run_table(path).runs
    except InputError as error:
        assert str(error).startswith(str(path))
    else:
        assert all(run.time_s > 0 and run.application for run in found)
