"""The only conversions between the units inside (seconds, bytes) and those that people read and write."""

from __future__ import annotations

import re

from crosscast.errors import InputError

__all__ = [
    "format_bytes",
    "format_count",
    "format_hertz",
    "format_seconds",
    "megahertz",
    "microseconds",
    "milliseconds",
    "parse_bytes",
]

_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_HERTZ_STEPS = ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"))
_BYTE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_BYTE_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def format_seconds(seconds: float) -> str:
    """Write a duration for people, with three significant digits.

    Examples
    --------
    >>> format_seconds(0.0123), format_seconds(4.5e-5), format_seconds(75)
    ('12.3 ms', '45 µs', '1 min 15 s')
    """
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    for scale, unit in _TIME_STEPS:
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return "0 s" if seconds == 0 else f"{seconds / 1e-9:.3g} ns"


def format_bytes(size: int) -> str:
    """Write a size for people, in binary units.

    Examples
    --------
    >>> format_bytes(512), format_bytes(4 << 20)
    ('512 B', '4 MiB')
    """
    for scale, unit in _BYTE_STEPS:
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} B"


def format_hertz(frequency: float) -> str:
    """Write a frequency for people.

    Examples
    --------
    >>> format_hertz(2.596e9), format_hertz(745e6)
    ('2.6 GHz', '745 MHz')
    """
    for scale, unit in _HERTZ_STEPS:
        if frequency >= scale:
            return f"{frequency / scale:.3g} {unit}"
    return f"{frequency:.3g} Hz"


def format_count(value: int) -> str:
    """Write a count with its digits in groups of three.

    Examples
    --------
    >>> format_count(1048576)
    '1,048,576'
    """
    return f"{value:,}"


def megahertz(value: float) -> float:
    """Hertz of a number of megahertz.

    Examples
    --------
    >>> megahertz(1600)
    1600000000.0
    """
    return value * 1e6


def microseconds(value: float) -> float:
    """Seconds of a number of microseconds.

    Examples
    --------
    >>> microseconds(12.5)
    1.25e-05
    """
    return value / 1e6


def milliseconds(value: float) -> float:
    """Seconds of a number of milliseconds.

    Examples
    --------
    >>> milliseconds(2.5)
    0.0025
    """
    return value / 1e3


def parse_bytes(text: str) -> int:
    """Read a size such as ``4096``, ``512M`` or ``2GiB``, in bytes (binary units).

    Raises
    ------
    InputError
        If it is not a positive whole number with one of the suffixes K, M, G and T.

    Examples
    --------
    >>> parse_bytes("512M"), parse_bytes("2GiB")
    (536870912, 2147483648)
    """
    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise InputError(f"a size in bytes must look like 4096, 512M or 2GiB, found {text!r}")
    return int(match[1]) * _BYTE_SUFFIXES[match[2]]
