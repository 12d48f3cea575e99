"""Any profile of a counter tool, whichever tool it is of."""

from __future__ import annotations

from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.importers.configured_runs import ConfiguredRun
from crosscast.tables.importers.counters.caliper import RECORD, TABLE, read_caliper
from crosscast.tables.importers.counters.counted_run import Circumstances, CountedRun, configured_runs
from crosscast.tables.importers.counters.hpctoolkit import is_hpctoolkit, read_hpctoolkit
from crosscast.tables.importers.counters.ncu import KERNEL, read_ncu
from crosscast.tables.importers.counters.perf import VALUE, read_perf
from crosscast.tables.importers.counters.source_text import beginning

__all__ = ["counted_profile"]


def counted_profile(path: str | Path, told: Circumstances | None = None) -> list[ConfiguredRun]:
    """Read a profile of HPCToolkit, Caliper, perf or Nsight Compute: what is in it says which.

    Parameters
    ----------
    path
        The file, or the folder of a database of HPCToolkit.
    told
        What is known of the run; by default nothing, so that its device is
        `crosscast.tables.importers.counters.counted_run.UNKNOWN_DEVICE`.

    Returns
    -------
    list of ConfiguredRun
        The run, alone. Its time is not a number if the profile has none.

    Raises
    ------
    InputError
        If it is of none of the tools, or what its tool writes is cut off or damaged.
    """
    return configured_runs([_read(Path(path))], told or Circumstances(), timed=False)


def _read(path: Path) -> CountedRun:
    if path.is_dir():
        if is_hpctoolkit(path):
            return read_hpctoolkit(path)
        raise _of_none(path)
    start = beginning(path)
    if start.startswith(RECORD):
        return read_caliper(path)
    if f'"{VALUE}"' in start:
        return read_perf(path)
    if all(f'"{name}"' in start for name in TABLE[:1]) and start.lstrip().startswith("{"):
        return read_caliper(path)
    if KERNEL in start:
        return read_ncu(path)
    raise _of_none(path)


def _of_none(path: Path) -> InputError:
    return InputError(
        f"{path}: expected a profile of HPCToolkit (a folder hpctoolkit-…-database), Caliper (.cali or "
        "JSON), perf stat -j or ncu --csv, found none of them"
    )
