"""Datasets from profiles of counter tools, given one by one or in a folder, and readers of perf and ncu.

``perf stat -j`` prints a JSON object for each event; lines of one event are summed. ``ncu --csv --page raw``
prints a row for each launch, with a row of units below the header; other pages print one for each
metric. Over launches, amounts are summed; rates and shares are averaged, weighted by the durations.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosscast.data.dataset import Dataset
from crosscast.data.sources.caliper import RECORD, TABLE, read_caliper
from crosscast.data.sources.counted import (
    Circumstances,
    CountedRun,
    beginning,
    configured_runs,
    factor_of,
    is_rate,
    number_of,
    text_of,
)
from crosscast.data.sources.hpctoolkit import is_hpctoolkit, read_hpctoolkit
from crosscast.data.sources.runs import ConfiguredRun, dataset_of, device_row
from crosscast.devices.catalogue import catalogue
from crosscast.errors import InputError

KERNEL = "Kernel Name"
_LAUNCH = "ID"
_LONG = ("Metric Name", "Metric Unit", "Metric Value")
_ABOUT = (
    *("ID", "Process ID", "Process Name", "Host Name", KERNEL, "Kernel Time", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC", "Section Name", "thread Domain:Push/Pop_Range:PL_Type"),
    *("Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",),
)
_TIMES = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max", "Duration")
_RATES = (".pct", ".ratio", "per_second", "per_cycle", "peak_sustained", "launch__", "device__", "hit_rate")
_SPOKEN_RATES = ("Throughput", "Occupancy", "Frequency", "Hit Rate", "Per ", " Rate", "Utilization")
_NO_VALUES = ("", "n/a", "nan", "-nan", "(!) n/a", "(!) nan")
_MOST_CHARACTERS = 200


@dataclass
class _Launch:
    kernel: str
    values: dict[str, float] = field(default_factory=dict)


def read_ncu(path: Path, kernel: str | None = None) -> CountedRun:
    """Read the counters of a run."""
    launches, rates = _launches(path)
    chosen = [launch for launch in launches if kernel is None or launch.kernel == kernel]
    if not chosen:
        kernels = ", ".join(sorted({launch.kernel for launch in launches}))[:200]
        expected = "launches of kernels" if kernel is None else f"launches of {kernel}"
        raise InputError.of(where=path, expected=expected, found=f"{kernels or 'none'}")
    times = [duration for launch in chosen if (duration := _duration(launch)) is not None]
    if min(times, default=1.0) <= 0:
        raise InputError.of(
            where=path, expected="launches that took more than 0 seconds", found=f"{min(times):g}"
        )
    weights = times if len(times) == len(chosen) else [1.0] * len(chosen)
    counters = dict(_combined(chosen, weights, rates))
    return CountedRun(
        str(path), path.stem, counters, sum(times) if len(times) == len(chosen) else None, True, kernel
    )


def _duration(launch: _Launch) -> float | None:
    return next((launch.values[name] for name in _TIMES if name in launch.values), None)


def _combined(
    launches: Sequence[_Launch], weights: Sequence[float], rates: set[str]
) -> Iterator[tuple[str, float]]:
    values: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for launch, weight in zip(launches, weights, strict=True):
        for name, value in launch.values.items():
            if name not in _TIMES:
                values[name].append((value, weight))
    for name, pairs in values.items():
        if name in rates:
            total = sum(weight for _, weight in pairs)
            yield name, sum(value * weight for value, weight in pairs) / total
        elif len(pairs) == len(launches):
            yield name, sum(value for value, _ in pairs)
        # An amount that some launches lack has no total.


def _launches(path: Path) -> tuple[list[_Launch], set[str]]:
    lines = _table(path)
    _, header = next(lines, ("", []))
    return _long(header, lines) if {*_LONG} <= {*header} else _wide(path, header, lines)


def _table(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Position and cells of the header and of each row; text before the header is skipped."""
    text = text_of(path, "counters of ncu")
    begin = 0 if text.startswith(f"{_LAUNCH},") else text.find(f'"{_LAUNCH}",')
    if begin < 0:
        return
    first = text.count("\n", 0, begin)
    rows = csv.reader(io.StringIO(text[begin:], newline=""), strict=True)
    width = 0
    try:
        for cells in rows:
            where = f"{path}, line {first + rows.line_num}"
            if not cells or cells[0].startswith("=="):
                continue
            if width and len(cells) != width:
                raise InputError.of(where=where, expected=f"{width} cells", found=len(cells))
            width = len(cells)
            yield where, cells
    except csv.Error as error:
        raise InputError.of(
            where=f"{path}, line {first + rows.line_num}", expected="CSV", found=f"something else ({error})"
        ) from error


