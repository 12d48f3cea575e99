"""Checked reading of named fields and of JSON structures, so that every mistake names its field."""

from __future__ import annotations

import copy
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NoReturn, TypeGuard, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from crosscast.errors import InputError

_MOST_DIGITS = 18


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _short_integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


STRICT_JSON = json.JSONDecoder(parse_constant=_no_constant, parse_int=_short_integer)
"""Refuses values that JSON does not have, such as NaN, and integers of too many digits."""


_Value = TypeVar("_Value")
_Word = TypeVar("_Word", bound=str)


def as_sequence(given: _Value | Sequence[_Value]) -> Sequence[_Value]:
    """Return an argument, such as names of devices, as a sequence; a single value becomes a list of one.

    >>> as_sequence("gtx1080"), as_sequence(["gtx1080", "knl"])
    (['gtx1080'], ['gtx1080', 'knl'])
    """
    is_one = isinstance(given, str) or not isinstance(given, Sequence)
    return [cast(_Value, given)] if is_one else cast(Sequence[_Value], given)


class Fields:
    """The fields of one table, read one by one, and an error for fields that were not read.

    `where` is the table's location, for messages: a file, or a file and a position in it.
    """

    def __init__(self, table: Mapping[str, object], where: str) -> None:
        self._table = table
        self._known: list[str] = []
        self.where = where

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def fail(self, name: str, expected: str) -> InputError:
        """Make the error for a field `name` that is not as `expected`."""
        return InputError.of(where=self.where, field=name, expected=expected, found=repr(self._table[name]))

    def take(self, name: str) -> object:
        """Value of the field `name`, unchecked, or ``None`` if it is absent."""
        self._known.append(name)
        return self._table.get(name)

    def _taken(
        self, name: str, expected: str, is_right: Callable[[object], TypeGuard[_Value]]
    ) -> _Value | None:
        value = self.take(name)
        if value is None or is_right(value):
            return value
        raise self.fail(name, expected)

    def require(self, name: str, expected: str) -> None:
        """Raise InputError if the field `name` is absent."""
        if self._table.get(name) is None:
            raise InputError.of(where=self.where, problem=f"{name} is missing, expected {expected}")

    def text(self, name: str, most: int | None = None) -> str | None:
        """Text, not empty, of at most `most` characters."""
        value = self._taken(name, "a text", _is_text)
        if value is not None and most is not None and len(value) > most:
            raise InputError.of(
                where=self.where, field=name, expected=f"{most} characters at most", found="more"
            )
        return value

    def choice(self, name: str, choices: Sequence[_Word], default: _Word) -> _Word:
        """One of `choices`."""
        value = self.take(name)
        if value is None:
            return default
        for choice in choices:
            if value == choice:
                return choice
        raise self.fail(name, f"one of {', '.join(choices)}")

    def flag(self, name: str) -> bool:
        """``true`` or ``false``; absent is ``false``."""
        return bool(self._taken(name, "true or false", _is_flag))

    def integer(self, name: str, least: int) -> int | None:
        """Whole number, `least` or more."""
        expected = f"a whole number of at least {least}"
        value = self._taken(name, expected, _is_integer)
        if value is not None and value < least:
            raise self.fail(name, expected)
        return value

    def number(self, name: str, ge: float | None = None, gt: float | None = None) -> int | float | None:
        """Finite number, of at least `ge` and above `gt` where these are given."""
        value = self._taken(name, "a number", _is_number)
        if value is not None and not math.isfinite(value):
            raise self.fail(name, "a number")
        if value is not None and ge is not None and value < ge:
            raise self.fail(name, f"a number of at least {ge:g}")
        if value is not None and gt is not None and value <= gt:
            raise self.fail(name, f"a number above {gt:g}")
        return value

    def numbers(self, name: str) -> list[int | float] | None:
        """List of numbers, not empty."""
        return self._taken(name, "a list of numbers", _are_numbers)

    def sizes(self, name: str, least: int) -> tuple[int, ...] | None:
        """One to three whole numbers, each `least` or more; a single one need not be in a list."""
        value = self.take(name)
        if value is None:
            return None
        sizes = tuple(item for item in _listed(value) if _is_integer(item) and item >= least)
        if not 1 <= len(sizes) <= 3 or len(sizes) < len(_listed(value)):
            raise self.fail(name, f"1 to 3 whole numbers of at least {least}")
        return sizes

    def texts(self, name: str) -> tuple[str, ...]:
        """List of texts; absent is empty, and a single text need not be in a list."""
        value = self.take(name)
        items = [] if value is None else _listed(value)
        texts = tuple(item for item in items if isinstance(item, str))
        if len(texts) < len(items):
            raise self.fail(name, "a list of texts")
        return texts

    def tables(self, name: str) -> list[Fields]:
        """List of tables, as ``[[name]]`` gives it; absent is empty."""
        items = self._taken(name, f"tables, each under [[{name}]]", _are_objects)
        return [Fields(item, f"{self.where}: {name}[{index}]") for index, item in enumerate(items or ())]

    def table(self, name: str) -> Fields | None:
        """One table."""
        value = self._taken(name, "a table", _is_object)
        return None if value is None else Fields(value, f"{self.where}: {name}")

    def items(self) -> list[tuple[str, object]]:
        """All fields with their values; all count as read."""
        self._known.extend(self._table)
        return list(self._table.items())

    def finish(self) -> None:
        """Raise InputError if a field was not read."""
        for name in self._table:
            if name not in self._known:
                known = ", ".join(dict.fromkeys(self._known))
                raise InputError.of(
                    where=self.where, problem=f"unknown key {name!r}, expected one of {known}"
                )


