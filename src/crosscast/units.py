"""The only conversions between the units inside (seconds, bytes) and those that people read and write."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from crosscast.errors import InputError

PREFIXES: Mapping[str, float] = MappingProxyType(
    {"p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
)
"""Factors of the decimal prefixes; ``u`` stands for µ."""
BINARY_PREFIXES: Mapping[str, float] = MappingProxyType(
    {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
)
"""Factors of the binary prefixes."""

_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_HERTZ_STEPS = ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz"))
_RATE_STEPS = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_BYTE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_BYTE_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ELAPSED_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_ELAPSED_NAMES = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}
_PREFIX_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_WORD_STEPS = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"), (1.0, ""))
_FEWEST = 3.0
"""A span is written in the largest unit of which it has at least this many."""
_ABSURD_S = 1e9
"""A duration of this length, some thirty years, or more is written in seconds."""


def format_seconds(seconds: float) -> str:
    """Write a duration for people, with three significant digits.

    >>> format_seconds(0.0123), format_seconds(4.5e-5), format_seconds(75)
    ('12.3 ms', '45 µs', '1 min 15 s')
    """
    if seconds >= _ABSURD_S:
        return f"{seconds:.2g} s"
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return "0 s" if seconds == 0 else _scaled(seconds, _TIME_STEPS)


def format_bytes(size: int) -> str:
    """Write a size for people, in binary units.

    >>> format_bytes(512), format_bytes(4 << 20)
    ('512 B', '4 MiB')
    """
    for scale, unit in _BYTE_STEPS:
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} B"


def format_hertz(frequency: float) -> str:
    """Write a frequency for people.

    >>> format_hertz(2.596e9), format_hertz(745e6)
    ('2.6 GHz', '745 MHz')
    """
    return _scaled(frequency, _HERTZ_STEPS)


def format_bytes_per_second(rate: float) -> str:
    """Write a bandwidth for people, in decimal units.

    >>> format_bytes_per_second(41.2e9), format_bytes_per_second(3.35e12)
    ('41.2 GB/s', '3.35 TB/s')
    """
    return _scaled(rate, _RATE_STEPS)


def format_quantity(value: float, unit: str) -> str:
    """Write an amount for people, with a decimal prefix and three significant digits.

    >>> format_quantity(12e6, "B"), format_quantity(8.2e12, "flop/s"), format_quantity(512, "B")
    ('12 MB', '8.2 Tflop/s', '512 B')
    >>> format_quantity(14_242_880, "instructions"), format_quantity(1, "work-groups")
    ('14.2 million instructions', '1 work-group')
    """
    is_word = unit.endswith("s") and "/" not in unit
    steps = _WORD_STEPS if is_word else _PREFIX_STEPS
    scale, name = _step(value, steps)
    if is_word:
        number = f"{value / scale:.3g}" if name else f"{value:,.0f}"
        return f"{number}{name} {unit.removesuffix('s') if value == 1 else unit}"
    return f"{value / scale:.3g} {name}{unit}"


def _scaled(value: float, steps: Sequence[tuple[float, str]]) -> str:
    scale, unit = _step(value, steps)
    return f"{value / scale:.3g} {unit}"


def _step(value: float, steps: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest of the units of which a value of three digits has at least one, else the smallest."""
    rounded = float(f"{value:.3g}")
    return next((step for step in steps if rounded >= step[0]), steps[-1])


_SETTING_UNITS = (("_hz", "MHz", 1e-6), ("_w", "W", 1.0), ("_s", "s", 1.0), ("_j", "J", 1.0))


def setting_parts(name: str) -> tuple[str, str, float]:
    """Split a knob's name into words, unit, and the factor from SI to the unit.

    >>> setting_parts("core_clock_hz"), setting_parts("cores")
    (('core clock', 'MHz', 1e-06), ('cores', '', 1.0))
    """
    for suffix, unit, scale in _SETTING_UNITS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name.removesuffix(suffix).replace("_", " "), unit, scale
    return name.replace("_", " "), "", 1.0


def format_setting(name: str, value: float | str) -> str:
    """Write a knob's value in its unit, without it.

    >>> format_setting("core_clock_hz", 1.164e9), format_setting("scheduling", "dynamic")
    ('1164', 'dynamic')
    """
    return value if isinstance(value, str) else f"{value * setting_parts(name)[2]:.6g}"


def format_count(value: int) -> str:
    """Write a count with its digits in groups of three.

    >>> format_count(1048576)
    '1,048,576'
    """
    return f"{value:,}"


def megahertz(value: float) -> float:
    """Convert megahertz to hertz."""
    return value * 1e6


def microseconds(value: float) -> float:
    """Convert microseconds to seconds."""
    return value / 1e6


def milliseconds(value: float) -> float:
    """Convert milliseconds to seconds."""
    return value / 1e3


def parse_bytes(text: str) -> int:
    """Read a size such as ``4096``, ``512M`` or ``2GiB``, in binary bytes; raise InputError for others.

    >>> parse_bytes("512M"), parse_bytes("2GiB")
    (536870912, 2147483648)
    """
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise InputError(f"a size in bytes must look like 4096, 512M or 2GiB, found {text!r}")
    return int(match[1]) * _BYTE_SUFFIXES[match[2]]


def elapsed_unit(span_s: float) -> tuple[float, str]:
    """Seconds of the largest unit of which a span has three, and its name.

    >>> elapsed_unit(100.0), elapsed_unit(86400.0)
    ((1.0, 'seconds'), (3600.0, 'hours'))
    """
    unit = _unit_of(span_s)
    return _ELAPSED_UNITS[unit], _ELAPSED_NAMES[unit]


def _unit_of(span_s: float) -> str:
    units = [unit for unit, seconds in _ELAPSED_UNITS.items() if span_s >= _FEWEST * seconds]
    return units[-1] if units else "s"


def format_elapsed(seconds: float) -> str:
    """Write a time for people, with four digits of the unit that `elapsed_unit` takes.

    >>> format_elapsed(75.0), format_elapsed(6370.0), format_elapsed(28_833_600.0)
    ('75 s', '106.2 min', '333.7 d')
    """
    if seconds < 1:
        return format_seconds(seconds)
    unit = _unit_of(seconds)
    count = seconds / _ELAPSED_UNITS[unit]
    return f"{count:,.0f} {unit}" if count >= 1000 else f"{count:.4g} {unit}"


def parse_elapsed(text: str) -> float:
    """Read a time such as ``3600``, ``90min``, ``36h`` or ``10.5d``, in seconds; raise InputError for others.

    >>> parse_elapsed("2h"), parse_elapsed("30")
    (7200.0, 30.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(s|min|h|d)?", text.strip(), re.ASCII)
    seconds = float(match[1]) * _ELAPSED_UNITS[match[2] or "s"] if match else math.inf
    if not math.isfinite(seconds):
        raise InputError(f"a time must look like 3600, 90min, 36h or 10d, found {text!r}")
    return seconds
