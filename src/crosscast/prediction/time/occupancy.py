"""Work-groups on a device's units, and the bytes that miss caches which they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.launch_counts import REUSE_GROUPS
from crosscast.devices.architectures import Sheets
from crosscast.prediction.time.work import CACHE_BITS, Work

_AS_MANY = 1.02  # Bytes missed over those of another cache, if they are the same but for sampling
_TINY = 1e-15


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Work-groups of ``n`` launches on ``d`` devices; arrays are of shape ``(n, d)``."""

    of_unit: Reals  # Work-groups of a unit at once
    busy: Reals  # Units that have a work-group; the last wave may leave most of them idle
    waves: Reals  # Of the groups that are resident together
    tail: Reals  # Time of whole rounds of groups over that of groups spread evenly
    together: Reals  # Work-groups of all units at once

    @classmethod
    def of(cls, work: Work, sheets: Sheets, resident: Reals) -> Occupancy:
        """Distribute the work-groups, of which a unit has so many at once, ``(n, d)``."""
        groups = work.groups[:, None]
        rounds = np.where(groups > sheets.units, groups / sheets.units, 1.0)
        return cls(
            of_unit=np.minimum(np.ceil(groups / sheets.units), resident),
            busy=np.minimum(sheets.units, groups),
            waves=np.maximum(groups / (sheets.units * resident), 1.0),
            tail=np.where(groups > sheets.units, np.ceil(rounds - 1e-9) / rounds, 1.0),
            together=np.minimum(groups, sheets.units * resident),
        )


def bytes_behind(work: Work, *caches: tuple[Reals, Reals]) -> list[Reals]:
    """Bytes ``(n, d)`` that miss caches, each of a size in bytes ``(d,)`` and shared by so many groups."""
    sizes = np.concatenate([np.broadcast_to(size, together.shape) for size, together in caches], axis=1)
    missed = _missed(work, sizes, np.concatenate([together for _, together in caches], axis=1))
    return np.split(missed, np.cumsum([together.shape[1] for _, together in caches])[:-1], axis=1)


def _missed(work: Work, cache: Reals, together: Reals) -> Reals:
    """Bytes that miss a cache of a size which `together` groups share, of shape ``(n, d)`` each.

    Interpolated in the logarithms of the sizes and numbers of groups that a profile has. More groups than its
    most need more space for data of their own.
    """
    size_position = _size_position(work, cache, together)
    size_index = np.minimum(size_position.astype(int), len(CACHE_BITS) - 2)
    counted = np.log2(np.minimum(REUSE_GROUPS, work.reuse_groups[:, None]))
    first, steps = counted[:, None, :-1], np.maximum(np.diff(counted)[:, None, :], _TINY)
    group_position = np.clip((np.log2(together)[..., None] - first) / steps, 0.0, 1.0).sum(axis=-1)
    group_index = np.minimum(group_position.astype(int), len(REUSE_GROUPS) - 2)
    rows = np.arange(len(work))[:, None]
    size_fraction, group_fraction = size_position - size_index, group_position - group_index
    missed = np.zeros(together.shape)
    for di, group_share in ((0, 1 - group_fraction), (1, group_fraction)):
        for dj, size_share in ((0, 1 - size_fraction), (1, size_fraction)):
            missed += group_share * size_share * work.behind[rows, group_index + di, size_index + dj]
    return missed


def _size_position(work: Work, cache: Reals, together: Reals) -> Reals:
    """Index of a cache's size among those in which the most groups of a profile miss as much, ``(n, d)``."""
    bits = np.log2(cache)
    as_known: Reals = np.clip(bits - CACHE_BITS[0], 0.0, len(CACHE_BITS) - 1.0)
    most = work.reuse_groups[:, None]
    if (together <= most).all():
        return as_known
    more = np.log2(np.maximum(together / most, 1.0))
    needed = np.array(CACHE_BITS) + _growth(work)[:, None, :] * more[..., None]
    # What a larger cache misses, a smaller one misses too.
    needed = np.minimum.accumulate(needed[..., ::-1], axis=-1)[..., ::-1]
    first, steps = needed[..., :-1], np.maximum(np.diff(needed, axis=-1), _TINY)
    position: Reals = np.clip((bits[..., None] - first + _TINY) / steps, 0.0, 1.0).sum(axis=-1)
    return position


def _growth(work: Work) -> Reals:
    """Power of the number of groups with which caches must grow to miss no more bytes, ``(n, sizes)``.

    Of the bytes that the most groups of a profile miss in each size: 1 where groups have data of their own, 0
    where they share them. Sixteen groups, or one, miss as many bytes in a smaller cache.
    """
    alone, several, most = REUSE_GROUPS[0], REUSE_GROUPS[-2], work.reuse_groups
    is_less = (most >= 2 * several)[:, None]
    few, many = np.where(is_less, work.behind[:, -2, :-1], work.behind[:, 0, :-1]), work.behind[:, -1, :-1]
    as_many = few[:, None, :] <= _AS_MANY * many[:, :, None]
    last = len(CACHE_BITS) - 1
    fits = np.where(as_many.any(axis=-1), as_many.argmax(axis=-1), last)
    least, before = (np.take_along_axis(few, index, axis=1) for index in (fits, np.maximum(fits - 1, 0)))
    between = np.clip((many - least) / np.maximum(before - least, _TINY), 0.0, 1.0)
    times = np.log2(np.maximum(most[:, None] / np.where(is_less, several, alone), 1.0 + _TINY))
    growth: Reals = np.clip((np.arange(last + 1) - (fits - between)) / times, 0.0, 1.0)
    # The smallest size may be larger than needed: as of the next that is not.
    for size in reversed(range(last)):
        growth[:, size] = np.where(fits[:, size] == 0, growth[:, size + 1], growth[:, size])
    return growth
