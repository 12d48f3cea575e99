"""Published sources: what is refused, options and folders, and the data of ``CROSSCAST_DATA`` as a whole."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.corun import co_runs
from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources import import_source
from crosscast.data.table import notes_of
from crosscast.data.views import configured
from support.refusals import refusal, refusals
from support.shared import shared_data
from support.tables import (
    SMALL,
    Row,
    epoch,
    gtx1080ti,
    lassen,
    pair,
    quartz,
    titanx,
    write_example,
    write_rows,
    write_table,
)


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
    found = Counter((device, count) for (_, _, device), count in cells.items())
    a40, rtx6000 = {("a40", 9): 47, ("a40", 5): 6}, {("rtx6000", 8): 51, ("rtx6000", 2): 1}
    assert found == {("v100", 7): 68, **a40, **rtx6000}


def test_pairs_of_gavel_and_lucid_are_read() -> None:
    found = co_runs(import_source("gavel_pairs", shared_data("gpu_corun")))
    counts = Counter((mix.device, mix.fits) for mix in found.mixes)
    assert counts == {("p100", True): 340, ("p100", False): 11, ("v100", True): 330, ("v100", False): 21}
    names = "A3C CycleGAN LM Recommendation ResNet-18 ResNet-50 Transformer"
    assert found.applications == tuple(names.split())
    assert all(member.isolated_run.time_s for mix in found.mixes for member in mix.members)
    assert min(m.slowdown for mix in found.mixes for m in mix.members if m.slowdown is not None) == 1
    found = co_runs(import_source("lucid", shared_data("gpu_corun")))
    assert (len(found.isolated_runs), len(found.mixes), len(found.applications)) == (48, 605, 8)
    assert all(member.isolated_run.time_s for mix in found.mixes for member in mix.members)
    assert all(mix.fits and len(mix.members) == 2 for mix in found.mixes)


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
    assert refusal(import_source, "gpu_dvfs", tmp_path / name) == (
        f"{tmp_path / name}: expected gtx1080ti.csv or titanx.csv, or a folder with it, found {found}"
    )


def test_the_origins_names_of_files_are_known_but_not_beside_ours(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "summary_power_p100.csv", [epoch()])
    assert import_source("gpu_power_limit", path).devices.column("name").to_pylist() == ["P100"]
    write_rows(tmp_path / "zeus_p100.csv", [epoch()])
    expected = "expected one file of p100, found summary_power_p100.csv and zeus_p100.csv"
    assert refusal(import_source, "gpu_power_limit", tmp_path) == f"{tmp_path}: {expected}"


def test_stated_cores_divide_the_times_of_the_cpu_alone_and_are_noted(tmp_path: Path) -> None:
    dataset = import_source("rajaperf", write_example("rajaperf", tmp_path), cores=36)
    times = {row["device"]: row["time_s"] for row in dataset.records.to_pylist()}
    assert times == {"quartz": [pytest.approx(0.001)], "lassen": [0.00025]}
    assert "stated 36-core node with ideal scaling" in notes_of(dataset.records)["quartz"]
    devices = {row["device"]: row for row in dataset.devices.to_pylist()}
    assert devices["quartz"]["cores"] == 36
    assert "36" in devices["quartz"]["name"]
    assert "scaling" not in notes_of(import_source("rajaperf", tmp_path).records)["quartz"]


RAJA, PAIRS = "rajaperf.csv.gz", "gavel_pairs.csv"
OTHER = pair(file="physical_cluster_throughputs")


@pytest.mark.parametrize(
    ("file", "rows", "options", "message"),
    [
        (RAJA, [lassen(BlockSize=None)], {}, "column 'BlockSize', row 1: expected a number on lassen, found"),
        (RAJA, [lassen(256), lassen(128)], {"block_size": 64}, "column 'BlockSize': expected runs with 64,"),
        (RAJA, [quartz(file="q/a.cali")], {}, "column 'file', row 1: expected a path with the level of opti"),
        *((RAJA, [quartz()], {"cores": n}, f"cores: expected at least 1, found {n}") for n in (0, -4)),
        (PAIRS, [pair(gpus2=2)], {}, "column 'gpus2', row 1: expected 1 as gpus1, found 2"),
        (PAIRS, [pair(), pair(("A3C", SMALL))], {}, "row 2: expected jobs with a speed in"),
        (PAIRS, [OTHER], {}, "expected rows whose file is simulation_throughputs, found none"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    tmp_path: Path, file: str, rows: list[Row], options: dict[str, Any], message: str
) -> None:
    name = "gavel_pairs" if file == PAIRS else "rajaperf"
    path = write_table(write_example(name, tmp_path) / file, rows)
    told = refusal(import_source, name, tmp_path, **options)
    assert told.removeprefix(f"{path}: ").removeprefix(f"{tmp_path}: ").startswith(message)


@refusals("changed found")
def test_a_wrong_counter_is_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti(), gtx1080ti(1700, **changed)])
    assert refusal(import_source, "gpu_dvfs", path).startswith(f"{path}: {found}")
