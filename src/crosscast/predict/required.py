"""Fields of a card that have to be there; what is wrong with one that is there, `Fields` says itself."""

from __future__ import annotations

from typing import TypeVar

from crosscast.errors import InputError
from crosscast.fields import Fields

__all__ = ["required_count", "required_number", "required_table", "required_text"]

_Value = TypeVar("_Value")


def required_table(fields: Fields, name: str) -> Fields:
    """An object.

    Raises
    ------
    InputError
        If it is missing or something else; the same goes for the others.
    """
    return _there(fields.table(name), fields, name, "an object")


def required_text(fields: Fields, name: str) -> str:
    """A text, not empty."""
    return _there(fields.text(name), fields, name, "a text")


def required_count(fields: Fields, name: str) -> int:
    """A whole number of at least 0."""
    return _there(fields.integer(name, 0), fields, name, "a whole number")


def required_number(fields: Fields, name: str) -> float:
    """A finite number."""
    return float(_there(fields.number(name), fields, name, "a number"))


def _there(value: _Value | None, fields: Fields, name: str, expected: str) -> _Value:
    if value is None:
        raise InputError(f"{fields.where}: {name} is missing, expected {expected}")
    return value
