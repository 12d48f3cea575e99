"""Output of Nsight Compute: ``ncu --csv``, with a row for each launch or for each metric of a launch.

``--page raw`` has a column for each metric and a row of units below the header; other pages have columns
``Metric Name``, ``Metric Unit`` and ``Metric Value``. Over launches, amounts are summed; rates and shares are
averaged, weighted by the launches' durations.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosscast.data.counters.common import CountedRun, factor_of, is_rate, number_of, text_of
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
_MISSING = ("", "n/a", "nan", "-nan", "(!) n/a", "(!) nan")
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
        raise InputError(f"{path}: expected {expected}, found {kernels or 'none'}")
    times = [duration for launch in chosen if (duration := _duration(launch)) is not None]
    if min(times, default=1.0) <= 0:
        raise InputError(f"{path}: expected launches that took more than 0 seconds, found {min(times):g}")
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
    if not header:
        raise InputError(f"{path}: expected a table of ncu --csv with a column {KERNEL}, found none")
    is_long = all(name in header for name in _LONG)
    return _long(header, lines) if is_long else _wide(path, header, lines)


def _table(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Position and cells of the header and of each row; text before the header is skipped."""
    text = text_of(path, "counters of ncu")
    before, mark, rest = (
        text.partition(f'"{_LAUNCH}",') if not text.startswith(f"{_LAUNCH},") else ("", "", text)
    )
    if not mark and not rest:
        return
    first = before.count("\n")
    rows = csv.reader(io.StringIO(mark + rest, newline=""), strict=True)
    width = 0
    try:
        for cells in rows:
            where = f"{path}, line {first + rows.line_num}"
            if not cells or cells[0].startswith("=="):
                continue
            if width and len(cells) != width:
                raise InputError(f"{where}: expected {width} cells, found {len(cells)}")
            width = len(cells)
            yield where, cells
    except csv.Error as error:
        raise InputError(
            f"{path}, line {first + rows.line_num}: expected CSV, found something else ({error})"
        ) from error


def _wide(
    path: Path, header: Sequence[str], lines: Iterable[tuple[str, list[str]]]
) -> tuple[list[_Launch], set[str]]:
    rows = list(lines)
    if KERNEL not in header or not rows:
        raise InputError(f"{path}: expected a table of ncu --csv with a column {KERNEL}, found none")
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
    launches = []
    for where, cells in rows:
        launch = _Launch(cells[header.index(KERNEL)])
        for name, column, unit in metrics:
            _put(launch, name, cells[column], unit, where)
        launches.append(launch)
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
        if not known and number_of(text) is None and text.strip() not in _MISSING:
            texts.add(name)
            continue
        _put(launch, name, text, unit, where)
        if _is_rate(name, unit):
            rates.add(name)
    return list(launches.values()), rates


def _put(launch: _Launch, name: str, text: str, unit: str, where: str) -> None:
    if text.strip() in _MISSING:
        return
    value = number_of(text)
    if value is None:
        raise InputError(f"{where}: {name[:60]}: expected a number, found {text[:60]!r}")
    launch.values[name] = value * factor_of(unit)


def _is_rate(name: str, unit: str) -> bool:
    return is_rate(unit) or any(part in name for part in (*_RATES, *_SPOKEN_RATES))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _MOST_CHARACTERS and name.isprintable()
