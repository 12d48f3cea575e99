"""Tables of one's own runs, what older versions wrote, and where an import is stored."""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
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
from crosscast.data.launch_counts import COUNTS
from crosscast.data.profiles import PROFILES, write_parquet
from crosscast.data.schema import json_text
from crosscast.data.sources import import_source
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
from crosscast.data.views import configured
from crosscast.errors import InputError
from crosscast.profile import Profile
from support.csv_tables import write_csv
from support.examples import examples
from support.refusals import refusal, refusals
from support.tables import runtime, write_rows, write_source

BEGIN = ("application", "time_s", "power_w")


def roles(*columns: str, settings: list[str] | None = None) -> ColumnRoles:
    return roles_of([*BEGIN, *columns], settings, "f, line 1")


def refused(*columns: str, settings: list[str] | None = None) -> str:
    return refusal(roles_of, columns, settings, "f, line 1")


@pytest.mark.parametrize(
    ("names", "role"),
    [
        ("cpu_cap_w cap_w power_limit_w core_clock_hz clock_hz cores threads", "settings"),
        ("cluster scheduling governor", "settings"),
        ("cpu_w package-0/core_w capped_w", "domains"),
        ("instructions block_size mean_hz cores_used", "counters"),
        ("energy_j repeat run started_s", "ignored"),
        # Known columns are nothing else.
        ("kernel size device runtime_s", None),
    ],
)
def test_a_column_is_what_its_name_says(names: str, role: str | None) -> None:
    for name in names.split():
        told = {role: (name.removesuffix("_w") if role == "domains" else name,)} if role else {}
        found = {kind: each for kind, each in vars(roles(name)).items() if each}
        assert found == told


def test_each_kind_is_told_in_a_line() -> None:
    columns = [*BEGIN, "threads", "cpu_w", "cycles", "run"]
    assert list(roles_of(columns, None, "f").sentences(columns)) == [
        "settings: threads",
        "powers: power_w, cpu_w",
        "counters: cycles",
        "passed over: run",
    ]
    assert list(roles().sentences(BEGIN)) == ["settings: none", "powers: power_w"]
    assert list(roles().sentences(["application", "time_s"])) == ["settings: none", "powers: none"]


@pytest.mark.parametrize("name", ["core_mhz", "mem_clock_GHz", "board_mW", "gpu_mj", "copy_ms"])
def test_other_units_are_refused(name: str) -> None:
    assert refused(*BEGIN, name).startswith(f"f, line 1: {name}: expected seconds, hertz, watts or joules")


@pytest.mark.parametrize(
    ("columns", "settings", "found"),
    [
        (("time_s", "power_w"), None, "expected a column application, found time_s, power_w"),
        (("application", "power_w"), None, "expected a column time_s, found application, power_w"),
        (("application", "time_s", "Power"), None, "expected a column power_w, or powers of domains such as"),
        ((*BEGIN, "node_w"), None, "expected power_w or node_w, the power of the whole, found both"),
        ((*BEGIN, "a"), ["b"], "settings: expected columns out of a, found b"),
        (BEGIN, ["time_s"], "settings: expected columns out of none, found time_s"),
        ((*BEGIN, ""), None, "expected columns with names of 1 to 200 characters, found ''"),
        ((*BEGIN, "a\nb"), None, "found 'a\\nb'"),
        ((*BEGIN, "a" * 201), None, "expected columns with names of 1 to 200 characters"),
        ((*BEGIN, *map(str, range(998))), None, "expected 1000 columns at most, found 1001"),
    ],
)
def test_bad_headers_are_a_sentence(columns: tuple[str, ...], settings: list[str] | None, found: str) -> None:
    text = refused(*columns, settings=settings)
    assert text.startswith("f, line 1: ")
    assert found in text
    assert "\n" not in text


ProfileMaker = Callable[..., Profile]


