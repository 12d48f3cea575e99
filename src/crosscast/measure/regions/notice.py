"""Saying something to people once in a process, on the log."""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "say_once"]

LOGGER = logging.getLogger("crosscast.regions")
"""Where it is said. A warning would stop programs that turn warnings into errors."""

_SAID: dict[str, None] = {}
_MOST_SAID = 1000
"""A program that goes on for weeks, under caps that change, has ever new sentences."""


def say_once(sentence: str) -> None:
    """Log a warning, unless it is among the last thousand that were said."""
    if sentence not in _SAID:
        while len(_SAID) >= _MOST_SAID:
            _SAID.pop(next(iter(_SAID)), None)
        _SAID[sentence] = None
        LOGGER.warning("%s", sentence)
