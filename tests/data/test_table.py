"""Tables in memory and in files, their schemas, the page that describes them, and rows as what they hold."""

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

from crosscast.data import description as limits
from crosscast.data.dataset import TABLES
from crosscast.data.fields import TableRow
from crosscast.data.schema import Column, ColumnType, Schema, json_text, size_order
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

COLUMNS = (
    Column("name", "text", required=True),
    Column("settings", "json"),
    Column("count", "integer", "count", ge=0),
    Column("weight", "real", "kg"),
    Column("time_s", "reals", "s", ge=0),
)
SCHEMA = Schema("things", 3, COLUMNS, key=("name", "settings"))


def nested(depth: int) -> list[object]:
    inner: list[object] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def test_a_table_has_the_columns_units_version_and_notes() -> None:
    rows: list[dict[str, object]] = [{"name": "a", "settings": {"b": 1, "a": [2]}}]
    rows.append({"name": "b", "settings": "[]"})
    table = table_of(SCHEMA, rows, {"origin": "made"})
    assert table.column_names == [column.name for column in COLUMNS]
    assert table.schema.field("weight").metadata == {b"unit": b"kg"}
    assert (identity_of(table), notes_of(table)) == (("things", 3), {"origin": "made"})
    assert table.column("settings").to_pylist() == ['{"a": [2], "b": 1}', "[]"]
    assert table.column("count").to_pylist() == [None, None]
    assert identity_of(pa.table({"name": ["a"]})) is None


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("name", None, "a value, found none"),
        ("name", 7, "a text, found 7"),
        ("count", -1, "at least 0, found -1"),
        ("count", 1.5, "a whole number, found 1.5"),
        ("count", "1", "a whole number, found '1'"),
        ("count", 1 << 64, "a whole number, found"),
        ("weight", "1", "a number, found '1'"),
        ("weight", float("nan"), "a finite number, found"),
        ("time_s", [1.0, float("inf")], "a finite number,"),
        ("time_s", [1.0, -0.5], "at least 0, found -0.5"),
        ("time_s", [1.0, None], "numbers, found an empty"),
        ("time_s", [], "numbers, found none"),
        ("time_s", 1.0, "a list of numbers, found 1.0"),
        ("settings", "{", "a JSON value, found {"),
        ("settings", '{"b":1}', 'the form {"b": 1},'),
        ("settings", "[" * 100_000, f"a JSON value, found '{'[' * 60}' and more"),
        ("settings", nested(100_000), "a JSON value,"),
        ("settings", {1.0, 2.0}, "a JSON value, found"),
    ],
)
def test_a_wrong_cell_is_named(column: str, cell: object, expected: str) -> None:
    first = {"name": "first", "settings": "{}", "time_s": [3.0, 4.0]}
    message = refusal(table_of, SCHEMA, [first, {"name": "a", column: cell}])
    assert message.startswith(f"things: column {column!r}, row 2: expected {expected}")


def test_a_row_that_is_there_twice_or_has_another_column_is_named() -> None:
    row = {"name": "a", "settings": {}}
    assert refusal(table_of, SCHEMA, [row, row]) == "things: rows 1 and 2 are both of name a, settings {}"
    other = "things: expected columns of the table, found 'color'"
    assert refusal(table_of, SCHEMA, [row | {"color": "red"}]) == other


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
    cells = {
        "extra": [1],
        "time_s": pa.array([[1.0]], pa.list_(pa.float32())),
        "weight": pa.array([1], pa.int8()),
        "count": pa.array([2.0]),
        "settings": pa.array([None], pa.null()),
        "name": pa.array(["a"]).dictionary_encode(),
    }
    row = {"name": "a", "settings": None, "count": 2, "weight": 1.0, "time_s": [1.0]}
    assert cast(SCHEMA, pa.table(cells), "x").to_pylist() == [row]


def test_cast_names_a_column_of_another_kind_or_none() -> None:
    table = table_of(SCHEMA, [{"name": "a"}])
    for column, cells, message in (
        ("count", pa.array([1.5]), ": expected a whole number in each row, found double"),
        ("weight", pa.array(["heavy"]), ": expected a number in each row, found string"),
        ("time_s", pa.array([1.0]), ": expected a list of numbers in each row, found double"),
    ):
        wrong = table.drop_columns([column])
        missing = f"x: column {column!r} of the table of things is missing"
        assert refusal(cast, SCHEMA, wrong, "x") == missing
        found = refusal(cast, SCHEMA, wrong.append_column(column, cells), "x")
        assert found == f"x: column {column!r}{message}"


