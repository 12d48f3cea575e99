"""Datasets that were built on several machines, joined into one; a dataset without some applications."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from crosscast.data.dataset import TABLES, Dataset, validate
from crosscast.data.library import pa, pc
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, ENERGY, ISOLATED_RUNS, MIXES, RECORDS, SESSIONS, Schema, json_text
from crosscast.data.table import notes_of, table_of
from crosscast.errors import InputError

Row = dict[str, object]
Key = tuple[object, ...]

HOST = "host"
"""Name of the machine in the environment of a session or an isolated run."""

_OF_A_DEVICE = ("name", "vendor", "type", "compute_units", "platform", "driver")
"""Columns that are equal for equal devices of two hosts; measured columns are taken from the first host."""
_OF_A_PROFILE = tuple(
    column.name
    for column in PROFILES.columns
    if column.name != "environment" and column.unit != "s" and not column.name.startswith(f"{HOST}_")
)


def merged(datasets: Sequence[Dataset], label: str) -> Dataset:
    """Join datasets: each device once, and every measurement of each host.

    A session that another host has, too, gets the next free repeat number. Rows that several datasets have of
    one host must be equal; otherwise the error names the key and both datasets.
    """
    tables = {
        DEVICES: _joined(datasets, DEVICES, lambda row: _cells(row, _OF_A_DEVICE)),
        PROFILES: _joined(datasets, PROFILES, _of_a_profile),
        **{schema: _joined(datasets, schema, dict) for schema in (ISOLATED_RUNS, MIXES)},
        **_sessions(datasets),
    }
    notes = {
        schema: {name: text for each in datasets for name, text in notes_of(each.table(schema)).items()}
        for schema in TABLES
    }
    joined = Dataset(
        label, **{schema.table: table_of(schema, rows, notes[schema]) for schema, rows in tables.items()}
    )
    validate(joined)
    return joined


def hosts_of(sessions: Iterable[Mapping[str, object]]) -> dict[str, list[str]]:
    """Hosts on which each device was measured, in the order of their names."""
    hosts: dict[str, set[str]] = {}
    for row in sessions:
        if (host := _host(row)) is not None:
            hosts.setdefault(str(row["device"]), set()).add(host)
    return {device: sorted(names) for device, names in hosts.items()}


def _joined(datasets: Sequence[Dataset], schema: Schema, facts: Callable[[Row], Row]) -> list[Row]:
    """Rows of all datasets, the first of each key; rows with one key must agree in their `facts`."""
    rows: dict[Key, tuple[Row, str]] = {}
    for dataset in datasets:
        for row in dataset.table(schema).to_pylist():
            key = tuple(row[name] for name in schema.key)
            first, source = rows.setdefault(key, (row, dataset.label))
            _expect_same(schema, key, facts(first), facts(row), source, dataset.label)
    return [row for row, _ in rows.values()]


def _expect_same(
    schema: Schema, key: Key, first: Row, second: Row, first_label: str, second_label: str
) -> None:
    for name, value in first.items():
        if value != second[name]:
            raise InputError.of(
                where=second_label,
                problem=(
                    f"{schema.table}: {_text(key)}: expected the {name} of {first_label} ("
                    f"{_short(value)}), found {_short(second[name])}"
                ),
            )


_OF_A_SESSION = (SESSIONS, RECORDS, ENERGY)  # Tables with the rows of a session


def _sessions(datasets: Sequence[Dataset]) -> dict[Schema, list[Row]]:
    """Sessions with their records and energies; those of another host get a free repeat number."""
    known: dict[Key, dict[tuple[str | None, int], tuple[Group, str]]] = {}
    repeats: dict[Key, set[int]] = {}
    rows: dict[Schema, list[Row]] = {schema: [] for schema in _OF_A_SESSION}
    for dataset in datasets:
        for key, group in _groups(dataset).items():
            cell, repeat = key
            host = next(map(_host, group[SESSIONS]), None)
            first, source = known.setdefault(cell, {}).setdefault((host, repeat), (group, dataset.label))
            if first is not group:
                _expect_equal((*cell, repeat), first, group, source, dataset.label)
                continue
            numbers = repeats.setdefault(cell, set())
            number = repeat if repeat not in numbers else max(numbers) + 1
            numbers.add(number)
            for schema, session_rows in group.items():
                rows[schema] += [{**row, "repeat": number} for row in session_rows]
    return rows


Group = dict[Schema, list[Row]]


def _groups(dataset: Dataset) -> dict[tuple[Key, int], Group]:
    """Rows of each session by its key; imported data may have records without a row of the session."""
    groups: dict[tuple[Key, int], Group] = {}
    for schema in _OF_A_SESSION:
        for row in dataset.table(schema).to_pylist():
            cell = tuple(row[name] for name in SESSIONS.key if name != "repeat")
            group = groups.setdefault((cell, row["repeat"]), {table: [] for table in _OF_A_SESSION})
            group[schema].append(row)
    return groups


def _expect_equal(key: Key, first: Group, second: Group, first_label: str, second_label: str) -> None:
    for schema, rows in second.items():
        if len(rows) != len(first[schema]):
            raise InputError.of(
                where=second_label,
                problem=(
                    f"{schema.table}: {_text(key)}: expected the {len(first[schema])} rows of "
                    f"{first_label}, found {len(rows)}"
                ),
            )
        for first_row, row in zip(first[schema], rows, strict=True):
            _expect_same(schema, key, first_row, row, first_label, second_label)


def _host(row: Mapping[str, object]) -> str | None:
    facts = json.loads(str(row["environment"] or "{}"))
    return facts.get(HOST) if isinstance(facts, dict) else None


def _of_a_profile(row: Row) -> Row:
    """Cells of a profile that do not depend on the machine, so without times."""
    launch = json.loads(str(row["launch"] or "{}"))
    if isinstance(launch, dict):
        launch.pop(HOST, None)
    return _cells(row, _OF_A_PROFILE) | {"launch": json_text(launch)}


def _cells(row: Row, names: Iterable[str]) -> Row:
    return {name: row[name] for name in names}


def _text(key: Key) -> str:
    return " ".join(str(part) for part in key if part not in ("{}", None))


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def without_applications(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """Remove applications from a dataset."""
    of_applications = (PROFILES, *_OF_A_SESSION)
    cells = {schema: dataset.table(schema).column("application") for schema in of_applications}
    known = sorted({name for schema in (PROFILES, RECORDS) for name in pc.unique(cells[schema]).to_pylist()})
    for name in names:
        if name not in known:
            expected = f"applications of {dataset.label} ({', '.join(known)})"
            raise InputError.of(field="without", expected=expected, found=repr(name))
    unwanted = pa.array(list(names), type=pa.string())
    tables = {
        schema.table: dataset.table(schema).filter(pc.invert(pc.is_in(column, value_set=unwanted)))
        for schema, column in cells.items()
    }
    return replace(dataset, **tables)
