"""Databases of HPCToolkit: of versions up to 2020 (``experiment.xml``), and since 2022 (``meta.db``).

Values are those of the whole program: inclusive ones at the roots of the calling context tree. They are read
here and not with hatchet 1.4: its reader of the older form stops at databases with statements under pandas 3
(a read-only array), and crashes where a node is numbered too high; that of the newer form never ends where a
text lies beyond the end of the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.importers.counters.counted_run import CountedRun
from crosscast.tables.importers.counters.hpctoolkit_db import META, read_new_database
from crosscast.tables.importers.counters.hpctoolkit_threads import Thread
from crosscast.tables.importers.counters.hpctoolkit_xml import EXPERIMENT, read_old_database
from crosscast.tables.importers.counters.tool_units import factor_of

__all__ = ["is_hpctoolkit", "read_hpctoolkit"]

_TIMES = ("REALTIME", "WALLCLOCK", "CPUTIME")
"""Metrics that are times of a thread, best first."""


def is_hpctoolkit(folder: Path) -> bool:
    """Whether a folder looks like a database."""
    return (folder / EXPERIMENT).is_file() or (folder / META).is_file()


def read_hpctoolkit(folder: Path) -> CountedRun:
    """Read the counters of a run: sums over the threads of a process, means over the processes (section V-B).

    The time is that of the thread that took longest: all of its time if that was measured (``REALTIME``),
    else its time on a CPU (``CPUTIME``).

    Parameters
    ----------
    folder
        The database, ``hpctoolkit-…-database``, that hpcprof made.

    Raises
    ------
    InputError
        If it is no database, is cut off, or is of a version that cannot be read.
    """
    if (folder / EXPERIMENT).is_file():
        name, threads = read_old_database(folder)
    elif (folder / META).is_file():
        name, threads = read_new_database(folder)
    else:
        raise InputError(
            f"{folder}: expected a database of HPCToolkit with {EXPERIMENT} or {META}, found neither"
        )
    if not threads:
        raise InputError(f"{folder}: expected a database of HPCToolkit with threads, found none")
    measured = [_in_si(each) for each in threads]
    processes = {each.process for each in measured}
    names = dict.fromkeys(name for each in measured for name in each.values)
    counters = {
        name: sum(each.values.get(name, 0.0) for each in measured) / len(processes)
        for name in names
        if name not in _TIMES
    }
    return CountedRun(str(folder), name, counters, _longest(measured))


def _longest(threads: Iterable[Thread]) -> float | None:
    for name in _TIMES:
        times = [each.values[name] for each in threads if name in each.values]
        if times:
            return max(times)
    return None


@dataclass(frozen=True)
class _Name:
    text: str
    factor: float

    @classmethod
    def of(cls, metric: str) -> _Name:
        """Name and unit of ``CPUTIME (usec)``."""
        text, bracket, unit = metric.strip().rpartition(" (")
        if not bracket or not unit.endswith(")"):
            return cls(metric.strip(), 1.0)
        return cls(text.strip(), factor_of(unit.removesuffix(")")))


def _in_si(thread: Thread) -> Thread:
    values: dict[str, float] = {}
    for metric, value in thread.values.items():
        name = _Name.of(metric)
        values[name.text] = values.get(name.text, 0.0) + value * name.factor
    return Thread(thread.process, values)
