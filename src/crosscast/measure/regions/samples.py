"""Samples for choosing a configuration, out of a history."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.data.files import whole_file
from crosscast.errors import InputError
from crosscast.measure.regions.key import RegionKey, RegionRun, Runs


def samples_of(history: Runs, key: RegionKey) -> list[dict[str, Any]]:
    """Samples of a key: a row for each run that did not fail, whose configuration is known."""
    return [_row(run, run.configuration) for run in history.runs(key) if run.configuration is not None]


def write_samples(runs: Iterable[RegionRun], path: Path) -> None:
    """Write samples as CSV, for ``crosscast choose configuration``; what a run does not have is empty."""
    good = [run for run in runs if run.failure is None and run.configuration is not None]
    if not good:
        raise InputError(f"{path}: expected runs with a configuration that did not fail, found none")
    keys = list(dict.fromkeys(run.key for run in good))
    if len(keys) > 1:
        raise InputError(f"{path}: expected runs of one key, found {keys[0]} and {keys[1]}")
    rows = [_row(run, run.configuration) for run in good if run.configuration is not None]
    columns = list(dict.fromkeys(chain.from_iterable(rows)))
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _row(run: RegionRun, configuration: Configuration) -> dict[str, Any]:
    parts: list[tuple[str, Any]] = [("device", configuration.device), *configuration.settings.items()]
    parts.append(("time_s", run.duration_s))
    if run.power_w is not None:
        parts.append(("power_w", run.power_w))
    parts += [(f"{domain}_w", power_w) for domain, power_w in run.powers_w.items()]
    parts += run.counters.items()
    row: dict[str, Any] = {}
    for name, value in parts:
        if name in row:
            raise InputError(f"{run.key}: two columns of its samples would be {name}")
        row[name] = value
    return row
