"""Runs on configurations in a CSV file of one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosscast.configuration import Configuration, Setting
from crosscast.errors import InputError
from crosscast.tables.csv_rows import csv_rows
from crosscast.tables.domains import whole_of
from crosscast.tables.importers.column_roles import ColumnRoles, is_positive_setting, roles_of
from crosscast.tables.importers.configured_runs import DEFAULT_SIZE
from crosscast.tables.importers.own_runs import FoundRuns, OwnRun
from crosscast.tables.run_columns import DEVICE, KERNEL, POWER, TIME, TIMES, domain_column

__all__ = ["DEFAULT_DEVICE", "read_run_table"]

DEFAULT_DEVICE = "machine"
"""Device of runs that do not say theirs."""

_MOST_BYTES = 256 << 20
_MOST_CHARACTERS = 200

_Row = tuple[str, Mapping[str, str]]


def read_run_table(path: Path, settings: Sequence[str] | None = None) -> FoundRuns:
    """Read a table with a row for each run.

    Columns: ``application``; if wanted ``kernel``, ``size`` and ``device``; ``time_s`` in seconds;
    ``power_w``, or the powers ``<domain>_w`` that sum to it, or both, in watts; settings and counters, as
    `crosscast.tables.importers.column_roles.roles_of` tells them apart. An empty cell is something that the
    run does not have.

    Parameters
    ----------
    path
        The file.
    settings
        Columns that are settings.

    Raises
    ------
    InputError
        If the file cannot be read, or a column or cell is missing or holds what it must not; names the line.
    """
    where, header, lines = csv_rows(path, "runs", f"{KERNEL[0]}, {TIME} and {POWER}", _MOST_BYTES)
    roles = roles_of(header, settings, where)
    rows = list(lines)
    if not rows:
        raise InputError(f"{path}: expected a row for each run, found none")
    words = {name for name in roles.settings if _holds_words(name, rows)}
    runs = [_run(row, roles, words) for row in rows]
    return FoundRuns(runs, [f"{path.name}: {line}" for line in roles.sentences(header)])


def _holds_words(name: str, rows: Sequence[_Row]) -> bool:
    """Whether a setting is a word in all rows; in none, it is a number."""
    if is_positive_setting(name):
        return False
    told = [(where, cells[name]) for where, cells in rows if cells[name]]
    are_words = [math.isnan(_parsed(text)) for _, text in told]
    if len(set(are_words)) > 1:
        where, text = told[are_words.index(not are_words[0])]
        expected = "a word" if are_words[0] else "a number"
        raise InputError(f"{where}: {name}: expected {expected}, as in the rows before, found {text[:60]!r}")
    return any(are_words)


def _run(row: _Row, roles: ColumnRoles, words: set[str]) -> OwnRun:
    where, cells = row
    application = _text(cells, "application", where)
    if not application:
        raise InputError(f"{where}: application: expected a name, found nothing")
    time_s = next((_least(cells, name, where, 0, above=True) for name in TIMES if cells.get(name)), None)
    if time_s is None:
        raise InputError(f"{where}: {TIME}: expected seconds above 0, found nothing")
    domains_w = {
        name: _least(cells, domain_column(name), where, 0)
        for name in roles.domains
        if cells[domain_column(name)]
    }
    power_w = _least(cells, POWER, where, 0, above=True) if cells.get(POWER) else None
    if power_w is None and domains_w and not any(domains_w[name] for name in whole_of(domains_w)):
        raise InputError(f"{where}: expected powers above 0 watts, found 0 in {', '.join(domains_w)}")
    settings = {name: _setting(cells, name, where, name in words) for name in roles.settings if cells[name]}
    return OwnRun(
        application,
        _text(cells, "kernel", where) or application,
        _text(cells, "size", where) or DEFAULT_SIZE,
        Configuration(_text(cells, DEVICE, where) or DEFAULT_DEVICE, settings),
        time_s,
        power_w,
        domains_w,
        {name: _counter(cells, name, where) for name in roles.counters if cells[name]},
        where,
    )


def _text(cells: Mapping[str, str], name: str, where: str) -> str:
    text = cells.get(name, "")
    if len(text) > _MOST_CHARACTERS or not text.isprintable():
        raise InputError(
            f"{where}: {name}: expected a name of at most {_MOST_CHARACTERS} characters, found {text[:60]!r}"
        )
    return text


def _setting(cells: Mapping[str, str], name: str, where: str, is_word: bool) -> Setting:
    if is_word:
        return _text(cells, name, where)
    if is_positive_setting(name):
        return _least(cells, name, where, 0, above=True)
    return _parsed(cells[name])


def _counter(cells: Mapping[str, str], name: str, where: str) -> float:
    value = _parsed(cells[name])
    if math.isnan(value):
        raise InputError(
            f"{where}: {name}: expected the number of a counter, found {cells[name][:60]!r} (if the run was "
            f"set to it, name {name} among the settings)"
        )
    return value


def _least(cells: Mapping[str, str], name: str, where: str, least: float, *, above: bool = False) -> float:
    value = _parsed(cells[name])
    if not value >= least or (above and value == least):
        expected = f"a number {'above' if above else 'of at least'} {least:g}"
        raise InputError(f"{where}: {name}: expected {expected}, found {cells[name][:60]!r}")
    return value


def _parsed(text: str) -> float:
    """The number; NaN if it is none, or not finite."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
