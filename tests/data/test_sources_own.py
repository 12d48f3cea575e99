"""Tables of one's own runs, what older versions wrote, and where an import is stored."""

import json
import math
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset, validate
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import json_text
from crosscast.data.sources.runs import (
    ColumnRoles,
    RecordedRun,
    RunTable,
    dataset_of_tables,
    read_run_table,
    roles_of,
)
from crosscast.data.sources.source import import_past_version, store
from crosscast.data.table import identity_of, notes_of
from crosscast.data.views import CELL, configured
from crosscast.errors import InputError
from crosscast.profile import Profile
from support.csv_tables import write_csv
from support.examples import examples
from support.refusals import refusal, refusals
from support.tables import write_rows

BEGIN = ("application", "time_s", "power_w")


def roles(*columns: str, settings: list[str] | None = None) -> ColumnRoles:
    return roles_of([*BEGIN, *columns], settings, "f, line 1")


def test_a_column_is_what_its_name_says() -> None:
    for role, names in {
        "settings": "cpu_cap_w cap_w power_limit_w core_clock_hz clock_hz cores threads cluster governor",
        "domains": "cpu_w package-0/core_w capped_w",
        "counters": "instructions block_size mean_hz cores_used",
        "ignored": "energy_j repeat run started_s",
        # Known columns are nothing else.
        "": "kernel size device runtime_s",
    }.items():
        for name in names.split():
            told = {role: (name.removesuffix("_w") if role == "domains" else name,)} if role else {}
            assert {kind: each for kind, each in vars(roles(name)).items() if each} == told


@refusals("columns settings found")
def test_bad_headers_are_a_sentence(columns: list[str], settings: list[str], found: str) -> None:
    text = refusal(roles_of, columns, settings or None, "f, line 1")
    assert text.startswith(f"f, line 1: {found}")


def test_names_that_are_too_long_and_too_many_columns_are_refused() -> None:
    for columns, found in (
        (["a" * 201], "columns with names of 1 to 200 characters"),
        (list(map(str, range(998))), "1000 columns at most, found 1001"),
    ):
        assert f"f, line 1: expected {found}" in refusal(roles_of, [*BEGIN, *columns], None, "f, line 1")


ProfileMaker = Callable[..., Profile]


def test_a_table_of_version_1_becomes_a_dataset_of_the_current_one(tmp_path: Path) -> None:
    path = tmp_path / "profiles.parquet"
    shutil.copy(Path(__file__).parent / "old_profiles" / "profiles-1.parquet", path)
    store(import_past_version(path, "sums", "tiny"), tmp_path / "out")
    store(import_past_version(tmp_path), tmp_path)
    for now in (path, tmp_path / "out" / "profiles.parquet"):
        assert identity_of(pq.read_table(now)) == ("profiles", PROFILES.version)
    assert set(pq.read_table(now).column("application").to_pylist()) == {"sums"}
    assert set(pq.read_table(now).column("size").to_pylist()) == {"tiny"}


def test_a_csv_file_says_its_own_application_and_other_files_are_refused(
    tmp_path: Path, make_profile: ProfileMaker
) -> None:
    path = tmp_path / "p.csv"
    write_csv([replace(make_profile(), application="lud"), make_profile("other")], path)
    table = import_past_version(path, application="sums").profiles
    assert table.column("application").to_pylist() == ["lud", "sums"]
    write_csv([make_profile(), make_profile()], path)
    assert "rows 1 and 2 are both of" in refusal(import_past_version, path)
    told = refusal(import_past_version, tmp_path, application="lud")
    assert "--application and --size are for a table of profiles" in told
    (tmp_path / "p.json").write_text("{}")
    told = refusal(import_past_version, tmp_path / "p.json")
    assert "expected a folder with a dataset, or a table of profiles" in told


def run(
    power_w: float | None = 40.0, *, threads: float | str = 1, device: str = "machine", **changed: Any
) -> RecordedRun:
    configuration = Configuration(device, {"threads": threads})
    run = RecordedRun("sort", "sort", "big", configuration, 2.0, power_w, {}, {}, "f, line 2")
    return replace(run, **changed)


def made(*runs: RecordedRun, **rest: Any) -> tuple[Dataset, tuple[str, ...]]:
    dataset, notes = dataset_of_tables("folder/f", {"f": RunTable(runs, **rest)})
    validate(dataset)
    return dataset, notes


def cells(*runs: RecordedRun) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = configured(made(*runs)[0]).to_pylist()
    return rows


