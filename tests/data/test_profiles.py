"""Files of profiles: CSV and Parquet, of this version and those before.

Counts of a launch and their columns: named by the way to them, and empty where they were not counted.
"""

import csv
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
    to_row,
    write_parquet,
)
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
    assert from_row(to_row(profile)) == profile


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
