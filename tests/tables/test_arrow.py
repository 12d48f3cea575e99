import pyarrow as pa
import pytest

from crosscast.data.schema import Column, Schema
from crosscast.data.table import (
    cast,
    check,
    concatenated,
    identity_of,
    in_order,
    notes_of,
    table_of,
)
from crosscast.errors import InputError

SCHEMA = Schema(
    "things",
    3,
    (
        Column("name", "text", required=True),
        Column("settings", "json"),
        Column("count", "integer", "count", least=0),
        Column("weight", "real", "kg"),
        Column("time_s", "reals", "s", least=0),
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


def test_json_cells_are_written_for_the_caller() -> None:
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
        (
            {"name": "a", "weight": float("nan")},
            "column 'weight', row 2: expected a finite number, found nan",
        ),
        (
            {"name": "a", "time_s": [1.0, float("inf")]},
            "column 'time_s', row 2: expected a finite number, found",
        ),
        ({"name": "a", "time_s": [1.0, -0.5]}, "column 'time_s', row 2: expected at least 0, found -0.5"),
        (
            {"name": "a", "time_s": [1.0, None]},
            "column 'time_s', row 2: expected numbers, found an empty one",
        ),
        ({"name": "a", "time_s": []}, "column 'time_s', row 2: expected numbers, found none"),
        ({"name": "a", "time_s": 1.0}, "column 'time_s', row 2: expected a list of numbers, found 1.0"),
        ({"name": "a", "settings": "{"}, "column 'settings', row 2: expected a JSON value, found {"),
        (
            {"name": "a", "settings": '{"b":1}'},
            "column 'settings', row 2: expected the form {\"b\": 1}, found",
        ),
        (
            {"name": "a", "settings": "[" * 100_000},
            f"column 'settings', row 2: expected a JSON value, found '{'[' * 60}' and more",
        ),
        (
            {"name": "a", "settings": nested(100_000)},
            "column 'settings', row 2: expected a JSON value, found",
        ),
        ({"name": "a", "settings": {1.0, 2.0}}, "column 'settings', row 2: expected a JSON value, found"),
        ({"name": "first", "settings": {}}, "rows 1 and 2 are both of name first, settings {}"),
        ({"name": "a", "color": "red"}, "expected columns of the table, found 'color'"),
    ],
)
def test_a_wrong_cell_is_named(row: dict[str, object], message: str) -> None:
    first = {"name": "first", "settings": "{}", "time_s": [3.0, 4.0]}
    with pytest.raises(InputError) as caught:
        table_of(SCHEMA, [first, row])
    assert str(caught.value).startswith(f"things: {message}")


def test_a_wrong_cell_is_named_in_a_table_of_several_chunks() -> None:
    parts = [table_of(SCHEMA, [{"name": name, "time_s": [1.0, 2.0]}]) for name in "abc"]
    bad = table_of(SCHEMA, [{"name": "d", "time_s": [1.0]}]).set_column(
        4, "time_s", pa.array([[-1.0]], pa.list_(pa.float64()))
    )
    with pytest.raises(InputError, match="row 4: expected at least 0, found -1"):
        check(SCHEMA, concatenated(SCHEMA, [*parts, bad]), "all")


def test_without_a_key_rows_may_be_equal() -> None:
    loose = Schema("things", 3, SCHEMA.columns, key=())
    assert table_of(loose, [{"name": "a"}, {"name": "a"}]).num_rows == 2
    with pytest.raises(InputError, match="rows 1 and 2 are both of name a, settings None"):
        table_of(SCHEMA, [{"name": "a"}, {"name": "a"}])


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
    with pytest.raises(InputError) as caught:
        cast(SCHEMA, table, "x")
    assert str(caught.value) == f"x: {message}"


def test_rows_are_put_in_the_order_of_the_key() -> None:
    table = table_of(SCHEMA, [{"name": "b"}, {"name": "a", "settings": {}}, {"name": "a"}], {"n": "kept"})
    ordered = in_order(SCHEMA, table)
    assert [row["name"] + str(row["settings"]) for row in ordered.to_pylist()] == ["a{}", "aNone", "bNone"]
    assert notes_of(ordered) == {"n": "kept"}


def test_a_table_of_others_has_no_identity() -> None:
    assert identity_of(pa.table({"name": ["a"]})) is None
