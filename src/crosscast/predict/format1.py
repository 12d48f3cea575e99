"""Models of format 1, made into those of format 2 as they are read.

A question that has changed its card or the names of its arrays since format 1 puts a function here, by the
name of the question; `crosscast.predict.store.read` calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crosscast.arrays import Arrays

__all__ = ["FORMAT_1", "Translation"]

Translation = Callable[[dict[str, Any], Arrays], tuple[dict[str, Any], Arrays]]
"""Makes the card and arrays of format 2 out of those of format 1; an `InputError` if they are damaged."""

FORMAT_1: dict[str, Translation] = {}
