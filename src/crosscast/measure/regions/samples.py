"""Samples for choosing a configuration, out of a history."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.run import RegionRun
from crosscast.measure.regions.runs import Runs
from crosscast.tables.whole_file import whole_file

__all__ = ["samples_of", "write_samples"]


def samples_of(history: Runs, key: RegionKey) -> list[dict[str, Any]]:
    """Samples of a key: a row for each run that did not fail, whose configuration is known.

    Parameters
    ----------
    history
        Runs, of this process or of a file.
    key
        Which.

    Returns
    -------
    list of dict
        By row: ``device``; each setting by its name; ``time_s``; where they are known ``power_w``, the power
        of each domain as ``<domain>_w``, and each counter by its name.

    Raises
    ------
    InputError
        If a setting, a domain or a counter would have the name of another column.
    """
    return [_row(run, run.configuration) for run in history.runs(key) if run.configuration is not None]


def write_samples(runs: Iterable[RegionRun], path: Path) -> None:
    """Write samples as CSV, for ``crosscast choose configuration``; what a run does not have is empty.

    Parameters
    ----------
    runs
        Runs of one key. Those that failed are left out, and those without a configuration.
    path
        File to write.

    Raises
    ------
    InputError
        If no sample is among them, or they are of several keys, or columns would have the same name.
    """
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
