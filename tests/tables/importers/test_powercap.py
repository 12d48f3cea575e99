"""The importer of runs under caps of the CPUs and the GPU."""

import json
from pathlib import Path
from typing import Any

import pytest
from configured_rows import powercap, write_rows

from crosscast.configuration import Configuration
from crosscast.data.dataset import TABLES, validate
from crosscast.data.sources.configurations import import_powercap
from crosscast.data.sources.source import store
from crosscast.data.table import notes_of
from crosscast.errors import InputError

NAME = "dual_cap_altis.csv"


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_powercap(path)
    return str(caught.value)


def test_a_row_becomes_a_record_a_session_and_the_energy_of_three_domains(tmp_path: Path) -> None:
    dataset = import_powercap(write_rows(tmp_path / NAME, [powercap()]))
    validate(dataset)
    (record,), (session,) = dataset.records.to_pylist(), dataset.sessions.to_pylist()
    assert [record[name] for name in ("application", "kernel", "size", "device")] == [
        *("sort", "sort", "big", "node")
    ]
    assert (record["time_s"], session["runs"], session["kernels"]) == ([4.0], 3, '["sort"]')
    energy = {row["domain"]: row for row in dataset.energy.to_pylist()}
    assert {name: row["energy_j"] for name, row in energy.items()} == {"cpu": 240, "gpu": 160, "node": 400}
    assert {name: row["sensor"] for name, row in energy.items()} == {
        "cpu": "rapl",
        "gpu": "nvidia-smi",
        "node": "sum",
    }
    assert {(row["duration_s"], row["runs"], row["kernel"]) for row in energy.values()} == {(4.0, 1, None)}


def test_caps_are_the_configuration_in_all_tables(tmp_path: Path) -> None:
    dataset = import_powercap(write_rows(tmp_path / NAME, [powercap(65, 100), powercap(120, 100)]))
    tables = (dataset.records, dataset.energy, dataset.sessions)
    first, second = (set(table.column("configuration").to_pylist()) for table in tables[:2])
    assert first == second == set(dataset.sessions.column("configuration").to_pylist())
    assert {Configuration.of("node", text) for text in first} == {
        Configuration("node", {"cpu_cap_w": cap, "gpu_cap_w": 100}) for cap in (65, 120)
    }


def test_a_folder_with_the_file_gives_the_same_as_the_file(tmp_path: Path) -> None:
    path = write_rows(tmp_path / NAME, [powercap()])
    assert import_powercap(tmp_path).energy == import_powercap(path).energy


def test_what_is_known_of_the_node_has_its_source(tmp_path: Path) -> None:
    (device,) = import_powercap(write_rows(tmp_path / NAME, [powercap()])).devices.to_pylist()
    assert device["vendor"] is None
    assert set(json.loads(device["sources"])) == {"name", "type"}


def test_notes_go_with_the_tables(tmp_path: Path) -> None:
    dataset = import_powercap(write_rows(tmp_path / NAME, [powercap()]))
    assert {"origin", "times", "near-duplicates"} <= notes_of(dataset.records).keys()
    assert {"origin", "energy"} <= notes_of(dataset.energy).keys()


def test_two_imports_give_the_same_bytes(tmp_path: Path) -> None:
    path = write_rows(tmp_path / NAME, [powercap(65), powercap(120)])
    for name in ("a", "b"):
        store(import_powercap(path), tmp_path / name)
    for schema in TABLES:
        files = [tmp_path / name / f"{schema.table}.parquet" for name in "ab"]
        assert files[0].exists() == files[1].exists()
        assert not files[0].exists() or files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("column", ["cpu_cap_w", "gpu_cap_w", "runtime_s", "cpu_w", "gpu_w", "node_w"])
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, "expected more than 0, found 0"),
        (-1.5, "expected more than 0, found -1.5"),
        ("nan", "expected a value, found none"),
        ("", "expected a value, found none"),
        ("inf", "expected a finite number, found inf"),
        ("many", "expected a number, found 'many'"),
    ],
)
def test_a_wrong_number_is_named_with_file_column_and_row(
    tmp_path: Path, column: str, value: Any, found: str
) -> None:
    path = write_rows(tmp_path / NAME, [powercap(), powercap() | {"cpu_cap_w": 70, column: value}])
    assert refusal(path) == f"{path}: column '{column}', row 2: {found}"


@pytest.mark.parametrize("value", [0, 1.5, "two"])
def test_a_wrong_number_of_runs_is_refused(tmp_path: Path, value: Any) -> None:
    path = write_rows(tmp_path / NAME, [powercap(n=value)])
    assert refusal(path).startswith(f"{path}: column 'n'")


def test_the_same_program_size_and_caps_twice_are_refused_with_both_rows(tmp_path: Path) -> None:
    rows = [powercap(), powercap(size="small"), powercap(runtime_s=5.0)]
    path = write_rows(tmp_path / NAME, rows)
    expected = "sort, sort, big on node: cpu_cap_w 65, gpu_cap_w 100"
    assert refusal(path) == f"{path}: rows 1 and 3 are both of {expected}"


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    row = powercap()
    del row["gpu_w"]
    path = write_rows(tmp_path / NAME, [row])
    assert refusal(path) == f"{path}: column 'gpu_w' of the table of powercap is missing"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path / NAME}: cannot read the table of powercap (no such file)"


@pytest.mark.parametrize("text", ["", "benchmark\n", "\x00\xff"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text, encoding="latin-1")
    assert refusal(tmp_path).startswith(f"{tmp_path / NAME}: ")


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(",".join(powercap()) + "\n", encoding="utf-8")
    assert refusal(tmp_path) == f"{tmp_path / NAME}: expected rows of the table of powercap, found none"
