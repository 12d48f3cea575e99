"""Histories as inputs of models: rows of samples, also as CSV, and datasets of runs over configurations."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import Dataset
from crosscast.data.sources.runs import DEFAULT_SIZE, RecordedRun, RunTable, dataset_of_tables, read_run_table
from crosscast.errors import InputError
from crosscast.measure.regions.file import SUFFIX, Runs, is_history, read_history
from crosscast.measure.regions.key import RegionKey, RegionRun


def samples_of(history: Runs, key: RegionKey) -> list[dict[str, str | float]]:
    """Return the samples of a key: a row for each run with a configuration that did not fail."""
    return [_row(run, run.configuration) for run in history.runs(key) if run.configuration is not None]


def _row(run: RegionRun, configuration: Configuration) -> dict[str, str | float]:
    parts: list[tuple[str, str | float]] = [("device", configuration.device), *configuration.settings.items()]
    parts.append(("time_s", run.duration_s))
    parts += [] if run.power_w is None else [("power_w", run.power_w)]
    parts += [(f"{domain}_w", power_w) for domain, power_w in run.powers_w.items()]
    parts += run.counters.items()
    row: dict[str, str | float] = {}
    for name, value in parts:
        if name in row:
            raise InputError(f"{run.key}: two columns of its samples would be {name}")
        row[name] = value
    return row


_MOST_CHARACTERS = 120


def runs_of_history(path: Path) -> RunTable:
    """Read the runs of a history.

    Application and kernel are the region. The size is the rest of the key: the arguments, and the site of
    the region. The power of a run may be a mean over it and short ones before it. Runs that failed, without a
    configuration or without a time are left out.
    """
    history = read_history(path)
    runs = []
    left_out: Counter[str] = Counter()
    key_of_size: dict[tuple[str, str], RegionKey] = {}
    keys = history.keys()
    for key in keys:
        size = _size(key)
        if key_of_size.setdefault((key.name, size), key) != key:
            size = f"{size} {_digest(key)}"
        for number, run in enumerate(history.runs(key, failed=True), start=1):
            configuration = run.configuration
            if run.failure is not None:
                left_out["failed"] += 1
            elif configuration is None:
                left_out["without a configuration"] += 1
            elif not run.duration_s:
                left_out["without a time"] += 1
            else:
                # Without the power of all domains, the others are not the total.
                measured = run.duration_s, run.power_w or None, run.powers_w if run.power_w else {}
                where = f"{path}: {key}, run {number}"
                cell = key.name, key.name, size, configuration
                runs.append(RecordedRun(*cell, *measured, run.counters, where))
    return RunTable(runs, left_out=left_out)


def _size(key: RegionKey) -> str:
    arguments = ", ".join(key.arguments)
    text = " ".join([arguments or DEFAULT_SIZE, *(f"at {frame}" for frame in key.site)])
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}… {_digest(key)}"


def _digest(key: RegionKey) -> str:
    """Return eight digits that distinguish keys of which the texts begin alike."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:8]


_SUFFIXES = (".csv", SUFFIX)


class ImportedRuns(NamedTuple):
    """A dataset, and notes on its import."""

    dataset: Dataset
    notes: tuple[str, ...]  # Sentences on the interpretation of columns, and on omissions


def import_runs(path: str | Path, settings: Sequence[str] | None = None) -> ImportedRuns:
    """Make a dataset of runs over the configurations of a machine, for models that choose among these."""
    path = Path(path)
    files = _files(path)
    if settings is not None and all(is_history(file, "runs") for file in files):
        raise InputError(f"{path}: settings: expected with CSV files, found histories, which tell theirs")
    runs_by_file = {
        file.name: runs_of_history(file) if is_history(file, "runs") else read_run_table(file, settings)
        for file in files
    }
    dataset, summary = dataset_of_tables(str(path), runs_by_file)
    notes = chain.from_iterable(runs.notes for runs in runs_by_file.values())
    return ImportedRuns(dataset, (*notes, *summary))


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
    except OSError as error:
        raise InputError(f"{path}: cannot list the folder ({error.strerror})") from error
    if not files:
        raise InputError(
            f"{path}: expected a file {' or '.join(f'*{suffix}' for suffix in _SUFFIXES)}, found none"
        )
    return files
