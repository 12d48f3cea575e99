"""Profiles of a counter tool, into a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import dataset_of, device_row
from crosscast.tables.importers.counters.caliper import read_caliper
from crosscast.tables.importers.counters.counted_run import Circumstances, CountedRun, configured_runs
from crosscast.tables.importers.counters.hpctoolkit import is_hpctoolkit, read_hpctoolkit
from crosscast.tables.importers.counters.ncu import read_ncu
from crosscast.tables.importers.counters.perf import read_perf
from crosscast.tables.importers.counters.profile_paths import profiles_at
from crosscast.tables.published_devices import published_devices

__all__ = ["import_caliper", "import_hpctoolkit", "import_ncu", "import_perf"]


@dataclass(frozen=True)
class _Tool:
    name: str
    what: str
    is_profile: Callable[[Path], bool]


def _file(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.is_file() and path.suffix in suffixes


_HPCTOOLKIT = _Tool("HPCToolkit", "databases hpctoolkit-…-database", is_hpctoolkit)
_CALIPER = _Tool("Caliper", "files *.cali or *.json", _file(".cali", ".json"))
_PERF = _Tool("perf", "files *.json of perf stat -j", _file(".json"))
_NCU = _Tool("Nsight Compute", "files *.csv of ncu --csv", _file(".csv"))


def import_hpctoolkit(paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of databases of HPCToolkit, or of the folder that they lie in: a run each.

    Raises
    ------
    InputError
        If one cannot be read, or is not what it must be.
    """
    return _imported(_HPCTOOLKIT, paths, read_hpctoolkit, told)


def import_caliper(paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of profiles of Caliper, or of the folder that they lie in: a run each.

    Parameters
    ----------
    paths
        The files or the folder.
    told
        What is known of the runs; its kernel is the region that is taken, by default the whole program.

    Raises
    ------
    InputError
        If one cannot be read, is not what it must be, or has no such region.
    """
    return _imported(_CALIPER, paths, partial(read_caliper, region=told.kernel), told)


def import_perf(paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of what ``perf stat -j`` wrote, or of the folder that it lies in: a run a file.

    Raises
    ------
    InputError
        If one cannot be read, or is not what it must be.
    """
    return _imported(_PERF, paths, read_perf, told)


def import_ncu(paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of what ``ncu --csv`` printed, or of the folder that it lies in: a run a file.

    Parameters
    ----------
    paths
        The files or the folder.
    told
        What is known of the runs; its kernel is the one that is taken, by default all together.

    Raises
    ------
    InputError
        If one cannot be read, is not what it must be, or has no launch of such a kernel.
    """
    return _imported(_NCU, paths, partial(read_ncu, kernel=told.kernel), told)


def _imported(
    tool: _Tool, paths: Sequence[Path], read: Callable[[Path], CountedRun], told: Circumstances
) -> Dataset:
    counted = [read(path) for path in profiles_at(paths, tool.is_profile, tool.what)]
    runs = configured_runs(counted, told)
    origin = f"profiles of {tool.name}: {', '.join(Path(each.where).name for each in counted)}"
    notes = {name: {"origin": origin} for name in ("devices", "records", "sessions")}
    uses_gpu = any(run.configuration.settings.get("uses_gpu") for run in runs)
    return dataset_of(str(paths[0]), [_device(told.device, uses_gpu, origin)], runs, notes)


def _device(device: str, uses_gpu: bool, origin: str) -> Mapping[str, object]:
    """What the catalogue knows of the device; else its key, and what it must be."""
    for row in published_devices():
        if row["device"] == device:
            return row
    return device_row(device, origin, name=device, type="gpu" if uses_gpu else "cpu")
