"""Profiles that are named one by one, or lie in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crosscast.data.counters.caliper import RECORD, TABLE, read_caliper
from crosscast.data.counters.common import Circumstances, CountedRun, beginning, configured_runs
from crosscast.data.counters.hpctoolkit import is_hpctoolkit, read_hpctoolkit
from crosscast.data.counters.ncu import KERNEL, read_ncu
from crosscast.data.counters.perf import VALUE, read_perf
from crosscast.data.dataset import Dataset
from crosscast.data.sources.aiwc import published_devices
from crosscast.data.sources.runs import ConfiguredRun, dataset_of, device_row
from crosscast.errors import InputError


def profiles_at(paths: Sequence[Path], is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    """The paths themselves, and in the place of a folder that is no profile, those that lie in it."""
    found = [each for path in paths for each in _at(path, is_profile, what)]
    if not found:
        raise InputError(f"profiles: expected {what}, found none")
    for place, path in enumerate(found):
        if path in found[:place]:
            raise InputError(f"{path}: expected each profile once, found it twice")
    return found


def _at(path: Path, is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    if not path.is_dir() or is_profile(path):
        return [path]
    try:
        found = sorted(each for each in path.iterdir() if is_profile(each))
    except OSError as error:
        raise InputError(f"{path}: cannot list the folder ({error.strerror})") from error
    if not found:
        raise InputError(f"{path}: expected {what} in the folder, found none")
    return found


def counted_profile(path: str | Path, told: Circumstances | None = None) -> list[ConfiguredRun]:
    """Read a profile of HPCToolkit, Caliper, perf or Nsight Compute: what is in it says which."""
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
    """Make a dataset of databases of HPCToolkit, or of the folder that they lie in: a run each."""
    return _imported(_HPCTOOLKIT, paths, read_hpctoolkit, told)


def import_caliper(paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of profiles of Caliper, or of the folder that they lie in: a run each."""
    return _imported(_CALIPER, paths, partial(read_caliper, region=told.kernel), told)


def import_perf(paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of what ``perf stat -j`` wrote, or of the folder that it lies in: a run a file."""
    return _imported(_PERF, paths, read_perf, told)


def import_ncu(paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of what ``ncu --csv`` printed, or of the folder that it lies in: a run a file."""
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
