"""Profiles of the published AIWC tool: the data of 2018, and folders of its files."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.profiles import PUBLISHED_METRICS, render_aiwc, write_aiwc
from crosscast.data.sources import import_source
from crosscast.data.sources.aiwc import import_aiwc_folder, published_devices
from crosscast.data.table import notes_of
from crosscast.errors import InputError
from crosscast.profile import METRICS, Profile
from support.refusals import refusal, refusals
from support.tables import default_features, write_source

ENERGY = "application,device,size,energy,run\nlud,i7-6700k,large,20.5,1.0\nlud,gtx1080,large,1.25,1.0\n"


@pytest.mark.parametrize("name", ["full_dat.Rda", "featdata.Rda"])
def test_the_files_of_r_are_refused_with_what_they_lack(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(InputError, match=rf"features_all_invocations.parquet and runtimes.*{name}"):
            import_source("aiwc2018", path)


def test_features_of_first_invocations_alone_are_refused(tmp_path: Path) -> None:
    first = [row for row in default_features() if row["invocation"] == 0]
    with pytest.raises(InputError, match=r"expected all invocations of each kernel, found 0 alone, as"):
        import_source("aiwc2018", write_source(tmp_path / "s", features=first))


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


refusal_aiwc_folder = partial(refusal, import_aiwc_folder)


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


def test_our_own_names_are_known_too(tmp_path: Path) -> None:
    text = (
        "metric,category,count\nopcode,compute,10\ntotal_instruction_count,compute,12\n"
        "yokota_branch_entropy,control,0.5\n"
    )
    (profile,) = profiles(write(tmp_path / "sums", text=text))
    assert (profile["opcode"], profile["yokota_branch_entropy"]) == (10, 0.5)


def test_metrics_that_nobody_knows_are_noted(tmp_path: Path) -> None:
    write(tmp_path / "sums", text=f"{FILE}Novelty,Memory,1\n")
    notes = notes_of(import_aiwc_folder(tmp_path / "sums").profiles)
    assert notes["other metrics"] == "Metrics that Crosscast does not know: Novelty (1 files)."


def test_application_and_size_are_those_of_the_folders(tmp_path: Path) -> None:
    write(tmp_path / "lud" / "tiny", "aiwc_lud_internal_3.csv")
    write(tmp_path / "lud" / "small", "aiwc_lud_internal_3.csv")
    found = [(p["application"], p["size"], p["kernel"], p["invocation"]) for p in profiles(tmp_path)]
    assert found == [("lud", "small", "lud_internal", 3), ("lud", "tiny", "lud_internal", 3)]


@refusals("name text reason")
def test_what_is_no_file_of_the_tool_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    folder = write(tmp_path / "sums", name, text)
    message = refusal_aiwc_folder(folder)
    assert message.startswith(f"{folder / name}")
    assert reason in message


def test_a_folder_without_files_or_with_others_is_refused(tmp_path: Path) -> None:
    assert refusal_aiwc_folder(tmp_path) == f"{tmp_path}: expected files aiwc_<kernel>_<n>.csv, found none"
    assert "expected a folder" in refusal_aiwc_folder(tmp_path / "absent")
    write(tmp_path / "lud")
    assert "expected the file in the folder itself or <application>/<size>/" in refusal_aiwc_folder(tmp_path)


ROWS = {row.text("device"): row for row in published_devices()}


@pytest.mark.parametrize("device", ROWS)
def test_every_number_has_a_source_that_can_be_looked_up(device: str) -> None:
    row = dict(ROWS[device])
    sources = json.loads(str(row.pop("sources")))
    row.pop("device")
    assert sources.keys() == row.keys()
    assert all("table II" in text or "http" in text for text in sources.values())


@pytest.mark.parametrize("device", [name for name, row in ROWS.items() if row["type"] == "gpu"])
def test_peak_of_a_gpu_is_two_operations_a_core_and_cycle(device: str) -> None:
    row = ROWS[device]
    # OpenCL shows the two GPUs of this card as a device each.
    cores = row.integer("cores") / (2 if device == "hawaii-r9-295x2" else 1)
    clock_hz = row.number("clock_min_hz" if device == "k40c" else "clock_hz")
    assert row["peak_flop_per_s"] == pytest.approx(2 * cores * clock_hz)


def test_each_published_name_is_there_once_and_each_metric_of_ours_at_most_once() -> None:
    names = [row.name for row in PUBLISHED_METRICS]
    ours = [row.metric for row in PUBLISHED_METRICS if row.metric is not None]
    assert (len(names), len(ours)) == (len(set(names)), len(set(ours)))
    assert set(ours) <= {metric.name for metric in METRICS}


PUBLISHED = (
    ("Total Instruction Count", "Compute", 123456789),
    ("Granularity", "Parallelism", 1 / 1024),
    ("Mean SIMD Width", "Parallelism", 1.0),
    ("Unique Writes", "Memory", 1000000),
    ("Unique Read/Write Ratio", "Memory", 2.0),
    ("Rereads", "Memory", 1532 / 1088),
    ("Average Linear Branch Entropy", "Memory", 0.010204),
)

ProfileMaker = Callable[..., Profile]


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


def test_a_folder_that_is_none_is_refused(tmp_path: Path, make_profile: ProfileMaker) -> None:
    assert "cannot write" in refusal(write_aiwc, make_profile(), tmp_path / "missing")