@pytest.fixture
def old_file(tmp_path: Path, make_profile: ProfileMaker) -> Path:
    """A Parquet file as version 1 wrote it."""
    path = tmp_path / "profiles.parquet"
    write_parquet([make_profile("reduce", 0), make_profile("reduce", 1)], path)
    table = pq.read_table(path).drop_columns(
        ["application", "size", *(count.column.name for count in COUNTS)]
    )
    metadata = {**table.schema.metadata, b"crosscast.version": b"1"}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_a_table_of_version_1_becomes_a_dataset_of_the_current_one(tmp_path: Path, old_file: Path) -> None:
    store(import_past_version(old_file, "sums", "tiny"), tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "profiles.parquet")
    assert identity_of(table) == ("profiles", PROFILES.version)
    assert table.column("application").to_pylist() == ["sums", "sums"]
    assert table.column("size").to_pylist() == ["tiny", "tiny"]


def test_an_old_dataset_is_brought_up_in_its_own_place(tmp_path: Path, old_file: Path) -> None:
    store(import_past_version(tmp_path), tmp_path)
    assert identity_of(pq.read_table(old_file)) == ("profiles", PROFILES.version)


def test_a_csv_file_is_read_and_says_its_own_application(tmp_path: Path, make_profile: ProfileMaker) -> None:
    path = tmp_path / "p.csv"
    write_csv([replace(make_profile(), application="lud"), make_profile("other")], path)
    table = import_past_version(path, application="sums").profiles
    assert table.column("application").to_pylist() == ["lud", "sums"]


def test_names_are_for_tables_only_and_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--application and --size are for a table of profiles"):
        import_past_version(tmp_path, application="lud")
    (tmp_path / "p.json").write_text("{}")
    with pytest.raises(InputError, match="expected a folder with a dataset, or a table of profiles"):
        import_past_version(tmp_path / "p.json")


def test_two_launches_of_one_name_are_refused(tmp_path: Path, make_profile: ProfileMaker) -> None:
    path = tmp_path / "p.parquet"
    write_parquet([make_profile(), make_profile()], path)
    assert "rows 1 and 2 are both of" in refusal(import_past_version, path)


def run(
    power_w: float | None = 40.0, *, threads: float = 1, device: str = "machine", **changed: Any
) -> RecordedRun:
    parts: dict[str, Any] = {"application": "sort", "kernel": "sort", "size": "big", "time_s": 2.0}
    parts |= {"power_w": power_w, "domains_w": {}, "counters": {}, "where": "f, line 2"}
    configuration = Configuration(device, {"threads": threads})
    return RecordedRun(**(parts | {"configuration": configuration} | changed))


def made(*runs: RecordedRun, **rest: Any) -> tuple[Dataset, tuple[str, ...]]:
    dataset, notes = dataset_of_tables("folder/f", {"f": RunTable(runs, **rest)})
    validate(dataset)
    return dataset, notes


def cells(*runs: RecordedRun) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = configured(made(*runs)[0]).to_pylist()
    return rows


refusal_own_runs = partial(refusal, made)


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
    found = {
        (row["application"], row["kernel"], row["size"], row["device"], row["configuration"]): row
        for row in cells(*runs)
    }
    assert found.keys() == own.keys()
    for key, of_cell in own.items():
        row = found[key]
        assert row["runs"] == len(of_cell)
        assert row["time_s"] == pytest.approx(median(one.time_s for one in of_cell))
        time_s = math.fsum(one.time_s for one in of_cell)
        energy_j = math.fsum((one.power_w or 0) * one.time_s for one in of_cell)
        assert row["power_w"] == pytest.approx(energy_j / time_s)
        counters = json.loads(row["counters"])
        for name in counters:
            counted = [one.counters[name] for one in of_cell if name in one.counters]
            assert counters[name] == pytest.approx(np.mean(counted))


