import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crosscast.errors import InputError, MissingExtraError
from crosscast.profile import METRICS, Profile
from crosscast.tables.profiles import (
    COLUMNS,
    csv_header,
    csv_row,
    read_csv,
    read_parquet,
    write_csv,
    write_parquet,
)

ProfileMaker = Callable[..., Profile]


def same(first: Profile, second: Profile) -> bool:
    return first.to_dict() == second.to_dict()


def test_each_metric_has_one_column() -> None:
    names = [column.name for column in COLUMNS]
    assert len(names) == len(set(names))
    assert {metric.name for metric in METRICS} <= set(names)


def test_parquet_gives_back_what_it_got(tmp_path: Path, make_profile: ProfileMaker) -> None:
    profiles = [make_profile(median_ipt=7.0, median_itb=7.0), make_profile("k", 1, rewrite_ratio=None)]
    write_parquet(profiles, tmp_path / "p.parquet")
    assert all(map(same, profiles, read_parquet(tmp_path / "p.parquet")))


def test_csv_gives_back_what_it_got(tmp_path: Path, make_profile: ProfileMaker) -> None:
    profiles = [make_profile(), make_profile("k", 1, rewrite_ratio=None, reread_ratio=1 / 3)]
    write_csv(profiles, tmp_path / "p.csv")
    assert all(map(same, profiles, read_csv(tmp_path / "p.csv")))


def test_parquet_carries_units_and_its_version(tmp_path: Path, make_profile: ProfileMaker) -> None:
    import pyarrow.parquet as parquet

    write_parquet([make_profile()], tmp_path / "p.parquet")
    schema = parquet.read_schema(tmp_path / "p.parquet")
    assert schema.metadata[b"crosscast.version"] == b"1"
    assert schema.field("run_s").metadata == {b"unit": b"s"}
    assert str(schema.field("total_instruction_count").type) == "int64"


def test_an_undefined_metric_is_an_empty_cell(make_profile: ProfileMaker) -> None:
    rows = csv.DictReader(io.StringIO(f"{csv_header()}\n{csv_row(make_profile(rewrite_ratio=None))}\n"))
    assert next(rows)["rewrite_ratio"] == ""


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "p.parquet")
    with pytest.raises(InputError, match="expected a table of profiles"):
        read_parquet(tmp_path / "p.parquet")


@pytest.mark.parametrize("read", [read_csv, read_parquet])
def test_garbage_is_refused(tmp_path: Path, read: object) -> None:
    (tmp_path / "x").write_bytes(b"\xff\x00garbage")
    assert callable(read)
    with pytest.raises(InputError):
        read(tmp_path / "x")


def test_a_damaged_csv_row_is_named(tmp_path: Path, make_profile: ProfileMaker) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"{csv_header()}\n{csv_row(make_profile()).replace('7', 'seven', 1)}\n")
    with pytest.raises(InputError, match=r"p\.csv:2: not a row"):
        read_csv(path)


def test_a_missing_pyarrow_names_the_extra(
    tmp_path: Path, make_profile: ProfileMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"crosscast\[parquet\]"):
        write_parquet([make_profile()], tmp_path / "p.parquet")


def test_a_failed_write_leaves_nothing(
    tmp_path: Path, make_profile: ProfileMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet

    def fail(table: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pyarrow.parquet, "write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        write_parquet([make_profile()], tmp_path / "p.parquet")
    assert not list(tmp_path.iterdir())
