"""Sources of runs over configurations, on made rows and on the published data of ``CROSSCAST_DATA``."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources import import_source
from crosscast.data.table import notes_of
from crosscast.data.views import configured
from support.refusals import refusal, refusals
from support.shared import shared_data
from support.tables import Row, epoch, gtx1080ti, multicore, powercap, titanx, write_rows


def grid(dataset: Dataset) -> Counter[tuple[str, ...]]:
    """Configurations of each application, size and device; each cell has a power."""
    validate(dataset)
    rows = configured(dataset).to_pylist()
    assert len(rows) == dataset.records.num_rows
    assert all(row["power_w"] > 0 and row["time_s"] > 0 for row in rows)
    return Counter((row["application"], row["size"], row["device"]) for row in rows)


def test_powercap_is_a_full_grid_whose_node_is_the_cpus_and_the_gpu() -> None:
    dataset = import_source("powercap", shared_data("powercap"))
    cells = grid(dataset)
    assert len(cells) == 15 * 2
    assert set(cells.values()) == {81}
    assert dataset.energy.num_rows == 3 * 2430
    assert Counter(dataset.sessions.column("runs").to_pylist()) == {1: 19, 2: 1014, 3: 1396, 4: 1}
    for row in configured(dataset).to_pylist():
        powers = json.loads(row["powers"])
        assert row["power_w"] == powers["node"] == pytest.approx(powers["cpu"] + powers["gpu"])


def test_multicore_energy_has_seven_systems_of_unlike_cores() -> None:
    cells = grid(import_source("multicore_energy", shared_data("multicore_energy")))
    found = {(device, count) for (_, _, device), count in cells.items()}
    assert found == {("amd", 48), ("arm", 48), ("i7", 8), ("pi3", 4), ("tx2", 18), ("xeon", 20), ("xu3", 24)}
    assert sum(cells.values()) == 1286


def test_gpu_power_limit_has_gaps_in_seven_jobs() -> None:
    cells = grid(import_source("gpu_power_limit", shared_data("gpu_power_limit")))
    assert Counter((device, count) for (_, _, device), count in cells.items()) == {
        ("v100", 7): 68,
        ("a40", 9): 47,
        ("a40", 5): 6,
        ("rtx6000", 8): 51,
        ("rtx6000", 2): 1,
    }


refused = partial(refusal, import_source, "gpu_dvfs")


def test_clocks_are_in_hertz_and_times_in_seconds(tmp_path: Path) -> None:
    dataset = import_source("gpu_dvfs", write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti()]))
    validate(dataset)
    (record,), (energy,) = dataset.records.to_pylist(), dataset.energy.to_pylist()
    assert (record["application"], record["kernel"], record["size"]) == ("vectors", "add", "default")
    assert Configuration.of(record["device"], record["configuration"]) == Configuration(
        "gtx1080ti", {"core_clock_hz": 1.6e9, "memory_clock_hz": 4e9}
    )
    assert (record["time_s"], energy["energy_j"]) == ([0.002], pytest.approx(0.4))


def test_the_second_series_of_stencil2d_has_a_size_of_its_own(tmp_path: Path) -> None:
    rows = [
        titanx(kernel="stencil2d"),
        titanx(633, kernel="stencil2d"),
        titanx(kernel="stencil2d", time_ms=30),
    ]
    records = import_source("gpu_dvfs", write_rows(tmp_path / "titanx.csv", rows)).records.to_pylist()
    assert [(row["size"], row["time_s"]) for row in records] == [
        *(("default", [0.02]), ("default", [0.02]), ("second series", [0.03]))
    ]


def test_a_folder_gives_both_gpus_with_the_notes_of_both(tmp_path: Path) -> None:
    write_rows(tmp_path / "titanx.csv", [titanx()])
    alone = import_source("gpu_dvfs", tmp_path)
    write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti()])
    both = import_source("gpu_dvfs", tmp_path)
    assert alone.devices.column("device").to_pylist() == ["titanx"]
    assert both.devices.column("device").to_pylist() == ["gtx1080ti", "titanx"]
    assert set(notes_of(alone.devices)) == {"titanx: origin"}
    assert set(notes_of(both.devices)) == {"gtx1080ti: origin", "titanx: origin"}


@pytest.mark.parametrize(("name", "found"), [("", "none"), ("clocks.csv", "no such file")])
def test_a_path_without_either_file_is_refused(tmp_path: Path, name: str, found: str) -> None:
    assert refused(tmp_path / name) == (
        f"{tmp_path / name}: expected gtx1080ti.csv or titanx.csv, or a folder with it, found {found}"
    )


refusal_gpu_power_limit = partial(refusal, import_source, "gpu_power_limit")


def test_an_epoch_is_a_record_of_its_network_and_job(tmp_path: Path) -> None:
    dataset = import_source("gpu_power_limit", write_rows(tmp_path / "zeus_v100.csv", [epoch(125)]))
    validate(dataset)
    (record,), (energy,) = dataset.records.to_pylist(), dataset.energy.to_pylist()
    assert (record["application"], record["kernel"]) == ("shufflenetv2", "shufflenetv2")
    assert record["size"] == "cifar100 b1024 adadelta"
    assert Configuration.of(record["device"], record["configuration"]) == Configuration(
        "v100", {"power_cap_w": 125}
    )
    assert (record["time_s"], energy["energy_j"], energy["domain"]) == ([20.0], 1800, "gpu")


def test_the_origins_names_of_files_are_known(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "summary_power_p100.csv", [epoch()])
    assert import_source("gpu_power_limit", path).devices.column("name").to_pylist() == ["P100"]


def test_two_files_of_a_gpu_are_refused(tmp_path: Path) -> None:
    for name in ("zeus_v100.csv", "summary_power_v100.csv"):
        write_rows(tmp_path / name, [epoch()])
    expected = "expected one file of v100, found summary_power_v100.csv and zeus_v100.csv"
    assert refusal_gpu_power_limit(tmp_path) == f"{tmp_path}: {expected}"


NAME = "dual_cap_altis.csv"


def test_a_row_becomes_a_record_a_session_and_the_energy_of_three_domains(tmp_path: Path) -> None:
    dataset = import_source("powercap", write_rows(tmp_path / NAME, [powercap()]))
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


def imported(tmp_path: Path, *rows: Row) -> Dataset:
    dataset = import_source("multicore_energy", write_rows(tmp_path / "loghin.csv", list(rows)))
    validate(dataset)
    return dataset


def configurations(dataset: Dataset) -> list[Configuration]:
    rows = dataset.records.to_pylist()
    return [Configuration.of(row["device"], row["configuration"]) for row in rows]


def test_energy_is_power_times_time_whatever_the_source_says(tmp_path: Path) -> None:
    (energy,) = imported(tmp_path, multicore()).energy.to_pylist()
    assert (energy["energy_j"], energy["duration_s"]) == (300, 10)
    assert (energy["sensor"], energy["domain"]) == ("meter", "node")


def test_cores_are_the_configuration_where_all_are_alike(tmp_path: Path) -> None:
    found = configurations(imported(tmp_path, multicore("amd", cores=48)))
    assert found == [Configuration("amd", {"cores": 48})]


def test_kinds_of_cores_and_scheduling_are_settings_where_cores_differ(tmp_path: Path) -> None:
    modes = ("dynamic/all_cores", "static/little_cores")
    found = configurations(imported(tmp_path, *(multicore("xu3", mode, 4) for mode in modes)))
    assert found == [
        Configuration("xu3", {"cores": 4, "cluster": "all", "scheduling": "dynamic"}),
        Configuration("xu3", {"cores": 4, "cluster": "little", "scheduling": "static"}),
    ]


def test_only_systems_that_are_in_the_file_are_devices(tmp_path: Path) -> None:
    devices = imported(tmp_path, multicore("i7"), multicore("pi3")).devices.to_pylist()
    assert [(row["device"], row["vendor"]) for row in devices] == [("i7", "Intel"), ("pi3", None)]


@refusals("changed found")
def test_a_wrong_counter_is_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti(), gtx1080ti(1700, **changed)])
    assert refused(path).startswith(f"{path}: {found}")