def _wide(
    path: Path, header: Sequence[str], lines: Iterable[tuple[str, list[str]]]
) -> tuple[list[_Launch], set[str]]:
    rows = list(lines)
    if KERNEL not in header or not rows:
        raise InputError.of(where=path, expected=f"a table of ncu --csv with a column {KERNEL}", found="none")
    units = [""] * len(header)
    if not rows[0][1][header.index(_LAUNCH)].strip():
        units = rows.pop(0)[1]
    metrics = [
        (name, column, units[column])
        for column, name in enumerate(header)
        if name not in _ABOUT
        and _is_name(name)
        and any(number_of(cells[column]) is not None for _, cells in rows)
    ]
    launches = [_Launch(cells[header.index(KERNEL)]) for _, cells in rows]
    for launch, (where, cells) in zip(launches, rows, strict=True):
        for name, column, unit in metrics:
            _put(launch, name, cells[column], unit, where)
    return launches, {name for name, _, unit in metrics if _is_rate(name, unit)}


def _long(header: Sequence[str], lines: Iterable[tuple[str, list[str]]]) -> tuple[list[_Launch], set[str]]:
    columns = [header.index(name) for name in (_LAUNCH, KERNEL, *_LONG)]
    launches: dict[str, _Launch] = {}
    rates: set[str] = set()
    texts: set[str] = set()
    for where, cells in lines:
        number, kernel, name, unit, text = (cells[column] for column in columns)
        launch = launches.setdefault(number, _Launch(kernel))
        # Lines of rules have no metric. A metric that occurs in several sections counts once.
        if not _is_name(name) or name in launch.values or name in texts:
            continue
        known = any(name in earlier.values for earlier in launches.values())
        if not known and number_of(text) is None and text.strip() not in _NO_VALUES:
            texts.add(name)
            continue
        _put(launch, name, text, unit, where)
        if _is_rate(name, unit):
            rates.add(name)
    return list(launches.values()), rates


def _put(launch: _Launch, name: str, text: str, unit: str, where: str) -> None:
    if text.strip() in _NO_VALUES:
        return
    value = number_of(text)
    if value is None:
        raise InputError.of(where=where, field=name[:60], expected="a number", found=repr(text[:60]))
    launch.values[name] = value * factor_of(unit)


def _is_rate(name: str, unit: str) -> bool:
    return is_rate(unit) or any(part in name for part in (*_RATES, *_SPOKEN_RATES))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _MOST_CHARACTERS and name.isprintable()


VALUE = "counter-value"
_TIME = "duration_time"
_NANOSECONDS = (_TIME, "user_time", "system_time")  # Of perf itself; newer versions leave out the unit
_CLOCKS = ("task-clock", "cpu-clock")
_OCCUPIED = "CPUs utilized"
_NOT_COUNTED = ("<not counted>", "<not supported>", "")


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
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise InputError.of(
                where=where, expected="a JSON object of perf stat -j", found=repr(stripped[:60])
            )
        # Further metrics of an event are on separate lines without an event.
        if VALUE in line or "event" in line:
            yield where, line


def _event(line: dict[str, object], where: str) -> tuple[str, float | None]:
    name, text, unit = line.get("event"), line.get(VALUE), line.get("unit", "")
    if not isinstance(name, str) or not _is_name(name):
        raise InputError.of(
            where=where, field="event", expected="the name of an event", found=repr(str(name)[:60])
        )
    if not isinstance(unit, str):
        raise InputError.of(where=where, field="unit", expected="a text", found=repr(str(unit)[:60]))
    if isinstance(text, str) and text.strip() in _NOT_COUNTED:
        return name, None
    value = _number(text)
    if value is None:
        raise InputError.of(where=where, field=VALUE, expected="a number", found=repr(str(text)[:60]))
    return name, value * factor_of(unit or ("ns" if name in _NANOSECONDS else ""))


