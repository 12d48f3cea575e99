"""Checked reading of named fields and of JSON structures, so that every mistake names its field."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import msgspec

from crosscast.errors import InputError

__all__ = ["STRICT_JSON", "Fields", "decode", "shown"]

_MOST_DIGITS = 18


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _short_integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


STRICT_JSON = json.JSONDecoder(parse_constant=_no_constant, parse_int=_short_integer)
"""Refuses what JSON has no word for, such as NaN, and numbers too long to be meant."""


class Fields:
    """The fields of one table; each may be asked for, and none may be left over.

    Parameters
    ----------
    table
        The fields by name, as a TOML or JSON reader gives them.
    where
        What the table is, for messages: a file, or a file and a place in it.
    """

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table = table
        self._known: list[str] = []
        self.where = where

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def fail(self, name: str, expected: str) -> InputError:
        """Error about the field `name`, which holds something else than `expected`."""
        return InputError(f"{self.where}: {name}: expected {expected}, found {self._table[name]!r}")

    def take(self, name: str) -> Any:
        """Value of the field `name` as it is, or ``None`` if it is absent."""
        self._known.append(name)
        return self._table.get(name)

    def require(self, name: str, expected: str) -> None:
        """Refuse a table without the field `name`."""
        if name not in self._table:
            raise InputError(f"{self.where}: {name} is missing, expected {expected}")

    def text(self, name: str) -> str | None:
        """Text, not empty."""
        value = self.take(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.fail(name, "a text")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of `choices`."""
        value = self.take(name)
        if value is None:
            return default
        if value not in choices:
            raise self.fail(name, f"one of {', '.join(choices)}")
        return str(value)

    def flag(self, name: str) -> bool:
        """``true`` or ``false``; absent is ``false``."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            raise self.fail(name, "true or false")
        return bool(value)

    def integer(self, name: str, least: int) -> int | None:
        """Whole number, `least` or more."""
        value = self.take(name)
        if value is None:
            return None
        if not _is_integer(value) or value < least:
            raise self.fail(name, f"a whole number of at least {least}")
        return int(value)

    def number(self, name: str) -> int | float | None:
        """Finite number."""
        value = self.take(name)
        if value is None:
            return None
        if not (_is_integer(value) or isinstance(value, float)) or not math.isfinite(value):
            raise self.fail(name, "a number")
        return value  # type: ignore[no-any-return]

    def numbers(self, name: str) -> list[int | float] | None:
        """List of numbers, not empty."""
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, list) or not value:
            raise self.fail(name, "a list of numbers")
        if not all(_is_integer(item) or isinstance(item, float) for item in value):
            raise self.fail(name, "a list of numbers")
        return value

    def sizes(self, name: str, least: int) -> tuple[int, ...] | None:
        """One to three whole numbers, each `least` or more; one may come without a list."""
        value = self.take(name)
        if value is None:
            return None
        items = value if isinstance(value, list) else [value]
        if not 1 <= len(items) <= 3 or not all(_is_integer(item) and item >= least for item in items):
            raise self.fail(name, f"1 to 3 whole numbers of at least {least}")
        return tuple(int(item) for item in items)

    def texts(self, name: str) -> tuple[str, ...]:
        """List of texts; absent is empty, and one text may come without a list."""
        value = self.take(name)
        if value is None:
            return ()
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in items):
            raise self.fail(name, "a list of texts")
        return tuple(items)

    def tables(self, name: str) -> list[Fields]:
        """List of tables, as ``[[name]]`` gives it; absent is empty."""
        value = self.take(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.fail(name, f"tables, each under [[{name}]]")
        return [Fields(item, f"{self.where}: {name}[{index}]") for index, item in enumerate(value)]

    def table(self, name: str) -> Fields | None:
        """One table."""
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.fail(name, "a table")
        return Fields(value, f"{self.where}: {name}")

    def items(self) -> list[tuple[str, Any]]:
        """Every field with its value; all of them count as known."""
        self._known.extend(self._table)
        return list(self._table.items())

    def finish(self) -> None:
        """Refuse fields that nobody asked for."""
        for name in self._table:
            if name not in self._known:
                known = ", ".join(dict.fromkeys(self._known))
                raise InputError(f"{self.where}: unknown key {name!r}, expected one of {known}")


def _is_integer(value: object) -> bool:
    """True for whole numbers, and not for ``true`` and ``false``, which Python counts among them."""
    return isinstance(value, int) and not isinstance(value, bool)


Section = TypeVar("Section", bound=msgspec.Struct)


def decode(cls: type[Section], value: object, where: str) -> Section:
    """Read a JSON value as a structure."""
    try:
        return msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        field, expected, found = _explained(cls, value, str(error))
        raise InputError.of(where=where, field=field, expected=expected, found=found) from error


_PLACE = re.compile(r" - at (?:`key` in )?`\$(?P<path>.*)`$")
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<number>\d+)\]|\[\.\.\.\]")
_WRONG = re.compile(r"Expected `(?P<types>[^`]+)`(?P<bounds>.*?)(?:, got `(?P<got>\w+)`)?")
_ABSENT = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]+)`")

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _explained(cls: type[Section], value: object, message: str) -> tuple[str | None, str, str]:
    """Field, what was expected and what was found, of a sentence of msgspec."""
    place = _PLACE.search(message)
    path, sentence = (place["path"], message[: place.start()]) if place else ("", message)
    field, found = _at(cls, value, path, message)
    absent = _ABSENT.fullmatch(sentence)
    if absent:
        return f"{field}.{absent['name']}".lstrip("."), "a value", "none"
    if unknown := _UNKNOWN.fullmatch(sentence):
        return f"{field}.{unknown['name']}".lstrip("."), "no such field", shown(found[unknown["name"]])
    wrong = _WRONG.fullmatch(sentence)
    if wrong is None:
        return field or None, "another value", f"{shown(found)} ({sentence})"
    types = " or ".join(_WORDS.get(each, each) for each in wrong["types"].split(" | "))
    return field or None, f"{types}{wrong['bounds']}", shown(found)


def _at(cls: type[Section], value: Any, path: str, message: str) -> tuple[str, Any]:
    """Name of the place and the value there, of a path of msgspec."""
    whole = value = copy.deepcopy(value)
    place = ""
    for step in _STEP.finditer(path):
        key: str | int | None = step["name"]
        if step["number"] is not None:
            key = int(step["number"])
        elif key is None:
            # In an object without fixed names it says [...]: this is the entry without which all is well.
            for name, entry in list(value.items()):
                del value[name]
                if _complaint(cls, whole) != message:
                    key, value[name] = name, entry
                    break
            else:
                break
        place += f"[{key}]" if isinstance(key, int) else f".{key}"
        value = value[key]
    return place.lstrip("."), value


def _complaint(cls: type[Section], value: object) -> str:
    try:
        msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def shown(value: object) -> str:
    """A JSON value as a file has it, cut short."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."
