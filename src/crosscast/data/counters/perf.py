"""Output of ``perf stat -j`` of Linux: a JSON object a line, one for each event.

perf prints values as texts; ``<not counted>`` and ``<not supported>`` are missing values. Lines of the same
event (cores, sockets, intervals) are summed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from crosscast.data.counters.common import CountedRun, factor_of, number_of, text_of
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
