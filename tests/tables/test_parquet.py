import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.schema import Column, Schema
from crosscast.data.table import Table, concatenated, read_table, table_of, write_table, write_tables
from crosscast.errors import InputError

COLUMNS = (
    Column("name", "text", required=True),
    Column("settings", "json"),
    Column("count", "integer", "count"),
    Column("weight", "real", "kg"),
    Column("time_s", "reals", "s"),
)
SCHEMA = Schema("things", 1, COLUMNS, key=("name",))

finite = st.floats(allow_nan=False, allow_infinity=False)
cells = st.fixed_dictionaries(
    {
        "name": st.text(),
        "settings": st.none() | st.dictionaries(st.text(), st.integers()),
        "count": st.none() | st.integers(-(2**63), 2**63 - 1),
        "weight": st.none() | finite,
        "time_s": st.none() | st.lists(finite, min_size=1, max_size=5),
    }
)
rows = st.lists(cells, unique_by=lambda row: str(row["name"]), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@given(rows=rows, note=st.text())
def test_a_file_gives_back_what_it_got(folder: Path, rows: Sequence[dict[str, Any]], note: str) -> None:
    table = table_of(SCHEMA, rows, {"note": note})
    write_table(table, folder / "t.parquet")
    back = read_table(folder / "t.parquet", SCHEMA)
    assert back.equals(table)
    assert back.schema.equals(table.schema, check_metadata=True)


def test_a_path_may_be_a_text(tmp_path: Path) -> None:
    table = table_of(SCHEMA, [{"name": "a"}])
    write_table(table, str(tmp_path / "t.parquet"))
    assert read_table(str(tmp_path / "t.parquet"), SCHEMA).equals(table)


@given(rows=rows, cut=st.integers(0, 8))
def test_the_chunks_of_a_table_do_not_show_in_its_file(
    folder: Path, rows: Sequence[dict[str, Any]], cut: int
) -> None:
    whole = table_of(SCHEMA, rows)
    write_table(whole, folder / "whole.parquet")
    write_table(concatenated(SCHEMA, [whole.slice(0, cut), whole.slice(cut)]), folder / "cut.parquet")
    assert (folder / "whole.parquet").read_bytes() == (folder / "cut.parquet").read_bytes()


def test_names_of_folders_are_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "name=other" / "t.parquet"
    path.parent.mkdir()
    write_table(table_of(SCHEMA, [{"name": "a"}]), path)
    assert read_table(path, SCHEMA).column("name").to_pylist() == ["a"]


def test_a_full_disk_leaves_every_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (table_of(SCHEMA, [{"name": name}]) for name in ("old", "new"))
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    write_tables({first: old, second: old})
    before = first.read_bytes()
    write = pq.write_table

    def fail(table: Table, path: Path, **options: Any) -> None:
        write(table, path, **options)
        if "second" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(
        InputError, match=r"second\.parquet: cannot write the table \(No space left on device\)"
    ):
        write_tables({first: new, second: new})
    assert first.read_bytes() == second.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_a_file_that_was_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(SCHEMA, [{"name": "a"}]), path)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"t\.parquet: cannot read the table of things"):
            read_table(path, SCHEMA)


def test_no_flipped_bit_is_read_as_other_data(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    schema = Schema("things", 1, COLUMNS[:3], key=("name",))
    table = table_of(schema, [{"name": f"n{n}", "settings": {"a": n}, "count": n * n} for n in range(20)])
    write_table(table, path)
    content = path.read_bytes()
    refused = 0
    for place in range(len(content)):
        for bit in (place % 8, (place + 3) % 8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                assert read_table(path, schema).equals(table), (place, bit)
            except InputError:
                refused += 1
    assert refused > len(content)


def test_a_file_that_lost_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(SCHEMA, [{"name": f"n{n}"} for n in range(20)]), path)
    content = path.read_bytes()
    # The number of rows of the only group, as the footer has it after its size: 20, doubled.
    place = content.rindex(bytes([0x16, 40, 0x26]))
    path.write_bytes(content[: place + 1] + bytes([32]) + content[place + 2 :])
    with pytest.raises(InputError, match=r"t\.parquet: cannot read .*expected 20 rows, found 16"):
        read_table(path, SCHEMA)


def test_notes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = table_of(SCHEMA, [{"name": "a"}])
    write_table(table.replace_schema_metadata({**table.schema.metadata, b"crosscast.note.x": b"\xff"}), path)
    with pytest.raises(InputError, match=r"t\.parquet: cannot read the table of things"):
        read_table(path, SCHEMA)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.parquet: cannot read the table of things"):
        read_table(tmp_path / "t.parquet", SCHEMA)


def test_another_table_and_a_newer_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"name": ["a"]}), path)
    with pytest.raises(InputError, match="expected a table of things, found no Crosscast table"):
        read_table(path, SCHEMA)
    write_table(table_of(Schema("toys", 1, COLUMNS, ("name",)), []), path)
    with pytest.raises(InputError, match="expected a table of things, found a table of toys"):
        read_table(path, SCHEMA)
    write_table(table_of(Schema("things", 2, COLUMNS, ("name",)), []), path)
    with pytest.raises(InputError, match="version 1 or older, found version 2: a newer Crosscast wrote it"):
        read_table(path, SCHEMA)


def test_past_versions_are_upgraded_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(SCHEMA, [{"name": "a", "count": 2}]), path)
    third = Schema("things", 3, (*COLUMNS, Column("twice", "integer"), Column("more", "integer")), ("name",))
    with pytest.raises(InputError, match="version 1 of the table of things is not known"):
        read_table(path, third)
    upgrades = {
        1: lambda table: table.append_column("twice", pa.array([4])),
        2: lambda table: table.append_column("more", pa.compute.add(table.column("twice"), 1)),
    }
    row = read_table(path, third, upgrades).to_pylist()[0]
    assert (row["twice"], row["more"]) == (4, 5)


def test_what_a_table_must_not_hold_is_found_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    loose = Schema("things", 1, COLUMNS, ())
    write_table(table_of(loose, [{"name": "a"}, {"name": "a"}]), path)
    with pytest.raises(InputError, match=r"t\.parquet: rows 1 and 2 are both of name a"):
        read_table(path, SCHEMA)
