"""Times of single kernels: what becomes of the rows, and which devices of the catalogue they are of."""

import json
from pathlib import Path

import pytest

from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources import import_source
from crosscast.data.sources.kernel_times import TUNED
from crosscast.data.table import notes_of
from crosscast.devices.catalogue import catalogue
from crosscast.errors import InputError
from support.shared import published
from support.tables import Row, elementwise, streamed, tuned, write_rows


def made(source: str, file: str, rows: list[Row], folder: Path) -> Dataset:
    write_rows(folder / file, rows)
    dataset = import_source(source, folder)
    validate(dataset)
    return dataset


def test_a_configuration_becomes_a_record_whose_size_has_its_parameters(tmp_path: Path) -> None:
    dataset = made("kernel_tuner", "kt_convolution_milo_RTX_A4000.csv", [tuned()], tmp_path)
    (record,) = dataset.records.to_pylist()
    place = {name: record[name] for name in ("application", "kernel", "size", "device", "time_s")}
    assert place == {
        "application": "convolution",
        "kernel": "convolution_milo",
        "device": "rtx-a4000",
        "size": "block_size_x=16;tile_size_x=2",
        "time_s": [0.002],
    }
    assert dataset.sessions.to_pylist()[0]["runs"] == 10
    assert "of one device, rtx-a4000" in notes_of(dataset.records)["one device"]


def test_the_kernel_without_local_memory_is_another_one_and_left_out(tmp_path: Path) -> None:
    rows = [tuned(), tuned("block_size_x=16;tile_size_x=2;use_shmem=0")]
    dataset = made("kernel_tuner", "kt_convolution_RTX_3090.csv", rows, tmp_path)
    assert dataset.records.num_rows == 1


def test_parameters_that_cannot_be_read_are_refused_with_their_row(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"column 'variant', row 2: expected parameters such as .*, found fast"
    ):
        made("kernel_tuner", "kt_gemm_RTX_2080_Ti.csv", [tuned(), tuned("fast")], tmp_path)


def test_a_stream_keeps_its_model_and_whether_errors_are_corrected(tmp_path: Path) -> None:
    rows = [streamed(), streamed(model="CUDA", device="Tesla K80 (1 GPU, ECC)")]
    dataset = made("babelstream", "times.csv", rows, tmp_path)
    found = {row["device"]: json.loads(row["configuration"]) for row in dataset.records.to_pylist()}
    assert found == {"k20c": {"model": "OpenCL"}, "k80-gpu": {"model": "CUDA", "ecc": "on"}}
    assert {row["size"] for row in dataset.records.to_pylist()} == {"double n=33554432"}


def test_a_device_without_a_sheet_is_left_out_and_an_unknown_one_refused(tmp_path: Path) -> None:
    rows = [streamed(), streamed(device="FirePro S10000 (1 GPU)")]
    assert made("babelstream", "times.csv", rows, tmp_path).records.num_rows == 1
    with pytest.raises(
        InputError, match=r"column 'device', row 2: expected a device of the catalogue.*Abacus"
    ):
        made("babelstream", "times.csv", [streamed(), streamed(device="Abacus")], tmp_path)


def test_milliseconds_become_seconds_and_the_grid_is_kept(tmp_path: Path) -> None:
    dataset = made("elementwise", "times.csv", [elementwise(), elementwise(time_ms=2.0)], tmp_path)
    assert [row["time_s"][0] for row in dataset.records.to_pylist()] == [0.0015, 0.002]
    assert {row["size"] for row in dataset.records.to_pylist()} == {"B=1;H=1024;grid=2"}


@pytest.mark.system
@pytest.mark.parametrize(
    ("source", "records", "devices"),
    [("kernel_tuner", 56_000, 7), ("babelstream", 212, 16), ("elementwise", 2692, 5)],
)
def test_the_published_rows(source: str, records: int, devices: int) -> None:
    dataset = published(source, source)
    assert dataset.records.num_rows >= records
    found = {row["device"] for row in dataset.devices.to_pylist()}
    assert len(found) == devices
    assert found <= catalogue().keys()
    if source == "kernel_tuner":
        assert {row["kernel"] for row in dataset.records.select(["kernel"]).to_pylist()} == TUNED.keys()
