"""Tables in memory and in files, their schemas, and the document that describes them.

Rows of tables: their types name the columns of the schemas, and a cell is read as what it is.
"""

import errno
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.dataset import TABLES
from crosscast.data.description import (
    LEAST_LOOP_S,
    LEAST_RUNS,
    LEAST_TICKS,
    MOST_CLOCK_CHANGE,
    MOST_LOAD,
    MOST_SPREAD,
)
from crosscast.data.fields import TableRow
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import (
    DEVICES,
    ENERGY,
    RECORDS,
    SESSIONS,
    Column,
    ColumnType,
    Schema,
    json_text,
    size_order,
)
from crosscast.data.table import (
    Table,
    cast,
    concatenated,
    identity_of,
    key_numbers,
    notes_of,
    read_table,
    samples_of,
    table_of,
    write_table,
    write_tables,
)
from crosscast.data.views import CONFIGURED, JOINED
from crosscast.errors import EnvironmentFault, InputError
from crosscast.profile import METRICS
from support.examples import one_in
from support.refusals import refusal

SCHEMA = Schema(
    "things",
    3,
    (
        Column("name", "text", required=True),
        Column("settings", "json"),
        Column("count", "integer", "count", ge=0),
        Column("weight", "real", "kg"),
        Column("time_s", "reals", "s", ge=0),
    ),
    key=("name", "settings"),
)


def nested(depth: int) -> list[object]:
    inner: list[object] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def test_a_table_has_the_columns_units_version_and_notes() -> None:
    table = table_of(SCHEMA, [{"name": "a"}], {"origin": "made"})
    assert table.column_names == ["name", "settings", "count", "weight", "time_s"]
    assert table.schema.field("weight").metadata == {b"unit": b"kg"}
    assert identity_of(table) == ("things", 3)
    assert notes_of(table) == {"origin": "made"}
    assert table.to_pylist() == [
        {"name": "a", "settings": None, "count": None, "weight": None, "time_s": None}
    ]
    assert identity_of(pa.table({"name": ["a"]})) is None
    table = table_of(SCHEMA, [{"name": "a", "settings": {"b": 1, "a": [2]}}, {"name": "b", "settings": "[]"}])
    assert table.column("settings").to_pylist() == ['{"a": [2], "b": 1}', "[]"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"name": None}, "column 'name', row 2: expected a value, found none"),
        ({"name": 7}, "column 'name', row 2: expected a text, found 7"),
        ({"name": "a", "count": -1}, "column 'count', row 2: expected at least 0, found -1"),
        ({"name": "a", "count": 1.5}, "column 'count', row 2: expected a whole number, found 1.5"),
        ({"name": "a", "count": "1"}, "column 'count', row 2: expected a whole number, found '1'"),
        ({"name": "a", "count": 1 << 64}, "column 'count', row 2: expected a whole number, found"),
        ({"name": "a", "weight": "1"}, "column 'weight', row 2: expected a number, found '1'"),
        ({"name": "a", "weight": float("nan")}, "column 'weight', row 2: expected a finite number, found"),
        ({"name": "a", "time_s": [1.0, float("inf")]}, "column 'time_s', row 2: expected a finite number,"),
        ({"name": "a", "time_s": [1.0, -0.5]}, "column 'time_s', row 2: expected at least 0, found -0.5"),
        ({"name": "a", "time_s": [1.0, None]}, "column 'time_s', row 2: expected numbers, found an empty"),
        ({"name": "a", "time_s": []}, "column 'time_s', row 2: expected numbers, found none"),
        ({"name": "a", "time_s": 1.0}, "column 'time_s', row 2: expected a list of numbers, found 1.0"),
        ({"name": "a", "settings": "{"}, "column 'settings', row 2: expected a JSON value, found {"),
        ({"name": "a", "settings": '{"b":1}'}, "column 'settings', row 2: expected the form {\"b\": 1},"),
        (
            {"name": "a", "settings": "[" * 100_000},
            f"column 'settings', row 2: expected a JSON value, found '{'[' * 60}' and more",
        ),
        ({"name": "a", "settings": nested(100_000)}, "column 'settings', row 2: expected a JSON value,"),
        ({"name": "a", "settings": {1.0, 2.0}}, "column 'settings', row 2: expected a JSON value, found"),
        ({"name": "first", "settings": {}}, "rows 1 and 2 are both of name first, settings {}"),
        ({"name": "a", "color": "red"}, "expected columns of the table, found 'color'"),
    ],
)
def test_a_wrong_cell_is_named(row: dict[str, object], message: str) -> None:
    first = {"name": "first", "settings": "{}", "time_s": [3.0, 4.0]}
    assert refusal(table_of, SCHEMA, [first, row]).startswith(f"things: {message}")