NAMES = st.sampled_from(["sort", "scan", "fill"])
DRAWN = st.builds(
    run,
    st.floats(1e-3, 1e4),
    threads=st.sampled_from([1, 2, 4]),
    device=st.sampled_from(["cpu", "gpu"]),
    application=NAMES,
    kernel=NAMES,
    size=st.sampled_from(["small", "big"]),
    time_s=st.floats(1e-6, 1e6),
    counters=st.fixed_dictionaries({"cycles": st.floats(0, 1e12)}, optional={"misses": st.floats(-1, 1e9)}),
)


@examples(30)
@given(st.lists(DRAWN, min_size=1, max_size=12))
def test_cells_have_the_times_powers_and_counters_of_their_own_runs(runs: list[RecordedRun]) -> None:
    own = defaultdict(list)
    for each in runs:
        text = json_text(dict(each.configuration.settings))
        own[each.application, each.kernel, each.size, each.configuration.device, text].append(each)
    found = {tuple(row[name] for name in CELL): row for row in cells(*runs)}
    assert found.keys() == own.keys()
    for key, of_cell in own.items():
        row = found[key]
        assert row["runs"] == len(of_cell)
        assert row["time_s"] == pytest.approx(median(one.time_s for one in of_cell))
        time_s = math.fsum(one.time_s for one in of_cell)
        energy_j = math.fsum((one.power_w or 0) * one.time_s for one in of_cell)
        assert row["power_w"] == pytest.approx(energy_j / time_s)
        for name, counter in json.loads(row["counters"]).items():
            counted = [one.counters[name] for one in of_cell if name in one.counters]
            assert counter == pytest.approx(np.mean(counted))


def test_the_power_of_the_whole_is_the_node_or_the_sum_of_domains() -> None:
    both = {"cpu": 30.0, "gpu": 50.0}
    for whole, domains, power_w, kept in (
        (100.0, both, 100.0, {**both, "node": 100.0}),
        # A whole that is the sum of its domains is not kept beside them.
        (80.0, {"package-0": 30.0, "gpu": 50.0, "package-0/core": 20.0}, 80.0, None),
        (None, both, 80.0, None),
    ):
        (row,) = cells(run(whole, domains_w=domains))
        assert (row["power_w"], json.loads(row["powers"])) == (power_w, kept or domains)


def test_the_whole_is_kept_everywhere_on_a_device_if_it_is_no_sum_anywhere() -> None:
    rows = cells(run(80.0, domains_w={"cpu": 80.0}), run(90.0, threads=2, domains_w={"cpu": 80.0}))
    assert [json.loads(row["powers"])["node"] for row in rows] == [80.0, 90.0]


def test_a_run_without_power_stays_where_another_one_tells_it() -> None:
    dataset, notes = made(run(), run(None, time_s=4.0), run(None, threads=2))
    (row,) = configured(dataset).to_pylist()
    assert (row["runs"], row["time_s"], row["power_w"]) == (2, 3.0, 40.0)
    assert notes == (
        "runs: 2, cells: 1, applications: 1, configurations: 1 (machine)",
        "runs left out: 1 (1 without power)",
    )


def test_times_alone_are_taken_where_no_column_has_a_power(tmp_path: Path) -> None:
    rows = [{"application": "sort", "time_s": 2.0, "device": name} for name in ("gtx1080", "mine")]
    read = read_run_table(write_rows(tmp_path / "t.csv", rows))
    dataset, notes = dataset_of_tables("f", {"t.csv": read})
    validate(dataset)
    assert (dataset.records.num_rows, dataset.energy.num_rows, len(notes)) == (2, 0, 1)
    # A device of the catalogue comes with its data sheet, as in datasets of others.
    assert dataset.devices.column("name").to_pylist() == ["GTX 1080", "mine"]
    empty = read_run_table(write_rows(tmp_path / "e.csv", [{**rows[0], "power_w": ""}]))
    assert "expected runs with a power" in refusal(dataset_of_tables, "f", {"e.csv": empty})


def test_what_is_probably_one_thing_is_told() -> None:
    notes = made(run(), run(), run(application="Sort", device="CPU"), run(device="cpu"))[1]
    assert notes[1:] == (
        "runs with the time and power of another of their cell, to the last digit: 1",
        "application: names that differ in capitals alone stay apart: Sort, sort",
        "device: names that differ in capitals alone stay apart: CPU, cpu",
    )


def test_what_files_left_out_and_their_notes_are_told() -> None:
    dataset, notes = made(run(), notes=["f: settings: threads"], left_out={"failed": 3})
    assert notes[-1] == "runs left out: 3 (3 failed)"
    assert notes_of(dataset.records)["origin"] == "Runs of one's own: f."
    assert "f: settings: threads." in notes_of(dataset.records)["what they are"]
    assert "folder" not in str(notes_of(dataset.energy))


