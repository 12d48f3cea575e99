"""Problem sizes: how many bytes of working set each stands for."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.errors import InputError
from crosscast.tables.size_order import SIZES

__all__ = ["SIZES", "TYPICAL", "Caches", "working_set"]

_TIMES_LAST_CACHE = 4


@dataclass(frozen=True)
class Caches:
    """Capacities of a device's caches, in bytes.

    Parameters
    ----------
    l1, l2, l3
        First-level data cache of one core, second level, last level.
    """

    l1: int
    l2: int
    l3: int


TYPICAL = Caches(32 << 10, 256 << 10, 8 << 20)
"""Caches of the published study's Core i7-6700K (paper 000, table II), which fix the default sizes."""


def working_set(size: str, caches: Caches = TYPICAL) -> int:
    """Bytes that a working set of this size may have.

    Parameters
    ----------
    size
        One of `SIZES`; large is four times the last-level cache.
    caches
        The caches that it is measured by.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    InputError
        If there is no such size.
    """
    capacities = dict(
        zip(SIZES, (caches.l1, caches.l2, caches.l3, _TIMES_LAST_CACHE * caches.l3), strict=True)
    )
    if size not in capacities:
        raise InputError(f"size: expected one of {', '.join(SIZES)}, found {size!r}")
    return capacities[size]