@pytest.mark.parametrize("kind", ["real", "integer"])
@pytest.mark.parametrize(
    ("bound", "right", "wrong"),
    [("gt", [3], [2, 1]), ("ge", [3, 2], [1]), ("lt", [1], [2, 3]), ("le", [1, 2], [3])],
)
def test_a_bound_is_a_value_of_its_column_or_is_not(
    kind: ColumnType, bound: str, right: list[int], wrong: list[int]
) -> None:
    schema = Schema("things", 1, (Column("n", kind, **{bound: 2}),), key=())  # type: ignore[arg-type]
    rows: list[dict[str, object]] = [{"n": cell} for cell in (*right, None)]
    assert table_of(schema, rows).num_rows == len(rows)
    for cell in wrong:
        with pytest.raises(InputError, match=rf"row {len(rows) + 1}: expected .* 2, found {cell}"):
            table_of(schema, [*rows, {"n": cell}])


def test_cast_orders_columns_and_widens_numbers() -> None:
    table = pa.table(
        {
            "extra": [1],
            "time_s": pa.array([[1.0]], pa.list_(pa.float32())),
            "weight": pa.array([1], pa.int8()),
            "count": pa.array([2.0]),
            "settings": pa.array([None], pa.null()),
            "name": pa.array(["a"]).dictionary_encode(),
        }
    )
    row = {"name": "a", "settings": None, "count": 2, "weight": 1.0, "time_s": [1.0]}
    assert cast(SCHEMA, table, "x").to_pylist() == [row]


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("count", [1.5], "column 'count': expected a whole number in each row, found double"),
        ("weight", ["heavy"], "column 'weight': expected a number in each row, found string"),
        ("time_s", [1.0], "column 'time_s': expected a list of numbers in each row, found double"),
        ("count", None, "column 'count' of the table of things is missing"),
    ],
)
def test_cast_names_a_column_of_another_kind(column: str, cells: list[object] | None, message: str) -> None:
    table = table_of(SCHEMA, [{"name": "a"}]).drop_columns([column])
    if cells is not None:
        table = table.append_column(column, pa.array(cells))
    assert refusal(cast, SCHEMA, table, "x") == f"x: {message}"


rows = st.lists(st.tuples(st.sampled_from(["a", "b", "\x1f", "", None]), st.integers(0, 2)), max_size=9)


@given(first=rows, second=rows)
def test_numbers_are_equal_where_keys_are(
    first: list[tuple[str | None, int]], second: list[tuple[str | None, int]]
) -> None:
    tables = [
        pa.table({"name": pa.array([n for n, _ in part], pa.string()), "run": pa.array([r for _, r in part])})
        for part in (first, second)
    ]
    tables = [table.set_column(1, "run", table.column("run").cast(pa.int64())) for table in tables]
    left, right = key_numbers(tables, ["name", "run"])
    keys, numbers = first + second, [*left.tolist(), *right.tolist()]
    assert len(set(zip(keys, numbers, strict=True))) == len(set(keys)) == len(set(numbers))
    assert set(numbers) == set(range(len(set(keys))))


times = st.floats(0, 1e6)
groups = st.lists(st.lists(times, min_size=1, max_size=9), max_size=5)


@given(groups=groups, seed=st.integers(0, 99))
def test_statistics_are_those_of_numpy(groups: list[list[float]], seed: int) -> None:
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    values = np.array([value for group in groups for value in group], dtype=np.float64)
    order = np.random.default_rng(seed).permutation(len(values))
    samples = samples_of(numbers[order], values[order])
    assert samples.least().tolist() == [min(group) for group in groups]
    assert samples.most().tolist() == [max(group) for group in groups]
    assert samples.mean() == pytest.approx([np.mean(group) for group in groups])
    assert samples.sd() == pytest.approx(
        [np.std(group, ddof=1) if len(group) > 1 else np.nan for group in groups], nan_ok=True, abs=1e-8
    )
    for share in (0.25, 0.5, 0.75):
        assert samples.quantile(share) == pytest.approx([np.quantile(group, share) for group in groups])


