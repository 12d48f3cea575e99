"""Checked reading of named fields and of JSON structures, so that every mistake names its field."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, cast

import msgspec

from crosscast.errors import InputError

__all__ = ["STRICT_JSON", "Fields", "decode", "listed", "shown"]

_MOST_DIGITS = 18


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _short_integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


STRICT_JSON = json.JSONDecoder(parse_constant=_no_constant, parse_int=_short_integer)
"""Refuses what JSON has no word for, such as NaN, and numbers too long to be meant."""


_Each = TypeVar("_Each")


def listed(given: _Each | Sequence[_Each]) -> Sequence[_Each]:
    """What a caller gave, such as names of devices: one that stands alone is a list of one.

    >>> listed("gtx1080"), listed(["gtx1080", "knl"])
    (['gtx1080'], ['gtx1080', 'knl'])
    """
    is_one = isinstance(given, str) or not isinstance(given, Sequence)
    return [cast(_Each, given)] if is_one else cast(Sequence[_Each], given)


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

    def _taken(self, name: str, expected: str, is_right: Callable[[Any], bool]) -> Any:
        value = self.take(name)
        if value is not None and not is_right(value):
            raise self.fail(name, expected)
        return value

    def require(self, name: str, expected: str) -> None:
        """Refuse a table without the field `name`."""
        if self._table.get(name) is None:
            raise InputError(f"{self.where}: {name} is missing, expected {expected}")

    def text(self, name: str, most: int | None = None) -> str | None:
        """Text, not empty, of so many characters at most."""
        value: str | None = self._taken(name, "a text", lambda value: isinstance(value, str) and value != "")
        if value is not None and most is not None and len(value) > most:
            raise InputError(f"{self.where}: {name}: expected {most} characters at most, found more")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of `choices`."""
        value = self._taken(name, f"one of {', '.join(choices)}", lambda value: value in choices)
        return default if value is None else str(value)

    def flag(self, name: str) -> bool:
        """``true`` or ``false``; absent is ``false``."""
        return bool(self._taken(name, "true or false", lambda value: isinstance(value, bool)))

    def integer(self, name: str, least: int) -> int | None:
        """Whole number, `least` or more."""
        value: int | None = self._taken(
            name,
            f"a whole number of at least {least}",
            lambda value: _is_integer(value) and value >= least,
        )
        return value

    def number(self, name: str, ge: float | None = None, gt: float | None = None) -> int | float | None:
        """Finite number, of at least `ge` and above `gt` where these are given."""
        value: int | float | None = self._taken(
            name, "a number", lambda value: _is_number(value) and math.isfinite(value)
        )
        if value is not None and ge is not None and value < ge:
            raise self.fail(name, f"a number of at least {ge:g}")
        if value is not None and gt is not None and value <= gt:
            raise self.fail(name, f"a number above {gt:g}")
        return value

    def numbers(self, name: str) -> list[int | float] | None:
        """List of numbers, not empty."""
        value: list[int | float] | None = self._taken(
            name, "a list of numbers", lambda value: _is_list(value, _is_number) and value
        )
        return value

    def sizes(self, name: str, least: int) -> tuple[int, ...] | None:
        """One to three whole numbers, each `least` or more; one may come without a list."""
        found = self._taken(
            name,
            f"1 to 3 whole numbers of at least {least}",
            lambda value: (
                1 <= len(_listed(value)) <= 3
                and all(_is_integer(item) and item >= least for item in _listed(value))
            ),
        )
        return None if found is None else tuple(_listed(found))

    def texts(self, name: str) -> tuple[str, ...]:
        """List of texts; absent is empty, and one text may come without a list."""
        found = self._taken(
            name, "a list of texts", lambda value: all(isinstance(item, str) for item in _listed(value))
        )
        return () if found is None else tuple(_listed(found))

    def tables(self, name: str) -> list[Fields]:
        """List of tables, as ``[[name]]`` gives it; absent is empty."""
        found = self._taken(
            name,
            f"tables, each under [[{name}]]",
            lambda value: _is_list(value, lambda item: isinstance(item, dict)),
        )
        return [Fields(item, f"{self.where}: {name}[{index}]") for index, item in enumerate(found or ())]

    def table(self, name: str) -> Fields | None:
        """One table."""
        found = self._taken(name, "a table", lambda value: isinstance(value, dict))
        return None if found is None else Fields(found, f"{self.where}: {name}")

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


def _is_number(value: object) -> bool:
    return _is_integer(value) or isinstance(value, float)


def _is_list(value: object, is_item: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_item, value))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


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