KEYS = st.lists(st.tuples(st.sampled_from(["a", "b", "\x1f", "", None]), st.integers(0, 2)), max_size=9)


@given(parts=st.tuples(KEYS, KEYS))
def test_numbers_are_equal_where_keys_are(parts: tuple[list[tuple[str | None, int]], ...]) -> None:
    kind = pa.schema([("name", pa.string()), ("run", pa.int64())])
    tables = [
        pa.Table.from_pylist([{"name": name, "run": run} for name, run in keys], kind) for keys in parts
    ]
    numbers = np.concatenate(key_numbers(tables, ["name", "run"])).tolist()
    keys = [key for part in parts for key in part]
    assert len(set(zip(keys, numbers, strict=True))) == len(set(keys)) == len(set(numbers))
    assert set(numbers) == set(range(len(set(keys))))


@given(
    groups=st.lists(st.lists(st.floats(0, 1e6), min_size=1, max_size=9), max_size=5), seed=st.integers(0, 99)
)
def test_statistics_are_those_of_numpy(groups: list[list[float]], seed: int) -> None:
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    values = np.array([value for group in groups for value in group], dtype=np.float64)
    order = np.random.default_rng(seed).permutation(len(values))
    samples = samples_of(numbers[order], values[order])
    assert samples.least().tolist() == [min(group) for group in groups]
    assert samples.most().tolist() == [max(group) for group in groups]
    assert samples.mean() == pytest.approx([np.mean(group) for group in groups])
    sd = [np.std(group, ddof=1) if len(group) > 1 else np.nan for group in groups]
    assert samples.sd() == pytest.approx(sd, nan_ok=True, abs=1e-8)
    for share in (0.25, 0.5, 0.75):
        assert samples.quantile(share) == pytest.approx([np.quantile(group, share) for group in groups])