COLUMNS = (
    Column("name", "text", required=True),
    Column("settings", "json"),
    Column("count", "integer", "count"),
    Column("weight", "real", "kg"),
    Column("time_s", "reals", "s"),
)
SCHEMA_PARQUET = Schema("things", 1, COLUMNS, key=("name",))

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
rows_parquet = st.lists(cells, unique_by=lambda row: str(row["name"]), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@given(rows_parquet=rows_parquet, note=st.text())
def test_a_file_gives_back_what_it_got(
    folder: Path, rows_parquet: Sequence[dict[str, Any]], note: str
) -> None:
    table = table_of(SCHEMA_PARQUET, rows_parquet, {"note": note})
    write_table(table, folder / "t.parquet")
    back = read_table(folder / "t.parquet", SCHEMA_PARQUET)
    assert back.equals(table)
    assert back.schema.equals(table.schema, check_metadata=True)


@given(rows_parquet=rows_parquet, cut=st.integers(0, 8))
def test_chunks_do_not_show_in_a_file(folder: Path, rows_parquet: Sequence[dict[str, Any]], cut: int) -> None:
    whole = table_of(SCHEMA_PARQUET, rows_parquet)
    write_table(whole, folder / "whole.parquet")
    write_table(concatenated(SCHEMA_PARQUET, [whole.slice(0, cut), whole.slice(cut)]), folder / "cut.parquet")
    assert (folder / "whole.parquet").read_bytes() == (folder / "cut.parquet").read_bytes()


def test_a_full_disk_leaves_every_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (table_of(SCHEMA_PARQUET, [{"name": name}]) for name in ("old", "new"))
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
        EnvironmentFault, match=r"second\.parquet: cannot write the table \(No space left on device\)"
    ):
        write_tables({first: new, second: new})
    assert first.read_bytes() == second.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_a_file_that_was_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(SCHEMA_PARQUET, [{"name": "a"}]), path)
    with pytest.raises(InputError, match=r"none\.parquet: cannot read the table of things"):
        read_table(str(tmp_path / "none.parquet"), SCHEMA_PARQUET)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        assert "t.parquet: cannot read the table of things" in refusal(read_table, path, SCHEMA_PARQUET)


@pytest.mark.parametrize("first", one_in(2, [0, 3]))
def test_no_flipped_bit_is_read_as_other_data(tmp_path: Path, first: int) -> None:
    path = tmp_path / "t.parquet"
    schema = Schema("things", 1, COLUMNS[:3], key=("name",))
    table = table_of(schema, [{"name": f"n{n}", "settings": {"a": n}, "count": n * n} for n in range(20)])
    write_table(table, path)
    content = path.read_bytes()
    refused = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place + first) % 8
        path.write_bytes(damaged)
        try:
            assert read_table(path, schema).equals(table), place
        except InputError:
            refused += 1
    assert refused > len(content) / 2


def test_a_file_that_lost_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(SCHEMA_PARQUET, [{"name": f"n{n}"} for n in range(20)]), path)
    content = path.read_bytes()
    # The number of rows of the only group, as the footer has it after its size: 20, doubled.
    place = content.rindex(bytes([0x16, 40, 0x26]))
    path.write_bytes(content[: place + 1] + bytes([32]) + content[place + 2 :])
    with pytest.raises(InputError, match=r"t\.parquet: cannot read .*expected 20 rows, found 16"):
        read_table(path, SCHEMA_PARQUET)


def test_notes_that_are_no_text_and_rows_that_may_not_be_are_found_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = table_of(SCHEMA_PARQUET, [{"name": "a"}])
    write_table(table.replace_schema_metadata({**table.schema.metadata, b"crosscast.note.x": b"\xff"}), path)
    assert "t.parquet: cannot read the table of things" in refusal(read_table, path, SCHEMA_PARQUET)
    write_table(table_of(Schema("things", 1, COLUMNS, ()), [{"name": "a"}, {"name": "a"}]), path)
    assert "t.parquet: rows 1 and 2 are both of name a" in refusal(read_table, path, SCHEMA_PARQUET)


def test_another_table_and_a_newer_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"name": ["a"]}), path)
    assert "expected a table of things, found no Crosscast table" in refusal(read_table, path, SCHEMA_PARQUET)
    write_table(table_of(Schema("toys", 1, COLUMNS, ("name",)), []), path)
    assert "expected a table of things, found a table of toys" in refusal(read_table, path, SCHEMA_PARQUET)
    write_table(table_of(Schema("things", 2, COLUMNS, ("name",)), []), path)
    with pytest.raises(InputError, match="version 1 or older, found version 2: a newer Crosscast wrote it"):
        read_table(path, SCHEMA_PARQUET)


def test_past_versions_are_upgraded_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_table(table_of(SCHEMA_PARQUET, [{"name": "a", "count": 2}]), path)
    third = Schema("things", 3, (*COLUMNS, Column("twice", "integer"), Column("more", "integer")), ("name",))
    assert "version 1 of the table of things is not known" in refusal(read_table, path, third)
    upgrades = {
        1: lambda table: table.append_column("twice", pa.array([4])),
        2: lambda table: table.append_column("more", pa.compute.add(table.column("twice"), 1)),
    }
    row = read_table(path, third, upgrades).to_pylist()[0]
    assert (row["twice"], row["more"]) == (4, 5)


