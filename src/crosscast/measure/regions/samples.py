"""Datasets of runs over the configurations of a machine: of histories, and of tables of users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from crosscast.data.dataset import Dataset
from crosscast.data.sources.runs import DEFAULT_SIZE, RecordedRun, RunTable, dataset_of_tables, read_run_table
from crosscast.errors import InputError
from crosscast.measure.regions.history import SUFFIX, read_history


def runs_of_history(path: Path) -> RunTable:
    """Read the runs of a history: application and kernel are the region, the size is the rest of its key.

    The power of a run may be a mean over it and short ones before it. Runs that failed, without a
    configuration or without a time are left out.
    """
    history = read_history(path)
    runs = []
    left_out: Counter[str] = Counter()
    keys = history.keys()
    for key in keys:
        size = " ".join([", ".join(key.arguments) or DEFAULT_SIZE, *(f"at {frame}" for frame in key.site)])
        for number, run in enumerate(history.runs(key, failed=True), start=1):
            if run.failure is not None:
                left_out["failed"] += 1
            elif run.configuration is None:
                left_out["without a configuration"] += 1
            elif not run.duration_s:
                left_out["without a time"] += 1
            else:
                # Without the power of all domains, the others are not the total.
                measured = run.duration_s, run.power_w or None, run.powers_w if run.power_w else {}
                cell = key.name, key.name, size, run.configuration
                runs.append(RecordedRun(*cell, *measured, run.counters, f"{path}: {key}, run {number}"))
    return RunTable(runs, left_out=left_out)


class ImportedRuns(NamedTuple):
    """A dataset, and notes on its import."""

    dataset: Dataset
    notes: tuple[str, ...]  # Sentences on the interpretation of columns, and on omissions


def import_runs(path: str | Path, settings: Sequence[str] | None = None) -> ImportedRuns:
    """Make a dataset of the runs of a file, or of the files of a folder."""
    path, files = Path(path), [Path(path)]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".csv", SUFFIX) and file.is_file())
    if not files:
        raise InputError.of(where=path, expected=f"a file *.csv or *{SUFFIX}", found="none")
    if settings is not None and all(file.suffix == SUFFIX for file in files):
        raise InputError(f"{path}: settings: expected with CSV files, found histories, which tell theirs")
    tables = {
        file.name: runs_of_history(file) if file.suffix == SUFFIX else read_run_table(file, settings)
        for file in files
    }
    dataset, summary = dataset_of_tables(str(path), tables)
    return ImportedRuns(dataset, (*chain.from_iterable(table.notes for table in tables.values()), *summary))
