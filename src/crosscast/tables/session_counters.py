"""What was counted in a session: numbers by name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.sessions import SESSIONS

__all__ = ["counters_of"]


def counters_of(session: Mapping[str, Any], label: str) -> dict[str, float]:
    """Counters over all recorded runs of a session, without those that have no value.

    Parameters
    ----------
    session
        A row of the table of sessions that has counters.
    label
        Where the dataset is from, for messages.

    Raises
    ------
    InputError
        If they are not numbers by name.
    """
    found = json.loads(session["counters"])
    if not isinstance(found, dict) or not all(map(_is_number_or_none, found.values())):
        place = ", ".join(str(session[key]) for key in SESSIONS.key)
        raise InputError(
            f"{label}: sessions: column 'counters' of {place}: expected an object of numbers, "
            f"found {session['counters']}"
        )
    return {name: float(value) for name, value in found.items() if value is not None}


def _is_number_or_none(value: object) -> bool:
    return value is None or (
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    )
