"""Work-groups on a device's units, and the bytes that miss caches which they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.launch_counts import REUSE_GROUPS
from crosscast.devices.sheets import Sheets
from crosscast.prediction.time.work import CACHE_BITS, Work

_AS_MANY = 1.02  # Bytes missed over those of another cache, if they are the same but for sampling
_TINY = 1e-15
_BITS = np.array(CACHE_BITS)
_LAST = len(CACHE_BITS) - 1
_SEVERAL = math.log2(REUSE_GROUPS[-2])
# Places in a table of bytes behind caches: of a size and the next, for a number of groups and the next
_CORNERS = np.array([[0, 1], [_LAST + 2, _LAST + 3]])[..., None, None, None]


class Occupancy(NamedTuple):
    """Work-groups of ``n`` launches on ``d`` devices; arrays are of shape ``(n, d)``."""

    of_unit: Reals  # Work-groups of a unit at once
    busy: Reals  # Units that have a work-group; the last wave may leave most of them idle
    waves: Reals  # Of the groups that are resident together
    tail: Reals  # Time of whole rounds of groups over that of groups spread evenly
    together: Reals  # Work-groups of all units at once

    @classmethod
    def of(cls, work: Work, sheets: Sheets, resident: Reals | float) -> Occupancy:
        """Distribute the work-groups, of which a unit has so many at once, ``(n, d)``."""
        groups, each, at_once = work.groups, work.groups / sheets.units, sheets.units * resident
        rounds = np.maximum(each, 1.0)
        return cls(
            of_unit=np.minimum(np.ceil(each), resident),
            busy=np.minimum(sheets.units, groups),
            waves=np.maximum(groups / at_once, 1.0),
            tail=np.ceil(rounds - 1e-9) / rounds,
            together=np.minimum(groups, at_once),
        )


def bytes_behind(work: Work, *caches: tuple[Reals, Reals | float]) -> Reals:
    """Bytes ``(len(caches), n, d)`` that miss caches, each of a size in bytes and shared by so many groups.

    Interpolated in the logarithms of the sizes and numbers of groups that a profile has. More groups than its
    most need more space for data of their own.
    """
    bits = np.empty((2, len(caches), len(work), np.shape(caches[-1][0])[-1]))
    for number, each in enumerate(caches):
        bits[0, number], bits[1, number] = each
    size, group = np.log2(bits, out=bits)
    position = np.minimum(np.maximum(size - _BITS[0], 0.0), _LAST)
    known = np.log2(np.minimum(REUSE_GROUPS, work.reuse_groups))
    alone, several, most = known.T[..., None]
    beyond = group > most
    if beyond.any():
        growth = np.array(list(map(_growth, work.behind[..., :-1].tolist(), known[:, -1].tolist()))).T
        if len(work) > 1:
            growth = growth[:, beyond.nonzero()[1]]
        position[beyond] = _beyond(size[beyond], (group - most)[beyond], growth)
    of_groups = np.zeros(group.shape)
    for low, high in ((alone, several), (several, most)):
        of_groups += np.minimum(np.maximum((group - low) / np.maximum(high - low, _TINY), 0.0), 1.0)
    first, fewer = (
        np.minimum(position.astype(int), _LAST - 1),
        np.minimum(of_groups.astype(int), len(REUSE_GROUPS) - 2),
    )
    row = np.arange(len(work))[:, None] * len(REUSE_GROUPS)
    corners = work.behind.reshape(-1)[(row + fewer) * (_LAST + 2) + first + _CORNERS]
    smaller, larger = corners[0] + (of_groups - fewer) * (corners[1] - corners[0])
    missed: Reals = smaller + (position - first) * (larger - smaller)
    return missed


def _beyond(bits: Reals, more: Reals, growth: Reals) -> Reals:
    """Index of a cache's size ``(k,)`` among those in which the most groups of a profile miss as much.

    If ``2**more`` times as many groups share the cache; `growth` is ``(sizes, k)`` or ``(sizes, 1)``.
    """
    # What a larger cache misses, a smaller one misses too.
    needed = np.minimum.accumulate((_BITS[:, None] + growth * more)[::-1])[::-1]
    first, steps = needed[:-1], np.maximum(needed[1:] - needed[:-1], _TINY)
    index: Reals = np.minimum(np.maximum((bits - first + _TINY) / steps, 0.0), 1.0).sum(axis=0)
    return index


def _growth(by_groups: Sequence[Sequence[float]], most: float) -> list[float]:
    """Power of the number of groups with which caches of each size must grow to miss no more bytes.

    Of the bytes that the most groups of a profile, ``2**most``, miss in each size: 1 where groups have data
    of their own, 0 where they share them. Sixteen groups, or one, miss as many bytes in a smaller cache.
    """
    alone, several, many = by_groups
    few, fewer = (several, _SEVERAL) if most >= _SEVERAL + 1 else (alone, 0.0)
    if few[0] <= _AS_MANY * many[-1]:  # No cache has more of it than another
        return [1.0] * len(many)
    growth, fits, smallest = [], 0, 0
    for size, missed in enumerate(many):
        while fits < _LAST and few[fits] > _AS_MANY * missed:
            fits += 1
        least = few[fits]
        between = (missed - least) / max(few[max(fits - 1, 0)] - least, _TINY)
        power = (size - fits + min(max(between, 0.0), 1.0)) / max(most - fewer, _TINY)
        growth.append(min(max(power, 0.0), 1.0))
        smallest += fits == 0 and size < _LAST
    # The smallest size may be larger than needed: as of the next that is not.
    return [growth[smallest]] * smallest + growth[smallest:]