finite = st.floats(allow_nan=False, allow_infinity=False)
cells = st.fixed_dictionaries(
    {
        "name": st.text(),
        "settings": st.none() | st.dictionaries(st.text(), st.integers()),
        "count": st.none() | st.integers(0, 2**63 - 1),
        "weight": st.none() | finite,
        "time_s": st.none() | st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=5),
    }
)
drawn_rows = st.lists(cells, unique_by=lambda row: str(row["name"]), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@given(rows=drawn_rows, note=st.text(), cut=st.integers(0, 8))
def test_a_file_gives_back_what_it_got_and_chunks_do_not_show(
    folder: Path, rows: Sequence[dict[str, Any]], note: str, cut: int
) -> None:
    whole = table_of(SCHEMA, rows, {"note": note})
    write_table(whole, folder / "whole.parquet")
    back = read_table(folder / "whole.parquet", SCHEMA)
    assert back.equals(whole)
    assert back.schema.equals(whole.schema, check_metadata=True)
    write_table(concatenated(SCHEMA, [whole.slice(0, cut), whole.slice(cut)]), folder / "cut.parquet")
    assert (folder / "whole.parquet").read_bytes() == (folder / "cut.parquet").read_bytes()


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
    with pytest.raises(EnvironmentFault, match=r"second\.parquet: cannot write the table \(No space left"):
        write_tables({first: new, second: new})
    assert first.read_bytes() == second.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [first, second]


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


def test_a_file_that_is_not_there_was_cut_off_or_lost_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    damaged = f"{path}: cannot read the table of things"
    assert refusal(read_table, str(path), SCHEMA).startswith(f"{damaged} (no such file")
    write_table(table_of(SCHEMA, [{"name": f"n{n}"} for n in range(20)]), path)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        assert refusal(read_table, path, SCHEMA).startswith(damaged)
    # The number of rows of the only group, as the footer has it after its size: 20, doubled.
    place = content.rindex(bytes([0x16, 40, 0x26]))
    path.write_bytes(content[: place + 1] + bytes([32]) + content[place + 2 :])
    assert refusal(read_table, path, SCHEMA) == f"{damaged} (expected 20 rows, found 16)"


def test_another_table_a_newer_one_and_one_that_may_not_be_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = table_of(SCHEMA, [{"name": "a"}])
    for wrong, message in (
        (pa.table({"name": ["a"]}), "expected a table of things, found no Crosscast table"),
        (table_of(Schema("toys", 1, COLUMNS, ("name",)), []), "expected a table of things, found a table of"),
        (table_of(Schema("things", 4, COLUMNS, ("name",)), []), "expected a table of things of version 3 or"),
        (table_of(Schema("things", 2, COLUMNS, ("name",)), []), "version 2 of the table of things is not kn"),
        (table_of(Schema("things", 3, COLUMNS, ()), [{"name": "a"}] * 2), "rows 1 and 2 are both of name a"),
        (
            table.replace_schema_metadata({**table.schema.metadata, b"crosscast.note.x": b"\xff"}),
            "cannot read the table of things",
        ),
    ):
        pq.write_table(wrong, path)
        assert refusal(read_table, path, SCHEMA).startswith(f"{path}: {message}")


def test_columns_have_names_of_their_own_titles_and_the_units_their_names_end_with() -> None:
    units = {"_s": "s", "_per_s": ("B/s", "flop/s"), "_hz": "Hz", "_bytes": "B", "_j": "J", "_w": "W"}
    for schema in TABLES:
        names = [column.name for column in schema.columns]
        assert len(names) == len(set(names))
        assert set(schema.key) <= set(names)
        for column in schema.columns:
            assert column.title
            ending = max((end for end in units if column.name.endswith(end)), key=len, default=None)
            assert ending is None or column.unit in units[ending], column.name


@given(st.dictionaries(st.text(), st.integers()))
def test_equal_values_are_equal_texts(value: dict[str, int]) -> None:
    assert json_text(dict(reversed(value.items()))) == json_text(value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({**value, "clock_hz": float("inf")})


def test_known_sizes_come_in_their_order_and_others_after() -> None:
    names = ["zoo", "large", "huge", "tiny", "medium", "small"]
    assert sorted(names, key=size_order) == ["tiny", "small", "medium", "large", "huge", "zoo"]


_PAGE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "hooks.py"))["on_page_markdown"]
_SOURCE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
_REUSE = "reuse_bytes_"


def section(title: str, document: str = _PAGE(_SOURCE)) -> str:
    return document.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_page_has_every_column_in_its_section() -> None:
    in_words = {metric.name for metric in METRICS}
    sections = {schema.table.replace("_", " ").capitalize(): schema.columns for schema in TABLES}
    sections["The joined view"] = tuple(c for c in JOINED.columns if c.name.startswith("time_"))
    sections["Configured runs"] = tuple(c for c in CONFIGURED.columns if c.name not in CONFIGURED.key)
    for title, columns in sections.items():
        for column in columns:
            if column.name not in in_words and not column.name.startswith(_REUSE):
                line = f"| `{column.name}` | {column.type} | {column.unit} | {column.title} |"
                assert line in section(title)


def test_the_limits_of_the_warnings_are_there() -> None:
    text = section("Warnings")
    for words in (
        f"is over {limits.MOST_SPREAD * 100:.0f} % of",
        f"differs by over {limits.MOST_CLOCK_CHANGE * 100:.0f} %",
        f"over {limits.MOST_LOAD:g} other processes",
        f"fewer than {limits.LEAST_RUNS} runs",
        f"less than {limits.LEAST_LOOP_S:g} s",
        f"under {limits.LEAST_TICKS} times",
    ):
        assert words in text


CELLS: dict[str, object] = {"text": "a", "integer": 3, "number": 0.5, "texts": ["a", "b"]}
CELLS |= {"entries": {"a": 1}, "empty": None, "flag": True}


@pytest.mark.parametrize("reader", ["text", "integer", "number", "texts", "entries"])
def test_a_cell_is_read_as_what_it_holds_or_refused(reader: str) -> None:
    read = getattr(TableRow(CELLS), reader)
    for name in (*CELLS, "absent"):
        if name == reader or (reader, name) == ("number", "integer"):
            assert read(name) == CELLS[name]
        elif reader == "texts" and name in ("empty", "absent"):
            assert read(name) == []
        else:
            assert f"column '{name}': expected " in refusal(read, name)
