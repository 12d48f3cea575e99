"""From times, powers and counters at the sample configurations to numbers that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosscast.arrays import Integers, Reals

__all__ = ["SampleColumns", "counts_in", "total_in"]

_TOTALS = ("instructions", "instructions_executed", "inst_executed")
"""Counters that counts are divided by; the first that is there."""

_RATES = ("throughput", "_per_", "bandwidth")
"""Parts of the names of counters that are rates already: these are not divided."""

_LARGEST_RATIO = 100.0
"""A counter that is nowhere above is a ratio or a percentage, and is left as it is."""


@dataclass(frozen=True)
class SampleColumns:
    """What ``q`` sources tell at ``s`` samples.

    Parameters
    ----------
    sources
        ``time`` first, then ``power``, ``domain:name`` and ``counter:name``.
    counts
        Counters that count events, or rates of events.
    total
        Counter by which events are divided, which must be among the sources; empty for none.
    """

    sources: tuple[str, ...]
    counts: frozenset[str]
    total: str

    def matrix(
        self, time_s: Reals, power_w: Reals, domains: Mapping[str, Reals], counters: Mapping[str, Reals]
    ) -> Reals:
        """Logarithms of powers and of times relative to the first sample; counters as the class says.

        Parameters
        ----------
        time_s, power_w, domains, counters
            ``(..., s)`` each.

        Returns
        -------
        array
            ``(..., q, s)``; NaN where not known.
        """
        raw = np.empty((*time_s.shape[:-1], len(self.sources), time_s.shape[-1]))
        for place, (kind, name) in enumerate(self._parts):
            if kind == "time":
                raw[..., place, :] = time_s
            elif kind == "power":
                raw[..., place, :] = power_w
            else:
                raw[..., place, :] = (domains if kind == "domain" else counters).get(name, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = raw.copy()
            found[..., self._logarithms, :] = np.log(raw[..., self._logarithms, :])
            found[..., 0, :] -= found[..., 0, :1]
            found[..., self.counted, :] = np.log1p(raw[..., self.counted, :])
            if self.divided.size:
                by = raw[..., self.sources.index(f"counter:{self.total}"), None, :]
                found[..., self.divided, :] = raw[..., self.divided, :] / by
        found[~np.isfinite(found)] = np.nan
        return found

    @cached_property
    def _parts(self) -> list[tuple[str, str]]:
        return [(kind, name) for kind, _, name in (each.partition(":") for each in self.sources)]

    @cached_property
    def _logarithms(self) -> Integers:
        return np.array([place for place, (kind, _) in enumerate(self._parts) if kind != "counter"], np.int64)

    @cached_property
    def divided(self) -> Integers:
        """Places of the counters that are divided by the total."""
        return np.array([place for place in self._events if self._is_divided(place)], np.int64)

    @cached_property
    def counted(self) -> Integers:
        """Places of the counters that are logarithms, of one more than they are."""
        return np.array([place for place in self._events if not self._is_divided(place)], np.int64)

    @property
    def _events(self) -> list[int]:
        return [
            place
            for place, (kind, name) in enumerate(self._parts)
            if kind == "counter" and name in self.counts
        ]

    def _is_divided(self, place: int) -> bool:
        name = self._parts[place][1]
        return self.total not in ("", name) and not any(part in name for part in _RATES)


def counts_in(counters: Mapping[str, Reals]) -> frozenset[str]:
    """Names of the counters that reach above what a ratio or a percentage can be."""
    return frozenset(name for name, values in counters.items() if _is_count(values[np.isfinite(values)]))


def _is_count(known: Reals) -> bool:
    return bool(known.size) and bool(known.min() >= 0) and bool(known.max() > _LARGEST_RATIO)


def total_in(counters: Mapping[str, Reals]) -> str:
    """Name of the counter of instructions; empty if there is none."""
    return next((name for name in _TOTALS if name in counters), "")
