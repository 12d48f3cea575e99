"""Scales on which slowdowns add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Reals

__all__ = ["LINKS", "Link", "links_for"]

_MOST = 50.0
"""A slowdown beyond what anything measured says nothing more."""


class Link(NamedTuple):
    """A scale: from slowdowns, and back."""

    to: Callable[[Reals], Reals]
    back: Callable[[Reals], Reals]


def _to_inverse(slowdown: Reals) -> Reals:
    value: Reals = -1.0 / slowdown
    return value


def _from_inverse(value: Reals) -> Reals:
    slowdown: Reals = 1.0 / np.clip(-value, 1.0 / _MOST, None)
    return slowdown


def _from_log(value: Reals) -> Reals:
    slowdown: Reals = np.exp(np.minimum(value, np.log(_MOST)))
    return slowdown


LINKS: Mapping[str, Link] = {
    "speed": Link(_to_inverse, _from_inverse),
    "logarithm": Link(np.log, _from_log),
}
"""Scales by name: the speed, of which shares add up to the device's, and the logarithm."""


def links_for(traits: Sequence[str]) -> tuple[str, ...]:
    """Names of the scales to choose from: traits tell of shares by themselves, so that there is no choice."""
    return ("logarithm",) if traits else tuple(LINKS)
