"""Files of profiles: CSV and Parquet, of this version and those before, and those of the AIWC tool.

Counts of a launch and their columns: named by the way to them, and empty where they were not counted.
"""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast import Kernel, Local
from crosscast.characterization.engine import counts
from crosscast.data.launch_counts import COUNTS, SUB_GROUPS, counts_of, kinds_of, work_of
from crosscast.data.profiles import (
    COLUMNS,
    csv_header,
    csv_row,
    from_row,
    read_csv,
    read_parquet,
    render_aiwc,
    to_row,
    write_aiwc,
    write_parquet,
)
from crosscast.data.sources.aiwc import import_aiwc_folder
from crosscast.data.table import notes_of
from crosscast.profile import METRICS, Profile
from support.csv_tables import write_csv
from support.examples import examples
from support.full_launch import full_launch
from support.refusals import refusal, refusals
from support.tables import write_rows

ProfileMaker = Callable[..., Profile]
Reader = Callable[[Path], list[Profile]]
DATA = Path(__file__).parent / "old_profiles"


@pytest.mark.parametrize(
    ("write", "read"), [(write_csv, read_csv), (write_parquet, read_parquet)], ids=["csv", "parquet"]
)
def test_a_file_gives_back_what_it_got(
    tmp_path: Path, make_profile: ProfileMaker, write: Callable[..., None], read: Callable[..., list[Profile]]
) -> None:
    """Launches of a suite's application, and of a file of one's own where two kernels share a name."""
    suite = replace(make_profile(median_ipt=7.0, median_itb=7.5), application="sums", size="tiny")
    odd = replace(make_profile("k", 1, rewrite_ratio=None, reread_ratio=1 / 3), application='a "b",\r\nc')
    profiles = [suite, odd, make_profile(), make_profile()]
    for path in (tmp_path / "p", str(tmp_path / "text")):
        write(profiles, path)
        assert read(path) == profiles


NAMES = {metric.name for metric in METRICS}
COUNTED = [column for column in COLUMNS if column.name in NAMES]
metric_values = st.fixed_dictionaries(
    {
        column.name: st.none()
        | (st.integers(0, 2**63 - 1) if column.type == "integer" else st.floats(0, allow_infinity=False))
        for column in COUNTED
    }
)
facts = st.dictionaries(
    st.text(), st.none() | st.integers() | st.text() | st.lists(st.floats(0, 1)), max_size=2
)


@examples(30)
@given(metrics=metric_values, fact=facts, seconds=st.dictionaries(st.sampled_from(["run"]), st.floats(0, 9)))
def test_a_row_gives_back_its_profile(
    metrics: dict[str, int | float | None], fact: dict[str, object], seconds: dict[str, float]
) -> None:
    profile = Profile("k", 3, metrics, seconds, fact, fact, fact, application="a", size="tiny")
    row = to_row(profile)
    assert from_row(row) == profile
    assert "column 'launch': expected an object, found [1]" in refusal(from_row, row | {"launch": "[1]"})


every_form = pytest.mark.parametrize(("form", "read"), [("csv", read_csv), ("parquet", read_parquet)])


@every_form
def test_versions_1_and_2_are_read_and_gaps_are_empty(
    form: str, read: Reader, make_profile: ProfileMaker
) -> None:
    second = make_profile("reduce", 1, rewrite_ratio=None, reread_ratio=1 / 3)
    third = make_profile("scan", 0, total_instruction_count=1 << 40, median_ipt=12.5)
    assert read(DATA / f"profiles-1.{form}") == [make_profile(), second, third]
    found = read(DATA / f"profiles-2.{form}")
    assert found[:2] == [replace(make_profile(), application="sums", size="tiny"), second]
    assert {to_row(each)[count.column.name] for each in found for count in COUNTS} == {None}


LACKING = {
    9: [f"sub_groups.{width}.sub_group_fp{bits}" for width in (32, 64) for bits in (32, 64)],
    7: [f"sub_groups.{w}.{name}" for w in (32, 64) for name in ("same_address_read", "sectors_32_read_only")],
    5: [
        *(f"sub_groups.{width}.atomic_accesses" for width in (32, 64)),
        *("path.block_instructions", *(f"path.block_loads.{s}" for s in ("global", "constant", "local"))),
    ],
    4: ["work_item.mean_alignment_log2", "reuse.channel_share"],
    3: ["work_item.moved_bytes", "work_item.mean_walk_log2"],
}
"""Counts by the last version that lacked them."""


