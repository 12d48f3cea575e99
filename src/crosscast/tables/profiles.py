"""The table of profiles: a row a launch, with typed columns, units and a version.

Version 1: identification, one column a metric, seconds spent, and JSON for what has no fixed fields.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from crosscast.errors import InputError, MissingExtraError
from crosscast.profile import METRICS, Metric, Profile
from crosscast.tables.whole_file import whole_file

__all__ = [
    "COLUMNS",
    "VERSION",
    "Column",
    "csv_header",
    "csv_row",
    "read_csv",
    "read_parquet",
    "require_pyarrow",
    "to_row",
    "write_csv",
    "write_parquet",
]

VERSION = 1
"""Version of the schema; it rises when a column changes its name, type or meaning."""

ColumnType = Literal["text", "integer", "real", "json"]
_TIMES = ("compile", "instrument", "run", "run_cpu", "metrics")
_REAL_COUNTS = frozenset({"median_itb", "median_ipt", "mean_simd_width", "sd_simd_width"})


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Parameters
    ----------
    name
        Its name.
    type
        What its cells hold; any cell may be empty.
    unit
        Unit of its numbers; empty for texts.
    """

    name: str
    type: ColumnType
    unit: str = ""


def _metric_column(metric: Metric) -> Column:
    real = metric.unit in ("1", "bits") or metric.name in _REAL_COUNTS
    return Column(metric.name, "real" if real else "integer", metric.unit)


COLUMNS: tuple[Column, ...] = (
    Column("kernel", "text"),
    Column("invocation", "integer", "count"),
    *(_metric_column(metric) for metric in METRICS),
    *(Column(f"{name}_s", "real", "s") for name in _TIMES),
    Column("launch", "json"),
    Column("program", "json"),
    Column("environment", "json"),
)
"""The columns in order."""


def to_row(profile: Profile) -> dict[str, Any]:
    """Cells of a profile by column; ``None`` is an empty one."""
    cells: dict[str, Any] = {
        "kernel": profile.kernel,
        "invocation": profile.invocation,
        **profile.metrics,
        **{f"{name}_s": profile.timing_s.get(name) for name in _TIMES},
        "launch": json.dumps(dict(profile.launch)),
        "program": json.dumps(dict(profile.program)),
        "environment": json.dumps(dict(profile.environment)),
    }
    return {column.name: cells.get(column.name) for column in COLUMNS}


def csv_header() -> str:
    """First line of the CSV form, without its end."""
    return ",".join(column.name for column in COLUMNS)


def csv_row(profile: Profile) -> str:
    """Line of a profile, without its end; numbers have all their digits."""
    text = io.StringIO()
    row = to_row(profile)
    csv.writer(text, lineterminator="").writerow(
        "" if row[column.name] is None else row[column.name] for column in COLUMNS
    )
    return text.getvalue()


def write_csv(profiles: Iterable[Profile], path: Path) -> None:
    """Write a CSV file."""
    with whole_file(path) as temporary:
        temporary.write_text("\n".join([csv_header(), *map(csv_row, profiles)]) + "\n", encoding="utf-8")


def read_csv(path: Path) -> list[Profile]:
    """Read a CSV file that `write_csv` or the command wrote.

    Raises
    ------
    InputError
        If it cannot be read or is not such a table.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the table of profiles ({error})") from error
    rows = list(csv.reader(io.StringIO(text)))
    names = [column.name for column in COLUMNS]
    if not rows or rows[0] != names:
        raise InputError(f"{path}: expected a table of profiles, version {VERSION}, found other columns")
    profiles = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            cells = {c.name: _READERS[c.type](cell) for c, cell in zip(COLUMNS, row, strict=True)}
        except ValueError as error:
            raise InputError(f"{path}:{number}: not a row of a table of profiles ({error})") from error
        profiles.append(_from_row(cells))
    return profiles


def write_parquet(profiles: Sequence[Profile], path: Path) -> None:
    """Write a Parquet file; units and the schema's version are in its metadata.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    arrow, parquet = require_pyarrow()
    types = {
        "text": arrow.string(),
        "json": arrow.string(),
        "integer": arrow.int64(),
        "real": arrow.float64(),
    }
    schema = arrow.schema(
        [arrow.field(c.name, types[c.type], metadata={"unit": c.unit} if c.unit else None) for c in COLUMNS],
        metadata={"crosscast.table": "profiles", "crosscast.version": str(VERSION)},
    )
    table = arrow.Table.from_pylist([to_row(profile) for profile in profiles], schema=schema)
    with whole_file(path) as temporary:
        parquet.write_table(table, temporary)


def read_parquet(path: Path) -> list[Profile]:
    """Read a Parquet file that `write_parquet` wrote.

    Raises
    ------
    InputError
        If it cannot be read, or is another kind or version of table.
    MissingExtraError
        If pyarrow is not installed.
    """
    arrow, parquet = require_pyarrow()
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot read the table of profiles ({error})") from error
    metadata = table.schema.metadata or {}
    found = (metadata.get(b"crosscast.table"), metadata.get(b"crosscast.version"))
    if found != (b"profiles", str(VERSION).encode()):
        raise InputError(f"{path}: expected a table of profiles, version {VERSION}, found another kind")
    return [_from_row(_parse_json(row)) for row in table.to_pylist()]


def require_pyarrow() -> tuple[Any, Any]:
    """Modules ``pyarrow`` and ``pyarrow.parquet``.

    Raises
    ------
    MissingExtraError
        If they are not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("parquet", "a Parquet file") from error
    return pyarrow, pyarrow.parquet


def _parse_json(row: Mapping[str, Any]) -> dict[str, Any]:
    texts = {column.name for column in COLUMNS if column.type == "json"}
    return {name: json.loads(cell) if name in texts else cell for name, cell in row.items()}


def _from_row(cells: Mapping[str, Any]) -> Profile:
    return Profile(
        kernel=cells["kernel"],
        invocation=cells["invocation"],
        metrics={metric.name: cells[metric.name] for metric in METRICS},
        timing_s={name: cells[f"{name}_s"] for name in _TIMES if cells[f"{name}_s"] is not None},
        launch=cells["launch"],
        program=cells["program"],
        environment=cells["environment"],
    )


_READERS: dict[ColumnType, Callable[[str], Any]] = {
    "text": str,
    "integer": lambda cell: int(cell) if cell else None,
    "real": lambda cell: float(cell) if cell else None,
    "json": json.loads,
}
