"""The machine translation card of paper 004 (section 9): what takes times on one GPU to another, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.corun.left_out import LeftOut
from crosscast.predict.corun.time_line import LOGARITHMIC, PLAIN, TimeLine
from crosscast.predict.required import required_number, required_table, required_text
from crosscast.tables.whole_file import whole_file

__all__ = ["FORMAT", "QUANTITIES", "VERSION", "TranslationCard", "read_translation", "write_translation"]

FORMAT = "crosscast machine translation card"
"""What the field ``format`` of these files says."""

VERSION = 1
"""Rises when a field changes its name, type or meaning."""

QUANTITIES = ("time", "slowdown")
"""What is translated."""

_MOST_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class TranslationCard:
    """What takes times on one device to another.

    Parameters
    ----------
    source, target
        Keys of the devices.
    line
        The line through times.
    shortest_s, longest_s
        Times on ``source`` between which it was fitted, in seconds.
    errors
        Errors on applications that were left out, by quantity of `QUANTITIES`.
    training
        What it was fitted to, and how good it was, for people.
    """

    source: str
    target: str
    line: TimeLine
    shortest_s: float
    longest_s: float
    errors: Mapping[str, LeftOut]
    training: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The card as a JSON object."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "from": self.source,
            "to": self.target,
            "line": dict(vars(self.line)),
            "shortest_s": self.shortest_s,
            "longest_s": self.longest_s,
            "errors": {
                name: {key: array.tolist() for key, array in each.state().items()}
                for name, each in self.errors.items()
            },
            "training": dict(self.training),
        }

    @classmethod
    def from_dict(cls, card: Mapping[str, Any], where: str) -> TranslationCard:
        """Read a card.

        Parameters
        ----------
        card
            The JSON object.
        where
            Its file, for messages.

        Raises
        ------
        InputError
            If something is missing or wrong; the message names the field.
        """
        fields = Fields(card, where)
        if fields.take("format") != FORMAT:
            raise InputError(f"{where}: format: expected {FORMAT!r}, found {card.get('format')!r}")
        if fields.take("version") != VERSION:
            raise InputError(f"{where}: version: expected {VERSION}, found {card.get('version')!r}")
        line = required_table(fields, "line")
        form = required_text(line, "form")
        if form not in (PLAIN, LOGARITHMIC):
            raise line.fail("form", f"{PLAIN} or {LOGARITHMIC}")
        numbers = {name: required_number(line, name) for name in ("slope", "intercept", "least_s")}
        shortest, longest = (required_number(fields, name) for name in ("shortest_s", "longest_s"))
        if not 0 < shortest <= longest:
            raise InputError(f"{where}: shortest_s: expected a number above 0 and up to longest_s")
        if numbers["least_s"] <= 0:
            raise line.fail("least_s", "a number above 0")
        errors = required_table(fields, "errors")
        found = cls(
            required_text(fields, "from"),
            required_text(fields, "to"),
            TimeLine(form, **numbers),
            shortest,
            longest,
            {name: _errors(errors, name) for name in QUANTITIES if name in errors},
            dict(required_table(fields, "training").items()),
        )
        if "time" not in found.errors:
            raise InputError(f"{where}: errors: expected those of times, found none")
        return found


def write_translation(card: TranslationCard, path: str | Path) -> None:
    """Write a card, in the place of what is there.

    Raises
    ------
    InputError
        If it cannot be written; what was there is there still.
    """
    path = Path(path)
    text = json.dumps(card.to_dict(), indent=1, allow_nan=False)
    try:
        with whole_file(path) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot write the card ({error.strerror or error})") from error


def read_translation(path: str | Path) -> TranslationCard:
    """Read a card.

    Raises
    ------
    InputError
        If it cannot be read, is larger than 16 MiB, or is no such card.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot read the card ({error.strerror or error})") from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: expected a machine translation card, found a file above 16 MiB")
    try:
        card = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected a machine translation card, found no JSON") from error
    if not isinstance(card, dict):
        raise InputError(f"{path}: expected an object of JSON, found another value")
    return TranslationCard.from_dict(card, str(path))


def _errors(errors: Fields, name: str) -> LeftOut:
    table = required_table(errors, name)
    logs, group, groups = table.numbers("log_error"), table.take("group"), table.texts("groups")
    where = f"{table.where}: {name}"
    if logs is None or not isinstance(group, list) or not all(type(place) is int for place in group):
        raise InputError(f"{where}: expected log_error and group, lists of numbers, found others")
    if any(not 0 <= place < len(groups) for place in group):
        raise InputError(f"{where}: group: expected places in groups, found others")
    try:
        return LeftOut.from_state(
            {
                "log_error": np.array(logs, dtype=np.float64),
                "group": np.array(group, dtype=np.int64),
                "groups": np.array(groups, dtype=np.str_),
            }
        )
    except (InputError, OverflowError) as error:
        raise InputError(f"{where}: {error}") from error
