"""Profiles of counter tools, named one by one or in a folder: read, told apart, made into datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        raise InputError.of(field="profiles", expected=f"{what}", found="none")
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


def _file(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.is_file() and path.suffix in suffixes


_TOOLS: Mapping[str, tuple[str, str, Callable[[Path], bool]]] = {
    "hpctoolkit": ("HPCToolkit", "databases hpctoolkit-…-database", is_hpctoolkit),
    "caliper": ("Caliper", "files *.cali or *.json", _file(".cali", ".json")),
    "perf": ("perf", "files *.json of perf stat -j", _file(".json")),
    "ncu": ("Nsight Compute", "files *.csv of ncu --csv", _file(".csv")),
}
"""Name of each tool, what its profiles are, and what tells them from other files."""


def import_counted(tool: str, paths: Sequence[Path], told: Circumstances) -> Dataset:
    """Make a dataset of profiles of a tool, or of the folder that they lie in: a run each."""
    readers: Mapping[str, Callable[[Path], CountedRun]] = {
        "hpctoolkit": read_hpctoolkit,
        "caliper": partial(read_caliper, region=told.kernel),
        "perf": read_perf,
        "ncu": partial(read_ncu, kernel=told.kernel),
    }
    name, what, is_profile = _TOOLS[tool]
    counted = [readers[tool](path) for path in profiles_at(paths, is_profile, what)]
    runs = configured_runs(counted, told)
    origin = f"profiles of {name}: {', '.join(Path(each.where).name for each in counted)}"
    notes = {table: {"origin": origin} for table in ("devices", "records", "sessions")}
    uses_gpu = any(run.configuration.settings.get("uses_gpu") for run in runs)
    return dataset_of(str(paths[0]), [_device(told.device, uses_gpu, origin)], runs, notes)


def _device(device: str, uses_gpu: bool, origin: str) -> Mapping[str, object]:
    """What the catalogue knows of the device; else its key, and what it must be."""
    for row in published_devices():
        if row["device"] == device:
            return row
    return device_row(device, origin, name=device, type="gpu" if uses_gpu else "cpu")