SCHEMAS = (PROFILES, DEVICES, RECORDS, SESSIONS, ENERGY)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.table)
def test_columns_have_names_of_their_own_titles_and_the_units_their_names_end_with(schema: Schema) -> None:
    names = [column.name for column in schema.columns]
    assert len(names) == len(set(names))
    assert set(schema.key) <= set(names)
    assert all(column.title for column in schema.columns)
    units = {"_s": "s", "_per_s": ("B/s", "flop/s"), "_hz": "Hz", "_bytes": "B", "_j": "J", "_w": "W"}
    for column in schema.columns:
        ending = max((end for end in units if column.name.endswith(end)), key=len, default=None)
        if ending is not None:
            assert column.unit in units[ending], column.name


@given(st.dictionaries(st.text(), st.integers()))
def test_equal_values_are_equal_texts(value: dict[str, int]) -> None:
    assert json_text(dict(reversed(value.items()))) == json_text(value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({**value, "clock_hz": float("inf")})


def test_known_sizes_come_in_their_order_and_others_after() -> None:
    names = ["zoo", "large", "huge", "tiny", "medium", "small"]
    assert sorted(names, key=size_order) == ["tiny", "small", "medium", "large", "huge", "zoo"]


_HOOKS = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "hooks.py"))
_SOURCE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
_DOCUMENT: str = _HOOKS["on_page_markdown"](_SOURCE)
_METRICS = {metric.name for metric in METRICS}
_REUSE = "reuse_bytes_"
_NAMES = [column.name for column in PROFILES.columns]


def section(title: str) -> str:
    return _DOCUMENT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _line(column: Column) -> str:
    return f"| `{column.name}` | {column.type} | {column.unit} | {column.title} |"


@pytest.mark.parametrize("schema", TABLES, ids=lambda schema: schema.table)
def test_the_site_has_every_column_and_key_in_its_section(schema: Schema) -> None:
    marker = f"<!-- columns of {schema.table} -->"
    assert (
        marker in _SOURCE.split(f"\n## {schema.table.replace('_', ' ').capitalize()}\n")[1].split("\n## ")[0]
    )
    lines = _HOOKS["on_page_markdown"](f"before\n{marker}\nafter").splitlines()
    assert (lines[0], lines[1], lines[-1]) == (
        "before", f"Key: {', '.join(f'`{name}`' for name in schema.key)}.", "after"
    )  # fmt: skip
    columns = [c for c in schema.columns if c.name not in _METRICS and not c.name.startswith(_REUSE)]
    assert lines[5:-1] == [_line(column) for column in columns]


def test_the_columns_of_reuse_are_told_by_their_parts() -> None:
    told = " ".join(section("Profiles").split()).split(f"`{_REUSE}LINE_GROUPS_CACHE`")[1]
    names = [name.removeprefix(_REUSE).split("_") for name in _NAMES if name.startswith(_REUSE)]
    lines, groups, caches = (list(dict.fromkeys(parts)) for parts in zip(*names, strict=True))
    assert f"lines of LINE bytes ({', '.join(lines)})" in told
    assert f"(GROUPS: {', '.join(groups)})" in told
    assert f"({caches[0]} and so on in steps of two up to {caches[-2]}, or `{caches[-1]}`" in told


def test_the_columns_of_the_views_are_there() -> None:
    rows = [line for line in section("The joined view").splitlines() if line.startswith("| `time_")]
    assert rows == [_line(column) for column in JOINED.columns if column.name.startswith("time_")]
    rows = [line for line in section("Configured runs").splitlines() if line.startswith("| `")]
    assert rows == [_line(column) for column in CONFIGURED.columns if column.name not in CONFIGURED.key]


def test_the_limits_of_the_warnings_are_there() -> None:
    text = section("Warnings")
    for words in (
        f"is over {MOST_SPREAD * 100:.0f} % of",
        f"differs by over {MOST_CLOCK_CHANGE * 100:.0f} %",
        f"over {MOST_LOAD:g} other processes",
        f"fewer than {LEAST_RUNS} runs",
        f"less than {LEAST_LOOP_S:g} s",
        f"under {LEAST_TICKS} times",
    ):
        assert words in text


CELLS: dict[str, object] = {
    "text": "a",
    "integer": 3,
    "number": 0.5,
    "texts": ["a", "b"],
    "entries": {"a": 1},
    "empty": None,
    "flag": True,
}
READERS = ("text", "integer", "number", "texts", "entries")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [*CELLS, "absent"])
def test_a_cell_is_read_as_what_it_holds_or_refused(reader: str, name: str) -> None:
    row = TableRow(CELLS)
    read = getattr(row, reader)
    if name == reader or (reader, name) == ("number", "integer"):
        assert read(name) == CELLS[name]
    elif reader == "texts" and name in ("empty", "absent"):
        assert read(name) == []
    else:
        with pytest.raises(InputError, match=f"column '{name}': expected .*, found"):
            read(name)
