"""Files of profiles: CSV and Parquet, of this version and those before.

Counts of a launch and their columns: named by the way to them, and empty where they were not counted.
"""

import csv
import json
import subprocess
import sys
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
from crosscast.characterization.embedding.payload import profile_of
from crosscast.characterization.engine.counts import COUNTED
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
from crosscast.errors import InputError, MissingExtraError
from crosscast.profile import METRICS, Profile
from support.csv_tables import write_csv
from support.examples import examples
from support.full_launch import full_launch
from support.refusals import refusals

ProfileMaker = Callable[..., Profile]
Reader = Callable[[Path], list[Profile]]
DATA = Path(__file__).parent / "old_profiles"


@pytest.fixture
def profiles(make_profile: ProfileMaker) -> list[Profile]:
    """Launches of a suite's application, and of a file of one's own where two kernels share a name."""
    suite = replace(make_profile(median_ipt=7.0, median_itb=7.5), application="sums", size="tiny")
    odd = replace(make_profile("k", 1, rewrite_ratio=None, reread_ratio=1 / 3), application='a "b",\r\nc')
    return [suite, odd, make_profile(), make_profile()]


@pytest.mark.parametrize(
    ("write", "read"), [(write_csv, read_csv), (write_parquet, read_parquet)], ids=["csv", "parquet"]
)
def test_a_file_gives_back_what_it_got(
    tmp_path: Path,
    profiles: list[Profile],
    write: Callable[[list[Profile], Path | str], None],
    read: Callable[[Path | str], list[Profile]],
) -> None:
    for path in (tmp_path / "p", str(tmp_path / "text")):
        write(profiles, path)
        assert read(path) == profiles


metric_values = st.fixed_dictionaries(
    {
        column.name: st.none()
        | (st.integers(0, 2**63 - 1) if column.type == "integer" else st.floats(0, allow_infinity=False))
        for column in COLUMNS
        if column.name in {metric.name for metric in METRICS}
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
def test_version_1_is_read(form: str, read: Reader, make_profile: ProfileMaker) -> None:
    first, second, third = read(DATA / f"profiles-1.{form}")
    assert first == make_profile()
    assert second == make_profile("reduce", 1, rewrite_ratio=None, reread_ratio=1 / 3)
    assert third == make_profile("scan", 0, total_instruction_count=1 << 40, median_ipt=12.5)


@every_form
def test_version_2_is_read_and_gaps_are_empty(form: str, read: Reader, make_profile: ProfileMaker) -> None:
    found = read(DATA / f"profiles-2.{form}")
    assert found[0] == replace(make_profile(), application="sums", size="tiny")
    assert found[1] == make_profile("reduce", 1, rewrite_ratio=None, reread_ratio=1 / 3)
    assert {to_row(each)[count.column.name] for each in found for count in COUNTS} == {None}


_NEW_IN_8 = tuple(
    f"sub_groups.{width}.{name}"
    for width in (32, 64)
    for name in ("same_address_read", "sectors_32_read_only")
)
_NEW_IN_6 = (
    *_NEW_IN_8,
    *(f"sub_groups.{width}.atomic_accesses" for width in (32, 64)),
    "path.block_instructions",
    *(f"path.block_loads.{space}" for space in ("global", "constant", "local")),
)
_NEW_IN_5 = ("work_item.mean_alignment_log2", "reuse.channel_share", *_NEW_IN_6)


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        (3, ("work_item.moved_bytes", "work_item.mean_walk_log2", *_NEW_IN_5)),
        (4, _NEW_IN_5),
        (5, _NEW_IN_6),
        (7, _NEW_IN_8),
    ],
)
@every_form
def test_older_versions_are_read_but_for_how_far_accesses_move(
    version: int, lacks: tuple[str, ...], form: str, read: Reader, make_profile: ProfileMaker
) -> None:
    launch = full_launch()
    for count in lacks:
        _remove(launch, count.split("."))
    found = read(DATA / f"profiles-{version}.{form}")
    assert found[0] == replace(make_profile(), application="sums", size="tiny", launch=launch)
    cells = to_row(found[0])
    absent = {".".join(count.path) for count in COUNTS if cells[count.column.name] is None}
    assert absent == set(lacks)


def _remove(counts: dict[str, Any], path: list[str]) -> None:
    """Remove a count, and what it leaves empty."""
    name, *rest = path
    if rest and name in counts:
        _remove(counts[name], rest)
    if not rest or not counts.get(name):
        counts.pop(name, None)


