"""Times of single kernels: what becomes of the rows, and which devices of the catalogue they are of.

The kernels of Cummins et al. 2017: what becomes of their rows, sources and profiles.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.cli import main
from crosscast.data.dataset import Dataset, read_dataset, validate
from crosscast.data.sources import import_source
from crosscast.data.sources.kernel_times import TUNED
from crosscast.data.table import notes_of
from crosscast.devices.catalogue import catalogue
from crosscast.errors import InputError
from support.refusals import refusal
from support.shared import published
from support.tables import ADD, Row, elementwise, mapped, streamed, tuned, write_example, write_rows


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
    with pytest.raises(InputError, match=r"column 'variant', row 2: expected parameters .*, found fast"):
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
    with pytest.raises(InputError, match=r"column 'device', row 2: expected a device of .*Abacus"):
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


BROKEN = "__kernel void A(__global float* a) { a[0] = B(1); }"


def characterized(folder: Path, rows: Sequence[Row], **options: Any) -> Dataset:
    names = dict.fromkeys(str(row["benchmark"]) for row in rows)
    write_rows(folder / "cgo17_nvidia.csv", list(rows))
    write_rows(folder / "cgo17_sources.csv", [{"benchmark": name, "src": ADD} for name in names])
    dataset = import_source("cgo17", folder, **options)
    validate(dataset)
    return dataset


def test_a_row_becomes_a_record_on_each_device_with_its_counters(tmp_path: Path) -> None:
    dataset = characterized(
        tmp_path, [mapped("amd-app-sdk-3.0-Scan-group_sum"), mapped("npb-3.3-BT-x_solve", "S")]
    )
    places = {(row["application"], row["kernel"], row["size"]) for row in dataset.records.to_pylist()}
    assert places == {("amd-app-sdk-3.0-Scan", "group_sum", "A"), ("npb-3.3-BT", "x_solve", "S")}
    times = {row["device"]: row["time_s"] for row in dataset.records.to_pylist()}
    assert times == {"i7-3820": [0.0015], "gtx970": [0.0005]}
    counters = json.loads(dataset.sessions.to_pylist()[0]["counters"])
    assert (counters["transfer"], counters["wgsize"], counters["mem"]) == (4096, 64, 1)
    assert (counters["text_branches"], counters["text_ids"], counters["text_loops"]) == (1, 1, 0)
    assert not dataset.profiles.num_rows


@pytest.mark.parametrize("name", ["npb-3.3-CG", "CG", "npb-CG-add-x"])
def test_a_name_without_suite_program_and_kernel_is_refused(name: str, tmp_path: Path) -> None:
    assert "row 1: expected suite-version-program-kernel" in refusal(characterized, tmp_path, [mapped(name)])


def test_a_kernel_without_a_source_is_refused(tmp_path: Path) -> None:
    write_example("cgo17", tmp_path)
    write_rows(tmp_path / "cgo17_sources.csv", [{"benchmark": "npb-3.3-CG-other", "src": ADD}])
    assert "row 1: expected a kernel of cgo17_sources.csv, found npb-3.3-CG-add" in refusal(
        import_source, "cgo17", tmp_path
    )


def test_the_command_characterizes_and_leaves_no_file_of_finished_launches(tmp_path: Path) -> None:
    folder = write_example("cgo17", tmp_path / "source")
    rows = [mapped(), mapped("npb-3.3-CG-broken")]
    sources = [
        {"benchmark": row["benchmark"], "src": src} for row, src in zip(rows, (ADD, BROKEN), strict=True)
    ]
    write_rows(folder / "cgo17_nvidia.csv", rows)
    write_rows(folder / "cgo17_sources.csv", sources)
    assert main(["dataset", "import", "cgo17", str(folder), "--out", str(tmp_path / "out")]) == 0
    dataset = read_dataset(tmp_path / "out")
    (row,) = dataset.profiles.to_pylist()
    assert (row["kernel"], row["work_items"], row["work_groups"]) == ("add", 1024, 16)
    assert notes_of(dataset.profiles)["rows without a profile"].startswith("1: ")
    assert dataset.records.num_rows == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


def test_the_published_kernels() -> None:
    dataset = published("cgo17", "device_mapping")
    records = dataset.records.to_pylist()
    kernels = {(row["application"], row["kernel"]) for row in records}
    assert (len(records), len(kernels), len({name for name, _ in kernels})) == (1360, 256, 71)
    times = {
        device: [row["time_s"][0] for row in records if row["device"] == device]
        for device in ("gtx970", "i7-3820")
    }
    # The file says 387 times that the GPU is faster.
    assert int(np.sum(np.array(times["gtx970"]) < np.array(times["i7-3820"]))) == 387