def _is_string(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def _are_strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(map(_is_string, value))


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _is_flag(value: object) -> TypeGuard[bool]:
    return isinstance(value, bool)


def _is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; ``true`` and ``false``, which Python counts among them, are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[int | float]:
    return _is_integer(value) or isinstance(value, float)


def is_finite(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number that a float holds: whole numbers of any length are less than infinity."""
    return _is_number(value) and abs(value) <= sys.float_info.max


def _are_numbers(value: object) -> TypeGuard[list[int | float]]:
    return isinstance(value, list) and bool(value) and all(map(_is_number, value))


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _are_objects(value: object) -> TypeGuard[list[dict[str, object]]]:
    return isinstance(value, list) and all(map(_is_object, value))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


class TableRow(dict[str, object]):
    """Cells of a row by column, read by the type that the table's schema has for the column."""

    def _read(self, name: str, expected: str, is_right: Callable[[object], TypeGuard[_Value]]) -> _Value:
        cell = self.get(name)
        if not is_right(cell):
            raise InputError.of(field=f"column {name!r}", expected=expected, found=repr(cell))
        return cell

    def text(self, name: str) -> str:
        """A text."""
        return self._read(name, "a text", _is_string)

    def text_or_none(self, name: str) -> str | None:
        """A text, or ``None`` of an empty cell."""
        return None if self.get(name) is None else self.text(name)

    def integer(self, name: str) -> int:
        """A whole number."""
        return self._read(name, "a whole number", _is_integer)

    def integer_or_none(self, name: str) -> int | None:
        """A whole number, or ``None`` of an empty cell."""
        return None if self.get(name) is None else self.integer(name)

    def number(self, name: str) -> int | float:
        """A number."""
        return self._read(name, "a number", _is_number)

    def number_or_none(self, name: str) -> int | float | None:
        """A number, or ``None`` of an empty cell."""
        return None if self.get(name) is None else self.number(name)

    def numbers(self, names: Iterable[str]) -> dict[str, int | float]:
        """Numbers of several columns, without those that are empty."""
        return {name: self.number(name) for name in names if self.get(name) is not None}

    def texts(self, name: str) -> list[str]:
        """A list of texts; an empty cell gives an empty list."""
        return [] if self.get(name) is None else self._read(name, "a list of texts", _are_strings)

    def entries(self, name: str) -> dict[str, object]:
        """A JSON object."""
        return self._read(name, "an object", _is_object)


Section = TypeVar("Section", bound=msgspec.Struct)


def decode(cls: type[Section], value: object, where: str) -> Section:
    """Read a JSON value as a structure."""
    try:
        return msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        field, expected, found = _explained(cls, value, str(error))
        raise InputError.of(where=where, field=field, expected=expected, found=found) from error


_AT = re.compile(r" - at (?:`key` in )?`\$(?P<path>.*)`$")
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
    """Parse a message of msgspec into the field, what was expected and what was found."""
    at = _AT.search(message)
    path, sentence = (at["path"], message[: at.start()]) if at else ("", message)
    field, part = _at(cls, value, path, message)
    if absent := _ABSENT.fullmatch(sentence):
        return f"{field}.{absent['name']}".lstrip("."), "a value", "none"
    if unknown := _UNKNOWN.fullmatch(sentence):
        name = unknown["name"]
        return f"{field}.{name}".lstrip("."), "no such field", excerpt(_entries(part)[name])
    if get_origin(type_ := get_type_hints(cls).get(field)) is Literal and isinstance(part, str):
        return field, f"one of {', '.join(get_args(type_))}", excerpt(part)
    wrong = _WRONG.fullmatch(sentence)
    if wrong is None:
        return field or None, "another value", f"{excerpt(part)} ({sentence})"
    types = " or ".join(_WORDS.get(name, name) for name in wrong["types"].split(" | "))
    return field or None, f"{types}{wrong['bounds']}", excerpt(part)


def _at(cls: type[Section], value: object, path: str, message: str) -> tuple[str, object]:
    """Follow a path of msgspec; return the field's name and its value."""
    root = value = copy.deepcopy(value)
    field = ""
    for step in _STEP.finditer(path):
        key: str | int | None = step["name"]
        if step["number"] is not None:
            key = int(step["number"])
        elif key is None:
            # msgspec writes [...] for an entry of an object without fixed names. The wrong entry is the one
            # whose removal changes the message.
            entries = _entries(value)
            for key, entry in list(entries.items()):
                del entries[key]
                if _complaint(cls, root) != message:
                    entries[key] = entry
                    break
            else:
                break
        field += f"[{key}]" if isinstance(key, int) else f".{key}"
        value = _entries(value)[key]
    return field.lstrip("."), value


def _entries(value: object) -> dict[str | int | None, object]:
    """Entries of a JSON object (the object itself), or of a list by their indices."""
    return value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}


def _complaint(cls: type[Section], value: object) -> str:
    try:
        msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def excerpt(value: object) -> str:
    """Write a JSON value for a message, cut to 60 characters."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."
