"""Reading traces in the Standard Workload Format of the Parallel Workloads Archive."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crosscast.cluster.jobs import Reals
from crosscast.cluster.traces.swf_fields import NAMES
from crosscast.cluster.traces.swf_header import header_of
from crosscast.cluster.traces.swf_numbers import checked, numbers_of, refuse_line
from crosscast.cluster.traces.swf_text import Block, SwfText
from crosscast.cluster.traces.trace import Trace
from crosscast.errors import InputError

__all__ = ["read_swf"]

_MOST_JOBS = 1 << 24


def read_swf(path: str | Path) -> Trace:
    """Read a trace, plain or compressed with gzip.

    Parameters
    ----------
    path
        A file in the Standard Workload Format, version 2.2 or older, of at most 16,777,216 lines.

    Returns
    -------
    Trace
        All its lines, with not a number where the file has −1.

    Raises
    ------
    InputError
        If the file cannot be read, has no jobs or too many, a line is not 18 numbers, a time or a number of
        processors is negative but not −1, or a job is submitted before one of a line above. Names the line
        and the field.
    """
    path = Path(path)
    text = SwfText(path)
    columns = [_Column() for _ in NAMES]
    count, last_submit = 0, -np.inf
    for block in text.blocks():
        numbers, jobs = _parsed(text, block)
        if not len(numbers):
            continue
        count += len(numbers)
        if count > _MOST_JOBS:
            raise InputError(f"{path}: expected at most {_MOST_JOBS} jobs, found more")
        numbers = checked(path, jobs, numbers, last_submit)
        last_submit = np.fmax.reduce(numbers[:, 1], initial=last_submit)
        for column, cells in zip(columns, numbers.T, strict=True):
            column.add(cells)
    if not count:
        raise InputError(f"{path}: expected a line for each job, found none")
    whole = {name: column.whole() for name, column in zip(NAMES, columns, strict=True)}
    label = path.name.removesuffix(".gz").removesuffix(".swf")
    return Trace(label, header_of(text.comments), whole)


def _parsed(text: SwfText, block: Block) -> tuple[Reals, Block]:
    numbers = None if b";" in block.text else numbers_of(block.text)
    if numbers is not None:
        return numbers, block
    jobs = text.jobs_of(block)
    numbers = numbers_of(jobs.text)
    if numbers is None:
        raise refuse_line(text.path, jobs)
    return numbers, jobs


class _Column:
    """A column that grows, and takes no memory as long as it has one number only (or none at all)."""

    def __init__(self) -> None:
        self._count = 0
        self._first = np.nan
        self._cells: Reals | None = None

    def add(self, cells: Reals) -> None:
        if not self._count:
            self._first = cells[0]
        before, self._count = self._count, self._count + len(cells)
        if self._cells is None:
            if (np.isnan(cells) if np.isnan(self._first) else cells == self._first).all():
                return
            self._cells = np.full(self._count, self._first)
        if self._count > len(self._cells):
            # In place: a list of parts would be in memory a second time when they are put together.
            self._cells.resize(self._count + self._count // 8, refcheck=False)
        self._cells[before : self._count] = cells

    def whole(self) -> Reals:
        if self._cells is None:
            return np.broadcast_to(np.float64(self._first), self._count)
        self._cells.resize(self._count, refcheck=False)
        return self._cells
