"""Profiles of Caliper, as records and as tables."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.counters.caliper import read_caliper
from support.counter_profiles import CALI_HEAD, cali_file, cali_record, caliper_table
from support.refusals import refusal, refusals

pytest.importorskip("caliperreader", reason="caliper-reader is not installed")

MAIN, SOLVE = 30, 31
RECORDS = (
    cali_record(1.0, 10, 100, MAIN),
    cali_record(2.0, 20, 300, SOLVE),
    cali_record(0.5, 1, 5),
    cali_record(5.0, 30, 400, MAIN, rank=1),
    cali_record(4.0, 40, 500, SOLVE, rank=1),
)


refused = partial(refusal, read_caliper)


def table_file(path: Path, **changed: Any) -> Path:
    """A table, of columns with values alone if these are changed."""
    path = path / "app.json"
    if "columns" in changed and "data" in changed:
        facts = [{"is_value": each != "path"} for each in changed["columns"]]
        changed = {"column_metadata": facts} | changed
    path.write_text(json.dumps(caliper_table(**changed)), encoding="utf-8")
    return path


def test_counters_are_means_over_processes_and_the_time_that_of_the_longest(tmp_path: Path) -> None:
    run = read_caliper(cali_file(tmp_path / "app.cali", *RECORDS))
    assert run.counters == {"papi.PAPI_BR_INS": (31 + 70) / 2, "papi.PAPI_TOT_INS": (405 + 900) / 2}
    assert (run.time_s, run.name, run.kernel) == (9.0, "app", None)


def test_a_table_gives_inclusive_values_of_the_outermost_region(tmp_path: Path) -> None:
    run = read_caliper(table_file(tmp_path))
    assert run.counters == {"rc.count": 400, "cycles": 4e9}
    assert run.time_s == pytest.approx(4.0)
    assert read_caliper(table_file(tmp_path), "solve").counters == {"rc.count": 300, "cycles": 3e9}


@pytest.mark.parametrize(("unit", "time_s"), [("sec", 4.0), ("usec", 4e-6), ("nsec", 4e-9)])
def test_the_unit_of_a_time_is_that_of_the_profile(tmp_path: Path, unit: str, time_s: float) -> None:
    columns = ["path", "sum#time.duration"]
    facts = [{"is_value": False}, {"is_value": True, "attribute.unit": unit}]
    path = table_file(tmp_path, data=[[0, 1.0], [1, 3.0]], columns=columns, column_metadata=facts)
    assert read_caliper(path).time_s == pytest.approx(time_s)


def test_a_mean_over_processes_is_preferred_and_extremes_are_no_counters(tmp_path: Path) -> None:
    columns = ["path", "max#sum#hits", "sum#sum#hits", "avg#sum#hits", "min#sum#rare"]
    path = table_file(tmp_path, data=[[0, 9, 12, 6, 1]], columns=columns)
    assert read_caliper(path).counters == {"hits": 6}


def test_what_is_outside_of_all_regions_is_added_to_inclusive_values(tmp_path: Path) -> None:
    columns = ["path", "avg#inclusive#sum#time.duration", "any#any#max#Bytes/Rep", "Node order"]
    path = table_file(tmp_path, data=[[None, 8.0, 50, 0], [0, 2.0, 50, 1], [1, 1.5, 30, 2]], columns=columns)
    for region, time_s, reps in ((None, 10.0, 50), ("solve", 1.5, 30)):
        run = read_caliper(path, region)
        assert (run.time_s, run.counters) == (time_s, {"Bytes/Rep": reps})


def test_an_empty_cell_is_missing_and_a_row_without_a_rank_no_process_of_its_own(tmp_path: Path) -> None:
    run = read_caliper(table_file(tmp_path, data=[[0, 1e9, None, 4e9, 0], [None, 1e9, None, None, 0]]))
    assert run.counters == {"cycles": 4e9}
    assert run.time_s == pytest.approx(2.0)
    path = table_file(tmp_path, data=[[None, 0, 20, 0, None], [0, 1, 100, 1, 0], [0, 1, 300, 1, 1]])
    assert read_caliper(path).counters["rc.count"] == (20 + 100 + 300) / 2


@refusals("line")
def test_a_record_that_the_reader_does_not_know_is_refused(tmp_path: Path, line: str) -> None:
    path = cali_file(tmp_path / "app.cali", RECORDS[0], line + "\n", RECORDS[1])
    assert "expected a record of Caliper that the reader knows, found" in refused(path)


def test_regions_that_go_round_in_a_circle_or_too_deep_are_refused(tmp_path: Path) -> None:
    # Such a file makes the reader by itself walk for ever.
    for lines in (
        ["__rec=node,id=40,attr=13,data=a,parent=40\n", "__rec=node,id=40,attr=13,data=a,parent=40\n"],
        [f"__rec=node,id={40 + n},attr=13,data=a,parent={39 + n if n else 31}\n" for n in range(2000)],
    ):
        path = cali_file(tmp_path / "app.cali", *lines, "__rec=ctx,ref=40,attr=15,data=1\n")
        assert "expected a record of Caliper that the reader knows" in refused(path)


def test_another_region_a_file_that_is_cut_off_and_another_form_are_refused(tmp_path: Path) -> None:
    path = cali_file(tmp_path / "app.cali", *RECORDS)
    assert "expected a region fft, found main, solve" in refused(path, "fft")
    path.write_text(path.read_text(encoding="utf-8")[:-4], encoding="utf-8")
    assert "expected a whole record of Caliper, found" in refused(path)
    attribute = "__rec=node,id=60,attr=10,data=65\n__rec=node,id=61,attr=8,data=odd,parent=60\n"
    path.write_text(CALI_HEAD + attribute, encoding="utf-8")
    assert "expected attributes of Caliper that the reader knows" in refused(path)
    for text in ("", "{", "[]", '{"data": []}', "[" * 100_000):
        (tmp_path / "app.json").write_text(text, encoding="utf-8")
        assert "app.json: expected" in refused(tmp_path / "app.json")


def test_a_counter_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = cali_file(tmp_path / "app.cali", RECORDS[0].replace("data=1.0=10", "data=1.0=ten"))
    assert "sum#papi.PAPI_BR_INS: expected a number, found 'ten'" in refused(path)
    path = table_file(tmp_path, data=[[0, "fast", 100, 4e9, 0]])
    assert "data[0]: sum#time.duration.ns: expected a number, found 'fast'" in refused(path)


@refusals("changed expected")
def test_a_table_that_does_not_fit_is_refused(tmp_path: Path, changed: dict[str, Any], expected: str) -> None:
    assert expected in refused(table_file(tmp_path, **changed))
