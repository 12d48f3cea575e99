"""The data that commands name: folders of datasets, or those that come with Crosscast."""

from __future__ import annotations

from pathlib import Path

from crosscast.data.dataset import Dataset, dataset_named
from crosscast.data.times import LaunchTables, has_launch_times, read_launch_tables

__all__ = ["data_named"]


def data_named(folder: Path, question: str) -> Dataset | LaunchTables:
    """What models of a question learn from: a dataset, or tables of times with the launches of each."""
    if question == "time" and has_launch_times(folder):
        return read_launch_tables(folder)
    return dataset_named(folder)
