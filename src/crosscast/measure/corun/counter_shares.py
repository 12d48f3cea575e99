"""Features of an application from what the CPU counted: rates and shares, as paper 004 uses them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["counter_shares"]

_RATIOS = {
    "ipc": (("instructions", "cycles"),),
    # Of loads where the processor tells them apart, as the other levels are.
    "llc_miss": (("llc_load_misses", "llc_loads"), ("cache_misses", "cache_references")),
    "l1_miss": (("l1d_load_misses", "l1d_loads"),),
    "branch_miss": (("branch_misses", "branches"),),
    "dtlb_miss": (("dtlb_load_misses", "dtlb_loads"),),
}
"""Each feature's numerator and denominator; the first that was counted is taken."""


def counter_shares(counters: Mapping[str, float]) -> dict[str, float]:
    """Instructions a cycle, and shares of misses, 0 to 1 (paper 004, Table 5).

    A counter that is 0 after a whole job does not count, as on many virtual machines: what it would give
    is left out, as with counters that are not there.

    Parameters
    ----------
    counters
        What was counted, by event of `crosscast.measure.counters.EVENTS`.

    Examples
    --------
    >>> counter_shares({"instructions": 30.0, "cycles": 20.0, "cache_misses": 0.0, "cache_references": 9.0})
    {'ipc': 1.5}
    """
    found = {}
    for name, ratios in _RATIOS.items():
        for upper, lower in ratios:
            if counters.get(upper) and counters.get(lower):
                value = counters[upper] / counters[lower]
                # Two events that are counted in turns may disagree a little.
                found[name] = value if name == "ipc" else min(value, 1.0)
                break
    return found
