"""Features of applications that share a device (paper 004, tables 4 and 5), by the names of the paper.

Of the concurrent features, only fairness is there: it is made of runs with microbenchmarks. The others
(`CONCURRENT`) are counters of the bag itself on a CPU. A prediction is asked for bags that have not run, and
datasets keep no such counters, so nothing stands in for them: what needs them is not available.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from crosscast.predict.corun.published.fairness_choice import LEVELS, fairness_with
from crosscast.tables.corun.solo import Solo

__all__ = [
    "CONCURRENT",
    "FAIRNESS",
    "INDIVIDUAL",
    "MIX",
    "other_features",
    "unknown_features",
    "value_of",
]

FAIRNESS = "fairness"
"""The fairness of a member, chosen by what the others do to the cache (section 5.1.4)."""

_MIX = MappingProxyType(
    {
        "SSE": "mix_sse",
        "ALU": "mix_alu",
        "MEM": "mix_mem",
        "FP": "mix_fp",
        "Stack": "mix_stack",
        "String": "mix_string",
        "Shift": "mix_shift",
        "Control": "mix_control",
    }
)

MIX = tuple(_MIX)
"""Shares of kinds of instructions: *insmix*."""

_KEPT: Mapping[str, str] = MappingProxyType(
    {
        "CPU_time": "cpu_time_s",
        **_MIX,
        "CPU_power": "cpu_power_w",
        "IPC": "ipc",
        "LLC_miss": "llc_miss",
        "Branch_miss": "branch_miss",
        "L1_miss": "l1_miss",
        "DTLB_miss": "dtlb_miss",
    }
)
"""Where each is among the features of a solo run."""

INDIVIDUAL = ("GPU_time", "GPU_power", *_KEPT)
"""Features of an application alone. The two of the GPU are those of the device at hand, whatever it is."""

CONCURRENT = (
    "IPC_sh",
    "LLC_miss_sh",
    "Branch_miss_sh",
    "L1_miss_sh",
    "DTLB_miss_sh",
    "CPU_power_sh",
)
"""Counters and power of the whole bag on a CPU."""


def value_of(solo: Solo, name: str) -> float:
    """A feature of an application alone; not a number where it is not known.

    Parameters
    ----------
    solo
        The application.
    name
        One of `INDIVIDUAL`, or a feature under the name that the solo run has it by.
    """
    if name == "GPU_time":
        return math.nan if solo.time_s is None else solo.time_s
    if name == "GPU_power":
        return math.nan if solo.power_w is None else solo.power_w
    return solo.features.get(_KEPT.get(name, name), math.nan)


def unknown_features(names: Iterable[str], bags: Sequence[tuple[Solo, ...]]) -> tuple[str, ...]:
    """Which features no member of the bags has; a combination with such a one is not available on them."""
    solos = {id(solo): solo for bag in bags for solo in bag}.values()

    def known(name: str) -> bool:
        if name == FAIRNESS:
            return any(not math.isnan(fairness_with(solo, level)) for solo in solos for level in LEVELS)
        return name not in CONCURRENT and any(not math.isnan(value_of(solo, name)) for solo in solos)

    return tuple(name for name in names if not known(name))


def other_features(bags: Sequence[tuple[Solo, ...]]) -> tuple[str, ...]:
    """Names of what members of the bags have besides the features of the paper, sorted."""
    found = {name for bag in bags for solo in bag for name in solo.features}
    return tuple(sorted(found - set(_KEPT.values())))