@pytest.mark.parametrize("version", LACKING)
@every_form
def test_older_versions_are_read_but_for_what_they_lack(
    version: int, form: str, read: Reader, make_profile: ProfileMaker
) -> None:
    lacks = {count for last, counts in LACKING.items() if last >= version for count in counts}
    launch = full_launch()
    for count in lacks:
        _remove(launch, count.split("."))
    found = read(DATA / f"profiles-{version}.{form}")
    assert found[0] == replace(make_profile(), application="sums", size="tiny", launch=launch)
    cells = to_row(found[0])
    assert {".".join(count.path) for count in COUNTS if cells[count.column.name] is None} == lacks


def _remove(counts: dict[str, Any], path: list[str]) -> None:
    """Remove a count, and what it leaves empty."""
    name, *rest = path
    if rest and name in counts:
        _remove(counts[name], rest)
    if not rest or not counts.get(name):
        counts.pop(name, None)


@refusals("column wrong reason")
def test_a_cell_that_no_profile_has_is_named(
    tmp_path: Path, make_profile: ProfileMaker, column: str, wrong: str, reason: str
) -> None:
    path = tmp_path / "p.csv"
    row = dict(zip(csv_header().split(","), next(csv.reader([csv_row(make_profile())])), strict=True))
    write_rows(path, [row | {column: wrong}])
    place = f"{path}:2: not a row of a table of profiles (column '{column}': "
    assert refusal(read_csv, path).startswith(place + reason)
    path.write_bytes(b"\xff\x00garbage")
    assert all(refusal(read, path).startswith(str(path)) for read in (read_csv, read_parquet))


def test_names_tell_the_way_occur_once_and_classes_are_sums_of_kinds() -> None:
    found = counts_of(full_launch())
    assert len(found) == len(COUNTS)
    assert {
        "sub_group_32_sectors_32_read": 131_072,
        "sub_group_64_sub_group_instructions_without_phi": 256_000,
        "access_patterns_stride_bytes": 102_400_000,
        "access_patterns_vectorized": 1,
        "distinct_bytes_global_written": 131_072,
        "geometry_local_bytes_static": 2048,
        "reuse_bytes_128_16_32768": 1 << 29,
        "reuse_bytes_64_256_first": 1_179_648,
        "path_loads_local": 32,
        "host_time_s": 0.00125,
        "instructions_fp32": 2_097_152 + 32_768,
        "instructions_fp32_fused": 2_097_152,
        "instructions_loads_local": 1_015_808,
        "instructions_atomics": 32_768,
    }.items() <= found.items()
    kinds = {"instructions_fp32_native_exp": 32_768, "instructions_loads_global_4": 524_288}
    assert kinds.items() <= kinds_of(full_launch()).items()
    assert work_of(full_launch())["instructions.mem"] == 2_000_000
    by_sub_groups = [count.path[2] for count in COUNTS if count.part == "sub_groups"]
    assert by_sub_groups == [*counts.COUNTED] * len(SUB_GROUPS)


def test_what_the_engine_counts_has_its_columns_and_other_shapes_are_absent() -> None:
    body = "{ l[0] = 1; barrier(1); a[get_global_id(0)] += l[0]; }"
    kernel = Kernel.from_source(f"kernel void k(global int *a, local int *l) {body}", "k")
    args: list[Any] = [np.zeros(256, np.int32), Local(4)]
    launch = crosscast.characterize(kernel, global_size=256, local_size=64, args=args).launch
    found = counts_of(launch)
    known = {count.column.name for count in COUNTS if count.part in launch}
    assert known, "sub-groups at the least"
    assert {name for name in known if found[name] is None} <= {"access_patterns_vectorized", "reuse_error"}
    shapes: list[Any] = [None, 3, "text", [1], {"32": 4}, {"bytes": {"128": []}}]
    for odd in shapes:
        assert set(counts_of(dict.fromkeys(("sub_groups", "reuse", "host"), odd)).values()) == {None}
        assert kinds_of({"instructions": odd}) == {} or isinstance(odd, dict)


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