@pytest.mark.parametrize(
    ("whole", "domains", "power_w", "kept"),
    [
        (100.0, {"cpu": 30.0, "gpu": 50.0}, 100.0, {"cpu": 30.0, "gpu": 50.0, "node": 100.0}),
        # A whole that is the sum of its domains is not kept beside them.
        (80.0, {"package-0": 30.0, "gpu": 50.0, "package-0/core": 20.0}, 80.0, None),
        (None, {"cpu": 30.0, "gpu": 50.0}, 80.0, None),
    ],
)
def test_the_power_of_the_whole_is_the_node_or_the_sum_of_domains(
    whole: float | None, domains: dict[str, float], power_w: float, kept: dict[str, float] | None
) -> None:
    (row,) = cells(run(whole, domains_w=domains))
    assert (row["power_w"], json.loads(row["powers"])) == (power_w, kept or domains)


def test_the_whole_is_kept_everywhere_on_a_device_if_it_is_no_sum_anywhere() -> None:
    rows = cells(run(80.0, domains_w={"cpu": 80.0}), run(90.0, threads=2, domains_w={"cpu": 80.0}))
    assert [row["power_w"] for row in rows] == [80.0, 90.0]
    assert all("node" in row["powers"] for row in rows)


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


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([], "folder/f: expected runs with a power, found none"),
        ([run(None)], "folder/f: expected runs with a power, found none (1 without power)"),
        (
            [run(), run(None, domains_w={"cpu": 2.0}, where="f, line 3")],
            "f, line 3: power_w: expected watts, as in other runs on machine, found nothing",
        ),
        (
            [run(None, domains_w={"cpu": 2.0, "gpu": 1.0}), run(None, domains_w={"cpu": 2.0})],
            "f, line 2: gpu_w: expected watts, as in other runs on machine, found nothing",
        ),
        (
            [run(), run(configuration=Configuration("machine", {"threads": "all"}))],
            "f, line 2: threads: expected numbers or words throughout, found both",
        ),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(runs: list[RecordedRun], found: str) -> None:
    assert refusal_own_runs(*runs) == found


def test_an_energy_that_no_number_holds_is_refused() -> None:
    assert "energy_j" in refusal_own_runs(run(1e200, time_s=1e200))


ROW = {"application": "sort", "threads": 2, "time_s": 3.0, "power_w": 40.0}


def refusal_run_table(path: Path, *settings: str) -> str:
    text = refusal(read_run_table, path, settings or None)
    assert text.startswith(str(path))
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
def test_a_number_not_above_zero_is_named_with_its_line(tmp_path: Path, name: str, value: object) -> None:
    rest = {"cpu_cap_w": 5, "core_clock_hz": 1e9}
    path = table(tmp_path, ROW | rest, ROW | rest | {name: value})
    assert refusal_run_table(path) == f", line 3: {name}: expected a number above 0, found {str(value)!r}"


def test_a_time_that_no_run_takes_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("application,cores,time_s,power_w\na,1,1e308,1e308\n")
    expected = "time_s: expected a number above 0 and at most 1e+15, found '1e308'"
    assert refusal_run_table(path) == f", line 2: {expected}"


@refusals("changed found")
def test_bad_cells_are_named_with_their_line(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = table(tmp_path, {**ROW, "size": "", "cpu_w": "", "note": "", **changed})
    assert found in refusal_run_table(path)


def test_a_setting_that_is_a_number_here_and_a_word_there_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, ROW | {"mode": 1}, ROW | {"mode": "two"})
    assert (
        refusal_run_table(path, "mode")
        == ", line 3: mode: expected a number, as in the rows before, found 'two'"
    )


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", ": expected columns such as application, time_s and power_w, found an empty file"),
        (b"application,time_s,power_w\n", ": expected a row for each run, found none"),
        (b"application,time_s,power_w\na,1\n", ", line 2: expected 3 cells, found 2"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(content)
    assert refusal_run_table(path).startswith(found)


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


def make(tmp_path: Path, time_us: float) -> Dataset:
    return import_source("aiwc2018", write_source(tmp_path / "s", runtimes=[runtime("gtx1080", 1, time_us)]))


@pytest.mark.parametrize("name", ["records.parquet", "parts/records/lud.parquet"])
def test_a_damaged_dataset_and_an_unfinished_build_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"precious")
    assert "expected no other dataset" in refusal(store, make(tmp_path, 1.0), tmp_path / "out")
    assert path.read_bytes() == b"precious"
