"""Datasets that were built on several machines, joined into one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from crosscast.data.dataset import TABLES, Dataset, validate
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import BAGS, DEVICES, ENERGY, RECORDS, SESSIONS, SOLOS, Schema, json_text
from crosscast.data.table import notes_of, table_of
from crosscast.errors import InputError

Row = dict[str, object]
Key = tuple[object, ...]

HOST = "host"
"""Name of the machine in the environment of a session or an isolated run."""

_OF_A_DEVICE = ("name", "vendor", "type", "compute_units", "platform", "driver")
"""What equal devices of two hosts agree in; what was measured of them is that of the first."""
_OF_A_PROFILE = tuple(
    column.name
    for column in PROFILES.columns
    if column.name != "environment" and column.unit != "s" and not column.name.startswith(f"{HOST}_")
)


def merged(datasets: Sequence[Dataset], label: str) -> Dataset:
    """Join datasets: each device once, and every measurement of each host.

    A session that another host has too gets the next number of a repeat. What several datasets have of one
    host must be equal.

    Raises
    ------
    InputError
        If something is there twice and differs; names it, and where both are.
    """
    tables: dict[Schema, list[Row]] = {}
    tables[DEVICES] = _joined(datasets, DEVICES, DEVICES.key, lambda row: _cells(row, _OF_A_DEVICE))
    tables[PROFILES] = _joined(datasets, PROFILES, PROFILES.key, _of_a_profile)
    for schema in (SOLOS, BAGS):
        tables[schema] = _joined(datasets, schema, schema.key, dict)
    tables |= _sessions(datasets)
    found = Dataset(
        label,
        **{schema.table: table_of(schema, tables[schema], _notes(datasets, schema)) for schema in TABLES},
    )
    validate(found)
    return found


def hosts_of(sessions: Iterable[Mapping[str, object]]) -> dict[str, list[str]]:
    """Hosts on which each device was measured, in the order of their names."""
    found: dict[str, set[str]] = {}
    for row in sessions:
        if (host := _host(row)) is not None:
            found.setdefault(str(row["device"]), set()).add(host)
    return {device: sorted(hosts) for device, hosts in found.items()}


def _joined(
    datasets: Sequence[Dataset], schema: Schema, key: Sequence[str], facts: Callable[[Row], Row]
) -> list[Row]:
    """Rows of all datasets; of those with one key, which have the same facts, the first."""
    rows: dict[Key, Row] = {}
    sources: dict[Key, str] = {}
    for dataset in datasets:
        for row in dataset.table(schema).to_pylist():
            place = tuple(row[name] for name in key)
            known = rows.setdefault(place, row)
            source = sources.setdefault(place, dataset.label)
            _expect_same(schema, place, facts(known), facts(row), source, dataset.label)
    return list(rows.values())


def _expect_same(schema: Schema, key: Key, before: Row, now: Row, there: str, here: str) -> None:
    for name, value in before.items():
        if value != now[name]:
            raise InputError(
                f"{here}: {schema.table}: {_text(key)}: expected the {name} of {there} ({_short(value)}), "
                f"found {_short(now[name])}"
            )


_OF_A_SESSION = (SESSIONS, RECORDS, ENERGY)
"""Tables of which a process that measured has rows."""


def _sessions(datasets: Sequence[Dataset]) -> dict[Schema, list[Row]]:
    """Sessions with their records and energies; those of another host get a repeat that is free."""
    taken: dict[Key, dict[tuple[str | None, int], tuple[Group, str]]] = {}
    repeats: dict[Key, set[int]] = {}
    rows: dict[Schema, list[Row]] = {schema: [] for schema in _OF_A_SESSION}
    for dataset in datasets:
        for key, group in _groups(dataset).items():
            place, repeat = key
            host = next(map(_host, group[SESSIONS]), None)
            known, source = taken.setdefault(place, {}).setdefault((host, repeat), (group, dataset.label))
            if known is not group:
                _expect_equal((*place, repeat), known, group, source, dataset.label)
                continue
            numbers = repeats.setdefault(place, set())
            number = repeat if repeat not in numbers else max(numbers) + 1
            numbers.add(number)
            for schema, own in group.items():
                rows[schema] += [{**row, "repeat": number} for row in own]
    return rows


Group = dict[Schema, list[Row]]


def _groups(dataset: Dataset) -> dict[tuple[Key, int], Group]:
    """Rows of each process that measured, by the key of its session, which others' data may lack."""
    found: dict[tuple[Key, int], Group] = {}
    for schema in _OF_A_SESSION:
        for row in dataset.table(schema).to_pylist():
            place = tuple(row[name] for name in SESSIONS.key if name != "repeat")
            found.setdefault((place, row["repeat"]), {each: [] for each in _OF_A_SESSION})[schema].append(row)
    return found


def _expect_equal(key: Key, before: Group, now: Group, there: str, here: str) -> None:
    for schema, rows in now.items():
        if len(rows) != len(before[schema]):
            raise InputError(
                f"{here}: {schema.table}: {_text(key)}: expected the {len(before[schema])} rows of {there}, "
                f"found {len(rows)}"
            )
        for known, row in zip(before[schema], rows, strict=True):
            _expect_same(schema, key, known, row, there, here)


def _host(row: Mapping[str, object]) -> str | None:
    facts = json.loads(str(row["environment"] or "{}"))
    return facts.get(HOST) if isinstance(facts, dict) else None


def _of_a_profile(row: Row) -> Row:
    """What a profile has wherever it was made: all but the times of the machine."""
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


def _notes(datasets: Sequence[Dataset], schema: Schema) -> dict[str, str]:
    notes: dict[str, str] = {}
    for dataset in datasets:
        notes |= notes_of(dataset.table(schema))
    return notes
