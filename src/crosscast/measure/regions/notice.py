"""Saying something to people once in a process, on the log."""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "say_once"]

LOGGER = logging.getLogger("crosscast.regions")
"""Where it is said. A warning would stop programs that turn warnings into errors."""

_SAID: set[str] = set()


def say_once(sentence: str) -> None:
    """Log a warning, unless the same was said before."""
    if sentence not in _SAID:
        _SAID.add(sentence)
        LOGGER.warning("%s", sentence)
