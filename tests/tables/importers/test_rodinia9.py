"""The importer of Rodinia on nine GPUs."""

import json
from pathlib import Path
from typing import Any

import pytest
from relative_rows import Row, launch, write_parquet_rows

from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources.counted import import_rodinia9, rodinia9_devices
from crosscast.data.table import notes_of
from crosscast.data.views import configured
from crosscast.errors import InputError

NAME = "rodinia_9gpu.parquet"


def made(folder: Path, rows: list[Row]) -> Dataset:
    dataset = import_rodinia9(write_parquet_rows(folder / NAME, rows))
    validate(dataset)
    return dataset


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_rodinia9(path)
    return str(caught.value)


def test_a_row_becomes_a_record_and_a_session(tmp_path: Path) -> None:
    dataset = made(tmp_path, [launch()])
    (record,), (session,) = dataset.records.to_pylist(), dataset.sessions.to_pylist()
    assert [record[name] for name in ("application", "kernel", "size", "device", "configuration")] == [
        *("backprop", "bpnn_layerforward_CUDA", "8192 grid 1x512 block 16x16", "tesla-k40", "{}")
    ]
    assert record["time_s"] == [1e-4]
    assert session["runs"] is None
    assert dataset.devices.column("device").to_pylist() == ["tesla-k40"]


def test_counters_are_what_nvprof_said_and_the_sizes_of_the_launch(tmp_path: Path) -> None:
    (session,) = made(tmp_path, [launch()]).sessions.to_pylist()
    assert json.loads(session["counters"]) == {
        "registers.per.thread": 11,
        "static.smem": 1088,
        "inst_executed": 213017,
        "grid.x": 1,
        "grid.y": 512,
        "block.x": 16,
        "block.y": 16,
    }


@pytest.mark.parametrize("gpu", ["GTX-980", "Tesla-P100"])
def test_shared_memory_is_in_bytes_where_the_source_has_kibibytes(tmp_path: Path, gpu: str) -> None:
    (session,) = made(tmp_path, [launch(gpu) | {"static.smem": 1.0625}]).sessions.to_pylist()
    assert json.loads(session["counters"])["static.smem"] == 1088


def test_a_counter_that_is_missing_is_left_out(tmp_path: Path) -> None:
    (session,) = (
        made(tmp_path, [launch(inst_executed=None), launch("Titan")]).sessions.slice(0, 1).to_pylist()
    )
    assert "inst_executed" not in json.loads(session["counters"])


def test_both_inputs_are_in_the_size(tmp_path: Path) -> None:
    row = launch(kernel="calculate_temp") | {"input.size.1": 512, "input.size.2": 256}
    assert made(tmp_path, [row]).records.column("size").to_pylist() == ["512,256 grid 1x512 block 16x16"]


@pytest.mark.parametrize(
    ("kernel", "program"), [("kernel", "heartwall"), ("calculate_temp", "hotspot"), ("lud_diagonal", "lud")]
)
def test_kernels_are_of_their_programs(tmp_path: Path, kernel: str, program: str) -> None:
    assert made(tmp_path, [launch(kernel=kernel)]).records.column("application").to_pylist() == [program]


def test_kernels_of_one_launch_size_keep_their_own_counters(tmp_path: Path) -> None:
    other = launch(kernel="bpnn_adjust_weights_cuda", inst_executed=7.0)
    cells = configured(made(tmp_path, [launch(), other])).to_pylist()
    assert {row["kernel"]: json.loads(row["counters"])["inst_executed"] for row in cells} == {
        "bpnn_layerforward_CUDA": 213017,
        "bpnn_adjust_weights_cuda": 7,
    }


def test_a_folder_with_the_file_gives_the_same_and_notes_go_along(tmp_path: Path) -> None:
    dataset = made(tmp_path, [launch()])
    assert import_rodinia9(tmp_path).sessions.equals(dataset.sessions)
    assert {"origin", "near-repeats", "unequal kernels"} <= notes_of(dataset.records).keys()
    assert {"counters", "unlike"} <= notes_of(dataset.sessions).keys()


def test_each_of_the_nine_gpus_has_facts_with_sources() -> None:
    rows = rodinia9_devices()
    assert len({row["device"] for row in rows}) == len(rows) == 9
    for row in rows:
        assert row.keys() - {"device", "sources"} == row["sources"].keys()
        assert row["cores"] >= 1536


def test_the_same_launch_twice_is_refused_with_both_rows(tmp_path: Path) -> None:
    path = write_parquet_rows(tmp_path / NAME, [launch(), launch("Titan"), launch(duration=1.0)])
    expected = "backprop, bpnn_layerforward_CUDA, 8192 grid 1x512 block 16x16 on tesla-k40"
    assert refusal(path) == f"{path}: rows 1 and 3 are both of {expected}"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"gpu": "GTX-1080"}, "row 2: column 'gpu': expected one of gtx-680, "),
        ({"kernel_file": "Fan1"}, "row 2: column 'kernel_file': expected one of bpnn_adjust_weights_cuda, "),
        ({"duration": -1.0}, "column 'duration', row 2: expected more than 0, found -1"),
        ({"duration": None}, "column 'duration', row 2: expected a value, found none"),
        (
            {"inst_executed": float("inf")},
            "column 'inst_executed', row 2: expected a finite number, found inf",
        ),
        ({"grid.x": 0}, "column 'grid.x', row 2: expected at least 1, found 0"),
        ({"input.size.2": -1}, "column 'input.size.2', row 2: expected at least 0, found -1"),
    ],
)
def test_a_wrong_cell_is_named_with_file_column_and_row(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    path = write_parquet_rows(tmp_path / NAME, [launch("Titan"), launch(**change)])
    assert refusal(path).startswith(f"{path}: {problem}")


@pytest.mark.parametrize("column", ["kernel_file", "gpu", "input.size.2", "block.y", "duration"])
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    row = launch()
    del row[column]
    path = write_parquet_rows(tmp_path / NAME, [row])
    assert refusal(path) == f"{path}: column '{column}' of the table of rodinia9 is missing"


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"PAR1 and no more")
    assert refusal(tmp_path).startswith(f"{tmp_path / NAME}: cannot read the table of rodinia9 (")
    assert (
        refusal(tmp_path / "none") == f"{tmp_path / 'none'}: cannot read the table of rodinia9 (no such file)"
    )
