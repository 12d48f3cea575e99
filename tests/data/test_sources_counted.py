"""Sources with counters: the RAJA suite on a CPU and a GPU, Rodinia on nine GPUs."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources import import_source
from crosscast.data.table import notes_of
from crosscast.data.views import configured
from support.refusals import refusal
from support.tables import TOPDOWN, Row, lassen, launch, quartz, write_parquet_rows, write_rows

NAME = "rajaperf.csv"


def made(folder: Path, rows: list[Row], **options: Any) -> Dataset:
    dataset = import_source("rajaperf", write_rows(folder / NAME, rows), **options)
    validate(dataset)
    return dataset


refused = partial(refusal, import_source, "rajaperf")


def test_a_row_of_each_cluster_becomes_a_record_and_a_session(tmp_path: Path) -> None:
    dataset = made(tmp_path, [quartz(), lassen()])
    records = {row["device"]: row for row in dataset.records.to_pylist()}
    assert {(r["application"], r["kernel"], r["size"]) for r in records.values()} == {
        ("Stream", "Stream_ADD", "8388608")
    }
    assert {device: json.loads(row["configuration"]) for device, row in records.items()} == {
        "quartz": {"compiler": "g++-10.3.1", "optimisation": "O2"},
        "lassen": {"block_size": 256.0},
    }
    assert {row["kernels"] for row in dataset.sessions.to_pylist()} == {'["Stream_ADD"]'}
    # A time is that of one repetition.
    assert {device: row["time_s"] for device, row in records.items()} == {
        "quartz": [0.036],
        "lassen": [0.00025],
    }


def test_stated_cores_divide_the_times_of_the_cpu_alone_and_are_noted(tmp_path: Path) -> None:
    dataset = made(tmp_path, [quartz(), lassen()], cores=36)
    assert {row["device"]: row["time_s"] for row in dataset.records.to_pylist()} == {
        "quartz": [pytest.approx(0.001)],
        "lassen": [0.00025],
    }
    assert "stated 36-core node with ideal scaling" in notes_of(dataset.records)["quartz"]
    devices = {row["device"]: row for row in dataset.devices.to_pylist()}
    assert devices["quartz"]["cores"] == 36
    assert "36" in devices["quartz"]["name"]
    assert "scaling" not in notes_of(made(tmp_path, [quartz()]).records)["quartz"]


def test_the_cpu_has_shares_and_what_the_suite_computes_and_the_gpu_has_no_counters(tmp_path: Path) -> None:
    sessions = {row["device"]: row for row in made(tmp_path, [quartz(), lassen()]).sessions.to_pylist()}
    counters = json.loads(sessions["quartz"]["counters"])
    assert {f"topdown.{name}" for name in TOPDOWN} < counters.keys()
    assert (counters["topdown.l1_bound"], counters["Reps"], counters["Bytes/Rep"]) == (0.1, 1000, 201326592)
    assert len(counters) == 20
    assert sessions["lassen"]["counters"] is None


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([lassen(BlockSize=None)], {}, "column 'BlockSize', row 1: expected a number on lassen, found none"),
        (
            [lassen(256), lassen(128)],
            {"block_size": 64},
            "column 'BlockSize': expected runs with 64, found 128, 256",
        ),
        (
            [quartz(file="quartz/run.cali")],
            {},
            "column 'file', row 1: expected a path with the level of optimisation, such as _O3_, found "
            "'quartz/run.cali'",
        ),
    ],
)
def test_a_run_that_does_not_say_its_settings_is_refused(
    tmp_path: Path, rows: list[Row], options: dict[str, Any], message: str
) -> None:
    path = write_rows(tmp_path / NAME, rows)
    assert refused(path, **options) == f"{path}: {message}"


@pytest.mark.parametrize("cores", [0, -4])
def test_less_than_one_core_is_refused(tmp_path: Path, cores: int) -> None:
    path = write_rows(tmp_path / NAME, [quartz()])
    assert refused(path, cores=cores) == f"cores: expected at least 1, found {cores}"


NAME_RODINIA9 = "rodinia_9gpu.parquet"


def made_rodinia9(folder: Path, rows: list[Row]) -> Dataset:
    dataset = import_source("rodinia9", write_parquet_rows(folder / NAME_RODINIA9, rows))
    validate(dataset)
    return dataset


def test_counters_are_what_nvprof_said_and_the_sizes_of_the_launch(tmp_path: Path) -> None:
    (session,) = made_rodinia9(tmp_path, [launch()]).sessions.to_pylist()
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
    (session,) = made_rodinia9(tmp_path, [launch(gpu) | {"static.smem": 1.0625}]).sessions.to_pylist()
    assert json.loads(session["counters"])["static.smem"] == 1088


@pytest.mark.parametrize(
    ("kernel", "program"), [("kernel", "heartwall"), ("calculate_temp", "hotspot"), ("lud_diagonal", "lud")]
)
def test_kernels_are_of_their_programs(tmp_path: Path, kernel: str, program: str) -> None:
    assert made_rodinia9(tmp_path, [launch(kernel=kernel)]).records.column("application").to_pylist() == [
        program
    ]


def test_kernels_of_one_launch_size_keep_their_own_counters(tmp_path: Path) -> None:
    other = launch(kernel="bpnn_adjust_weights_cuda", inst_executed=7.0)
    cells = configured(made_rodinia9(tmp_path, [launch(), other])).to_pylist()
    assert {row["kernel"]: json.loads(row["counters"])["inst_executed"] for row in cells} == {
        "bpnn_layerforward_CUDA": 213017,
        "bpnn_adjust_weights_cuda": 7,
    }
