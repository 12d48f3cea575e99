"""Published sources: what is refused, profiles of the AIWC tool, and the data as a whole."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.corun import co_runs
from crosscast.data.dataset import Dataset, validate
from crosscast.data.profiles import render_aiwc, write_aiwc
from crosscast.data.sources import import_source
from crosscast.data.sources.aiwc import import_aiwc_folder
from crosscast.data.table import notes_of
from crosscast.data.views import configured
from crosscast.profile import Profile
from support.refusals import refusal, refusals
from support.shared import shared_data
from support.tables import (
    SMALL,
    Row,
    default_features,
    epoch,
    gtx1080ti,
    lassen,
    pair,
    quartz,
    titanx,
    write_example,
    write_rows,
    write_source,
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
    members = [member for mix in found.mixes for member in mix.members]
    assert min(member.slowdown for member in members if member.slowdown is not None) == 1
    other = co_runs(import_source("lucid", shared_data("gpu_corun")))
    assert (len(other.isolated_runs), len(other.mixes), len(other.applications)) == (48, 605, 8)
    assert all(mix.fits and len(mix.members) == 2 for mix in other.mixes)
    members += [member for mix in other.mixes for member in mix.members]
    assert all(member.isolated_run.time_s for member in members)


def test_a_folder_gives_the_gpus_that_it_has_with_their_notes(tmp_path: Path) -> None:
    for name, found in (("", "none"), ("clocks.csv", "no such file")):
        told = f"expected gtx1080ti.csv or titanx.csv, or a folder with it, found {found}"
        assert refusal(import_source, "gpu_dvfs", tmp_path / name) == f"{tmp_path / name}: {told}"
    for keys, row in ((["titanx"], titanx()), (["gtx1080ti", "titanx"], gtx1080ti())):
        write_rows(tmp_path / f"{keys[0]}.csv", [row])
        devices = import_source("gpu_dvfs", tmp_path).devices
        assert devices.column("device").to_pylist() == keys
        assert set(notes_of(devices)) == {f"{key}: origin" for key in keys}


def test_the_origins_names_of_files_are_known_but_not_beside_ours(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "summary_power_p100.csv", [epoch()])
    assert import_source("gpu_power_limit", path).devices.column("name").to_pylist() == ["P100"]
    write_rows(tmp_path / "zeus_p100.csv", [epoch()])
    expected = "expected one file of p100, found summary_power_p100.csv and zeus_p100.csv"
    assert refusal(import_source, "gpu_power_limit", tmp_path) == f"{tmp_path}: {expected}"


@pytest.mark.parametrize(
    ("file", "rows", "options", "message"),
    [
        ("rajaperf.csv.gz", [lassen(BlockSize=None)], {}, "column 'BlockSize', row 1: expected a number on"),
        ("rajaperf.csv.gz", [lassen(256)], {"block_size": 64}, "column 'BlockSize': expected runs with 64,"),
        ("rajaperf.csv.gz", [quartz(file="q/a.cali")], {}, "column 'file', row 1: expected a path with the"),
        ("rajaperf.csv.gz", [quartz()], {"cores": 0}, "cores: expected at least 1, found 0"),
        ("gavel_pairs.csv", [pair(gpus2=2)], {}, "column 'gpus2', row 1: expected 1 as gpus1, found 2"),
        ("gavel_pairs.csv", [pair(), pair(("A3C", SMALL))], {}, "row 2: expected jobs with a speed in"),
        ("gavel_pairs.csv", [pair(file="other")], {}, "expected rows whose file is simulation_throughputs"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    tmp_path: Path, file: str, rows: list[Row], options: dict[str, Any], message: str
) -> None:
    name = file.partition(".")[0]
    path = write_table(write_example(name, tmp_path) / file, rows)
    told = refusal(import_source, name, tmp_path, **options)
    assert told.removeprefix(f"{path}: ").removeprefix(f"{tmp_path}: ").startswith(message)


def test_stated_cores_divide_the_times_of_the_cpu_alone_and_are_noted(tmp_path: Path) -> None:
    dataset = import_source("rajaperf", write_example("rajaperf", tmp_path), cores=36)
    times = {row["device"]: row["time_s"] for row in dataset.records.to_pylist()}
    assert times == {"quartz": [pytest.approx(0.001)], "lassen": [0.00025]}
    assert "stated 36-core node with ideal scaling" in notes_of(dataset.records)["quartz"]
    assert dataset.devices.to_pylist()[0]["cores"] == 36
    assert "scaling" not in notes_of(import_source("rajaperf", tmp_path).records)["quartz"]


@refusals("changed found")
def test_a_wrong_counter_is_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti(), gtx1080ti(1700, **changed)])
    assert refusal(import_source, "gpu_dvfs", path).startswith(f"{path}: {found}")


def test_the_files_of_r_and_first_invocations_alone_are_refused_with_what_they_lack(tmp_path: Path) -> None:
    first = [row for row in default_features() if row["invocation"] == 0]
    write_source(tmp_path / "first", features=first)
    told = refusal(import_source, "aiwc2018", tmp_path / "first")
    assert "expected all invocations of each kernel, found 0 alone" in told
    for name in ("full_dat.Rda", "featdata.Rda"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
        for path in (tmp_path / name, tmp_path / name / name):
            told = refusal(import_source, "aiwc2018", path)
            assert "features_all_invocations.parquet and runtimes" in told and name in told


ProfileMaker = Callable[..., Profile]

FILE = """metric,category,count
Opcode,Compute,10
Total Instruction Count,Compute,32500
Resource Pressure,Compute,7.98438
Median IPT,Parallelism,123
Min IPT,Parallelism,119
Max IPT,Parallelism,172
Unique Reads,Memory,1088
Unique Writes,Memory,0
Unique Read/Write Ratio,Memory,0
Total Reads,Memory,1532
Total Writes,Memory,0
LMAE -- Skipped 10 LSBs,Memory,2.02
Yokota Branch Entropy,Memory,29.92
"""


def write(folder: Path, name: str = "aiwc_reduce_0.csv", text: str = FILE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def profiles(folder: Path, **words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = import_aiwc_folder(str(folder), **words).profiles.to_pylist()
    return found


def test_names_become_ours_and_what_has_no_column_is_kept(tmp_path: Path) -> None:
    (profile,) = profiles(write(tmp_path / "sums"))
    assert (profile["kernel"], profile["invocation"]) == ("reduce", 0)
    names = ("opcode", "total_instruction_count", "median_ipt", "local_memory_address_entropy_10")
    assert [profile[name] for name in names] == [10, 32500, 123.0, 2.02]
    assert profile["work_items"] is None
    # Ratios come from the counts, and are empty where they are not defined.
    assert (profile["reread_ratio"], profile["load_imbalance"]) == (1088 / 1532, 53)
    for name in ("unique_read_write_ratio", "rewrite_ratio", "yokota_branch_entropy"):
        assert profile[name] is None
    published = {"Resource Pressure": 7.98438, "Yokota Branch Entropy": 29.92}
    assert json.loads(profile["program"])["published"] == published


def test_our_own_names_are_known_too_and_metrics_that_nobody_knows_are_noted(tmp_path: Path) -> None:
    ours = "opcode,compute,10\ntotal_instruction_count,compute,12\nyokota_branch_entropy,control,0.5\n"
    table = import_aiwc_folder(
        write(tmp_path, text=f"metric,category,count\n{ours}Novelty,Memory,1\n")
    ).profiles
    (profile,) = table.to_pylist()
    assert (profile["opcode"], profile["yokota_branch_entropy"]) == (10, 0.5)
    assert notes_of(table)["other metrics"] == "Metrics that Crosscast does not know: Novelty (1 files)."


def test_application_and_size_are_those_of_the_folders(tmp_path: Path) -> None:
    write(tmp_path / "lud" / "tiny", "aiwc_lud_internal_3.csv")
    write(tmp_path / "lud" / "small", "aiwc_lud_internal_3.csv")
    found = [(p["application"], p["size"], p["kernel"], p["invocation"]) for p in profiles(tmp_path)]
    assert found == [("lud", "small", "lud_internal", 3), ("lud", "tiny", "lud_internal", 3)]


@refusals("name text reason")
def test_what_is_no_file_of_the_tool_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    """An ellipsis stands for the metrics of a whole file."""
    folder = write(tmp_path / "sums", name, text.replace("...", FILE))
    message = refusal(import_aiwc_folder, folder)
    assert message.startswith(f"{folder / name}")
    assert reason in message


def test_a_folder_without_files_or_with_others_is_refused(tmp_path: Path, make_profile: ProfileMaker) -> None:
    for folder, what in ((tmp_path, "files"), (tmp_path / "absent", "a folder with files")):
        told = f"{folder}: expected {what} aiwc_<kernel>_<n>.csv, found none"
        assert refusal(import_aiwc_folder, folder) == told
    write(tmp_path / "lud")
    told = refusal(import_aiwc_folder, tmp_path)
    assert "expected the file in the folder itself or <application>/<size>/" in told
    assert "cannot write" in refusal(write_aiwc, make_profile(), tmp_path / "missing")


PUBLISHED = (
    ("Total Instruction Count", "Compute", 123456789),
    ("Granularity", "Parallelism", 1 / 1024),
    ("Mean SIMD Width", "Parallelism", 1.0),
    ("Unique Writes", "Memory", 1000000),
    ("Unique Read/Write Ratio", "Memory", 2.0),
    ("Rereads", "Memory", 1532 / 1088),
    ("Average Linear Branch Entropy", "Memory", 0.010204),
)


def test_numbers_look_as_the_tool_writes_them(make_profile: ProfileMaker) -> None:
    assert render_aiwc(replace(make_profile(), published=PUBLISHED)) == (
        "metric,category,count\n"
        "Total Instruction Count,Compute,123456789\n"
        "Granularity,Parallelism,0.000976562\n"
        "Mean SIMD Width,Parallelism,1\n"
        "Unique Writes,Memory,1000000\n"
        "Unique Read/Write Ratio,Memory,2\n"
        "Rereads,Memory,1.408\n"
        "Average Linear Branch Entropy,Memory,0.0102\n"
    )


def test_the_first_invocation_replaces_an_earlier_run(tmp_path: Path, make_profile: ProfileMaker) -> None:
    names = [write_aiwc(make_profile(), tmp_path, number).name for number in range(3)]
    assert names == ["aiwc_reduce_0.csv", "aiwc_reduce_1.csv", "aiwc_reduce_2.csv"]
    write_aiwc(make_profile(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == names[:1]
