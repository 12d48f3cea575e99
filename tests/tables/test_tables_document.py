"""The document of the tables says what the schemas say."""

from pathlib import Path

import pytest

from crosscast.data.dataset import TABLES
from crosscast.data.description import (
    LEAST_LOOP_S,
    LEAST_RUNS,
    LEAST_TICKS,
    MOST_CLOCK_CHANGE,
    MOST_LOAD,
    MOST_SPREAD,
)
from crosscast.data.schema import Schema
from crosscast.data.views import CONFIGURED, JOINED
from crosscast.profile import METRICS

_DOCUMENT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
_METRICS = {metric.name for metric in METRICS}


def section(title: str) -> str:
    return _DOCUMENT.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("schema", TABLES, ids=lambda schema: schema.table)
def test_every_column_and_key_is_in_its_section(schema: Schema) -> None:
    text = section(schema.table.capitalize())
    assert f"Key: {', '.join(f'`{name}`' for name in schema.key)}." in text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{column.name}` | {column.type} | {column.unit} | {column.title} |"
        for column in schema.columns
        if column.name not in _METRICS
    ]


def test_the_times_of_the_joined_view_are_there() -> None:
    text = section("The joined view")
    for column in JOINED.columns:
        if column.name.startswith("time_"):
            assert f"| `{column.name}` | {column.type} | {column.unit} | {column.title} |" in text


def test_the_columns_of_configured_runs_are_there() -> None:
    rows = [line for line in section("Configured runs").splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{column.name}` | {column.type} | {column.unit} | {column.title} |"
        for column in CONFIGURED.columns
        if column.name not in CONFIGURED.key
    ]


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
