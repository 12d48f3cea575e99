"""Datasets from profiles of counter tools, given one by one or in a folder.

The output of ``perf stat -j`` of Linux, which is read here, is a JSON object a line, one for each event. perf
prints values as texts; ``<not counted>`` and ``<not supported>`` are missing values. Lines of the same
event (cores, sockets, intervals) are summed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from crosscast.data.counters.caliper import RECORD, TABLE, read_caliper
from crosscast.data.counters.common import (
    Circumstances,
    CountedRun,
    beginning,
    configured_runs,
    factor_of,
    number_of,
    text_of,
)
from crosscast.data.counters.hpctoolkit import is_hpctoolkit, read_hpctoolkit
from crosscast.data.counters.ncu import KERNEL, read_ncu
from crosscast.data.dataset import Dataset
from crosscast.data.sources.aiwc import published_devices
from crosscast.data.sources.runs import ConfiguredRun, dataset_of, device_row
from crosscast.errors import InputError

VALUE = "counter-value"
_TIME = "duration_time"
_CLOCKS = ("task-clock", "cpu-clock")
_OCCUPIED = "CPUs utilized"
_MISSING = ("<not counted>", "<not supported>", "")
_MOST_CHARACTERS = 200


def read_perf(path: Path) -> CountedRun:
    """Read the counters of a run.

    The time is that of the event ``duration_time``; else the CPU time over the number of CPUs used, which
    perf prints beside ``task-clock``; else none.
    """
    counters: dict[str, float] = {}
    clocked: list[float] = []
    for where, line in _lines(path):
        name, value = _event(line, where)
        if value is None:
            continue
        counters[name] = counters.get(name, 0.0) + value
        if name in _CLOCKS and (time_s := _wall_time(line, value, where)) is not None:
            clocked.append(time_s)
    time_s = counters.pop(_TIME, None)
    if time_s is None and len(clocked) == 1:
        time_s = clocked[0]
    return CountedRun(str(path), path.stem, counters, time_s)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    text = text_of(path, "counters of perf")
    for number, stripped in enumerate(text.split("\n"), start=1):
        stripped = stripped.strip()
        if not stripped or stripped.startswith("#"):
            continue
        where = f"{path}, line {number}"
        try:
            line = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{where}: expected a JSON object of perf stat -j, found {stripped[:60]!r}"
            ) from error
        if not isinstance(line, dict):
            raise InputError(f"{where}: expected a JSON object of perf stat -j, found {stripped[:60]!r}")
        # Further metrics of an event are on separate lines without an event.
        if VALUE in line or "event" in line:
            yield where, line


def _event(line: dict[str, object], where: str) -> tuple[str, float | None]:
    name, text, unit = line.get("event"), line.get(VALUE), line.get("unit", "")
    if not isinstance(name, str) or not 0 < len(name) <= _MOST_CHARACTERS or not name.isprintable():
        raise InputError(f"{where}: event: expected the name of an event, found {str(name)[:60]!r}")
    if not isinstance(unit, str):
        raise InputError(f"{where}: unit: expected a text, found {str(unit)[:60]!r}")
    if isinstance(text, str) and text.strip() in _MISSING:
        return name, None
    value = _number(text)
    if value is None:
        raise InputError(f"{where}: {VALUE}: expected a number, found {str(text)[:60]!r}")
    return name, value * factor_of(unit)


def _wall_time(line: dict[str, object], cpu_s: float, where: str) -> float | None:
    if line.get("metric-unit") != _OCCUPIED:
        return None
    cpus = _number(line.get("metric-value"))
    if cpus is None:
        raise InputError(
            f"{where}: metric-value: expected a number, found {str(line.get('metric-value'))[:60]!r}"
        )
    return cpu_s / cpus if cpus else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return number_of(str(value))


def profiles_at(paths: Sequence[Path], is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    """List the profiles at paths; a folder that is no profile is replaced by the profiles in it."""
    profiles = [profile for path in paths for profile in _profiles_in(path, is_profile, what)]
    if not profiles:
        raise InputError.of(field="profiles", expected=f"{what}", found="none")
    for index, path in enumerate(profiles):
        if path in profiles[:index]:
            raise InputError(f"{path}: expected each profile once, found it twice")
    return profiles


def _profiles_in(path: Path, is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    if not path.is_dir() or is_profile(path):
        return [path]
    try:
        profiles = sorted(file for file in path.iterdir() if is_profile(file))
    except OSError as error:
        raise InputError(f"{path}: cannot list the folder ({error.strerror})") from error
    if not profiles:
        raise InputError(f"{path}: expected {what} in the folder, found none")
    return profiles


def counted_profile(path: str | Path, circumstances: Circumstances | None = None) -> list[ConfiguredRun]:
    """Read a profile of HPCToolkit, Caliper, perf or Nsight Compute; its content tells which."""
    return configured_runs([_read(Path(path))], circumstances or Circumstances(), timed=False)


def _read(path: Path) -> CountedRun:
    if path.is_dir():
        if is_hpctoolkit(path):
            return read_hpctoolkit(path)
        raise _unknown_format(path)
    start = beginning(path)
    if start.startswith(RECORD):
        return read_caliper(path)
    if f'"{VALUE}"' in start:
        return read_perf(path)
    if all(f'"{name}"' in start for name in TABLE[:1]) and start.lstrip().startswith("{"):
        return read_caliper(path)
    if KERNEL in start:
        return read_ncu(path)
    raise _unknown_format(path)


def _unknown_format(path: Path) -> InputError:
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
"""Name of each tool, description of its profiles, and test for them."""


def import_counted(tool: str, paths: Sequence[Path], circumstances: Circumstances) -> Dataset:
    """Make a dataset with a run for each profile of a tool, or for each profile in a folder."""
    readers: Mapping[str, Callable[[Path], CountedRun]] = {
        "hpctoolkit": read_hpctoolkit,
        "caliper": partial(read_caliper, region=circumstances.kernel),
        "perf": read_perf,
        "ncu": partial(read_ncu, kernel=circumstances.kernel),
    }
    name, what, is_profile = _TOOLS[tool]
    counted = [readers[tool](path) for path in profiles_at(paths, is_profile, what)]
    runs = configured_runs(counted, circumstances)
    origin = f"profiles of {name}: {', '.join(Path(run.where).name for run in counted)}"
    notes = {table: {"origin": origin} for table in ("devices", "records", "sessions")}
    uses_gpu = any(run.configuration.settings.get("uses_gpu") for run in runs)
    return dataset_of(str(paths[0]), [_device(circumstances.device, uses_gpu, origin)], runs, notes)


def _device(device: str, uses_gpu: bool, origin: str) -> Mapping[str, object]:
    """Row of a device from the published data; else its key and the type that the profiles imply."""
    for row in published_devices():
        if row["device"] == device:
            return row
    return device_row(device, origin, name=device, type="gpu" if uses_gpu else "cpu")