def _wall_time(line: dict[str, object], cpu_s: float, where: str) -> float | None:
    if line.get("metric-unit") != _OCCUPIED:
        return None
    text = line.get("metric-value")
    cpus = _number(text)
    if cpus is None:
        raise InputError.of(
            where=where, field="metric-value", expected="a number", found=repr(str(text)[:60])
        )
    return cpu_s / cpus if cpus else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return number_of(str(value))


def _profiles_at(paths: Sequence[Path], is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    """List the profiles at paths; a folder that is no profile is replaced by the profiles in it."""
    profiles = [profile for path in paths for profile in _profiles_in(path, is_profile, what)]
    if not profiles:
        raise InputError.of(field="profiles", expected=f"{what}", found="none")
    for index, path in enumerate(profiles):
        if path in profiles[:index]:
            raise InputError.of(where=path, expected="each profile once", found="it twice")
    return profiles


def _profiles_in(path: Path, is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    if not path.is_dir() or is_profile(path):
        return [path]
    try:
        profiles = sorted(file for file in path.iterdir() if is_profile(file))
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot list the folder ({error.strerror})") from error
    if not profiles:
        raise InputError.of(where=path, expected=f"{what} in the folder", found="none")
    return profiles


def counted_profile(path: Path) -> ConfiguredRun:
    """Read a profile of HPCToolkit, Caliper, perf or Nsight Compute; its content tells which."""
    (run,) = configured_runs([_read(path)], Circumstances(), timed=False)
    return run


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
    if f'"{TABLE[0]}"' in start and start.lstrip().startswith("{"):
        return read_caliper(path)
    if KERNEL in start:
        return read_ncu(path)
    raise _unknown_format(path)


class UnknownFormat(InputError):
    """A file that is of none of the counter tools."""


def is_counted(path: Path) -> bool:
    """Whether a file or folder looks like a profile of a counter tool, which may be damaged."""
    try:
        _read(path)
    except UnknownFormat:
        return False
    except InputError:
        return path.exists()
    return True


def _unknown_format(path: Path) -> UnknownFormat:
    return UnknownFormat(
        f"{path}: expected a profile of HPCToolkit (a folder hpctoolkit-…-database), Caliper (.cali or "
        "JSON), perf stat -j or ncu --csv, found none of them"
    )


def _file(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.is_file() and path.suffix in suffixes


_Reader = Callable[[Path, str | None], CountedRun]
_TOOLS: Mapping[str, tuple[str, str, Callable[[Path], bool], _Reader]] = {
    "hpctoolkit": (
        *("HPCToolkit", "databases hpctoolkit-…-database"),
        *(is_hpctoolkit, lambda path, _: read_hpctoolkit(path)),
    ),
    "caliper": ("Caliper", "files *.cali or *.json", _file(".cali", ".json"), read_caliper),
    "perf": ("perf", "files *.json of perf stat -j", _file(".json"), lambda path, _: read_perf(path)),
    "ncu": ("Nsight Compute", "files *.csv of ncu --csv", _file(".csv"), read_ncu),
}
"""Name of each tool, description of its profiles, test for them, and reader of one, or of a part of it."""


def import_counted(tool: str, paths: Sequence[Path], circumstances: Circumstances) -> Dataset:
    """Make a dataset with a run for each profile of a tool, or for each profile in a folder."""
    name, what, is_profile, read = _TOOLS[tool]
    counted = [read(path, circumstances.kernel) for path in _profiles_at(paths, is_profile, what)]
    runs = configured_runs(counted, circumstances)
    origin = f"profiles of {name}: {', '.join(Path(run.where).name for run in counted)}"
    notes = {table: {"origin": origin} for table in ("devices", "records", "sessions")}
    uses_gpu = any(run.configuration.settings.get("uses_gpu") for run in runs)
    key = circumstances.device
    unknown = device_row(key, origin, name=key, type="gpu" if uses_gpu else "cpu")
    return dataset_of(str(paths[0]), [catalogue().get(key, unknown)], runs, notes)
