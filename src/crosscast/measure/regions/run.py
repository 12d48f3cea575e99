"""One run of a region, as it was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from crosscast.configuration import Configuration
from crosscast.measure.regions.key import RegionKey

__all__ = ["NOTHING", "RegionRun"]

NOTHING: Mapping[str, float] = MappingProxyType({})
"""No number of any name."""


class RegionRun(NamedTuple):
    """What a run of a region took.

    Parameters
    ----------
    key
        Which region.
    configuration
        What the program was set to; none if it did not say.
    started_s
        When it started, in seconds since 1970-01-01 UTC.
    duration_s
        What it took, in seconds.
    metered_s
        Time over which its energy was counted, in seconds; none if it was not. It differs from the duration
        where a device tells the latter.
    energy_j
        Energy of each domain in that time, in joules: the plain difference of two readings.
    powers_w
        Power of each domain, in watts, where readings were fine enough to tell: over this run, or over it and
        those before it in the same configuration, since the power was told last.
    power_w
        Power of all domains that are not parts of others, in watts; none where one of them is not known.
    counters
        What the processor counted, by event.
    failure
        Kind of the exception that ended it, or none. Such a run is not a sample of anything.
    """

    key: RegionKey
    configuration: Configuration | None
    started_s: float
    duration_s: float
    metered_s: float | None = None
    energy_j: Mapping[str, float] = NOTHING
    powers_w: Mapping[str, float] = NOTHING
    power_w: float | None = None
    counters: Mapping[str, float] = NOTHING
    failure: str | None = None
