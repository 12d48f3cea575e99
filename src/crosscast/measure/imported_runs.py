"""Runs of one's own, in CSV files and histories, brought into a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from crosscast.errors import InputError
from crosscast.measure.regions.own_runs_of import own_runs_of
from crosscast.measure.regions.reading import SUFFIX, is_history
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.own_runs import dataset_of_own
from crosscast.tables.importers.run_table import read_run_table

__all__ = ["ImportedRuns", "import_runs"]

_SUFFIXES = (".csv", SUFFIX)


@dataclass(frozen=True)
class ImportedRuns:
    """A dataset, and what to tell people about it.

    Parameters
    ----------
    dataset
        The dataset.
    notes
        Sentences about what was taken as what, and what was left out.
    """

    dataset: Dataset
    notes: tuple[str, ...]


def import_runs(path: str | Path, settings: Sequence[str] | None = None) -> ImportedRuns:
    """Make a dataset of runs over the configurations of a machine, for models that choose among these.

    Parameters
    ----------
    path
        A CSV file with a row for each run (`crosscast.tables.importers.run_table.read_run_table`), a history
        that `crosscast.profiled` wrote, or a folder with such files (``.csv``, ``.jsonl``).
    settings
        Columns of the CSV files that are settings; by default those with the names of settings.

    Raises
    ------
    InputError
        If there is no such file, one is not what it must be, or no run has a power. The message names the
        file, the line and the column. Also if a folder cannot be listed.
    """
    path = Path(path)
    files = _files(path)
    if settings is not None and all(map(_is_history, files)):
        raise InputError(f"{path}: settings: expected with CSV files, found histories, which tell theirs")
    found = {
        file.name: own_runs_of(file) if _is_history(file) else read_run_table(file, settings)
        for file in files
    }
    dataset, summary = dataset_of_own(str(path), found)
    notes = chain.from_iterable(each.notes for each in found.values())
    return ImportedRuns(dataset, (*notes, *summary))


def _is_history(file: Path) -> bool:
    return is_history(file, "runs")


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
    except OSError as error:
        raise InputError(f"{path}: cannot list the folder ({error.strerror})") from error
    if not files:
        raise InputError(
            f"{path}: expected a file {' or '.join(f'*{each}' for each in _SUFFIXES)}, found none"
        )
    return files
