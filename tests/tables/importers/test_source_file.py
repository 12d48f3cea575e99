"""Others' tables are checked before anything is made of them."""

import gzip
from pathlib import Path

import pytest

from crosscast.data.schema import Column, Schema
from crosscast.data.sources.source import read_source
from crosscast.errors import InputError

SCHEMA = Schema("times", 1, (Column("name", "text", required=True), Column("time_s", "real")), key=())


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_source(path, SCHEMA)
    return str(caught.value)


def test_a_text_among_numbers_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,time_s\na,1\nb,\nc,1 s\n", encoding="utf-8")
    assert refusal(path) == f"{path}: column 'time_s', row 3: expected a number, found '1 s'"


def test_a_name_of_a_column_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\xfe,name\n1,2\n")
    assert refusal(path).startswith(f"{path}: cannot read the table of times (")


def test_other_columns_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("other,name,time_s\nx,a,1.5\n", encoding="utf-8")
    assert read_source(path, SCHEMA) == [{"name": "a", "time_s": 1.5}]


def test_a_packed_file_has_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"name,time_s\na,1.5\n"))
    assert read_source(path, SCHEMA) == [{"name": "a", "time_s": 1.5}]
