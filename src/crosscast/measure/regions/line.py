"""A run as a line of a history's file: one JSON object."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any, NoReturn

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.measure.regions import argument, key, place
from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.run import NOTHING, RegionRun

__all__ = ["MOST_BYTES", "MOST_NAME", "VERSION", "from_line", "is_begun", "to_line"]

VERSION = 1
"""Grows when a field changes its name, type or meaning; the old version gets a reader."""

_BEGIN = f'{{"version":{VERSION},"region":'.encode()

MOST_BYTES = 1 << 20
"""Length of a line."""

MOST_NAME = 200
"""Length of a region's name."""

_MOST_NUMBERS = 1000
_MOST_DIGITS = 18


def to_line(run: RegionRun) -> str:
    """Write a run as one line, with its end. What a run has not is left out."""
    rest: dict[str, Any] = {"started_s": run.started_s, "duration_s": run.duration_s}
    for name in ("metered_s", "power_w", "failure"):
        if (value := getattr(run, name)) is not None:
            rest[name] = value
    for name in ("energy_j", "powers_w", "counters"):
        if numbers := getattr(run, name):
            rest[name] = dict(numbers)
    return f"{_head(run.key, run.configuration)}{_encode(rest)[1:]}\n"


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@lru_cache(maxsize=1024)
def _head(key: RegionKey, configuration: Configuration | None) -> str:
    """Begin of the line, which is the same for many runs."""
    head: dict[str, Any] = {"version": VERSION, "region": key.name}
    if key.arguments:
        head["arguments"] = key.arguments
    if key.site:
        head["site"] = key.site
    if configuration is not None:
        head |= configuration.to_dict()
    return f"{_encode(head)[:-1]},"


def is_begun(line: bytes) -> bool:
    """Whether this can be the begin of a line that was not written to its end."""
    return line.startswith(_BEGIN) or _BEGIN.startswith(line)


def from_line(line: bytes, where: str) -> RegionRun:
    """Read a run.

    Parameters
    ----------
    line
        The line, with or without its end.
    where
        File and line, for messages.

    Raises
    ------
    InputError
        If it is not a run; names the field.
    """
    try:
        found = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: expected a JSON object, found {_shown(line)} ({error})") from error
    if not isinstance(found, dict):
        raise InputError(f"{where}: expected a JSON object, found {_shown(line)}")
    fields = Fields(found, where)
    fields.require("version", str(VERSION))
    if fields.integer("version", 1) != VERSION:
        raise fields.fail("version", f"{VERSION}, which this Crosscast reads")
    run = RegionRun(
        _key(fields),
        _configuration(fields),
        _needed(fields, "started_s"),
        _needed(fields, "duration_s"),
        _number(fields, "metered_s"),
        _numbers(fields, "energy_j"),
        _numbers(fields, "powers_w"),
        _number(fields, "power_w"),
        _numbers(fields, "counters"),
        _word(fields, "failure"),
    )
    fields.finish()
    return run


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _short_integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_int=_short_integer)


def _shown(line: bytes) -> str:
    return repr(line[:60].decode(errors="replace"))


def _key(fields: Fields) -> RegionKey:
    fields.require("region", "the name of the region")
    name = _word(fields, "region")
    arguments = _words(fields, "arguments", key.MOST_ARGUMENTS, argument.MOST_CHARACTERS)
    site = _words(fields, "site", place.MOST_PLACES + 1, place.MOST_CHARACTERS)
    return RegionKey(name or "", arguments, site)


def _word(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and len(text) > MOST_NAME:
        raise fields.fail(name, f"{MOST_NAME} characters at most")
    return text


def _words(fields: Fields, name: str, most: int, length: int) -> tuple[str, ...]:
    found = fields.texts(name)
    if len(found) > most or any(len(text) > length for text in found):
        raise fields.fail(name, f"{most} texts of {length} characters at most")
    return found


def _configuration(fields: Fields) -> Configuration | None:
    device, settings = fields.text("device"), fields.take("settings")
    if device is None and settings is None:
        return None
    if device is None or not isinstance(settings, dict):
        raise InputError(f"{fields.where}: expected both device and settings, an object, or none of them")
    try:
        return Configuration(device, settings)
    except InputError as error:
        raise InputError(f"{fields.where}: settings: {error}") from error


def _number(fields: Fields, name: str) -> float | None:
    value = fields.number(name)
    if value is not None and value < 0:
        raise fields.fail(name, "a number of at least 0")
    return value


def _needed(fields: Fields, name: str) -> float:
    fields.require(name, "a number of seconds")
    value = _number(fields, name)
    if value is None:
        raise fields.fail(name, "a number of seconds")
    return float(value)


def _numbers(fields: Fields, name: str) -> Any:
    inner = fields.table(name)
    if inner is None:
        return NOTHING
    found = dict(inner.items())
    if len(found) > _MOST_NUMBERS:
        raise InputError(
            f"{fields.where}: {name}: expected {_MOST_NUMBERS} numbers at most, found {len(found)}"
        )
    for inside, value in found.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not inside or not number or not math.isfinite(value) or value < 0:
            raise inner.fail(inside, "a number of at least 0")
    return found
