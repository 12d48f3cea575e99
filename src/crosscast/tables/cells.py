"""Cells: what the runs of one kernel at one size on one device and configuration have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.tables.arrow import Table
from crosscast.tables.keys import Numbers, distinct, key_numbers
from crosscast.tables.library import pa, pc
from crosscast.tables.samples import Reals, Samples, samples_of
from crosscast.tables.sessions import SESSIONS

__all__ = ["CELL", "KERNEL_AT_A_SIZE", "Cells", "cells_of", "least_times", "run_means", "sound"]

KERNEL_AT_A_SIZE = ("application", "kernel", "size")
"""Columns that tell which problem was run: what a profile is of, and a row of a grid."""

CELL = (*KERNEL_AT_A_SIZE, "device", "configuration")
"""Columns whose values a cell's records share."""


@dataclass(frozen=True)
class Cells:
    """The cells of some records.

    Parameters
    ----------
    keys
        A row a cell, with the columns of `CELL`.
    numbers
        For each record, the row of its cell.
    times
        The published summary of each run, in seconds, cell by cell.
    """

    keys: Table
    numbers: Numbers
    times: Samples


def cells_of(records: Table) -> Cells:
    """Find the cells of records."""
    keys, numbers = distinct(records, CELL)
    return Cells(keys, numbers, samples_of(numbers, run_means(records)))


def sound(records: Table, sessions: Table) -> Table:
    """Records without those of sessions that failed: what a wrong kernel took says nothing."""
    failed = sessions.filter(pc.is_valid(sessions.column("failure")))
    numbers, wrong = key_numbers([records, failed], SESSIONS.key)
    return records.filter(pa.array(~np.isin(numbers, wrong)))


def run_means(records: Table) -> Reals:
    """The published summary: for each record, the mean time of an invocation in its run, in seconds."""
    times, starts, counts = _times(records)
    sums: Reals = np.add.reduceat(times, starts) if starts.size else times
    return sums / counts


def least_times(records: Table) -> Reals:
    """For each record, the time of its shortest invocation, in seconds."""
    times, starts, _ = _times(records)
    return np.minimum.reduceat(times, starts) if starts.size else times


def _times(records: Table) -> tuple[Reals, Numbers, Numbers]:
    """Times of all records, where each record's start, and how many it has (at least one)."""
    lists = records.column("time_s")
    counts = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return pc.list_flatten(lists).to_numpy(), np.cumsum(counts) - counts, counts
