"""Runs on configurations, as others published them or people wrote them down: one time, one power each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.energy import ENERGY
from crosscast.tables.importers.source_file import read_source
from crosscast.tables.records import RECORDS
from crosscast.tables.schema import Schema, json_text
from crosscast.tables.sessions import SESSIONS

__all__ = [
    "DEFAULT_SIZE",
    "ConfiguredRun",
    "Power",
    "dataset_of",
    "device_row",
    "file_at",
    "read_runs",
    "with_own_sessions",
]

DEFAULT_SIZE = "default"
"""Size of programs that were run with one input only."""


@dataclass(frozen=True)
class Power:
    """Mean power of a run, in watts: of what (`domain`), and what measured it (`sensor`)."""

    sensor: str
    domain: str
    watts: float


@dataclass(frozen=True)
class ConfiguredRun:
    """A row of the source.

    Parameters
    ----------
    application, kernel, size
        What ran.
    configuration
        Where, and with which settings.
    time_s
        How long it took, in seconds; the mean if the source has means.
    powers
        Mean powers meanwhile, one for each domain.
    runs
        How many runs the source took the mean of; ``None`` if it does not say.
    counters
        What was counted in a run, by name.
    repeat
        Number of the run among those of the same application, size and configuration.
    is_alone
        Whether the powers are those of the kernel; else they are those of the whole application.
    """

    application: str
    kernel: str
    size: str
    configuration: Configuration
    time_s: float
    powers: Sequence[Power]
    runs: int | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    repeat: int = 0
    is_alone: bool = False


def file_at(path: Path, name: str) -> Path:
    """The file itself, or the one of that name in a folder."""
    return path / name if path.is_dir() else path


def read_runs(
    path: Path,
    schema: Schema,
    positive: Sequence[str],
    run: Callable[[Mapping[str, Any], str], ConfiguredRun | None],
) -> list[ConfiguredRun]:
    """Read a source with a row for each run on a configuration.

    Parameters
    ----------
    path
        The file.
    schema
        Columns that it must have, in its own units.
    positive
        Columns whose numbers must be greater than 0, such as times and powers.
    run
        Makes a run of a row, or nothing of one that is left out; the second argument is the row's place, for
        messages.

    Raises
    ------
    InputError
        If the file has no rows or cannot be read, a cell holds what it must not, or two rows are of the
        same kernel, size, configuration and repeat. The message names the file, the column and the row.
    """
    rows = read_source(path, schema)
    if not rows:
        raise InputError(f"{path}: expected rows of the table of {schema.table}, found none")
    runs: list[ConfiguredRun] = []
    first: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows, start=1):
        for name in positive:
            if row[name] <= 0:
                raise InputError(
                    f"{path}: column {name!r}, row {number}: expected more than 0, found {row[name]:g}"
                )
        found = run(row, f"{path}: row {number}")
        if found is None:
            continue
        key = (found.application, found.kernel, found.size, found.configuration, found.repeat)
        earlier = first.setdefault(key, number)
        if earlier != number:
            what = f"{found.application}, {found.kernel}, {found.size} on {found.configuration}"
            raise InputError(f"{path}: rows {earlier} and {number} are both of {what}")
        runs.append(found)
    return runs


def with_own_sessions(runs: Iterable[ConfiguredRun]) -> list[ConfiguredRun]:
    """Number the runs so that each is a session of its own.

    Counters are those of a session, and kernels of one application that ran at the same size and
    configuration would share it. Where each was counted alone, the number of the repeat tells them apart.
    """
    seen: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    numbered = []
    for run in runs:
        session = (run.application, run.size, run.configuration)
        numbered.append(replace(run, repeat=seen[session]))
        seen[session] += 1
    return numbered


def device_row(device: str, source: str, **facts: Any) -> dict[str, Any]:
    """Row of the table of devices, all of whose facts are from one source."""
    return {"device": device, **facts, "sources": dict.fromkeys(facts, source)}


def dataset_of(
    label: str,
    devices: Iterable[Mapping[str, Any]],
    runs: Sequence[ConfiguredRun],
    notes: Mapping[str, Mapping[str, str]],
) -> Dataset:
    """Make a dataset: a record and a session for each run, and a row of energy for each of its powers.

    Parameters
    ----------
    label
        Where it is from, for messages.
    devices
        Rows of the table of devices.
    runs
        The runs; no two of the same application, size, configuration and repeat.
    notes
        Notes by table, and by their names.

    Raises
    ------
    InputError
        If a number cannot be kept, such as an energy that is too large.
    """
    return Dataset(
        label,
        devices=table_of(DEVICES, devices, notes.get(DEVICES.table)),
        records=table_of(RECORDS, map(_record_row, runs), notes.get(RECORDS.table)),
        energy=table_of(ENERGY, (row for run in runs for row in _energy_rows(run)), notes.get(ENERGY.table)),
        sessions=table_of(SESSIONS, map(_session_row, runs), notes.get(SESSIONS.table)),
    )


def _place(run: ConfiguredRun) -> dict[str, Any]:
    return {
        "application": run.application,
        "size": run.size,
        "device": run.configuration.device,
        "configuration": json_text(dict(run.configuration.settings)),
        "repeat": run.repeat,
    }


def _record_row(run: ConfiguredRun) -> dict[str, Any]:
    return {**_place(run), "kernel": run.kernel, "run": 0, "time_s": [run.time_s]}


def _energy_rows(run: ConfiguredRun) -> Iterator[dict[str, Any]]:
    for power in run.powers:
        yield {
            **_place(run),
            "kernel": run.kernel if run.is_alone else None,
            "run": 0,
            "sensor": power.sensor,
            "domain": power.domain,
            "energy_j": power.watts * run.time_s,
            "duration_s": run.time_s,
            "runs": 1,
        }


def _session_row(run: ConfiguredRun) -> dict[str, Any]:
    return {
        **_place(run),
        "kernels": [run.kernel],
        "runs": run.runs,
        "counters": dict(run.counters) or None,
    }