def test_runs_without_powers_have_no_note_of_powers() -> None:
    without, _ = dataset_of_tables("f", {"f": RunTable((run(None),), expects_power=False)})
    assert "powers" not in str(notes_of(without.energy))


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([run(None)], "folder/f: expected runs with a power, found none (1 without power)"),
        (
            [run(), run(None, domains_w={"cpu": 2.0}, where="f, line 3")],
            "f, line 3: power_w: expected watts, as in other runs on machine, found nothing",
        ),
        (
            [run(None, domains_w={"cpu": 2.0, "gpu": 1.0}), run(None, domains_w={"cpu": 2.0})],
            "f, line 2: gpu_w: expected watts, as in other runs on machine, found nothing",
        ),
        ([run(), run(threads="all")], "f, line 2: threads: expected numbers or words throughout, found both"),
        ([run(1e200, time_s=1e200)], "energy: column 'energy_j', row 1: expected a finite number"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(runs: list[RecordedRun], found: str) -> None:
    assert refusal(made, *runs).startswith(found)


ROW = {"application": "sort", "threads": 2, "time_s": 3.0, "power_w": 40.0}


def refusal_run_table(path: Path, *settings: str) -> str:
    return refusal(read_run_table, path, settings or None).removeprefix(str(path))


def table(folder: Path, *rows: dict[str, Any]) -> Path:
    return write_rows(folder / "runs.csv", list(rows))


def test_a_row_says_what_ran_and_what_is_missing_has_a_default(tmp_path: Path) -> None:
    full = {"kernel": "merge", "size": "big", "device": "node", "cpu_w": 30.0, "cycles": 1e9}
    none = dict.fromkeys(full, "")
    path = table(tmp_path, ROW | full, ROW | none)
    node, machine = (Configuration(device, {"threads": 2}) for device in ("node", "machine"))
    first = RecordedRun(
        "sort", "merge", "big", node, 3.0, 40.0, {"cpu": 30.0}, {"cycles": 1e9}, f"{path}, line 2"
    )
    second = RecordedRun("sort", "sort", "default", machine, 3.0, 40.0, {}, {}, f"{path}, line 3")
    assert read_run_table(path).runs == [first, second]


def test_a_setting_is_a_word_if_no_row_has_a_number(tmp_path: Path) -> None:
    rows = [ROW | {"mode": "fast", "step": 0}, ROW | {"mode": "", "step": -1.5}]
    first, second = read_run_table(table(tmp_path, *rows), ["mode", "step"]).runs
    assert first.configuration.settings == {"mode": "fast", "step": 0.0}
    assert second.configuration.settings == {"step": -1.5}


@pytest.mark.parametrize("name", ["time_s", "power_w", "threads", "cpu_cap_w", "core_clock_hz"])
def test_a_number_not_above_zero_is_named_with_its_line(tmp_path: Path, name: str) -> None:
    rest = {"cpu_cap_w": 5, "core_clock_hz": 1e9}
    for value in ("0", "-1", "nan", "inf", "many"):
        path = table(tmp_path, ROW | rest, ROW | rest | {name: value})
        assert refusal_run_table(path) == f", line 3: {name}: expected a number above 0, found {value!r}"


@refusals("changed found")
def test_bad_cells_are_named_with_their_line(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = table(tmp_path, {**ROW, "size": "", "cpu_w": "", "note": "", **changed})
    assert found in refusal_run_table(path)


def test_a_setting_that_is_a_number_here_and_a_word_there_and_no_runs_are_refused(tmp_path: Path) -> None:
    told = refusal_run_table(table(tmp_path, ROW | {"mode": 1}, ROW | {"mode": "two"}), "mode")
    assert told == ", line 3: mode: expected a number, as in the rows before, found 'two'"
    (tmp_path / "runs.csv").write_text("application,time_s,power_w\n")
    assert refusal_run_table(tmp_path / "runs.csv") == ": expected a row for each run, found none"


@given(st.text(st.sampled_from('ab012,.x"\n-e'), max_size=80))
def test_any_cells_bring_runs_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    path.write_text(f"application,threads,time_s,power_w\n{text}")
    try:
        found = read_run_table(path).runs
    except InputError as error:
        assert str(error).startswith(str(path))
    else:
        assert all(run.time_s > 0 and run.application for run in found)


@pytest.mark.parametrize("name", ["records.parquet", "parts/records/lud.parquet"])
def test_a_damaged_dataset_and_an_unfinished_build_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"precious")
    assert "expected no other dataset" in refusal(store, made(run())[0], tmp_path)
    assert path.read_bytes() == b"precious"