@pytest.mark.parametrize("read", [read_csv, read_parquet])
def test_garbage_is_refused(tmp_path: Path, read: object) -> None:
    (tmp_path / "x").write_bytes(b"\xff\x00garbage")
    assert callable(read)
    with pytest.raises(InputError):
        read(tmp_path / "x")


@refusals("column wrong reason")
def test_a_cell_that_no_profile_has_is_named(
    tmp_path: Path, make_profile: ProfileMaker, column: str, wrong: str, reason: str
) -> None:
    row = dict(zip(csv_header().split(","), next(csv.reader([csv_row(make_profile())])), strict=True))
    row[column] = wrong
    with (tmp_path / "p.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    with pytest.raises(InputError) as caught:
        read_csv(tmp_path / "p.csv")
    place = f"{tmp_path / 'p.csv'}:2: not a row of a table of profiles (column '{column}': "
    assert str(caught.value).startswith(place + reason)


def test_csv_needs_no_pyarrow(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path; from crosscast.data.profiles import csv_header, csv_row, read_csv\n"
        f"rows = map(csv_row, read_csv(Path({str(DATA / 'profiles-1.csv')!r})))\n"
        f"Path({str(tmp_path / 'p.csv')!r}).write_text(chr(10).join([csv_header(), *rows]) + chr(10))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert read_csv(tmp_path / "p.csv") == read_csv(DATA / "profiles-1.csv")


def test_a_missing_pyarrow_names_the_extra(
    tmp_path: Path, make_profile: ProfileMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"crosscast\[parquet\]"):
        write_parquet([make_profile()], tmp_path / "p.parquet")


def test_names_tell_the_way_and_occur_once() -> None:
    found = counts_of(full_launch())
    assert len(found) == len(COUNTS)
    assert found["sub_group_32_sectors_32_read"] == 131_072
    assert found["sub_group_64_sub_group_instructions_without_phi"] == 256_000
    assert found["access_patterns_stride_bytes"] == 102_400_000
    assert found["access_patterns_vectorized"] == 1
    assert found["distinct_bytes_global_written"] == 131_072
    assert found["geometry_local_bytes_static"] == 2048
    assert found["reuse_bytes_128_16_32768"] == 1 << 29
    assert found["reuse_bytes_64_256_first"] == 1_179_648
    assert found["path_loads_local"] == 32
    assert found["host_time_s"] == 0.00125


def test_all_that_is_counted_by_sub_groups_has_a_column() -> None:
    names = [count.path[2] for count in COUNTS if count.part == "sub_groups"]
    assert names == [*COUNTED] * len(SUB_GROUPS)


def test_a_class_of_instructions_is_the_sum_of_its_kinds() -> None:
    found = counts_of(full_launch())
    assert found["instructions_fp32"] == 2_097_152 + 32_768
    assert found["instructions_fp32_fused"] == 2_097_152
    assert found["instructions_loads_local"] == 1_015_808
    assert found["instructions_atomics"] == 32_768


def test_what_the_engine_counts_has_its_columns() -> None:
    source = (
        "kernel void k(global int *a, local int *l) { l[0] = 1; barrier(1); a[get_global_id(0)] += l[0]; }"
    )
    args: list[Any] = [np.zeros(256, np.int32), Local(4)]
    kernel = Kernel.from_source(source, "k")
    launch = crosscast.characterize(kernel, global_size=256, local_size=64, args=args).launch
    found = counts_of(launch)
    known = {count.column.name for count in COUNTS if count.part in launch}
    unknown = {name for name in known if found[name] is None}
    assert known, "sub-groups at the least"
    assert unknown <= {"access_patterns_vectorized", "reuse_error"}


@pytest.mark.parametrize("odd", [None, 3, "text", [1], {"32": 4}, {"bytes": {"128": []}}])
def test_other_shapes_are_absent(odd: object) -> None:
    assert set(counts_of(dict.fromkeys(("sub_groups", "reuse", "host"), odd)).values()) == {None}
    assert kinds_of({"instructions": odd}) == {} or isinstance(odd, dict)


def test_kinds_and_work_are_named_by_the_way_to_them() -> None:
    kinds = kinds_of(full_launch())
    assert kinds["instructions_fp32_native_exp"] == 32_768
    assert kinds["instructions_loads_global_4"] == 524_288
    assert work_of(full_launch())["instructions.mem"] == 2_000_000


def test_json_gives_the_profile_back(make_profile: ProfileMaker) -> None:
    alone = replace(make_profile(), launch=full_launch(), timing_s={})  # which are not read
    assert profile_of(json.loads(json.dumps(alone.to_dict())), 0) == alone
